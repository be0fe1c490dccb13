#include <algorithm>
#include <optional>
#include <unordered_set>

#include "graph/evaluate.h"
#include "graph/passes/simplify/simplify.h"
#include "graph/rebuild.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

constexpr size_t largest_result = 10 << 20;  // bytes: TensorFlow's limit
// Bytes of all inputs of an op whose result may have any size: nothing else bounds its time.
constexpr size_t largest_unbounded_input = 64 << 10;

bool is_small(const Tensor& tensor) { return tensor.bytes() <= largest_result; }

class Folding {
 public:
  Folding(Graph& graph, const KeptNames& kept)
      : graph_(graph), kept_(kept), may_be_dead_(graph.size()) {}

  // In place, but for nodes of several outputs, each of which becomes a constant of its own: true
  // if there are any.
  bool fold_in_place() {
    bool has_several = false;
    for (const auto& node : graph_.nodes()) {
      may_be_dead_[node->id] = find_dead(*node);
      const auto values = constants_of(*node);
      if (!values) continue;
      if (values->size() == 1) {
        become_constant(*node, values->front());
      } else {
        has_several = true;
      }
    }
    return has_several;
  }

  // All of them.
  Graph rebuilt() {
    rebuild_.emplace(graph_);
    for (const auto& node : graph_.nodes()) {
      if (const auto values = constants_of(*node)) {
        replace(*node, *values);
      } else {
        rebuild_->copy(*node);
      }
    }
    return std::move(*rebuild_).finish();
  }

 private:
  bool find_dead(const Node& node) const {
    if (node.is("Switch") || node.is("RefSwitch")) return true;
    for (const Output& input : node.inputs) {
      if (may_be_dead_[input.node->id]) return true;
    }
    for (const Node* control : node.control_inputs) {
      if (may_be_dead_[control->id]) return true;
    }
    return false;
  }

  // The values of all outputs, if they can be told now.
  std::optional<std::vector<Tensor>> constants_of(const Node& node) const {
    if (node.is("Const")) return std::nullopt;
    if (kept_.contains(node) && node.num_outputs() != 1) return std::nullopt;  // it keeps its name
    if (auto shapes = shape_values(node)) return shapes;
    if (!is_pure(node) || node.inputs.empty()) return std::nullopt;
    std::vector<Tensor> inputs;
    for (const Output& input : node.inputs) {
      const Node& source = is_now(input);
      if (!source.is("Const")) return std::nullopt;
      inputs.push_back(source.attr<Tensor>("value"));
    }
    size_t input_bytes = 0;
    for (const Tensor& input : inputs) input_bytes += input.bytes();
    for (const OutputSpec& output : node.outputs) {
      if (!output.shape.is_complete()) {
        if (input_bytes > largest_unbounded_input && node.op->has_data_dependent_shape)
          return std::nullopt;
        continue;
      }
      const auto bytes = static_cast<double>(output.shape.elements()) *
                         static_cast<double>(dtype_size(output.dtype));
      if (bytes > static_cast<double>(largest_result)) return std::nullopt;
    }
    try {
      std::vector<Tensor> outputs = evaluate(node, inputs);
      for (const Tensor& output : outputs) {
        if (!output.is_valid() || !is_small(output)) return std::nullopt;
      }
      return outputs;
    } catch (const Error&) {
      return std::nullopt;  // the step that runs the node will report it
    }
  }

  // Shape, Size and Rank of a tensor whose shape is known, without the tensor. Not where the tensor
  // may be dead, because then its shape is, too.
  std::optional<std::vector<Tensor>> shape_values(const Node& node) const {
    if (!node.op->tells_shape || may_be_dead_[node.id]) return std::nullopt;
    std::vector<Tensor> out;
    for (int i = 0; i < node.num_outputs(); ++i) {
      Tensor value = constant_value({const_cast<Node*>(&node), i});
      if (!value.is_valid()) return std::nullopt;
      out.push_back(std::move(value));
    }
    return out;
  }

  const Node& is_now(const Output& input) const {
    return rebuild_ ? *rebuild_->map(input).node : *input.node;
  }

  // A constant of a branch lives and dies with the branch, which its control inputs say.
  std::vector<Node*> controls_of_constant(const Node& node, std::vector<Node*> after) const {
    std::unordered_set<const Node*> seen(after.begin(), after.end());
    for (const Output& input : node.inputs) {
      const Node& source = is_now(input);
      if (!source.is("Const")) continue;
      for (Node* control : source.control_inputs) {
        if (seen.insert(control).second) after.push_back(control);
      }
    }
    return after;
  }

  static AttrMap attrs_of_constant(const Node& like, const Tensor& value) {
    AttrMap attrs = {{"value", value}, {"dtype", value.dtype()}};
    for (const auto& [key, attr] : like.attrs) {
      if (key.starts_with('_')) attrs.emplace(key, attr);
    }
    return attrs;
  }

  void become_constant(Node& node, const Tensor& value) {
    node.control_inputs = controls_of_constant(node, std::move(node.control_inputs));
    node.inputs.clear();
    node.attrs = attrs_of_constant(node, value);
    node.op = const_op_;
    node.outputs = {{.dtype = value.dtype(), .shape = value.shape()}};
  }

  void replace(const Node& node, const std::vector<Tensor>& values) {
    const std::vector<Node*> after = controls_of_constant(node, rebuild_->control_inputs_of(node));
    std::vector<Output> outputs;
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string name =
          values.size() == 1 ? node.name : graph_.unique_name(concat(node.name, "/_folded_", i));
      outputs.push_back(insert_constant(node, name, values[i], after));
    }
    rebuild_->replace(node, outputs, {outputs.front().node});
  }

  Output insert_constant(const Node& like, const std::string& name, const Tensor& value,
                         const std::vector<Node*>& after) {
    Node& node = rebuild_->graph().insert({.op = "Const",
                                           .name = name,
                                           .attrs = attrs_of_constant(like, value),
                                           .control_inputs = after,
                                           .location = like.location},
                                          like.assigned_device);
    node.requested_device = like.requested_device;
    node.placement_reason = like.placement_reason;
    return node.output();
  }

  Graph& graph_;
  const KeptNames& kept_;
  const OpDef* const const_op_ = &op_named("Const");
  std::optional<Rebuild> rebuild_;  // if nodes of several outputs are folded
  std::vector<bool> may_be_dead_;   // by old id
};

}  // namespace

void fold_constants(Graph& graph, const KeptNames& kept) {
  Folding folding(graph, kept);
  if (folding.fold_in_place()) graph = folding.rebuilt();
}

}  // namespace leat
