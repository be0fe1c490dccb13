// FractionalMaxPool, FractionalAvgPool and their gradients: pooling over windows of two sizes in
// random order (B. Graham, "Fractional Max-Pooling", 2014). As in random.cc, results are
// TensorFlow's for the same seeds.
#include <cmath>
#include <limits>
#include <random>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/pieces.h"
#include "kernels/random/random_stream.h"

namespace leat {
namespace {

// ---- Where the windows begin: 0 first, `in` last

void add_up(const std::vector<int64_t>& sizes, int64_t* sequence) {
  sequence[0] = 0;
  for (size_t i = 0; i < sizes.size(); ++i) sequence[i + 1] = sequence[i] + sizes[i];
}

// Sizes in random order.
std::vector<int64_t> shuffled_sizes(int64_t in, int64_t out, Philox& random) {
  check(out <= std::numeric_limits<uint32_t>::max(), "cannot pool into ", out, " windows");
  std::vector<int64_t> sizes(out, in / out);
  for (int64_t i = 0; i < in % out; ++i) ++sizes[i];
  RandomWords words(random);
  random.skip((out + 3) / 4);
  for (int64_t i = 0; i + 1 < out; ++i)
    std::swap(sizes[i], sizes[i + words.next() % static_cast<uint32_t>(out - i)]);
  return sizes;
}

// ceil(alpha * (i + u)) with one random u, small enough that the first and the last window also
// have one of the two sizes.
std::vector<int64_t> spread_sizes(int64_t in, int64_t out, Philox& random) {
  const auto n = static_cast<double>(in), m = static_cast<double>(out);
  const double alpha = n / m, least = std::floor(n / m);
  const double first = (least + 2) / alpha - 1, last = (n + 1 - least) / alpha - (m - 1);
  const Philox::Block block = random.next();
  const double u = uniform(block[0], block[1]) * std::min(first, last);
  std::vector<int64_t> sizes(out);
  int64_t begin = 1;
  for (int64_t i = 1; i <= out; ++i) {
    const int64_t end =
        i == out ? in + 1 : static_cast<int64_t>(std::ceil(alpha * (static_cast<double>(i) + u)));
    sizes[i - 1] = end - begin;
    begin = end;
  }
  return sizes;
}

struct Ratios {
  float of_axis[4];
  bool is_pseudo_random, is_deterministic;
  uint64_t seed, seed2;

  explicit Ratios(const NodeView& node)
      : is_pseudo_random(node.attr<bool>("pseudo_random")),
        is_deterministic(node.attr<bool>("deterministic")),
        seed(static_cast<uint64_t>(node.attr<int64_t>("seed"))),
        seed2(static_cast<uint64_t>(node.attr<int64_t>("seed2"))) {
    const auto& ratios = node.attr<std::vector<float>>("pooling_ratio");
    check(ratios.size() == 4, "pooling_ratio field must specify 4 dimensions, got ", ratios.size());
    for (int axis = 0; axis < 4; ++axis) {
      check(ratios[axis] >= 1, "pooling_ratio cannot be smaller than 1, got: ", ratios[axis]);
      of_axis[axis] = ratios[axis];
    }
  }
  int64_t pooled(int axis, int64_t in) const {
    if (in == any) return any;
    const float out = std::floor(static_cast<float>(in) / of_axis[axis]);
    return std::isfinite(out) ? std::min(static_cast<int64_t>(out), in) : any;
  }
};

void infer(ShapeContext& c) {
  const Shape x = c.with_rank(0, 4);
  const Ratios ratios(c.node());
  Shape out;
  for (int axis = 0; axis < 4; ++axis) out.push_back(ratios.pooled(axis, x[axis]));
  c.set_output(0, out);
  for (const int axis : {1, 2}) c.set_output(axis, {out[axis] == any ? any : out[axis] + 1});
}

// ---- Pooling

struct Planes {
  int64_t images, rows, columns, channels;

  explicit Planes(const Shape& shape)
      : images(shape[0]), rows(shape[1]), columns(shape[2]), channels(shape[3]) {}
  int64_t elements() const { return images * rows * columns * channels; }
};

// f(first channel of an output pixel, of an input pixel) for all input pixels of each window,
// window by window; `end_window(first channel, pixels)` after each.
template <class F, class End>
void for_each_window(const Planes& in, const Planes& out, const int64_t* rows,
                     const int64_t* columns, bool overlap, F f, End end_window) {
  if (in.elements() == 0 || out.elements() == 0) return;  // there may be any number of images
  const auto end_of = [overlap](const int64_t* sequence, int64_t i, int64_t extent) {
    return std::min(sequence[i + 1] + (overlap ? 1 : 0), extent);
  };
  for (int64_t b = 0; b < out.images; ++b) {
    for (int64_t i = 0; i < out.rows; ++i) {
      const int64_t bottom = end_of(rows, i, in.rows);
      for (int64_t j = 0; j < out.columns; ++j) {
        StepEnd::pace(8 * out.channels);
        const int64_t right = end_of(columns, j, in.columns),
                      to = ((b * out.rows + i) * out.columns + j) * out.channels;
        for (int64_t y = rows[i]; y < bottom; ++y) {
          for (int64_t x = columns[j]; x < right; ++x)
            f(to, ((b * in.rows + y) * in.columns + x) * in.channels);
        }
        end_window(
            to, std::max<int64_t>(0, bottom - rows[i]) * std::max<int64_t>(0, right - columns[j]));
      }
    }
  }
}

template <class T>
BoundKernel prepare(bool is_max, const KernelRequest& r) {
  const Shape& shape = r.inputs[0].shape;
  Ratios ratios(r.node);
  if (ratios.of_axis[0] != 1 || ratios.of_axis[3] != 1) {
    fail(Code::unimplemented, r.node.op,
         " is not supported on the batch nor channel dimension: pooling_ratio is ",
         ratios.of_axis[0], " and ", ratios.of_axis[3], " there");
  }
  for (int axis = 0; axis < 4; ++axis) {
    check(static_cast<float>(shape[axis]) >= ratios.of_axis[axis],
          "Pooling ratio is higher than input dimension size for dimension ", axis,
          ". Input dim size: ", shape[axis], " pooling ratio: ", ratios.of_axis[axis]);
  }
  check(ratios.is_deterministic || (ratios.seed == 0 && ratios.seed2 == 0),
        "Both seed and seed2 should be 0 if deterministic is false.");
  // Deterministic: every step starts the stream from the beginning.
  std::shared_ptr<RandomStream> stream = RandomStream::of(r);
  const int64_t blocks = ratios.is_deterministic
                             ? 0
                             : (r.outputs[0].shape[1] + 3) / 4 + (r.outputs[0].shape[2] + 3) / 4;
  BoundKernel kernel = BoundKernel::of([=, in = Planes(shape), out = Planes(r.outputs[0].shape),
                                        overlap = r.attr<bool>("overlapping"),
                                        spread = ratios.is_pseudo_random](const Arguments& a) {
    Philox random = stream->take(blocks);
    const auto draw = [&](int64_t from, int64_t to, int64_t* sequence) {
      add_up(spread ? spread_sizes(from, to, random) : shuffled_sizes(from, to, random), sequence);
    };
    auto* rows = a.output<int64_t>(1);
    auto* columns = a.output<int64_t>(2);
    draw(in.rows, out.rows, rows);
    draw(in.columns, out.columns, columns);
    const T* x = a.input<T>(0);
    T* y = a.output<T>(0);
    fill_in_pieces(y, out.elements(), is_max ? std::numeric_limits<T>::lowest() : T(0));
    for_each_window(
        in, out, rows, columns, overlap,
        [&](int64_t to, int64_t from) {
          for (int64_t c = 0; c < in.channels; ++c)
            y[to + c] = is_max ? std::max(y[to + c], x[from + c]) : y[to + c] + x[from + c];
        },
        [&](int64_t to, int64_t pixels) {
          for (int64_t c = 0; c < out.channels && !is_max && pixels > 0; ++c)
            y[to + c] /= static_cast<T>(pixels);
        });
  });
  kernel.cost_ns = 2.0 * static_cast<double>(shape.elements());
  return kernel;
}

// ---- Gradients

void check_sequence(const int64_t* sequence, int64_t windows, int64_t extent, const char* what) {
  for (int64_t i = 0; i < windows; ++i) {
    check(sequence[i] >= 0 && sequence[i] < extent && sequence[i] < sequence[i + 1] &&
              sequence[i + 1] <= extent,
          "Invalid ", what, " pooling sequence: window ", i, " is [", sequence[i], ", ",
          sequence[i + 1], ") of an input of ", extent);
  }
}

void check_gradient_shapes(const Shape& x, const Shape& dy, const Shape& rows,
                           const Shape& columns) {
  check(x[0] == dy[0] && x[3] == dy[3], "an input of shape ", x,
        " does not fit a gradient of shape ", dy);
  check(rows[0] == dy[1] + 1 && columns[0] == dy[2] + 1,
        "pooling sequences must have one element more than the gradient has rows and columns; got "
        "shapes ",
        rows, " and ", columns, " for a gradient of shape ", dy);
}

// The gradient goes to the first of the largest elements of each window.
template <class T>
BoundKernel prepare_max_gradient(TypeTag<T>, const KernelRequest& r) {
  const Shape &x = r.inputs[0].shape, &dy = r.inputs[2].shape;
  check(r.inputs[1].shape == dy, "orig_output of shape ", r.inputs[1].shape,
        " does not fit out_backprop of shape ", dy);
  check_gradient_shapes(x, dy, r.inputs[3].shape, r.inputs[4].shape);
  BoundKernel kernel = BoundKernel::of([=, in = Planes(x), out = Planes(dy),
                                        overlap = r.attr<bool>("overlapping")](const Arguments& a) {
    const auto *rows = a.input<int64_t>(3), *columns = a.input<int64_t>(4);
    check_sequence(rows, out.rows, in.rows, "row");
    check_sequence(columns, out.columns, in.columns, "column");
    const T* x = a.input<T>(0);
    const T* y = a.input<T>(1);
    const T* dy = a.input<T>(2);
    T* dx = a.output<T>();
    auto* largest = static_cast<int64_t*>(a.workspace);
    fill_in_pieces(dx, in.elements(), T(0));
    std::fill_n(largest, out.channels, -1);
    for_each_window(
        in, out, rows, columns, overlap,
        [&](int64_t, int64_t from) {
          for (int64_t c = 0; c < in.channels; ++c)
            if (largest[c] < 0 || x[largest[c]] < x[from + c]) largest[c] = from + c;
        },
        [&](int64_t to, int64_t) {
          for (int64_t c = 0; c < out.channels; ++c) {
            check(x[largest[c]] == y[to + c],
                  "orig_output is not the pooled orig_input: ", y[to + c], " instead of ",
                  x[largest[c]]);
            dx[largest[c]] += dy[to + c];
          }
          std::fill_n(largest, out.channels, -1);
        });
  });
  return std::move(kernel).with_workspace(dy[3] * sizeof(int64_t));
}

// Computes in double, like TensorFlow.
template <class T>
BoundKernel prepare_avg_gradient(TypeTag<T>, const KernelRequest& r) {
  const Shape &x = r.outputs[0].shape, &dy = r.inputs[1].shape;
  check_gradient_shapes(x, dy, r.inputs[2].shape, r.inputs[3].shape);
  BoundKernel kernel = BoundKernel::of([=, in = Planes(x), out = Planes(dy),
                                        overlap = r.attr<bool>("overlapping")](const Arguments& a) {
    const auto *rows = a.input<int64_t>(2), *columns = a.input<int64_t>(3);
    check_sequence(rows, out.rows, in.rows, "row");
    check_sequence(columns, out.columns, in.columns, "column");
    const T* dy = a.input<T>(1);
    auto* sums = static_cast<double*>(a.workspace);
    fill_in_pieces(sums, in.elements(), 0.0);
    std::vector<int64_t> window;  // first channels of its pixels
    for_each_window(
        in, out, rows, columns, overlap, [&](int64_t, int64_t from) { window.push_back(from); },
        [&](int64_t to, int64_t pixels) {
          for (const int64_t from : window) {
            for (int64_t c = 0; c < out.channels; ++c)
              sums[from + c] += static_cast<double>(dy[to + c]) / static_cast<double>(pixels);
          }
          window.clear();
        });
    std::transform(sums, sums + in.elements(), a.output<T>(),
                   [](double sum) { return static_cast<T>(sum); });
  });
  return std::move(kernel).with_workspace(x.elements() * sizeof(double));
}

// ---- Ops

using PoolTypes = Types<float, double, int32_t, int64_t>;
const std::string types = "T: {float, double, int32, int64}";

OpDef pool_op(bool is_max) {
  const std::string name = is_max ? "FractionalMaxPool" : "FractionalAvgPool";
  return {
      .name = name,
      .doc = std::string("output = the ") + (is_max ? "maximum" : "mean") +
             " of the pixels in each of floor(extent / pooling_ratio) windows along rows and "
             "columns, of two sizes in random order (pseudo_random: spread evenly); the sequences "
             "say where the windows begin, and where the last one ends. overlapping: a window has "
             "the first pixels of the next, too. deterministic: every step has the same windows.",
      .inputs = {"value: T"},
      .outputs = {"output: T", "row_pooling_sequence: int64", "col_pooling_sequence: int64"},
      .attrs = {"pooling_ratio: list(float) >= 4", "pseudo_random: bool = false",
                "overlapping: bool = false", "deterministic: bool = false", "seed: int = 0",
                "seed2: int = 0", types},
      .shape = infer,
      .gradient =
          [is_max, name](Gradient& g) {
            std::vector<Output> inputs = {g.x(), g.y(), g.dy(), g.y(1), g.y(2)};
            if (!is_max) {
              const Output shape = op("Shape", {g.x()}, {{"out_type", DType::i64}});
              inputs = {shape, g.dy(), g.y(1), g.y(2)};
            }
            g.dx() = op(name + "Grad", inputs, {{"overlapping", g.attr<bool>("overlapping")}});
          },
      .kernels = {cpu_kernel(
          "T", PoolTypes{},
          [is_max]<class T>(TypeTag<T>, const KernelRequest& r) { return prepare<T>(is_max, r); })},
      .examples = {{.inputs = {floats({1, 2, 2, 1}, {1, 2, 3, 4})},
                    .attrs = {{"pooling_ratio", std::vector<float>{1, 2, 1, 1}}},
                    .outputs = {is_max ? floats({1, 1, 2, 1}, {3, 4})
                                       : floats({1, 1, 2, 1}, {2, 3}),
                                longs({0, 2}), longs({0, 1, 2})}}},
      .is_stateful = true,
  };
}

const Op max_op{pool_op(true)}, avg_op{pool_op(false)};

const Op max_gradient_op{{
    .name = "FractionalMaxPoolGrad",
    .doc =
        "output = 0 except at the largest element of every window, to which out_backprop is added.",
    .inputs = {"orig_input: T", "orig_output: T", "out_backprop: T", "row_pooling_sequence: int64",
               "col_pooling_sequence: int64"},
    .outputs = {"output: T"},
    .attrs = {"overlapping: bool = false", types},
    .shape =
        [](ShapeContext& c) {
          for (int i = 0; i < 3; ++i) c.with_rank(i, 4);
          for (int i = 3; i < 5; ++i) c.with_rank(i, 1);
          c.set_output(0, c.with_rank(0, 4));
        },
    .kernels = {cpu_kernel(
        "T", PoolTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_max_gradient(t, r); })},
    .examples = {{.inputs = {floats({1, 2, 2, 1}, {1, 4, 3, 2}), floats({1, 1, 2, 1}, {3, 4}),
                             floats({1, 1, 2, 1}, {5, 6}), longs({0, 2}), longs({0, 1, 2})},
                  .outputs = {floats({1, 2, 2, 1}, {0, 6, 5, 0})}}},
}};

const Op avg_gradient_op{{
    .name = "FractionalAvgPoolGrad",
    .doc = "output = for every pixel the sum over its windows of out_backprop / pixels of the "
           "window.",
    .inputs = {"orig_input_tensor_shape: int64", "out_backprop: T", "row_pooling_sequence: int64",
               "col_pooling_sequence: int64"},
    .outputs = {"output: T"},
    .attrs = {"overlapping: bool = false", types},
    .shape =
        [](ShapeContext& c) {
          const Shape x = c.shape_from_value(0);
          check(!x.has_rank() || x.rank() == 4,
                "original input tensor shape must have 4 elements, "
                "got ",
                x);
          c.with_rank(1, 4);
          for (int i = 2; i < 4; ++i) c.with_rank(i, 1);
          c.set_output(0, x.has_rank() ? x : Shape::of_rank(4));
        },
    .kernels = {cpu_kernel(
        "T", PoolTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_avg_gradient(t, r); })},
    .examples = {{.inputs = {longs({1, 2, 2, 1}), floats({1, 1, 2, 1}, {5, 6}), longs({0, 2}),
                             longs({0, 1, 2})},
                  .outputs = {floats({1, 2, 2, 1}, {2.5F, 3, 2.5F, 3})}}},
    .value_inputs = {0},
}};

}  // namespace
}  // namespace leat
