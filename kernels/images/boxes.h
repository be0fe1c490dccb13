// Boxes [y1, x1, y2, x2], given by two opposite corners in any order: shared by the suppressions.
#pragma once

#include <algorithm>
#include <cmath>

namespace leat {

inline float box_area(const float* box) {
  return std::abs(box[2] - box[0]) * std::abs(box[3] - box[1]);
}

// Intersection over union of two boxes.
inline float overlap(const float* a, const float* b) {
  const float area_a = box_area(a), area_b = box_area(b);
  if (area_a <= 0 || area_b <= 0) return 0;
  float common = 1;
  for (int axis = 0; axis < 2; ++axis) {
    const float low = std::max(std::min(a[axis], a[axis + 2]), std::min(b[axis], b[axis + 2])),
                high = std::min(std::max(a[axis], a[axis + 2]), std::max(b[axis], b[axis + 2]));
    common *= std::max(high - low, 0.0F);
  }
  return common / (area_a + area_b - common);
}

}  // namespace leat
