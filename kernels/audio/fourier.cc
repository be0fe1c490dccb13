// Discrete Fourier transforms over the last 1, 2 or 3 axes: FFT, IFFT and, for real numbers, RFFT
// and IRFFT. Computes in double precision.
#include <memory>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/audio/fft.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"

namespace leat {
namespace {

// One transform over all axes of a block of elements, in place.
class Transform {
 public:
  // RESOURCE_EXHAUSTED if there is no memory for tables and copies.
  explicit Transform(std::vector<int64_t> extents) : extents_(std::move(extents)) {
    for (const int64_t extent : extents_) elements_ = product_of_extents(elements_, extent);
    check_memory_for(product_of_extents(elements_, 12), sizeof(complex128));
    for (const int64_t extent : extents_) axes_.push_back(std::make_shared<const Fft>(extent));
  }

  int64_t elements() const { return elements_; }

  void run(complex128* block, bool is_inverse) const {
    if (is_inverse) conjugate(block, 1);
    int64_t stride = elements_;
    for (size_t axis = 0; axis < axes_.size(); ++axis) {
      const int64_t extent = extents_[axis];
      stride /= extent;
      std::vector<complex128> line(extent);
      for (int64_t i = 0; i < elements_ / extent; ++i) {
        complex128* const first = block + i / stride * stride * extent + i % stride;
        for (int64_t k = 0; k < extent; ++k) line[k] = first[k * stride];
        (*axes_[axis])(line.data());
        for (int64_t k = 0; k < extent; ++k) first[k * stride] = line[k];
      }
    }
    if (is_inverse) conjugate(block, 1 / static_cast<double>(elements_));
  }

 private:
  void conjugate(complex128* block, double factor) const {
    for (int64_t i = 0; i < elements_; ++i) block[i] = std::conj(block[i]) * factor;
  }

  std::vector<int64_t> extents_;
  std::vector<std::shared_ptr<const Fft>> axes_;
  int64_t elements_ = 1;
};

// Calls f(position of an element of a block of `part` in a block of `whole`, its number in `part`)
// for all elements that both have.
template <class F>
void for_each_shared(const std::vector<int64_t>& part, const std::vector<int64_t>& whole, F f) {
  int64_t count = 1;
  for (const int64_t extent : part) count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0, stride = 1, rest = i;
    bool is_shared = true;
    for (size_t axis = part.size(); axis-- > 0;) {
      const int64_t index = rest % part[axis];
      rest /= part[axis];
      is_shared = is_shared && index < whole[axis];
      at += index * stride;
      stride *= whole[axis];
    }
    if (is_shared) f(at, i);
  }
}

std::vector<int64_t> last_axes(const Shape& shape, int count) {
  return {shape.dims().end() - count, shape.dims().end()};
}

int64_t product(const std::vector<int64_t>& extents) {
  int64_t out = 1;
  for (const int64_t extent : extents) out *= extent;
  return out;
}

// Runs `each(block of input, block of output, scratch)` for all blocks: `axes` axes each.
template <class In, class Out, class F>
BoundKernel for_each_block(const KernelRequest& r, const Transform& transform, int axes, F each) {
  const int64_t in = product(last_axes(r.inputs[0].shape, axes)),
                out = product(last_axes(r.outputs[0].shape, axes)),
                blocks = r.outputs[0].shape.elements() / out, work = transform.elements();
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const int64_t grain = 1 + 65536 / (20 * work);
    a.stream->parallel_for(blocks, grain, [&](int64_t begin, int64_t end) {
      std::vector<complex128> scratch(work);
      for (int64_t b = begin; b < end; ++b)
        each(a.input<In>(0) + b * in, a.output<Out>() + b * out, scratch);
    });
  });
  kernel.cost_ns = 20.0 * static_cast<double>(blocks * work);
  return kernel;
}

// ---- FFT and IFFT

void infer(ShapeContext& c, int axes) { c.set_output(0, c.with_rank_at_least(0, axes)); }

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r, int axes, bool is_inverse) {
  const Shape& shape = r.inputs[0].shape;
  if (shape.elements() == 0) return {};
  const Transform transform(last_axes(shape, axes));
  return for_each_block<T, T>(
      r, transform, axes,
      [transform, is_inverse](const T* from, T* to, std::vector<complex128>& block) {
        std::copy_n(from, block.size(), block.begin());
        transform.run(block.data(), is_inverse);
        std::transform(block.begin(), block.end(), to, [](complex128 x) { return T(x); });
      });
}

std::string with_axes(const std::string& name, int axes) {
  return axes == 1 ? name : name + std::to_string(axes) + "D";
}

std::string axes_text(int axes) {
  return axes == 1 ? "the last axis" : "the last " + std::to_string(axes) + " axes";
}

// The number of elements of a block, as a complex number.
Output block_size(Gradient& g, int axes) {
  const Output shape = shape_of(g.x());
  std::vector<int32_t> last;
  for (int axis = 0; axis < axes; ++axis) last.push_back(axis - axes);
  const Output rank = op("Rank", {g.x()});
  const Output extents =
      op("GatherV2", {shape, rank + constant(g.graph(), Tensor::of<int32_t>({axes}, last)),
                      constant(g.graph(), Tensor::scalar(0))});
  return cast(prod(extents, constant(g.graph(), ints({0}))), g.x().dtype());
}

OpDef transform_op(int axes, bool is_inverse) {
  const std::string forward = with_axes("FFT", axes), inverse = with_axes("IFFT", axes);
  const complex64 i(0, 1);
  const std::vector<complex64> in = {1, 2, 3, 4},
                               out = {10, -2.0F + 2.0F * i, -2, -2.0F - 2.0F * i};
  const Shape shape = axes == 1 ? Shape{4} : axes == 2 ? Shape{1, 4} : Shape{1, 1, 4};
  const Tensor x = Tensor::of<complex64>(shape, in), y = Tensor::of<complex64>(shape, out);
  return {
      .name = is_inverse ? inverse : forward,
      .doc = is_inverse ? "input = " + forward + "(output)."
                        : "output[k] = the sum over j of input[j] exp(-2πi j k / n) along " +
                              axes_text(axes) + ".",
      .inputs = {"input: Tcomplex"},
      .outputs = {"output: Tcomplex"},
      .attrs = {"Tcomplex: {complex64, complex128} = complex64"},
      .shape = [axes](ShapeContext& c) { infer(c, axes); },
      .gradient =
          [=](Gradient& g) {
            const Output size = block_size(g, axes);
            g.dx() = is_inverse ? op(forward, {g.dy()}) / size : op(inverse, {g.dy()}) * size;
          },
      .kernels = {cpu_kernel("Tcomplex", ComplexTypes{},
                             [=]<class T>(TypeTag<T> t, const KernelRequest& r) {
                               return prepare(t, r, axes, is_inverse);
                             })},
      .examples = {{.inputs = {is_inverse ? y : x}, .outputs = {is_inverse ? x : y}}},
      .has_complex_gradient = true,
  };
}

// ---- RFFT and IRFFT

// The spectrum of real numbers is its own mirror image: half of it, and one more, along the last
// axis.
void infer_real(ShapeContext& c, int axes, bool is_inverse) {
  Shape shape = c.with_rank_at_least(0, axes);
  const Shape& lengths = c.input(1);
  check(lengths.is_compatible({axes}), "fft_length must have shape [", axes, "], got ", lengths);
  if (!shape.has_rank()) return c.set_output(0, shape);
  for (int i = 0; i < axes; ++i) {
    const int axis = shape.rank() - axes + i;
    int64_t extent = any;
    if (c.value(1) != nullptr) {
      extent = to_int64s(*c.value(1)).at(i);
      check(extent >= 0, "fft_length[", i, "] must be >= 0, but got: ", extent);
      const bool is_half = i == axes - 1;
      const int64_t least = is_inverse && is_half ? extent / 2 + 1 : extent;
      check(shape[axis] == any || shape[axis] == 0 || shape[axis] >= least, "Input dimension ",
            axis, " must have length of at least ", least, " but got: ", shape[axis]);
      if (is_half && !is_inverse && extent != 0) extent = extent / 2 + 1;
    }
    shape.set(axis, extent);
  }
  c.set_output(0, shape);
}

template <class T>
BoundKernel fill_with_zeros(const KernelRequest& r) {
  return BoundKernel::of([n = r.outputs[0].shape.elements()](const Arguments& a) {
    std::fill_n(a.output<T>(), n, T(0));
  });
}

template <class T>
BoundKernel prepare_real(const KernelRequest& r, int axes) {
  using Complex = std::complex<T>;
  if (r.outputs[0].shape.elements() == 0) return {};
  if (r.inputs[0].shape.elements() == 0) return fill_with_zeros<Complex>(r);
  const std::vector<int64_t> extents = to_int64s(*r.inputs[1].value),
                             in = last_axes(r.inputs[0].shape, axes),
                             out = last_axes(r.outputs[0].shape, axes);
  const Transform transform(extents);
  return for_each_block<T, Complex>(
      r, transform, axes, [=](const T* from, Complex* to, std::vector<complex128>& block) {
        for_each_shared(extents, in, [&](int64_t at, int64_t i) { block[i] = from[at]; });
        transform.run(block.data(), false);
        for_each_shared(out, extents, [&](int64_t at, int64_t i) { to[i] = Complex(block[at]); });
      });
}

// The missing half is the conjugate of the given one, with the other axes reversed. This fills it
// in; where an element of the input mirrors itself, only its real part counts. Over several axes,
// the last is transformed after the others, as in TensorFlow.
template <class T>
BoundKernel prepare_real_inverse(const KernelRequest& r, int axes) {
  using Complex = std::complex<T>;
  if (r.outputs[0].shape.elements() == 0) return {};
  if (r.inputs[0].shape.elements() == 0) return fill_with_zeros<T>(r);
  const std::vector<int64_t> extents = to_int64s(*r.inputs[1].value),
                             in = last_axes(r.inputs[0].shape, axes);
  std::vector<int64_t> half = extents;
  half.back() = extents.back() / 2 + 1;
  const int64_t length = extents.back(), columns = half.back(), rows = product(half) / columns;
  const Transform last({length});
  std::vector<int64_t> leading(extents.begin(), extents.end() - 1);
  leading.push_back(1);
  const Transform first(leading);  // of one column
  const Transform whole(extents);  // its size is that of the scratch
  return for_each_block<Complex, T>(
      r, whole, axes, [=](const Complex* from, T* to, std::vector<complex128>&) {
        std::vector<complex128> column(rows), line(length);
        std::vector<complex128> spectrum(rows * columns);
        for_each_shared(half, in, [&](int64_t at, int64_t i) { spectrum[i] = from[at]; });
        for (int64_t c = 0; rows > 1 && c < columns; ++c) {
          for (int64_t row = 0; row < rows; ++row) column[row] = spectrum[row * columns + c];
          first.run(column.data(), true);
          for (int64_t row = 0; row < rows; ++row) spectrum[row * columns + c] = column[row];
        }
        for (int64_t row = 0; row < rows; ++row) {
          const complex128* x = spectrum.data() + row * columns;
          line[0] = x[0].real();
          for (int64_t k = 1; k < length; ++k)
            line[k] = 2 * k == length  ? x[k].real()
                      : 2 * k < length ? x[k]
                                       : std::conj(x[length - k]);
          last.run(line.data(), true);
          for (int64_t k = 0; k < length; ++k)
            to[row * length + k] = static_cast<T>(line[k].real());
        }
      });
}

template <class T, class Prepare>
Kernel real_kernel(Prepare prepare) {
  return {.types = {{"Treal", {dtype_of<T>}}, {"Tcomplex", {dtype_of<std::complex<T>>}}},
          .prepare = prepare};
}

OpDef real_transform_op(int axes, bool is_inverse) {
  const std::string forward = with_axes("RFFT", axes), inverse = with_axes("IRFFT", axes);
  const Tensor length = axes == 1 ? ints({4}) : axes == 2 ? ints({1, 4}) : ints({1, 1, 4});
  const Shape real_shape = axes == 1 ? Shape{4} : axes == 2 ? Shape{1, 4} : Shape{1, 1, 4};
  const Shape half_shape = axes == 1 ? Shape{3} : axes == 2 ? Shape{1, 3} : Shape{1, 1, 3};
  const Tensor x = floats(real_shape, {1, 2, 3, 4});
  const Tensor y = Tensor::of<complex64>(half_shape, {{10, 0}, {-2, 2}, {-2, 0}});
  std::vector<Kernel> kernels;
  if (is_inverse) {
    kernels = {real_kernel<float>(
                   [axes](const KernelRequest& r) { return prepare_real_inverse<float>(r, axes); }),
               real_kernel<double>([axes](const KernelRequest& r) {
                 return prepare_real_inverse<double>(r, axes);
               })};
  } else {
    kernels = {
        real_kernel<float>([axes](const KernelRequest& r) { return prepare_real<float>(r, axes); }),
        real_kernel<double>(
            [axes](const KernelRequest& r) { return prepare_real<double>(r, axes); })};
  }
  return {
      .name = is_inverse ? inverse : forward,
      .doc = is_inverse
                 ? "input = " + forward + "(output, fft_length)."
                 : with_axes("FFT", axes) +
                       " of real numbers, cropped to fft_length; only the first fft_length / 2 + 1 "
                       "elements of the last axis, as the others are their conjugates.",
      .inputs = {is_inverse ? "input: Tcomplex" : "input: Treal", "fft_length: int32"},
      .outputs = {is_inverse ? "output: Treal" : "output: Tcomplex"},
      .attrs = {"Treal: {float, double} = float", "Tcomplex: {complex64, complex128} = complex64"},
      .shape = [=](ShapeContext& c) { infer_real(c, axes, is_inverse); },
      .kernels = std::move(kernels),
      .examples = {{.inputs = {is_inverse ? y : x, length}, .outputs = {is_inverse ? x : y}}},
      .value_inputs = {1},
  };
}

const std::vector<Op> ops = [] {
  std::vector<Op> out;
  for (const int axes : {1, 2, 3}) {
    for (const bool is_inverse : {false, true}) {
      out.emplace_back(transform_op(axes, is_inverse));
      out.emplace_back(real_transform_op(axes, is_inverse));
    }
  }
  return out;
}();

}  // namespace
}  // namespace leat
