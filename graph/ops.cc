#include "graph/ops.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace leat {
namespace {

template <class Number>
[[noreturn]] void fail_to_fit(Number number, const Location& at, DType dtype) {
  fail(Code::invalid_argument, "the number ", number, " (", at, ") cannot be a constant of dtype ",
       dtype, ", which the other operand has");
}

template <class T>
Tensor scalar_of(double number, const Location& at) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // 2^63 is a double and max() of int64 is not: compare with the power of two above.
    const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const bool fits = number == std::trunc(number) && number < end &&
                      number >= static_cast<double>(std::numeric_limits<T>::min());
    if (!fits) fail_to_fit(number, at, dtype_of<T>);
  }
  return Tensor::scalar<T>(static_cast<T>(number));
}

template <class T, std::integral Number>
Tensor scalar_of(Number number, const Location& at) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (!std::in_range<T>(number)) fail_to_fit(number, at, dtype_of<T>);
    return Tensor::scalar<T>(static_cast<T>(number));
  } else {
    return scalar_of<T>(static_cast<double>(number), at);
  }
}

}  // namespace

Output Operand::as(const Operand& other) const {
  for (const Operand* operand : {this, &other}) {
    check(operand->is_number() || operand->output_, "an operand (", operand->at_,
          ") is an empty Output: it was never set to a result of the graph");
  }
  if (output_) return output_;
  check(!other.is_number(), "an operator needs an Output on one side at least (", at_, ")");
  const DType dtype = other.output_.dtype();
  Tensor value;
  const auto convert = [&]<class Number>(const Number& number) {
    if constexpr (!std::is_same_v<Number, std::monostate>) {
      visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
        if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
          value = Tensor::scalar<T>(T(static_cast<float>(number)));
        } else if constexpr (!std::is_same_v<T, std::string>) {
          value = scalar_of<T>(number, at_);
        }
      });
      check(value.is_valid(), "the number ", number, " (", at_, ") cannot meet '",
            other.output_.name(), "', whose dtype is ", dtype);
    }
  };
  std::visit(convert, number_);
  return constant(other.output_.graph(), std::move(value), "Const", at_);
}

Node& op_node(Graph& graph, std::string_view name, const std::vector<Output>& inputs, AttrMap attrs,
              Location at) {
  return graph.add(
      {.op = std::string(name), .inputs = inputs, .attrs = std::move(attrs), .location = at});
}

Output op(std::string_view name, const std::vector<Output>& inputs, AttrMap attrs, Location at) {
  Graph* graph = nullptr;
  for (const Output& input : inputs) {
    if (input) graph = input.node->graph;
  }
  check(graph != nullptr, "op '", name, "' (", at, ") ",
        inputs.empty() ? "has no input that would tell the graph: use op_node(graph, …)"
                       : "is given an empty Output: it was never set to a result of the graph");
  Node& node = op_node(*graph, name, inputs, std::move(attrs), at);
  return node.outputs.empty() ? Output{} : node.output();
}

std::vector<Output> op_outputs(std::string_view name, const std::vector<Output>& inputs,
                               AttrMap attrs, Location at) {
  check(!inputs.empty(), "op '", name, "' (", at, ") has no inputs");
  check(bool{inputs.front()}, "op '", name, "' (", at,
        ") is given an empty Output: it was never set to a result of the graph");
  Node& node = op_node(inputs.front().graph(), name, inputs, std::move(attrs), at);
  std::vector<Output> outputs;
  for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) outputs.push_back(node.output(i));
  return outputs;
}

Output constant(Graph& graph, Tensor value, std::string_view name, Location at) {
  const DType dtype = value.dtype();
  check(dtype != DType::invalid, "constant '", name, "' (", at, "): its value is an empty Tensor");
  return graph
      .add({.op = "Const",
            .name = std::string(name),
            .attrs = {{"dtype", dtype}, {"value", std::move(value)}},
            .location = at})
      .output();
}

Output placeholder(Graph& graph, std::string_view name, DType dtype, const Shape& shape,
                   Location at) {
  check(dtype != DType::invalid, "placeholder '", name, "' (", at, "): it needs a dtype");
  return graph
      .add({.op = "Placeholder",
            .name = std::string(name),
            .attrs = {{"dtype", dtype}, {"shape", shape}},
            .location = at})
      .output();
}

namespace {

Output binary(std::string_view name, const Operand& a, const Operand& b) {
  const Location at = a.is_number() ? b.at() : a.at();
  return op(name, {a.as(b), b.as(a)}, {}, at);
}

}  // namespace

Output operator+(const Operand& a, const Operand& b) {
  const Output known = a.is_number() ? b.output() : a.output();
  return binary(known && known.dtype() == DType::string ? "Add" : "AddV2", a, b);
}
Output operator-(const Operand& a, const Operand& b) { return binary("Sub", a, b); }
Output operator*(const Operand& a, const Operand& b) { return binary("Mul", a, b); }
Output operator/(const Operand& a, const Operand& b) {
  const Output known = a.is_number() ? b.output() : a.output();
  return binary(known && is_floating(known.dtype()) ? "RealDiv" : "Div", a, b);
}
Output operator-(const Operand& x) {
  check(!x.is_number(), "an operator needs an Output");
  return op("Neg", {x.output()}, {}, x.at());
}

Output all_axes(Output x, Location at) {
  Graph& graph = x.graph();
  const auto number = [&](int32_t value) {
    return constant(graph, Tensor::scalar(value), "Const", at);
  };
  if (!x.shape().has_rank()) {
    return op("Range", {number(0), op("Rank", {x}, {}, at), number(1)}, {}, at);
  }
  std::vector<int32_t> axes(x.shape().rank());
  std::iota(axes.begin(), axes.end(), 0);
  const auto n = static_cast<int64_t>(axes.size());
  return constant(graph, Tensor::of<int32_t>({n}, std::span<const int32_t>(axes)), "axes", at);
}

}  // namespace leat
