// Comparisons, which are nodes of the graph: x > 0.5 is a bool for each element.
#pragma once

#include "graph/ops/operand.h"

namespace leat {

// A node that compares, not an answer: `if (a == b)` does not compile. same(a, b) says whether two
// Outputs are the same one.
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

// Of comparisons: x > 0 && x < 1, !(x > 0). Bools that are placeholders or variables take &, | and
// logical_not(), because `if (x && y)` asks whether these Outputs are set.
Comparison operator&&(const Comparison& a, const Output& b);
Comparison operator&&(const Output& a, const Comparison& b);
Comparison operator&&(const Comparison& a, const Comparison& b);
Comparison operator||(const Comparison& a, const Output& b);
Comparison operator||(const Output& a, const Comparison& b);
Comparison operator||(const Comparison& a, const Comparison& b);
Comparison operator!(const Comparison& x);

// By name, as NumPy has them too.
Output equal(const Operand& a, const Operand& b);
Output not_equal(const Operand& a, const Operand& b);
Output less(const Operand& a, const Operand& b);
Output less_equal(const Operand& a, const Operand& b);
Output greater(const Operand& a, const Operand& b);
Output greater_equal(const Operand& a, const Operand& b);

}  // namespace leat
