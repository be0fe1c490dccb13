#include "frontends/cpp/strategies/sharding/rules.h"

#include "graph/ops.h"
#include "graph/shape_inference.h"

namespace leat::sharding {

void Rule::add(std::vector<std::pair<int, State>> inputs,
               std::vector<std::pair<int, State>> outputs, Emit emit) const {
  Signature signature{std::vector<State>(node.inputs.size()),
                      std::vector<State>(node.outputs.size()), std::move(emit)};
  for (const auto& [i, state] : inputs) signature.inputs[static_cast<size_t>(i)] = state;
  for (const auto& [i, state] : outputs) signature.outputs[static_cast<size_t>(i)] = state;
  out_.push_back(std::move(signature));
}

void Rule::add_all_partial() const {
  out_.push_back({std::vector<State>(node.inputs.size(), State::partial()),
                  std::vector<State>(node.outputs.size(), State::partial()),
                  {}});
}

RuleFunction rule_of(const OpDef& op) {
  for (const auto find : {elementwise_rule_of, product_rule_of, array_rule_of, row_rule_of}) {
    if (const RuleFunction rule = find(op)) return rule;
  }
  return nullptr;
}

std::vector<Signature> signatures(const Node& node, int n) {
  std::vector<Signature> out = {
      {std::vector<State>(node.inputs.size()), std::vector<State>(node.outputs.size()), {}}};
  if (const RuleFunction rule = rule_of(*node.op)) rule(Rule(node, n, out));
  return out;
}

std::vector<Output> same_op(Graph& graph, const Node& node, std::vector<Output> inputs) {
  AttrMap attrs = node.attrs;
  attrs.erase("_class");  // of the unsharded graph
  Node& made = graph.add({.op = node.op->name,
                          .name = node.name.substr(node.name.rfind('/') + 1),
                          .inputs = std::move(inputs),
                          .attrs = std::move(attrs),
                          .location = node.location});
  std::vector<Output> out;
  for (int i = 0; i < made.num_outputs(); ++i) out.push_back(made.output(i));
  return out;
}

Tensor integers(DType dtype, const std::vector<int64_t>& values) {
  Tensor out(dtype, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == i64) {
      out.data<int64_t>()[i] = values[i];
    } else {
      out.data<int32_t>()[i] = static_cast<int32_t>(values[i]);
    }
  }
  return out;
}

std::vector<int64_t> integers(const Tensor& vector) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < vector.shape().elements(); ++i)
    out.push_back(vector.dtype() == i64 ? vector.data<int64_t>()[i] : vector.data<int32_t>()[i]);
  return out;
}

Emit with_local_extent(int i, int axis, int64_t extent, int n) {
  return [=](const Shard& shard, const Node& node, std::vector<Output> inputs) {
    Output& shape = inputs[static_cast<size_t>(i)];
    const auto at = static_cast<size_t>(axis);
    if (const Tensor known = constant_value(shape); known.is_valid()) {
      std::vector<int64_t> extents = integers(known);
      if (extents[at] >= 0) extents[at] = extent / n;
      shape = constant(shard.graph, integers(shape.dtype(), extents), "local_shape", node.location);
    } else {
      check_internal(shape.shape().rank() == 1 && shape.shape()[0] > axis, "the shape '",
                     shape.name(), "' has no axis ", axis);
      std::vector<int64_t> change(static_cast<size_t>(shape.shape()[0]));
      change[at] = extent / n - extent;
      const Output local = shape + constant(shard.graph, integers(shape.dtype(), change), "change");
      shape = where(greater_equal(shape, 0), local, shape);
    }
    return same_op(shard.graph, node, std::move(inputs));
  };
}

}  // namespace leat::sharding
