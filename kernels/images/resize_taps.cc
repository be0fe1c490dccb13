#include "kernels/images/resize_taps.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "kernels/extents.h"

namespace leat {
namespace {

struct Scale {
  float factor;
  bool align_corners, half_pixel_centers;

  Scale(const NodeView& node, int64_t in, int64_t out)
      : align_corners(node.attr<bool>("align_corners")),
        half_pixel_centers(node.has("half_pixel_centers") &&
                           node.attr<bool>("half_pixel_centers")) {
    check(!align_corners || !half_pixel_centers,
          "If half_pixel_centers is True, align_corners must be False.");
    factor = align_corners && out > 1 ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                                      : static_cast<float>(in) / static_cast<float>(out);
  }
  // The position of output `i` among the inputs.
  float at(int64_t i) const {
    const float x = static_cast<float>(i);
    return half_pixel_centers ? (x + 0.5F) * factor - 0.5F : x * factor;
  }
};

int64_t bounded(int64_t i, int64_t n) { return std::clamp<int64_t>(i, 0, n - 1); }

void add_nearest(const Scale& scale, int64_t in, int64_t i, Taps& taps) {
  // With half_pixel_centers, the pixel that the centre lies in.
  const float at = scale.at(i) + (scale.half_pixel_centers ? 0.5F : 0.0F);
  const float nearest = scale.align_corners ? std::round(at) : std::floor(at);
  taps.index.push_back(bounded(static_cast<int64_t>(nearest), in));
  taps.weight.push_back(1);
}

void add_bilinear(const Scale& scale, int64_t in, int64_t i, Taps& taps) {
  const float at = scale.at(i), floor = std::floor(at);
  taps.index.push_back(bounded(static_cast<int64_t>(floor), in));
  taps.index.push_back(bounded(static_cast<int64_t>(std::ceil(at)), in));
  taps.weight.insert(taps.weight.end(), {1 - (at - floor), at - floor});
}

// R. Keys, "Cubic convolution interpolation for digital image processing", 1981: the kernel at
// distance x, with the free parameter a.
float cubic(float x, float a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// TensorFlow's values: a = -0.5 with half_pixel_centers, when pixels outside have no weight; else a
// = -0.75, and the border repeats. Distances are rounded to 1/1024.
void add_bicubic(const Scale& scale, int64_t in, int64_t i, Taps& taps) {
  const float at = scale.at(i), a = scale.half_pixel_centers ? -0.5F : -0.75F;
  const auto first = static_cast<int64_t>(std::floor(at));
  const float distance = std::nearbyint((at - std::floor(at)) * 1024) / 1024;
  float sum = 0;
  for (int64_t tap = -1; tap <= 2; ++tap) {
    const int64_t index = bounded(first + tap, in);
    const bool is_inside = index == first + tap || !scale.half_pixel_centers;
    taps.index.push_back(index);
    taps.weight.push_back(is_inside ? cubic(static_cast<float>(tap) - distance, a) : 0);
    sum += taps.weight.back();
  }
  if (!scale.half_pixel_centers || sum == 0) return;
  for (auto weight = taps.weight.end() - 4; weight != taps.weight.end(); ++weight) *weight /= sum;
}

// The inputs that lie below output `i`, weighted by the part of them that does. All outputs get as
// many taps as the one with the most; the extra taps have no weight.
void add_area(const Scale& scale, int64_t in, int64_t i, int64_t count, Taps& taps) {
  const float from = scale.at(i), to = scale.at(i + 1);
  const auto first = static_cast<int64_t>(std::floor(from));
  for (int64_t tap = first; tap < first + count; ++tap) {
    const float begin = std::max(from, static_cast<float>(tap)),
                end = std::min(to, static_cast<float>(tap + 1));
    taps.index.push_back(bounded(tap, in));
    taps.weight.push_back(std::max(0.0F, end - begin) / scale.factor);
  }
}

int64_t most_area_taps(const Scale& scale, int64_t out) {
  int64_t count = 1;
  for (int64_t i = 0; i < out; ++i) {
    const float size = std::ceil(scale.at(i + 1)) - std::floor(scale.at(i));
    count = std::max(count, static_cast<int64_t>(size));
  }
  return count;
}

}  // namespace

Taps taps_along(const NodeView& node, Resampling method, int64_t in, int64_t out) {
  const Scale scale(node, in, out);
  Taps taps{.count = method == Resampling::nearest    ? 1
                     : method == Resampling::bilinear ? 2
                     : method == Resampling::bicubic  ? 4
                                                      : most_area_taps(scale, out),
            .out = out};
  check_memory_for(out, taps.count * (sizeof(int64_t) + sizeof(float)));
  for (int64_t i = 0; i < out; ++i) {
    if (method == Resampling::nearest) add_nearest(scale, in, i, taps);
    if (method == Resampling::bilinear) add_bilinear(scale, in, i, taps);
    if (method == Resampling::bicubic) add_bicubic(scale, in, i, taps);
    if (method == Resampling::area) add_area(scale, in, i, taps.count, taps);
  }
  return taps;
}

}  // namespace leat
