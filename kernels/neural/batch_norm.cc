// Batch normalisation: FusedBatchNormV3 and its gradient. Images are treated as matrices: a row per
// pixel, a column per channel.
#include <cmath>
#include <limits>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/half_rows.h"
#include "kernels/moves/strided_copy.h"

namespace leat {
namespace {

constexpr int64_t max_parts = 8;
constexpr int64_t elements_per_part = 65536;

// The position of the channels.
bool channels_first(const NodeView& node) {
  return node.attr<std::string>("data_format")[1] == 'C';
}
int rank_of_format(const NodeView& node) {
  return static_cast<int>(node.attr<std::string>("data_format").size());
}
int channel_axis(const NodeView& node) {
  return channels_first(node) ? 1 : rank_of_format(node) - 1;
}

// Rows that are added to sums at once: a sum in memory waits for the one before.
constexpr int64_t rows_at_once = 4;

// The rows of x, in parts for the threads; the sums of the parts are added in order, so that equal
// inputs give equal results.
struct Rows {
  int64_t count, channels, per_part, parts;

  Rows(const Shape& x, int channel_axis) : channels(x[channel_axis]) {
    count = channels == 0 ? 0 : x.elements() / channels;
    const int64_t wanted = std::clamp<int64_t>(x.elements() / elements_per_part, 1, max_parts);
    per_part = std::max<int64_t>(1, (count + wanted - 1) / wanted);
    parts = (count + per_part - 1) / per_part;
  }
  int64_t elements() const { return count * channels; }

  // f(first row, last row + 1, part)
  template <class F>
  void for_each_part(Stream& stream, F f) const {
    stream.parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) f(p * per_part, std::min(count, (p + 1) * per_part), p);
    });
  }

  // total[c] = the sum over all rows of add(c, element) for each of `n` sums; f(sums, row, count,
  // buffer) adds `count` rows, an integral constant, to n * channels floats. `buffer` holds as many
  // floats as `rows_at_once` rows of n tensors. `partial` is a workspace of sum_bytes(n).
  template <class F>
  void sum(Stream& stream, int n, double* partial, double* total, F f) const {
    const int64_t width = n * channels;
    float* floats = reinterpret_cast<float*>(partial + parts * width);
    for_each_part(stream, [&](int64_t begin, int64_t end, int64_t part) {
      double* sums = partial + part * width;
      float *block = floats + part * (1 + rows_at_once) * width, *buffer = block + width;
      vectorized([=]() LEAT_INLINE {
        std::fill_n(sums, width, 0.0);
        for (int64_t row = begin; row < end;) {  // floats are exact enough for so many terms
          const int64_t last = std::min(end, row + 64);
          std::fill_n(block, width, 0.0f);
          for (; row + rows_at_once <= last; row += rows_at_once)
            f(block, row, std::integral_constant<int64_t, rows_at_once>(), buffer);
          for (; row < last; ++row) f(block, row, std::integral_constant<int64_t, 1>(), buffer);
          for (int64_t i = 0; i < width; ++i) sums[i] += block[i];
        }
      });
    });
    std::fill_n(total, width, 0.0);
    for (int64_t part = 0; part < parts; ++part) {
      for (int64_t i = 0; i < width; ++i) total[i] += partial[part * width + i];
    }
  }
  size_t sum_bytes(int n) const {
    return (static_cast<size_t>(parts) + 1) * n * channels * sizeof(double) +
           parts * (1 + rows_at_once) * n * channels * sizeof(float);
  }
};

// Channels-first images are transposed through the workspace, in and out.
struct Transposed {
  StridedCopy in, out;
  Transposed(const Shape& x) : in(axes(x, true)), out(axes(x, false)) {}

 private:
  static std::vector<StridedCopy::Axis> axes(const Shape& x, bool to_last) {
    const int64_t n = x[0], channels = x[1],
                  pixels = x.elements() / std::max<int64_t>(1, n * channels);
    std::vector<StridedCopy::Axis> axes = {
        {n, channels * pixels, channels * pixels}, {pixels, 1, channels}, {channels, pixels, 1}};
    if (to_last) return axes;
    return {
        {n, channels * pixels, channels * pixels}, {channels, 1, pixels}, {pixels, channels, 1}};
  }
};

// A part of the workspace.
struct Layout {
  size_t bytes = 0;
  size_t take(size_t size) {
    const size_t at = bytes;
    bytes += (size + 63) / 64 * 64;
    return at;
  }
};

template <class T>
T* at(const Arguments& a, size_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(a.workspace) + offset);
}

// 16-bit elements move like uint16_t, floats like uint32_t.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t>;
template <class T>
void copy(const StridedCopy& copy, Stream& stream, const T* from, T* to) {
  copy.run(stream, reinterpret_cast<const Bits<T>*>(from), reinterpret_cast<Bits<T>*>(to));
}

// ---- Forward

// y = x * scale + shift, per channel. `buffers` has 2 * channels floats for each part.
template <class T>
void normalise(Stream& stream, const Rows& rows, const T* x, const float* scale, const float* shift,
               float* buffers, T* y) {
  const int64_t channels = rows.channels;
  rows.for_each_part(stream, [&](int64_t begin, int64_t end, int64_t part) {
    float *buffer = buffers + part * 2 * channels, *results = buffer + channels;
    vectorized([=]() LEAT_INLINE {
      for (int64_t row = begin; row < end; ++row) {
        const auto* const from = loaded(x + row * channels, channels, buffer);
        store_row(y + row * channels, channels, results, [=](auto* to) LEAT_INLINE {
          using To = std::remove_pointer_t<decltype(to)>;
          LEAT_INDEPENDENT_ITERATIONS
          for (int64_t c = 0; c < channels; ++c) to[c] = To(float(from[c]) * scale[c] + shift[c]);
        });
      }
    });
  });
}

// The mean and the (biased) variance of each channel, in two passes: squares of large numbers would
// cancel.
template <class T>
void moments(Stream& stream, const Rows& rows, const T* x, double* partial, float* mean,
             float* variance) {
  double* total = partial;
  partial += rows.channels;
  const int64_t channels = rows.channels;
  const auto add = [=](float* sum, int64_t row, auto count, float* buffer, auto term) LEAT_INLINE {
    const auto* const from = loaded(x + row * channels, count * channels, buffer);
    LEAT_INDEPENDENT_ITERATIONS
    for (int64_t c = 0; c < channels; ++c) {
      float terms = 0;
      for (int64_t k = 0; k < count; ++k) terms += term(float(from[k * channels + c]), c);
      sum[c] += terms;
    }
  };
  rows.sum(stream, 1, partial, total,
           [=](float* sum, int64_t row, auto count, float* buffer) LEAT_INLINE {
             add(sum, row, count, buffer, [](float value, int64_t) LEAT_INLINE { return value; });
           });
  for (int64_t c = 0; c < channels; ++c)
    mean[c] = static_cast<float>(total[c] / static_cast<double>(rows.count));
  rows.sum(stream, 1, partial, total,
           [=](float* sum, int64_t row, auto count, float* buffer) LEAT_INLINE {
             add(sum, row, count, buffer, [=](float value, int64_t c) LEAT_INLINE {
               return (value - mean[c]) * (value - mean[c]);
             });
           });
  for (int64_t c = 0; c < channels; ++c)
    variance[c] = static_cast<float>(total[c] / static_cast<double>(rows.count));
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  const Shape& shape = r.inputs[0].shape;
  const Rows rows(shape, channel_axis(r.node));
  const bool training = r.attr<bool>("is_training"), first = channels_first(r.node);
  const float epsilon = r.attr<float>("epsilon"), factor = r.attr<float>("exponential_avg_factor");
  if (!training || factor != 1) {
    for (int i : {3, 4}) {
      check(r.inputs[i].shape == Shape{rows.channels},
            training ? "With exponential_avg_factor" : "When is_training=false", ", ",
            i == 3 ? "mean" : "variance",
            " must have the same number of elements as the channels of x, got ", r.inputs[i].shape,
            " and ", rows.channels);
    }
  }
  Layout layout;
  const size_t sums = layout.take(rows.sum_bytes(1)),
               factors = layout.take(2 * rows.channels * sizeof(float)),
               images = first ? layout.take(rows.elements() * sizeof(T)) : 0;
  BoundKernel kernel = BoundKernel::of([=, transposed = Transposed(shape)](const Arguments& a) {
    const int64_t channels = rows.channels;
    float *batch_mean = a.output<float>(1), *batch_variance = a.output<float>(2),
          *saved_mean = a.output<float>(3), *saved_variance = a.output<float>(4);
    const float *old_mean = a.input<float>(3), *old_variance = a.input<float>(4);
    if (rows.elements() == 0) {
      for (float* out : {batch_mean, batch_variance})
        std::fill_n(out, channels, std::numeric_limits<float>::quiet_NaN());
      for (float* out : {saved_mean, saved_variance}) std::fill_n(out, channels, 0.0f);
      return;
    }
    const T* x = a.input<T>(0);
    T* y = a.output<T>(0);
    if (first) {
      copy(transposed.in, *a.stream, x, at<T>(a, images));
      x = y = at<T>(a, images);
    }
    if (training) {
      moments(*a.stream, rows, x, at<double>(a, sums), saved_mean, saved_variance);
      // The running variance is that of the population, of which the batch is a sample.
      const float sample =
          static_cast<float>(rows.count) / static_cast<float>(std::max<int64_t>(1, rows.count - 1));
      for (int64_t c = 0; c < channels; ++c) {
        batch_mean[c] =
            factor == 1 ? saved_mean[c] : (1 - factor) * old_mean[c] + factor * saved_mean[c];
        batch_variance[c] =
            factor == 1 ? saved_variance[c] * sample
                        : (1 - factor) * old_variance[c] + factor * saved_variance[c] * sample;
      }
    } else {
      for (float* out : {batch_mean, saved_mean}) std::copy_n(old_mean, channels, out);
      for (float* out : {batch_variance, saved_variance}) std::copy_n(old_variance, channels, out);
    }
    float *scale = at<float>(a, factors), *shift = scale + channels;
    for (int64_t c = 0; c < channels; ++c) {
      scale[c] = a.input<float>(1)[c] / std::sqrt(saved_variance[c] + epsilon);
      shift[c] = a.input<float>(2)[c] - saved_mean[c] * scale[c];
    }
    normalise(*a.stream, rows, x, scale, shift, at<float>(a, sums), y);
    if (first) copy(transposed.out, *a.stream, y, a.output<T>(0));
  });
  kernel.workspace_bytes = layout.bytes;
  kernel.cost_ns = 1.5 * static_cast<double>(rows.elements());
  return kernel;
}

void infer(ShapeContext& c) {
  const int rank = rank_of_format(c.node()), axis = channel_axis(c.node());
  Shape x = c.with_rank(0, rank);
  Shape channels{x[axis]};
  const bool needs_moments = !c.attr<bool>("is_training");
  for (int i = 1; i < 5; ++i) {
    const Shape given = c.with_rank(i, 1);
    if (i > 2 && !needs_moments) continue;  // may be empty
    check(channels.is_compatible(given), c.input_name(i),
          " must have the same number of elements as the channels of x, got ", given, " and ",
          channels[0]);
    channels = channels.merged(given);
  }
  x.set(axis, channels[0]);
  c.set_output(0, x);
  for (int i = 1; i < 5; ++i) c.set_output(i, channels);
  if (c.num_outputs() > 5) c.set_output(5, Shape{0});
}

// ---- Gradient

// With z = (x - mean) / sqrt(variance + epsilon): the gradient of offset is the sum of dy, that of
// scale the sum of dy * z, and that of x is scale / sqrt(variance + epsilon) * (dy - mean(dy) - z *
// mean(dy * z)); without the means if mean and variance are given.
template <class T>
BoundKernel prepare_gradient(TypeTag<T>, const KernelRequest& r) {
  const Shape& shape = r.inputs[1].shape;
  const Rows rows(shape, channel_axis(r.node));
  const bool training = r.attr<bool>("is_training"), first = channels_first(r.node);
  const float epsilon = r.attr<float>("epsilon");
  Layout layout;
  const size_t sums = layout.take(rows.sum_bytes(2)),
               factors = layout.take(3 * rows.channels * sizeof(float)),
               images = first ? layout.take(2 * rows.elements() * sizeof(T)) : 0;
  BoundKernel kernel = BoundKernel::of([=, transposed = Transposed(shape)](const Arguments& a) {
    const int64_t channels = rows.channels;
    float *scale_gradient = a.output<float>(1), *offset_gradient = a.output<float>(2);
    for (int i : {3, 4}) *a.output<float>(i) = 0;
    if (rows.elements() == 0) {
      for (float* out : {scale_gradient, offset_gradient}) std::fill_n(out, channels, 0.0f);
      return;
    }
    const T *dy = a.input<T>(0), *x = a.input<T>(1);
    T* dx = a.output<T>(0);
    if (first) {
      T* copies = at<T>(a, images);
      copy(transposed.in, *a.stream, dy, copies);
      copy(transposed.in, *a.stream, x, copies + rows.elements());
      dy = dx = copies;
      x = copies + rows.elements();
    }
    const float *mean = a.input<float>(3), *variance = a.input<float>(4);
    double* total = at<double>(a, sums);
    rows.sum(*a.stream, 2, total + 2 * channels, total,
             [=](float* sum, int64_t row, auto count, float* buffer) LEAT_INLINE {
               const int64_t size = count * channels;
               const auto* const of_y = loaded(dy + row * channels, size, buffer);
               const auto* const of_x = loaded(x + row * channels, size, buffer + size);
               LEAT_INDEPENDENT_ITERATIONS
               for (int64_t c = 0; c < channels; ++c) {
                 float terms = 0, products = 0;
                 for (int64_t k = 0; k < count; ++k) {
                   const int64_t i = k * channels + c;
                   terms += float(of_y[i]);
                   products += float(of_y[i]) * (float(of_x[i]) - mean[c]);
                 }
                 sum[c] += terms;
                 sum[channels + c] += products;
               }
             });
    // dx = dy * by_dy + x * by_x + rest, per channel
    float *by_dy = at<float>(a, factors), *by_x = by_dy + channels, *rest = by_x + channels;
    const double n = static_cast<double>(rows.count);
    for (int64_t c = 0; c < channels; ++c) {
      const double inverse = 1 / std::sqrt(static_cast<double>(variance[c]) + epsilon);
      offset_gradient[c] = static_cast<float>(total[c]);
      scale_gradient[c] = static_cast<float>(total[channels + c] * inverse);
      const double factor = a.input<float>(2)[c] * inverse;
      const double slope = training ? -factor * total[channels + c] * inverse * inverse / n : 0;
      by_dy[c] = static_cast<float>(factor);
      by_x[c] = static_cast<float>(slope);
      rest[c] = static_cast<float>(training ? -factor * total[c] / n - slope * mean[c] : 0);
    }
    rows.for_each_part(*a.stream, [&](int64_t begin, int64_t end, int64_t part) {
      float *buffer = at<float>(a, sums) + part * 3 * channels, *results = buffer + 2 * channels;
      vectorized([=]() LEAT_INLINE {
        for (int64_t row = begin; row < end; ++row) {
          const auto* const of_y = loaded(dy + row * channels, channels, buffer);
          const auto* const of_x = loaded(x + row * channels, channels, buffer + channels);
          store_row(dx + row * channels, channels, results, [=](auto* to) LEAT_INLINE {
            using To = std::remove_pointer_t<decltype(to)>;
            LEAT_INDEPENDENT_ITERATIONS
            for (int64_t c = 0; c < channels; ++c)
              to[c] = To(float(of_y[c]) * by_dy[c] + float(of_x[c]) * by_x[c] + rest[c]);
          });
        }
      });
    });
    if (first) copy(transposed.out, *a.stream, dx, a.output<T>(0));
  });
  kernel.workspace_bytes = layout.bytes;
  kernel.cost_ns = 2.0 * static_cast<double>(rows.elements());
  return kernel;
}

void infer_gradient(ShapeContext& c) {
  const int rank = rank_of_format(c.node()), axis = channel_axis(c.node());
  check(c.with_rank(0, rank).is_compatible(c.with_rank(1, rank)),
        "x and y_backprop must have the same shape, got ", c.input(1), " and ", c.input(0));
  Shape x = c.input(0).merged(c.input(1)).merged(Shape::of_rank(rank));
  Shape channels{x[axis]};
  for (int i = 2; i < 5; ++i) {
    const Shape given = c.with_rank(i, 1);
    check(channels.is_compatible(given), c.input_name(i),
          " must have the same number of elements as the channels of x, got ", given, " and ",
          channels[0]);
    channels = channels.merged(given);
  }
  x.set(axis, channels[0]);
  c.set_output(0, x);
  c.set_output(1, channels);
  c.set_output(2, channels);
  for (int i : {3, 4}) c.set_output(i, Shape{});
}

void gradient(Gradient& g) {
  const bool training = g.attr<bool>("is_training");
  std::vector<Output> inputs = {g.dy_or_zeros(0), g.x(0), g.x(1), training ? g.y(3) : g.x(3),
                                training ? g.y(4) : g.x(4)};
  if (g.node().num_outputs() > 5) inputs.push_back(g.y(5));
  const std::string version = g.node().op->name.substr(std::string_view("FusedBatchNorm").size());
  const std::vector<Output> dx = op_outputs("FusedBatchNormGrad" + version, inputs,
                                            {{"epsilon", g.attr<float>("epsilon")},
                                             {"data_format", g.attr<std::string>("data_format")},
                                             {"is_training", training}});
  for (int i = 0; i < 3; ++i) g.dx(i) = dx[i];
}

const char* const data_formats = "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'";
using BatchNormTypes = Types<float, half, bfloat16>;

// Means and variances are floats, whatever x is.
Kernel of_floats(Kernel kernel) {
  kernel.types.push_back({"U", {DType::f32}});
  return kernel;
}

const OpDef batch_norm{
    .name = "FusedBatchNormV3",
    .doc =
        "y = (x - mean) / sqrt(variance + epsilon) * scale + offset, per channel. With "
        "is_training, mean and variance are "
        "those of x, and batch_mean, batch_variance are new running ones: (1 - "
        "exponential_avg_factor) * the given + "
        "exponential_avg_factor * x's (its variance unbiased). Else they are given. Reserve "
        "spaces are for the gradient.",
    .inputs = {"x: T", "scale: U", "offset: U", "mean: U", "variance: U"},
    .outputs = {"y: T", "batch_mean: U", "batch_variance: U", "reserve_space_1: U",
                "reserve_space_2: U", "reserve_space_3: U"},
    .attrs = {"T: {half, bfloat16, float}", "U: {bfloat16, float}", "epsilon: float = 0.0001",
              "exponential_avg_factor: float = 1", data_formats, "is_training: bool = true"},
    .shape = infer,
    .gradient = gradient,
    .kernels = {of_floats(
        cpu_kernel("T", BatchNormTypes{},
                   []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); }))},
    .examples = {{.inputs = {floats({1, 1, 2, 2}, {1, 2, 3, 6}), floats({1, 2}), floats({0, 1}),
                             floats({}), floats({})},
                  .attrs = {{"epsilon", 0.0}},
                  .outputs = {floats({1, 1, 2, 2}, {-1, -1, 1, 3}), floats({2, 4}), floats({2, 8}),
                              floats({2, 4}), floats({1, 4}), floats({})}},
                 {.inputs = {floats({1, 1, 2, 2}, {1, 2, 3, 6}), floats({1, 2}), floats({0, 1}),
                             floats({1, 2}), floats({4, 16})},
                  .attrs = {{"epsilon", 0.0}, {"is_training", false}},
                  .outputs = {floats({1, 1, 2, 2}, {0, 1, 1, 3}), floats({1, 2}), floats({4, 16}),
                              floats({1, 2}), floats({4, 16}), floats({})}}},
};

const OpDef batch_norm_grad{
    .name = "FusedBatchNormGradV3",
    .doc =
        "The gradients of FusedBatchNormV3 with respect to x, scale and offset. reserve_space_1 "
        "and 2 are "
        "the mean and the variance that "
        "it used.",
    .inputs = {"y_backprop: T", "x: T", "scale: float", "reserve_space_1: U", "reserve_space_2: U",
               "reserve_space_3: U"},
    .outputs = {"x_backprop: T", "scale_backprop: U", "offset_backprop: U", "reserve_space_4: U",
                "reserve_space_5: U"},
    .attrs = {"T: {half, bfloat16, float}", "U: {float}", "epsilon: float = 0.0001", data_formats,
              "is_training: bool = true"},
    .shape = infer_gradient,
    .kernels = {cpu_kernel(
        "T", BatchNormTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_gradient(t, r); })},
    .examples = {{.inputs = {floats({1, 1, 3, 1}, {1, 0, 5}), floats({1, 1, 3, 1}, {0, 1, 2}),
                             floats({2}), floats({1}), floats({4}), floats({})},
                  .attrs = {{"epsilon", 0.0}, {"is_training", false}},
                  .outputs = {floats({1, 1, 3, 1}, {1, 0, 5}), floats({2}), floats({6}),
                              Tensor::scalar(0.0f), Tensor::scalar(0.0f)}},
                 {.inputs = {floats({1, 1, 4, 1}, {1, 0, 0, 1}),
                             floats({1, 1, 4, 1}, {-1, 1, -1, 1}), floats({3}), floats({0}),
                             floats({1}), floats({})},
                  .attrs = {{"epsilon", 0.0}},
                  .outputs = {floats({1, 1, 4, 1}, {1.5f, -1.5f, -1.5f, 1.5f}), floats({0}),
                              floats({2}), Tensor::scalar(0.0f), Tensor::scalar(0.0f)}}},
};

// ---- Earlier versions: without the third reserve space; the first of one type.

const char* const image_formats = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";

OpDef earlier(OpDef op, std::string name, bool has_two_types) {
  const bool is_gradient = op.name.find("Grad") != std::string::npos;
  const auto typed = [&](std::vector<std::string>& args) {
    for (std::string& arg : args) {
      if (has_two_types) continue;
      const size_t type = arg.find(": ") + 2;
      if (arg.substr(type) == "U" || arg.substr(type) == "float")
        arg.replace(type, arg.size(), "T");
    }
  };
  op.doc = op.name + ", without its third reserve space.";
  op.name = std::move(name);
  if (is_gradient) {
    op.inputs.pop_back();
    op.outputs[3] = "reserve_space_3: U";
    op.outputs[4] = "reserve_space_4: U";
  } else {
    op.outputs.pop_back();
  }
  typed(op.inputs);
  typed(op.outputs);
  std::erase_if(op.attrs, [](const std::string& attr) {
    return attr.starts_with("T:") || attr.starts_with("U:") || attr.starts_with("data_format:");
  });
  op.attrs.push_back(has_two_types ? "T: {half, bfloat16, float}" : "T: {float}");
  if (has_two_types) op.attrs.push_back("U: {float}");
  op.attrs.push_back(image_formats);
  for (Kernel& kernel : op.kernels) {
    if (!has_two_types) kernel.types = {{"T", {f32}}};
  }
  for (Example& example : op.examples) (is_gradient ? example.inputs : example.outputs).pop_back();
  return op;
}

const Op batch_norm_v3_op(batch_norm), batch_norm_grad_v3_op(batch_norm_grad);
const Op batch_norm_v2_op(earlier(batch_norm, "FusedBatchNormV2", true)),
    batch_norm_grad_v2_op(earlier(batch_norm_grad, "FusedBatchNormGradV2", true));
const Op batch_norm_v1_op(earlier(batch_norm, "FusedBatchNorm", false)),
    batch_norm_grad_v1_op(earlier(batch_norm_grad, "FusedBatchNormGrad", false));

}  // namespace
}  // namespace leat
