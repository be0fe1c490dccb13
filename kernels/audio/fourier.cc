// Discrete Fourier transforms over the last 1, 2 or 3 axes: FFT, IFFT and, for real numbers, RFFT
// and IRFFT. Computes in the type of the numbers, as TensorFlow does.
#include <cmath>
#include <numbers>
#include <utility>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/audio/fft_stages.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"

namespace leat {
namespace {

int64_t product_of(const std::vector<int64_t>& extents) {
  int64_t out = 1;
  for (const int64_t extent : extents) out *= extent;
  return out;
}

// Places in a tensor: the last axes of a shape, or fewer elements along them.
struct Grid {
  std::vector<int64_t> extents, strides;

  // `part` of a tensor with the last axes `whole`.
  Grid(std::vector<int64_t> part, const std::vector<int64_t>& whole)
      : extents(std::move(part)), strides(extents.size(), 1) {
    for (size_t axis = extents.size() - 1; axis-- > 0;)
      strides[axis] = strides[axis + 1] * whole[axis + 1];
  }
  int64_t lines(size_t axis) const {
    int64_t out = 1;
    for (size_t i = 0; i < extents.size(); ++i) out *= i == axis ? 1 : extents[i];
    return out;
  }
  // Where line i along the axis begins.
  int64_t line(size_t axis, int64_t i) const {
    int64_t at = 0;
    for (size_t k = extents.size(); k-- > 0;) {
      if (k == axis) continue;
      at += i % extents[k] * strides[k];
      i /= extents[k];
    }
    return at;
  }
};

// Two arrays for the elements of some sequences, aligned to vectors.
template <class R>
class Workspace {
 public:
  explicit Workspace(int64_t numbers)
      : each_((numbers + line - 1) / line * line), memory_(2 * each_ + line) {
    auto at = reinterpret_cast<uintptr_t>(memory_.data());
    first_ = memory_.data() + (64 - at % 64) % 64 / sizeof(R);
  }
  R* first() { return first_; }
  R* other(const R* than) { return than == first_ ? first_ + each_ : first_; }

 private:
  static constexpr int64_t line = 64 / sizeof(R);  // of the cache
  int64_t each_;
  std::vector<R> memory_;
  R* first_;
};

enum class Kind { complex, from_real, to_real };

// The transform of the lines of one axis, computed in R.
template <class R>
class Pass {
 public:
  // Of sequences of n numbers.
  Pass(int64_t n, Kind kind, bool is_inverse)
      : n_(n),
        kind_(kind),
        is_inverse_(is_inverse),
        is_halved_(kind != Kind::complex && n % 2 == 0),
        fft_(is_halved_ ? n / 2 : n) {
    if (!is_halved_) return;
    for (int64_t k = 0; k <= n / 2; ++k) {
      StepEnd::pace(8);
      const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
      roots_.emplace_back(static_cast<R>(std::cos(angle)), static_cast<R>(-std::sin(angle)));
    }
  }

  // Lines [begin, end) along the axis. Elements of the complex side are pairs of numbers.
  void run(const R* from, const Grid& source, R* to, const Grid& target, size_t axis, int64_t begin,
           int64_t end) const {
    static const auto run_lanes = choose_isa(&Pass::run_base, &Pass::run_avx2, &Pass::run_avx512);
    constexpr int64_t most_of_lanes = 1 << 16;  // longer sequences would leave the cache
    const int64_t room = 2 * (fft_.capacity() + 1);
    const bool has_lanes = fft_.capacity() <= most_of_lanes && end - begin > 2;
    Workspace<R> work(room * (has_lanes ? lanes() : 1));
    while (begin < end) {
      StepEnd::pace(16 * n_);
      const Part part{from, source, to, target, axis, begin, std::min(end - begin, lanes())};
      if (has_lanes && part.count > 2) {
        (this->*run_lanes)(part, work);
        begin += part.count;
      } else {
        run_some<1>(part, work);
        ++begin;
      }
    }
  }

  // Lines that are transformed together: as many as a vector has lanes.
  static int64_t lanes() {
    static const int64_t found =
        choose_isa(base_bytes, avx2_bytes, avx512_bytes) / static_cast<int64_t>(sizeof(R));
    return found;
  }

 private:
  static constexpr int64_t base_bytes = 16, avx2_bytes = 32, avx512_bytes = 64;  // of vectors

  // Some lines; a pass of one lane takes the first.
  struct Part {
    const R* from;
    const Grid& source;
    R* to;
    const Grid& target;
    size_t axis;
    int64_t first, count;
  };

  void run_base(const Part& part, Workspace<R>& work) const {
    run_some<base_bytes / sizeof(R)>(part, work);
  }
  LEAT_TARGET_AVX2 void run_avx2(const Part& part, Workspace<R>& work) const {
    run_some<avx2_bytes / sizeof(R)>(part, work);
  }
  LEAT_TARGET_AVX512 void run_avx512(const Part& part, Workspace<R>& work) const {
    run_some<avx512_bytes / sizeof(R)>(part, work);
  }

  // The places of real sequences are counted in numbers, those of complex ones in pairs.
  template <int64_t lanes, class T>
  static Lines<T, lanes> lines_of(T* data, const Grid& grid, const Part& part, int64_t n,
                                  int64_t numbers) {
    Lines<T, lanes> out{
        .at = {}, .count = std::min(part.count, lanes), .n = n, .stride = grid.strides[part.axis]};
    for (int64_t l = 0; l < lanes; ++l)
      out.at[l] = data + numbers * grid.line(part.axis, part.first + std::min(l, out.count - 1));
    return out;
  }

  template <int64_t lanes>
  LEAT_INLINE void run_some(const Part& part, Workspace<R>& work) const {
    using V = Lanes<R, lanes>;
    const int64_t half = n_ / 2 + 1, pairs = is_halved_ ? n_ / 2 : n_;
    const bool from_real = kind_ == Kind::from_real, to_real = kind_ == Kind::to_real;
    const Lines<const R, lanes> in =
        lines_of<lanes>(part.from, part.source, part, to_real ? half : pairs, from_real ? 1 : 2);
    const Lines<R, lanes> out =
        lines_of<lanes>(part.to, part.target, part, from_real ? half : pairs, to_real ? 1 : 2);
    R* x = work.first();
    if (from_real && !is_halved_) {
      load_real(in, x);
    } else {
      load(in, is_inverse_ && !to_real, x);
    }
    if (to_real) {
      spread<V>(x, work.other(x));
      x = work.other(x);
    }
    x = reinterpret_cast<R*>(
        FftStages<V, R>::run(fft_, reinterpret_cast<V*>(x), reinterpret_cast<V*>(work.other(x))));
    if (from_real && is_halved_) {
      gather<V>(x, work.other(x));
      x = work.other(x);
    }
    const R by = is_inverse_ ? 1 / static_cast<R>(fft_.length()) : 1;
    if (to_real && !is_halved_) {
      store_real(x, by, out);
    } else {
      store(x, is_inverse_, by, out);
    }
  }

  template <int64_t lanes>
  LEAT_INLINE void load_real(const Lines<const R, lanes>& lines, R* x) const {
    for (int64_t k = 0; k < n_; ++k) {
      for (int64_t l = 0; l < lanes; ++l) {
        x[2 * k * lanes + l] = lines.at[l][k];
        x[(2 * k + 1) * lanes + l] = 0;
      }
    }
  }
  template <int64_t lanes>
  LEAT_INLINE void store_real(const R* x, R by, const Lines<R, lanes>& lines) const {
    for (int64_t k = 0; k < n_; ++k) {
      for (int64_t l = 0; l < std::min(lanes, lines.count); ++l)
        lines.at[l][k] = x[(2 * k + 1) * lanes + l] * by;
    }
  }

  // Half the spectrum of n real numbers from the transform of n / 2 complex ones, which hold two of
  // them each (W. Press et al., "Numerical recipes", 12.3).
  template <class V>
  LEAT_INLINE void gather(const R* from, R* to) const {
    const auto* z = reinterpret_cast<const Pair<V, R>*>(from);
    auto* out = reinterpret_cast<Pair<V, R>*>(to);
    const int64_t h = n_ / 2;
    for (int64_t k = 0; k <= h; ++k) {
      const Pair<V, R> here = z[k == h ? 0 : k], mirrored = z[k == 0 ? 0 : h - k].conjugate();
      const Pair<V, R> even = (here + mirrored) * R(0.5),
                       odd = ((here - mirrored) * R(0.5)).times_minus_i();
      out[k] = even + odd * roots_[k];
    }
  }

  // The opposite, for the inverse; where an element of the spectrum mirrors itself, only its real
  // part counts. Leaves real and imaginary parts exchanged.
  template <class V>
  LEAT_INLINE void spread(R* from, R* to) const {
    auto* x = reinterpret_cast<Pair<V, R>*>(from);
    auto* out = reinterpret_cast<Pair<V, R>*>(to);
    x[0].im = V{};
    const int64_t h = n_ / 2;
    if (!is_halved_) {
      for (int64_t k = 0; k < n_; ++k) {
        const Pair<V, R> value = k <= h ? x[k] : x[n_ - k].conjugate();
        out[k] = {value.im, value.re};
      }
      return;
    }
    x[h].im = V{};
    for (int64_t k = 0; k < h; ++k) {
      const Pair<V, R> mirrored = x[h - k].conjugate();
      const Pair<V, R> even = (x[k] + mirrored) * R(0.5),
                       odd = (x[k] - mirrored) * R(0.5) * std::conj(roots_[k]);
      const Pair<V, R> value = even - odd.times_minus_i();
      out[k] = {value.im, value.re};
    }
  }

  int64_t n_;
  Kind kind_;
  bool is_inverse_, is_halved_;
  Fft<R> fft_;
  std::vector<std::complex<R>> roots_;
};

std::vector<int64_t> last_axes(const Shape& shape, int count) {
  return {shape.dims().end() - count, shape.dims().end()};
}

// RESOURCE_EXHAUSTED if there is no memory for tables and copies of a block.
int64_t checked_product(const std::vector<int64_t>& extents) {
  int64_t elements = 1;
  for (const int64_t extent : extents) elements = product_of_extents(elements, extent);
  check_memory_for(product_of_extents(elements, 12), sizeof(complex128));
  return elements;
}

// The transform of blocks of T to blocks of U, of all their axes, of which the passes are in the
// order in which they run. Between passes lies a block of complex numbers.
template <class T, class U, class R>
BoundKernel bind_passes(int64_t blocks, std::vector<std::pair<size_t, Pass<R>>> passes,
                        const Grid& source, int64_t in, const Grid& between, const Grid& target,
                        int64_t out) {
  const int64_t elements = std::max(in, out);
  BoundKernel kernel = BoundKernel::of([=, passes = std::move(passes)](const Arguments& a) {
    const auto* from = reinterpret_cast<const R*>(a.input<T>(0));
    auto* to = reinterpret_cast<R*>(a.output<U>());
    constexpr int64_t in_numbers = sizeof(T) / sizeof(R), out_numbers = sizeof(U) / sizeof(R);
    if (passes.size() == 1) {  // a block is a line
      const Grid lines_in({blocks, source.extents[0]}, {blocks, in}),
          lines_out({blocks, target.extents[0]}, {blocks, out});
      const int64_t lanes = Pass<R>::lanes(), groups = (blocks + lanes - 1) / lanes;
      a.stream->parallel_for(groups, 1 + 4096 / elements, [&](int64_t begin, int64_t end) {
        passes[0].second.run(from, lines_in, to, lines_out, 1, begin * lanes,
                             std::min(blocks, end * lanes));
      });
      return;
    }
    a.stream->parallel_for(blocks, 1 + 32768 / elements, [&](int64_t begin, int64_t end) {
      std::vector<R> block(2 * product_of(between.extents));
      R* const middle = block.data();
      for (int64_t b = begin; b < end; ++b) {
        for (size_t i = 0; i < passes.size(); ++i) {
          const auto& [axis, pass] = passes[i];
          const R* first = from + b * in * in_numbers;
          R* last = to + b * out * out_numbers;
          if (i == 0) {
            pass.run(first, source, middle, between, axis, 0, between.lines(axis));
          } else if (i + 1 < passes.size()) {
            pass.run(middle, between, middle, between, axis, 0, between.lines(axis));
          } else {
            pass.run(middle, between, last, target, axis, 0, between.lines(axis));
          }
        }
      }
    });
  });
  kernel.cost_ns = 3.0 * static_cast<double>(blocks * elements);
  return kernel;
}

// ---- FFT and IFFT

void infer(ShapeContext& c, int axes) { c.set_output(0, c.with_rank_at_least(0, axes)); }

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r, int axes, bool is_inverse) {
  const Shape& shape = r.inputs[0].shape;
  if (shape.elements() == 0) return {};
  const std::vector<int64_t> extents = last_axes(shape, axes);
  const int64_t elements = checked_product(extents);
  using R = typename T::value_type;
  std::vector<std::pair<size_t, Pass<R>>> passes;
  for (size_t axis = extents.size(); axis-- > 0;)
    passes.emplace_back(axis, Pass<R>(extents[axis], Kind::complex, is_inverse));
  const Grid grid(extents, extents);
  return bind_passes<T, T>(shape.elements() / elements, std::move(passes), grid, elements, grid,
                           grid, elements);
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
  checked_product(extents);
  const size_t last = extents.size() - 1;
  std::vector<std::pair<size_t, Pass<T>>> passes;
  passes.emplace_back(last, Pass<T>(extents[last], Kind::from_real, false));
  for (size_t axis = last; axis-- > 0;)
    passes.emplace_back(axis, Pass<T>(extents[axis], Kind::complex, false));
  const Grid half(out, out);
  return bind_passes<T, Complex>(r.outputs[0].shape.elements() / product_of(out), std::move(passes),
                                 Grid(extents, in), product_of(in), half, half, product_of(out));
}

// The missing half is the conjugate of the given one, with the other axes reversed. Over several
// axes, the last is transformed after the others, as in TensorFlow.
template <class T>
BoundKernel prepare_real_inverse(const KernelRequest& r, int axes) {
  using Complex = std::complex<T>;
  if (r.outputs[0].shape.elements() == 0) return {};
  if (r.inputs[0].shape.elements() == 0) return fill_with_zeros<T>(r);
  const std::vector<int64_t> extents = to_int64s(*r.inputs[1].value),
                             in = last_axes(r.inputs[0].shape, axes);
  const int64_t elements = checked_product(extents);
  const size_t last = extents.size() - 1;
  std::vector<int64_t> half = extents;
  half[last] = extents[last] / 2 + 1;
  std::vector<std::pair<size_t, Pass<T>>> passes;
  for (size_t axis = 0; axis < last; ++axis)
    passes.emplace_back(axis, Pass<T>(extents[axis], Kind::complex, true));
  passes.emplace_back(last, Pass<T>(extents[last], Kind::to_real, true));
  return bind_passes<Complex, T>(r.outputs[0].shape.elements() / elements, std::move(passes),
                                 Grid(half, in), product_of(in), Grid(half, half),
                                 Grid(extents, extents), elements);
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
