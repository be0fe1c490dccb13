#include "frontends/cpp/control_flow/jacobian.h"

#include "frontends/cpp/control_flow/map_fn.h"
#include "graph/gradient.h"
#include "graph/ops.h"

namespace leat {
namespace {

void check_operand(std::string_view what, std::string_view name, Output x, Location at) {
  check(bool{x}, what, " (", at, "): ", name, " is an empty Output");
  check(is_floating(x.dtype()) && x.shape().has_rank(), what, " (", at, "): ", name,
        " must be of floating-point numbers and of a known rank, got ", x.name(), " ", x.dtype(),
        x.shape());
}

// y's shape, then x's.
Dims joined_shape(Output y, Output x, Location at) {
  if (y.shape().is_complete() && x.shape().is_complete()) {
    std::vector<int64_t> dims(y.shape().dims().begin(), y.shape().dims().end());
    dims.insert(dims.end(), x.shape().dims().begin(), x.shape().dims().end());
    return dims;
  }
  return concatenate({shape_of(y, i32, at), shape_of(x, i32, at)}, 0, at);
}

// The gradient of a while loop or of a condition cannot be part of another loop.
bool needs_control_flow(Output y) {
  std::vector<bool> seen(y.graph().size());
  std::vector<const Node*> pending = {y.node};
  while (!pending.empty()) {
    const Node* const node = pending.back();
    pending.pop_back();
    if (seen[node->id]) continue;
    seen[node->id] = true;
    if (node->is("Exit") || node->is("Merge")) return true;
    for (const Output& input : node->inputs) pending.push_back(input.node);
  }
  return false;
}

// A backward part for each element.
Output jacobian_by_element(Output y, Output x, Location at) {
  check(y.shape().is_complete(), "jacobian (", at, "): y, '", y.name(), "', is computed with a ",
        "while loop or a condition, so its shape must be known, got ", y.shape());
  const int64_t count = y.shape().elements();
  std::vector<Output> rows;
  for (int64_t i = 0; i < count; ++i) {
    const Output is_element =
        one_hot(constant(y.graph(), i), static_cast<int>(count), {.dtype = y.dtype()}, at);
    const Output dx = gradients({y}, {x}, {reshape(is_element, y.shape(), at)})[0];
    rows.push_back(dx ? dx : zeros_like(x, y.dtype(), at));
  }
  return reshape(stack(rows, 0, at), joined_shape(y, x, at), at);
}

}  // namespace

Output jacobian(Output y, Output x, Location at) {
  check_operand("jacobian", "y", y, at);
  check_operand("jacobian", "x", x, at);
  Graph& graph = y.graph();
  const NameScope scope(graph, "jacobian");
  const LocationScope line(graph, at);
  const Output count = size_of(y, i32, at), shape = shape_of(y, i32, at);
  if (needs_control_flow(y)) return jacobian_by_element(y, x, at);
  const auto row = [&](Output i) {
    // 1 where the element is, else 0.
    const Output is_element = one_hot(i, count, {.dtype = y.dtype()}, at);
    const Output dx = gradients({y}, {x}, {reshape(is_element, shape, at)})[0];
    return dx ? dx : zeros_like(x, y.dtype(), at);
  };
  const Output rows = map_fn(row, arange(graph, count, at), {.name = "rows"}, at);
  return reshape(rows, joined_shape(y, x, at), at);
}

std::vector<Output> hessians(Output y, const std::vector<Output>& xs, Location at) {
  check_operand("hessians", "y", y, at);
  for (const Output& x : xs) check_operand("hessians", "x", x, at);
  std::vector<Output> out;
  for (const Output& x : xs) {
    const Output dx = gradients(y, x)[0];
    out.push_back(jacobian(dx ? dx : zeros_like(x, at), x, at));
  }
  return out;
}

}  // namespace leat
