// How an image is resized along one axis: every output is a weighted sum of inputs, its taps.
#pragma once

#include <cstdint>
#include <vector>

#include "core/attr.h"

namespace leat {

enum class Resampling { nearest, bilinear, bicubic, area };

// The taps of every output along one axis: `count` each.
struct Taps {
  int64_t count = 1, out = 0;
  std::vector<int64_t> index = {};
  std::vector<float> weight = {};
};

// The node has the attributes align_corners and perhaps half_pixel_centers.
Taps taps_along(const NodeView& node, Resampling method, int64_t in, int64_t out);

}  // namespace leat
