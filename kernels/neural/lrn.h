// The attributes of LRN and LRNGrad.
#pragma once

#include <cstdint>
#include <limits>

#include "core/attr.h"
#include "core/error.h"

namespace leat {

struct Normalisation {
  int64_t radius;
  float bias, alpha, beta;

  explicit Normalisation(const NodeView& node)
      : radius(node.attr<int64_t>("depth_radius")),
        bias(node.attr<float>("bias")),
        alpha(node.attr<float>("alpha")),
        beta(node.attr<float>("beta")) {
    check(radius >= 0 && radius <= std::numeric_limits<int32_t>::max(), "depth_radius = ", radius,
          " must be in [0, 2^31)");
  }
};

}  // namespace leat
