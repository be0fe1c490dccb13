// leat: fast-math-loops
// Local response normalisation over neighbouring channels, and its gradient.
#include <algorithm>
#include <cmath>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/cpu_loops.h"
#include "kernels/examples.h"
#include "kernels/neural/lrn.h"
#include "kernels/powers.h"

namespace leat {
namespace {

// Calls f(channel, first neighbour, last neighbour + 1, bias + alpha * the sum of the neighbours'
// squares).
template <class T, class F>
void for_each_channel(const Normalisation& by, const T* x, int64_t channels, F f) {
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t begin = std::max<int64_t>(0, c - by.radius),
                  end = std::min(channels, c + by.radius + 1);
    float squares = 0;
    for (int64_t k = begin; k < end; ++k) squares += float(x[k]) * float(x[k]);
    f(c, begin, end, by.bias + by.alpha * squares);
  }
}

// The usual radii are small: loops over blocks of channels, with the neighbours on both sides.
constexpr int64_t small_radius = 16, block = 128;

// to[i] = f(first + i) where that is a channel, else 0; i < n.
template <class F>
LEAT_INLINE inline void fill_block(int64_t first, int64_t n, int64_t channels, float* to, F f) {
  const int64_t begin = std::clamp<int64_t>(-first, 0, n),
                end = std::clamp<int64_t>(channels - first, begin, n);
  std::fill(to, to + begin, 0.0F);
  for (int64_t i = begin; i < end; ++i) to[i] = f(first + i);
  std::fill(to + end, to + n, 0.0F);
}

// sums[i] = from[i] + … + from[i + 2 * radius]; i < n.
LEAT_INLINE inline void add_neighbours(const float* from, int64_t radius, int64_t n, float* sums) {
  constexpr int64_t lanes = 32;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    float total[lanes] = {};
    for (int64_t k = 0; k <= 2 * radius; ++k) {
      for (int64_t lane = 0; lane < lanes; ++lane) total[lane] += from[i + k + lane];
    }
    for (int64_t lane = 0; lane < lanes; ++lane) sums[i + lane] = total[lane];
  }
  for (; i < n; ++i) {
    float total = 0;
    for (int64_t k = 0; k <= 2 * radius; ++k) total += from[i + k];
    sums[i] = total;
  }
}

// norms[i] = bias + alpha * the sum of the neighbours' squares of channel first + i; i < n <= block
// + 2 * radius.
template <class T>
LEAT_INLINE inline void find_norms(const Normalisation& by, const T* x, int64_t channels,
                                   int64_t first, int64_t n, float* norms) {
  float squares[block + 4 * small_radius];
  fill_block(first - by.radius, n + 2 * by.radius, channels, squares,
             [=](int64_t c) LEAT_INLINE { return float(x[c]) * float(x[c]); });
  add_neighbours(squares, by.radius, n, norms);
  for (int64_t i = 0; i < n; ++i) norms[i] = by.bias + by.alpha * norms[i];
}

// factors[i] = norms[i] ^ -beta; i < n.
LEAT_INLINE inline void find_factors(float beta, const float* norms, int64_t n, float* factors) {
  const auto loop = [=](auto power) LEAT_INLINE {
    for (int64_t i = 0; i < n; ++i) factors[i] = power(norms[i]);
  };
  if (for_usual_exponent(-beta, loop)) return;
  for (int64_t i = 0; i < n; ++i) factors[i] = std::pow(norms[i], -beta);
}

// A pixel, where the radius is small.
template <class T>
LEAT_INLINE inline void normalise(const Normalisation& by, const T* x, int64_t channels, T* y) {
  float norms[block], factors[block];
  for (int64_t first = 0; first < channels; first += block) {
    const int64_t n = std::min(block, channels - first);
    find_norms(by, x, channels, first, n, norms);
    find_factors(by.beta, norms, n, factors);
    for (int64_t i = 0; i < n; ++i) y[first + i] = T(float(x[first + i]) * factors[i]);
  }
}

// As many pixels of few channels as `together` squares hold are normalised at once: in loops of one
// pixel, most of the time would go to the loops' ends, and to waiting for what was stored just
// before.
constexpr int64_t together = 1024;

// `squares` holds zeros before, between and after the squares of pixels, so that no pixel is the
// neighbour of another.
template <class T>
LEAT_INLINE inline void normalise_together(const Normalisation& by, const T* x, int64_t channels,
                                           int64_t count, float* squares, T* y) {
  const int64_t step = channels + by.radius, n = count * step - by.radius;
  float norms[together], factors[together];
  for (int64_t p = 0; p < count; ++p) {
    const T* const from = x + p * channels;
    float* const to = squares + by.radius + p * step;
    for (int64_t c = 0; c < channels; ++c) to[c] = float(from[c]) * float(from[c]);
  }
  add_neighbours(squares, by.radius, n, norms);
  for (int64_t i = 0; i < n; ++i) norms[i] = by.bias + by.alpha * norms[i];
  find_factors(by.beta, norms, n, factors);
  for (int64_t p = 0; p < count; ++p) {
    const T* const from = x + p * channels;
    const float* const factor = factors + p * step;
    for (int64_t c = 0; c < channels; ++c) y[p * channels + c] = T(float(from[c]) * factor[c]);
  }
}

template <class T>
void normalise_pixels(const Normalisation& by, const T* x, int64_t channels, int64_t pixels, T* y) {
  float squares[together + 2 * small_radius] = {};
  const int64_t at_once = together / (channels + by.radius);
  for (int64_t first = 0; first < pixels; first += at_once) {
    const int64_t count = std::min(at_once, pixels - first), at = first * channels;
    vectorized([=, &squares]() LEAT_INLINE {
      normalise_together(by, x + at, channels, count, squares, y + at);
    });
  }
}

// The same for the gradient.
template <class T>
LEAT_INLINE inline void differentiate(const Normalisation& by, const T* dy, const T* x, const T* y,
                                      int64_t channels, T* dx) {
  constexpr int64_t widest = block + 2 * small_radius;
  float norms[widest], slopes[widest], sums[block], factors[block];
  for (int64_t first = 0; first < channels; first += block) {
    const int64_t n = std::min(block, channels - first), low = first - by.radius;
    find_norms(by, x, channels, low, n + 2 * by.radius, norms);
    const float* const norm = norms;
    const float scale = -2 * by.alpha * by.beta;
    fill_block(low, n + 2 * by.radius, channels, slopes, [=](int64_t c) LEAT_INLINE {
      return scale * float(y[c]) / norm[c - low] * float(dy[c]);
    });
    add_neighbours(slopes, by.radius, n, sums);
    find_factors(by.beta, norms + by.radius, n, factors);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t c = first + i;
      dx[c] = T(sums[i] * float(x[c]) + factors[i] * float(dy[c]));
    }
  }
}

// f(normalisation, arguments, first element, channels, pixels) for ranges of pixels.
template <class F>
BoundKernel for_pixels(const KernelRequest& request, F f) {
  const Shape& shape = request.inputs[0].shape;
  if (shape.elements() == 0) return {};
  const int64_t channels = shape[3], pixels = shape.elements() / channels;
  const Normalisation n(request.node);
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    a.stream->parallel_for(pixels, 1 + 2000 / channels, [&](int64_t begin, int64_t end) {
      f(n, a, begin * channels, channels, end - begin);
    });
  });
  kernel.cost_ns = 20.0 * static_cast<double>(shape.elements());
  return kernel;
}

// f(normalisation, arguments, first element, channels) for each pixel.
template <class F>
BoundKernel for_each_pixel(const KernelRequest& request, F f) {
  return for_pixels(request, [f](const Normalisation& n, const Arguments& a, int64_t at,
                                 int64_t channels, int64_t pixels) {
    for (int64_t p = 0; p < pixels; ++p) f(n, a, at + p * channels, channels);
  });
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  if (shape[3] <= block && Normalisation(request.node).radius <= small_radius) {
    return for_pixels(request, [](const Normalisation& n, const Arguments& a, int64_t at,
                                  int64_t channels, int64_t pixels) {
      normalise_pixels(n, a.input<T>(0) + at, channels, pixels, a.output<T>() + at);
    });
  }
  return for_each_pixel(
      request, [](const Normalisation& n, const Arguments& a, int64_t at, int64_t channels) {
        const T* x = a.input<T>(0) + at;
        T* y = a.output<T>() + at;
        if (n.radius <= small_radius) {
          return vectorized([=]() LEAT_INLINE { normalise(n, x, channels, y); });
        }
        for_each_channel(n, x, channels, [&](int64_t c, int64_t, int64_t, float norm) {
          y[c] = T(float(x[c]) * std::pow(norm, -n.beta));
        });
      });
}

template <class T>
BoundKernel prepare_gradient(TypeTag<T>, const KernelRequest& request) {
  return for_each_pixel(
      request, [](const Normalisation& n, const Arguments& a, int64_t at, int64_t channels) {
        const T *dy = a.input<T>(0) + at, *x = a.input<T>(1) + at, *y = a.input<T>(2) + at;
        T* dx = a.output<T>() + at;
        if (n.radius <= small_radius) {
          return vectorized([=]() LEAT_INLINE { differentiate(n, dy, x, y, channels, dx); });
        }
        std::fill_n(dx, channels, T(0));
        for_each_channel(n, x, channels, [&](int64_t c, int64_t begin, int64_t end, float norm) {
          const float slope = -2 * n.alpha * n.beta * float(y[c]) / norm * float(dy[c]);
          for (int64_t k = begin; k < end; ++k) dx[k] = T(float(dx[k]) + slope * float(x[k]));
          dx[c] = T(float(dx[c]) + std::pow(norm, -n.beta) * float(dy[c]));
        });
      });
}

const std::vector<std::string> attrs = {"depth_radius: int = 5", "bias: float = 1",
                                        "alpha: float = 1", "beta: float = 0.5",
                                        "T: {half, bfloat16, float} = float"};
using LrnTypes = Types<float, half, bfloat16>;

const Op lrn_op{{
    .name = "LRN",
    .doc = "output[…, c] = input[…, c] / (bias + alpha * the sum of the squares of input[…, c - "
           "depth_radius : c + "
           "depth_radius + 1]) ^ beta.",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = attrs,
    .shape = [](ShapeContext& c) { c.set_output(0, c.with_rank(0, 4)); },
    .gradient =
        [](Gradient& g) {
          g.dx() = op("LRNGrad", {g.dy(), g.x(), g.y()},
                      {{"depth_radius", g.attr<int64_t>("depth_radius")},
                       {"bias", g.attr<float>("bias")},
                       {"alpha", g.attr<float>("alpha")},
                       {"beta", g.attr<float>("beta")}});
        },
    .kernels = {cpu_kernel(
        "T", LrnTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({1, 1, 1, 3}, {1, 2, 4})},
                  .attrs = {{"depth_radius", 1}, {"bias", 4.0}, {"alpha", 1.0}, {"beta", 1.0}},
                  .outputs = {floats({1, 1, 1, 3}, {1.0f / 9, 2.0f / 25, 4.0f / 24})}}},
}};

const Op lrn_grad_op{{
    .name = "LRNGrad",
    .doc = "output = d(sum(LRN(input_image) * input_grads)) / d(input_image); output_image is "
           "LRN(input_image).",
    .inputs = {"input_grads: T", "input_image: T", "output_image: T"},
    .outputs = {"output: T"},
    .attrs = attrs,
    .shape =
        [](ShapeContext& c) {
          Shape shape = Shape::of_rank(4);
          for (int i = 0; i < 3; ++i) shape = shape.merged(c.with_rank(i, 4));
          c.set_output(0, shape);
        },
    .kernels = {cpu_kernel(
        "T", LrnTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_gradient(t, r); })},
    // Of one channel: x / (1 + x²), whose derivative at 2 is (1 - 4) / 25.
    .examples = {{.inputs = {floats({1, 1, 1, 1}, {50}), floats({1, 1, 1, 1}, {2}),
                             floats({1, 1, 1, 1}, {0.4f})},
                  .attrs = {{"beta", 1.0}},
                  .outputs = {floats({1, 1, 1, 1}, {-6})}}},
}};

}  // namespace
}  // namespace leat
