// ScaleAndTranslate and its gradient: images resized and moved. Every output pixel is a sum over
// nearby input pixels, weighted by a sampling kernel (K. Turkowski, "Filters for Common Resampling
// Tasks", 1990) and divided by the sum of the weights.
#include <cmath>
#include <limits>
#include <numbers>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"

namespace leat {
namespace {

// ---- Sampling kernels: the weight at distance x >= 0

struct Sampling {
  float radius;
  float (*weight)(float x);
};

template <int radius>
float lanczos(float x) {
  constexpr auto pi = std::numbers::pi_v<float>, r = static_cast<float>(radius);
  if (x > r) return 0;
  if (x <= 1e-3) return 1;
  return r * std::sin(pi * x) * std::sin(pi * x / r) / (pi * pi * x * x);
}

float gaussian(float x) {
  constexpr float radius = 1.5F, sigma = radius / 3;
  return x >= radius ? 0 : static_cast<float>(std::exp(-x * x / (2.0 * sigma * sigma)));
}

float box(float x) { return x < 0.5F ? 1 : x == 0.5F ? 0.5F : 0; }

float triangle(float x) { return x < 1 ? 1 - x : 0; }

// R. Keys, "Cubic convolution interpolation for digital image processing", 1981.
float keys_cubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5F * x + 2.5F) * x - 4) * x + 2 : (1.5F * x - 2.5F) * x * x + 1;
}

// D. Mitchell, A. Netravali, "Reconstruction filters in computer graphics", 1988.
float mitchell_cubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? (((-7.0F / 18) * x + 2) * x - 10.0F / 3) * x + 16.0F / 9
                : ((7.0F / 6) * x - 2) * x * x + 8.0F / 9;
}

Sampling sampling_of(const NodeView& node) {
  const auto& type = node.attr<std::string>("kernel_type");
  if (type == "lanczos1") return {1, lanczos<1>};
  if (type == "lanczos3") return {3, lanczos<3>};
  if (type == "lanczos5") return {5, lanczos<5>};
  if (type == "gaussian") return {1.5F, gaussian};
  if (type == "box") return {1, box};
  if (type == "triangle") return {1, triangle};
  if (type == "keyscubic") return {2, keys_cubic};
  if (type == "mitchellcubic") return {2, mitchell_cubic};
  fail(Code::invalid_argument, "Unrecognized kernel type: ", type,
       "; use lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic or mitchellcubic");
}

// ---- Spans

// Along one axis: for each output, weights of the inputs from `start` on. (TensorFlow fills all
// spans with zeros up to the length of the longest, which makes a difference where inputs are not
// finite.)
struct Spans {
  int64_t in, out;
  std::vector<int64_t> start, end;  // end: of its weights
  std::vector<float> weights;

  Spans(int64_t in, int64_t out) : in(in), out(out) {}
  void add(int64_t from, const std::vector<float>& w) {
    start.push_back(from);
    weights.insert(weights.end(), w.begin(), w.end());
    end.push_back(static_cast<int64_t>(weights.size()));
  }
  // f(input, weight) for the weights of output `o`.
  template <class F>
  void for_each(int64_t o, F f) const {
    int64_t input = start[o];
    for (int64_t i = o == 0 ? 0 : end[o - 1]; i < end[o]; ++i) f(input++, weights[i]);
  }
};

Spans spans_along(const Sampling& sampling, bool antialias, int64_t in, int64_t out, float scale,
                  float translation) {
  const auto inverse = static_cast<float>(1.0 / scale), shift = -inverse * translation;
  const float widening = antialias ? std::max(inverse, 1.0F) : 1.0F, narrowing = 1.0F / widening,
              reach = sampling.radius * widening;
  const auto limit = static_cast<float>(in);
  Spans spans(in, out);
  const auto bounded = [&](float x) {
    const float inside = std::clamp(x, 0.0F, static_cast<float>(in - 1));
    return std::min(static_cast<int64_t>(inside), in - 1);  // the last may have been rounded up
  };
  const auto longest = static_cast<int64_t>(std::min(limit, 2 * reach + 2));
  check_memory_for(out, 2 * sizeof(int64_t) + longest * sizeof(float));
  for (int64_t o = 0; o < out; ++o) {
    const float at = (static_cast<float>(o) + 0.5F) * inverse + shift;
    if (!(at >= 0 && at <= limit)) {
      spans.add(0, {});
      continue;
    }
    const int64_t begin = bounded(std::ceil(at - reach - 0.5F)),
                  end = bounded(std::floor(at + reach - 0.5F)) + 1;
    std::vector<float> weights;
    float sum = 0;
    for (int64_t i = begin; i < end; ++i) {
      const float distance = static_cast<float>(i) + 0.5F - at;
      weights.push_back(sampling.weight(std::abs(distance * narrowing)));
      sum += weights.back();
    }
    if (std::abs(sum) >= 1000 * std::numeric_limits<float>::min()) {
      const float part = 1 / sum;
      for (float& weight : weights) weight *= part;
    } else {
      weights.clear();
    }
    spans.add(begin, weights);
  }
  return spans;
}

// For each input, the outputs in which it has weight.
Spans transposed(const Spans& spans) {
  struct Part {
    int64_t output;
    float weight;
  };
  std::vector<std::vector<Part>> parts(spans.in);
  for (int64_t o = 0; o < spans.out; ++o) {
    spans.for_each(o, [&](int64_t i, float weight) {
      if (weight != 0) parts[i].push_back({o, weight});
    });
  }
  Spans out(spans.out, spans.in);
  for (const std::vector<Part>& of_input : parts) {
    if (of_input.empty()) {
      out.add(0, {});
      continue;
    }
    const int64_t begin = of_input.front().output;
    std::vector<float> weights(of_input.back().output - begin + 1);
    for (const Part& part : of_input) weights[part.output - begin] = part.weight;
    out.add(begin, weights);
  }
  return out;
}

// First all rows, then all columns, in float.
template <class T>
void gather(const T* images, int64_t count, int64_t channels, const Spans& rows,
            const Spans& columns, float* out) {
  const int64_t in_row = columns.in * channels;
  std::vector<float> line(in_row);
  for (int64_t image = 0; image < count; ++image, images += rows.in * in_row) {
    for (int64_t y = 0; y < rows.out; ++y) {
      std::fill(line.begin(), line.end(), 0.0F);
      rows.for_each(y, [&](int64_t i, float weight) {
        const T* from = images + i * in_row;
        for (int64_t k = 0; k < in_row; ++k)
          line[k] += weight * static_cast<float>(ComputeType<T>(from[k]));
      });
      for (int64_t x = 0; x < columns.out; ++x, out += channels) {
        StepEnd::pace(16 * channels);
        std::fill_n(out, channels, 0.0F);
        columns.for_each(x, [&](int64_t i, float weight) {
          for (int64_t c = 0; c < channels; ++c) out[c] += weight * line[i * channels + c];
        });
      }
    }
  }
}

// ---- Ops

// Inputs 2 and 3 by axis: 0 is vertical, along the rows' numbers.
struct Placement {
  float scale[2], translation[2];

  explicit Placement(const Arguments& a) {
    for (int axis = 0; axis < 2; ++axis) {
      scale[axis] = a.input<float>(2)[axis];
      translation[axis] = a.input<float>(3)[axis];
    }
    check(scale[0] > 0 && scale[1] > 0, "Scale must be greater than zero, got [", scale[0], ", ",
          scale[1], "]");
  }
};

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  const Shape x = r.inputs[0].shape, y = r.outputs[0].shape;
  check(y[1] > 0 && y[2] > 0, "output dimensions must be positive, got ", y);
  check(x[3] > 0, "image must have at least one channel, got shape ", x);
  check(x[1] > 0 && x[2] > 0, "input image must be of non-zero size, got shape ", x);
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  check(x[1] < most && x[2] < most, "input sizes must be between 0 and max int32, got ", x);
  return BoundKernel::of([=, sampling = sampling_of(r.node),
                          antialias = r.attr<bool>("antialias")](const Arguments& a) {
    const Placement placement(a);
    if (y.elements() == 0) return;
    const auto spans = [&](int axis) {
      return spans_along(sampling, antialias, x[axis + 1], y[axis + 1], placement.scale[axis],
                         placement.translation[axis]);
    };
    gather(a.input<T>(0), x[0], x[3], spans(0), spans(1), a.output<float>());
  });
}

BoundKernel prepare_gradient(const KernelRequest& r) {
  const Shape dy = r.inputs[0].shape, x = r.outputs[0].shape;
  return BoundKernel::of([=, n = x.elements(), sampling = sampling_of(r.node),
                          antialias = r.attr<bool>("antialias")](const Arguments& a) {
    const Placement placement(a);
    if (x.elements() == 0) return;
    if (dy.elements() == 0) return static_cast<void>(std::fill_n(a.output<float>(), n, 0.0F));
    const auto spans = [&](int axis) {
      return transposed(spans_along(sampling, antialias, x[axis + 1], dy[axis + 1],
                                    placement.scale[axis], placement.translation[axis]));
    };
    gather(a.input<float>(0), dy[0], dy[3], spans(0), spans(1), a.output<float>());
  });
}

void check_placement(const ShapeContext& c) {
  for (const int i : {2, 3}) {
    const Shape shape = c.with_rank(i, 1);
    check(shape[0] == any || shape[0] == 2, "input ", c.input_name(i),
          " must have two elements, got shape ", shape);
  }
}

const std::vector<std::string> attrs = {"kernel_type: string = 'lanczos3'",
                                        "antialias: bool = true"};
std::vector<std::string> with_types(std::string types) {
  std::vector<std::string> out = attrs;
  out.insert(out.begin(), std::move(types));
  return out;
}

using ImageTypes =
    Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>;

const Op scale_op{{
    .name = "ScaleAndTranslate",
    .doc = "resized_images = images of the given size [height, width], whose pixel p is what the "
           "images have at (p - translation) / scale by the sampling kernel; 0 outside of the "
           "images. antialias: when images become smaller, the kernel becomes wider.",
    .inputs = {"images: T", "size: int32", "scale: float", "translation: float"},
    .outputs = {"resized_images: float"},
    .attrs = with_types("T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, "
                        "double}"),
    .shape =
        [](ShapeContext& c) {
          const Shape images = c.with_rank(0, 4), size = c.shape_from_value(1);
          check(!size.has_rank() || size.rank() == 2, "size must have two elements, got ", size);
          check_placement(c);
          const auto extent = [&](int i) { return size.has_rank() ? size[i] : any; };
          c.set_output(0, {images[0], extent(0), extent(1), images[3]});
        },
    .gradient =
        [](Gradient& g) {
          g.dx() = op("ScaleAndTranslateGrad", {g.dy(), g.x(0), g.x(2), g.x(3)},
                      {{"kernel_type", g.attr<std::string>("kernel_type")},
                       {"antialias", g.attr<bool>("antialias")}});
        },
    .kernels = {cpu_kernel(
        "T", ImageTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({1, 1, 2, 1}, {4, 8}), ints({1, 4}), floats({1, 2}),
                             floats({0, 0})},
                  .attrs = {{"kernel_type", "triangle"}},
                  .outputs = {floats({1, 1, 4, 1}, {4, 5, 7, 8})}}},
    .value_inputs = {1},
}};

const Op gradient_op{{
    .name = "ScaleAndTranslateGrad",
    .doc = "output = d(sum(ScaleAndTranslate(original_image) * grads)) / d(original_image).",
    .inputs = {"grads: T", "original_image: T", "scale: float", "translation: float"},
    .outputs = {"output: T"},
    .attrs = with_types("T: {float}"),
    .shape =
        [](ShapeContext& c) {
          const Shape grads = c.with_rank(0, 4), image = c.with_rank(1, 4);
          check_placement(c);
          c.set_output(0, {grads[0], image[1], image[2], grads[3]});
        },
    .kernels = {cpu_kernel(prepare_gradient)},
    .examples = {{.inputs = {floats({1, 1, 4, 1}, {1, 4, 4, 2}), floats({1, 1, 2, 1}, {4, 8}),
                             floats({1, 2}), floats({0, 0})},
                  .attrs = {{"kernel_type", "triangle"}},
                  .outputs = {floats({1, 1, 2, 1}, {5, 6})}}},
}};

}  // namespace
}  // namespace leat
