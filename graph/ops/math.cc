#include "graph/ops/math.h"

#include <numbers>

#include "graph/ops/graph_of.h"

namespace leat {
namespace {

Location line_of(const Operand& a, const Operand& b) { return a.is_constant() ? b.at() : a.at(); }

Output binary(std::string_view name, const Operand& a, const Operand& b) {
  return op(name, {a.as(b), b.as(a)}, {}, line_of(a, b));
}

// Of a real part, an imaginary part or an angle.
DType part_of(Output x, Location at) {
  graph_of(x, at);
  return x.dtype() == DType::complex128 ? f64 : f32;
}

bool is_bool(const Operand& a, const Operand& b) {
  const Output known = a.is_constant() ? b.output() : a.output();
  return known && known.dtype() == DType::boolean;
}

Output unary(std::string_view name, Output x, Location at) { return op(name, {x}, {}, at); }

}  // namespace

// ---- Operators ----

Output operator+(const Operand& a, const Operand& b) {
  const Output known = a.is_constant() ? b.output() : a.output();
  return binary(known && known.dtype() == DType::string ? "Add" : "AddV2", a, b);
}
Output operator-(const Operand& a, const Operand& b) { return binary("Sub", a, b); }
Output operator*(const Operand& a, const Operand& b) { return binary("Mul", a, b); }
Output operator/(const Operand& a, const Operand& b) {
  const Output known = a.is_constant() ? b.output() : a.output();
  check(!known || !is_integer(known.dtype()), "x / y (", line_of(a, b), ") of ",
        known ? known.dtype() : DType::invalid,
        " would not be exact: write floor_div(x, y), or cast(x, f32) / y");
  return binary("RealDiv", a, b);
}
Output operator%(const Operand& a, const Operand& b) { return binary("FloorMod", a, b); }
Output operator&(const Operand& a, const Operand& b) {
  return binary(is_bool(a, b) ? "LogicalAnd" : "BitwiseAnd", a, b);
}
Output operator|(const Operand& a, const Operand& b) {
  return binary(is_bool(a, b) ? "LogicalOr" : "BitwiseOr", a, b);
}
Output operator^(const Operand& a, const Operand& b) {
  return binary(is_bool(a, b) ? "NotEqual" : "BitwiseXor", a, b);
}
Output operator-(const Operand& x) {
  check(!x.is_constant(), "an operator needs an Output");
  return unary("Neg", x.output(), x.at());
}
Output operator~(const Operand& x) {
  check(!x.is_constant(), "an operator needs an Output");
  return unary(is_bool(x, x) ? "LogicalNot" : "Invert", x.output(), x.at());
}

Output equal(const Operand& a, const Operand& b) { return binary("Equal", a, b); }
Output not_equal(const Operand& a, const Operand& b) { return binary("NotEqual", a, b); }
Output less(const Operand& a, const Operand& b) { return binary("Less", a, b); }
Output less_equal(const Operand& a, const Operand& b) { return binary("LessEqual", a, b); }
Output greater(const Operand& a, const Operand& b) { return binary("Greater", a, b); }
Output greater_equal(const Operand& a, const Operand& b) { return binary("GreaterEqual", a, b); }
Comparison operator==(const Operand& a, const Operand& b) { return Comparison(equal(a, b)); }
Comparison operator!=(const Operand& a, const Operand& b) { return Comparison(not_equal(a, b)); }
Comparison operator<(const Operand& a, const Operand& b) { return Comparison(less(a, b)); }
Comparison operator<=(const Operand& a, const Operand& b) { return Comparison(less_equal(a, b)); }
Comparison operator>(const Operand& a, const Operand& b) { return Comparison(greater(a, b)); }
Comparison operator>=(const Operand& a, const Operand& b) {
  return Comparison(greater_equal(a, b));
}
Comparison operator&&(const Comparison& a, const Output& b) {
  return Comparison(logical_and(a, b));
}
Comparison operator&&(const Output& a, const Comparison& b) {
  return Comparison(logical_and(a, b));
}
Comparison operator&&(const Comparison& a, const Comparison& b) {
  return Comparison(logical_and(a, b));
}
Comparison operator||(const Comparison& a, const Output& b) { return Comparison(logical_or(a, b)); }
Comparison operator||(const Output& a, const Comparison& b) { return Comparison(logical_or(a, b)); }
Comparison operator||(const Comparison& a, const Comparison& b) {
  return Comparison(logical_or(a, b));
}
Comparison operator!(const Comparison& x) { return Comparison(logical_not(x)); }

// ---- Functions ----

Output floor_div(const Operand& x, const Operand& y) { return binary("FloorDiv", x, y); }
Output div_no_nan(const Operand& x, const Operand& y) { return binary("DivNoNan", x, y); }
Output maximum(const Operand& x, const Operand& y) { return binary("Maximum", x, y); }
Output minimum(const Operand& x, const Operand& y) { return binary("Minimum", x, y); }
Output pow(const Operand& x, const Operand& y) { return binary("Pow", x, y); }
Output squared_difference(const Operand& x, const Operand& y) {
  return binary("SquaredDifference", x, y);
}
Output atan2(const Operand& y, const Operand& x) { return binary("Atan2", y, x); }
Output clip(Output x, const Operand& low, const Operand& high, Location at) {
  const Operand like(x, at);
  return op("ClipByValue", {x, low.as(like), high.as(like)}, {}, at);
}
Output add_n(const std::vector<Output>& inputs, Location at) { return op("AddN", inputs, {}, at); }

Output abs(Output x, Location at) {
  graph_of(x, at);
  return is_complex(x.dtype()) ? op("ComplexAbs", {x}, {{"Tout", part_of(x, at)}}, at)
                               : unary("Abs", x, at);
}
Output sign(Output x, Location at) { return unary("Sign", x, at); }
Output square(Output x, Location at) { return unary("Square", x, at); }
Output sqrt(Output x, Location at) { return unary("Sqrt", x, at); }
Output rsqrt(Output x, Location at) { return unary("Rsqrt", x, at); }
Output reciprocal(Output x, Location at) { return unary("Reciprocal", x, at); }
Output exp(Output x, Location at) { return unary("Exp", x, at); }
Output expm1(Output x, Location at) { return unary("Expm1", x, at); }
Output log(Output x, Location at) { return unary("Log", x, at); }
Output log1p(Output x, Location at) { return unary("Log1p", x, at); }
Output log2(Output x, Location at) { return log(x, at) * (1 / std::numbers::ln2); }
Output log10(Output x, Location at) { return log(x, at) * (1 / std::numbers::ln10); }
Output sin(Output x, Location at) { return unary("Sin", x, at); }
Output cos(Output x, Location at) { return unary("Cos", x, at); }
Output tan(Output x, Location at) { return unary("Tan", x, at); }
Output asin(Output x, Location at) { return unary("Asin", x, at); }
Output acos(Output x, Location at) { return unary("Acos", x, at); }
Output atan(Output x, Location at) { return unary("Atan", x, at); }
Output sinh(Output x, Location at) { return unary("Sinh", x, at); }
Output cosh(Output x, Location at) { return unary("Cosh", x, at); }
Output tanh(Output x, Location at) { return unary("Tanh", x, at); }
Output erf(Output x, Location at) { return unary("Erf", x, at); }
Output floor(Output x, Location at) { return unary("Floor", x, at); }
Output ceil(Output x, Location at) { return unary("Ceil", x, at); }
Output round(Output x, Location at) { return unary("Round", x, at); }
Output isnan(Output x, Location at) { return unary("IsNan", x, at); }
Output isinf(Output x, Location at) { return unary("IsInf", x, at); }
Output isfinite(Output x, Location at) { return unary("IsFinite", x, at); }

Output logical_not(Output x, Location at) { return unary("LogicalNot", x, at); }
Output logical_and(Output x, Output y, Location at) { return op("LogicalAnd", {x, y}, {}, at); }
Output logical_or(Output x, Output y, Location at) { return op("LogicalOr", {x, y}, {}, at); }
Output where(Output condition, const Operand& x, const Operand& y, Location at) {
  Graph& graph = graph_of(condition, at);
  return op("SelectV2", {condition, x.beside(y, graph), y.beside(x, graph)}, {}, at);
}

Output cast(Output x, DType to, Location at) {
  graph_of(x, at);
  check((x.dtype() == DType::string) == (to == DType::string), "cast (", at, ") does not convert ",
        x.dtype(), " to ", to,
        to == DType::string ? ": write as_string(x)" : ": write string_to_number(x, dtype)");
  return op("Cast", {x}, {{"DstT", to}}, at);
}
Output real(Output x, Location at) { return op("Real", {x}, {{"Tout", part_of(x, at)}}, at); }
Output imag(Output x, Location at) { return op("Imag", {x}, {{"Tout", part_of(x, at)}}, at); }
Output angle(Output x, Location at) { return op("Angle", {x}, {{"Tout", part_of(x, at)}}, at); }
Output conj(Output x, Location at) {
  graph_of(x, at);
  return is_complex(x.dtype()) ? unary("Conj", x, at) : x;
}
Output complex(Output re, Output im, Location at) {
  graph_of(re, at);
  return op("Complex", {re, im},
            {{"Tout", re.dtype() == f64 ? DType::complex128 : DType::complex64}}, at);
}

Output identity(Output x, Location at) { return unary("Identity", x, at); }
Output identity(Output x, std::string_view name, Location at) {
  return graph_of(x, at)
      .add({.op = "Identity", .name = std::string(name), .inputs = {x}, .location = at})
      .output();
}
Output with_dependencies(std::initializer_list<Awaited> after, Output x, Location at) {
  const ControlScope scope(graph_of(x, at), after);
  return identity(x, at);
}
Output print(Output x, const std::vector<Output>& values, std::string_view message,
             const PrintOptions& options, Location at) {
  graph_of(x, at);
  std::vector<Output> inputs = {x};
  inputs.insert(inputs.end(), values.begin(), values.end());
  return op("Print", inputs,
            {{"message", message}, {"first_n", options.first}, {"summarize", options.summarize}},
            at);
}
Output stop_gradient(Output x, Location at) { return unary("StopGradient", x, at); }
Output check_numerics(Output x, std::string_view message, Location at) {
  return op("CheckNumerics", {x}, {{"message", message}}, at);
}

}  // namespace leat
