// Constants of one number, and whether a binary op with one changes a shape.
#pragma once

#include <complex>
#include <optional>

#include "graph/graph.h"

namespace leat {

// The number that all elements of a Const are; none for other nodes, for empty tensors, for text
// and for 64-bit integers beyond ±2⁵³. Zeros keep their sign.
std::optional<std::complex<double>> uniform_value(const Output& output);
// Is it this real number? 0 is not -0.0, unless its dtype has no sign of zero.
bool is_uniform(const Output& output, double value);
// Does `x` keep its shape when a tensor of that shape is broadcast against it?
bool keeps_shape(const Shape& x, const Shape& other);

}  // namespace leat
