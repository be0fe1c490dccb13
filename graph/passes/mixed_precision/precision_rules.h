// What mixed precision may do with each op.
#pragma once

#include <cstdint>

#include "graph/graph.h"

namespace leat {

enum class PrecisionRule : uint8_t {
  exact,    // keeps its dtypes: sums, means, exponentials, losses, updates, state
  product,  // always in 16 bits: matrix products, convolutions, recurrent layers
  follows,  // in 16 bits between values of 16 bits: additions, activations, moved elements
  reduces,  // reads 16 bits, adds up in 32: the gradient of a bias
  shape,    // reads no element, only the shape
};

// Of a node whose type attribute "T" is float32. The inputs and outputs of type T change.
PrecisionRule precision_rule(const Node& node);

}  // namespace leat
