// Comparisons, which are nodes of the graph: x > 0.5 is a bool for each element.
#pragma once

#include "graph/ops/operand.h"

namespace leat {

// A node that compares, and no answer: `if (a == b)` does not compile. Whether two Outputs are one
// is same(a, b).
struct Comparison : Output {
  explicit Comparison(Output output) : Output(output) {}
  explicit operator bool() const = delete;
};

Comparison operator==(const Operand& a, const Operand& b);
Comparison operator!=(const Operand& a, const Operand& b);
Comparison operator<(const Operand& a, const Operand& b);
Comparison operator<=(const Operand& a, const Operand& b);
Comparison operator>(const Operand& a, const Operand& b);
Comparison operator>=(const Operand& a, const Operand& b);

// By name, as NumPy has them too.
Output equal(const Operand& a, const Operand& b);
Output not_equal(const Operand& a, const Operand& b);
Output less(const Operand& a, const Operand& b);
Output less_equal(const Operand& a, const Operand& b);
Output greater(const Operand& a, const Operand& b);
Output greater_equal(const Operand& a, const Operand& b);

}  // namespace leat
