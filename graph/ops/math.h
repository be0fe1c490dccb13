// Elementwise mathematics. Two operands are broadcast as in NumPy, and may be numbers: maximum(x,
// 0). Inputs and result have one dtype, where nothing else is said.
#pragma once

#include "graph/ops/compare.h"

namespace leat {

// ---- Arithmetic beside the operators ----
Output floor_div(const Operand& x, const Operand& y);   // floor(x / y), of integers too
Output div_no_nan(const Operand& x, const Operand& y);  // 0 where y is 0
Output maximum(const Operand& x, const Operand& y);
Output minimum(const Operand& x, const Operand& y);
Output pow(const Operand& x, const Operand& y);
Output squared_difference(const Operand& x, const Operand& y);  // (x - y)²
Output atan2(const Operand& y, const Operand& x);
// min(max(x, low), high)
Output clip(Output x, const Operand& low, const Operand& high, Location at = here());
// The sum of tensors of one shape.
Output add_n(const std::vector<Output>& inputs, Location at = here());

// ---- Of one operand ----
Output abs(Output x, Location at = here());
Output sign(Output x, Location at = here());
Output square(Output x, Location at = here());
Output sqrt(Output x, Location at = here());
Output rsqrt(Output x, Location at = here());  // 1 / √x
Output reciprocal(Output x, Location at = here());
Output exp(Output x, Location at = here());
Output expm1(Output x, Location at = here());
Output log(Output x, Location at = here());
Output log1p(Output x, Location at = here());
Output log2(Output x, Location at = here());
Output log10(Output x, Location at = here());
Output sin(Output x, Location at = here());
Output cos(Output x, Location at = here());
Output tan(Output x, Location at = here());
Output asin(Output x, Location at = here());
Output acos(Output x, Location at = here());
Output atan(Output x, Location at = here());
Output sinh(Output x, Location at = here());
Output cosh(Output x, Location at = here());
Output tanh(Output x, Location at = here());
Output erf(Output x, Location at = here());
Output floor(Output x, Location at = here());
Output ceil(Output x, Location at = here());
Output round(Output x, Location at = here());  // halves to even, as NumPy's
Output isnan(Output x, Location at = here());  // bool
Output isinf(Output x, Location at = here());
Output isfinite(Output x, Location at = here());

// ---- Bools ----
Output logical_not(Output x, Location at = here());
Output logical_and(Output x, Output y, Location at = here());
Output logical_or(Output x, Output y, Location at = here());
// x where the condition holds, else y; all are broadcast. Two numbers are int32 if both are
// integers, else float32.
Output where(Output condition, const Operand& x, const Operand& y, Location at = here());

// ---- Dtypes, complex numbers ----
Output cast(Output x, DType to, Location at = here());
Output real(Output x, Location at = here());  // f32 of complex64, f64 of complex128; below as well
Output imag(Output x, Location at = here());
Output angle(Output x, Location at = here());
Output conj(Output x, Location at = here());  // x itself if it is not complex
Output complex(Output re, Output im, Location at = here());

// ---- Values passed on ----
Output identity(Output x, Location at = here());
Output identity(Output x, std::string_view name, Location at = here());
// x, when all of these have run: with_dependencies({update}, loss).
Output with_dependencies(std::initializer_list<Awaited> after, Output x, Location at = here());
// x; each step that needs it writes the message and the values to the log of its task.
struct PrintOptions {
  int first = -1;     // how many times; -1: always
  int summarize = 3;  // how many elements of each value
};
Output print(Output x, const std::vector<Output>& values, std::string_view message = "",
             const PrintOptions& options = {}, Location at = here());
// The same with x itself as the value: loss = print(loss, "loss = ").
inline Output print(Output x, std::string_view message = "", const PrintOptions& options = {},
                    Location at = here()) {
  return print(x, {x}, message, options, at);
}
Output stop_gradient(Output x, Location at = here());
// INVALID_ARGUMENT with the message, in the step, if x has a NaN or an infinity.
Output check_numerics(Output x, std::string_view message, Location at = here());

}  // namespace leat
