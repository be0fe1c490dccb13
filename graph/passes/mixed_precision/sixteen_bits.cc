#include "graph/passes/mixed_precision/sixteen_bits.h"

#include <algorithm>
#include <cmath>

#include "graph/loops/loops.h"
#include "graph/signature.h"

namespace leat {
namespace {

std::vector<bool> typed(const std::vector<ArgDef>& args, const AttrMap& attrs, size_t count) {
  std::vector<bool> out(count);
  for (const ArgRange& range : arg_ranges(args, attrs)) {
    for (int i = range.begin; i < range.end; ++i)
      out[static_cast<size_t>(i)] = range.arg->type_attr == "T";
  }
  return out;
}

// float16 would change it by more than its rounding: it overflows, or loses bits near zero.
bool is_out_of_range(const Node& constant, DType low) {
  const Tensor& value = constant.attr<Tensor>("value");
  if (low != f16 || value.dtype() != f32) return false;
  constexpr float largest = 65504, smallest_normal = 6.103515625e-05f;
  const float* const elements = value.data<float>();
  return std::any_of(elements, elements + value.elements(), [](float element) {
    const float size = std::abs(element);
    return std::isfinite(element) && size != 0 && (size > largest || size < smallest_normal);
  });
}

// Gets its values from outside the step: a feed, a queue, a dataset.
bool brings_data_in(const Node& node) {
  if (node.is("_Feed") || node.is("_Recv") || node.is("Placeholder")) return true;
  if (node.is("ReadVariableOp") || node.op->is_variable) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(), [](const Output& input) {
    return input.dtype() == DType::resource || (input.is_ref() && input.dtype() == DType::string);
  });
}

class Search {
 public:
  Search(const Graph& graph, const KeptNames& kept, const PrecisionOptions& options)
      : graph_(graph), kept_(kept), options_(options), found_(graph.size()) {}

  std::vector<Precision> run() {
    for (const auto& node : graph_.nodes()) found_[node->id] = precision_by_inputs(*node);
    raise();
    return std::move(found_);
  }

 private:
  Precision precision_by_inputs(const Node& node) const {
    if (node.is("Const"))
      return is_out_of_range(node, options_.low) ? Precision::exact : Precision::free;
    if (node.is("_Feed") && !options_.captured.empty()) {
      const LoopFeed from = LoopFeed::parse(node.attr<std::string>("name"));
      return from.is_variable ? Precision::exact : options_.captured.at(from.number);
    }
    const PrecisionRule rule = rule_of(node);
    if (rule == PrecisionRule::shape) return Precision::free;
    if (rule == PrecisionRule::exact) return brings_data_in(node) ? Precision::exact : mixed(node);
    bool has_low = rule == PrecisionRule::product, has_exact = false;
    const std::vector<bool> is_typed = typed_inputs(node);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!is_typed[i]) continue;
      const Precision operand = precision_of(node.inputs[i], found_);
      has_low = has_low || operand == Precision::low;
      has_exact = has_exact || operand == Precision::exact;
    }
    if (has_exact && rule != PrecisionRule::product) return Precision::exact;
    if (!has_low) return Precision::free;
    const bool is_one_value = node.num_outputs() == 1 || !kept_.endpoints.contains(node.name);
    return is_one_value && options_.has_kernel(node) ? Precision::low : Precision::exact;
  }

  static PrecisionRule rule_of(const Node& node) {
    const auto type = node.attrs.find("T");
    if (type == node.attrs.end() || type->second.kind() != "type" ||
        type->second.get<DType>() != f32)
      return PrecisionRule::exact;
    return precision_rule(node);
  }

  Precision mixed(const Node& node) const {
    const bool has_any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Output& i) {
      return precision_of(i, found_) != Precision::free;
    });
    return has_any ? Precision::exact : Precision::free;
  }

  // What only float32 is computed from does better in float32: logits, sums of gradients.
  void raise() {
    std::vector<bool> has_low_user(graph_.size());
    for (auto at = graph_.nodes().rbegin(); at != graph_.nodes().rend(); ++at) {
      const Node& node = **at;
      if (found_[node.id] != Precision::low) continue;
      if (rule_of(node) == PrecisionRule::follows && !has_low_user[node.id]) {
        found_[node.id] = Precision::exact;
        continue;
      }
      const std::vector<bool> is_typed = typed_inputs(node);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (is_typed[i]) has_low_user[node.inputs[i].node->id] = true;
      }
    }
  }

  const Graph& graph_;
  const KeptNames& kept_;
  const PrecisionOptions& options_;
  std::vector<Precision> found_;
};

}  // namespace

std::vector<Precision> find_precisions(const Graph& graph, const KeptNames& kept,
                                       const PrecisionOptions& options) {
  return Search(graph, kept, options).run();
}

Precision precision_of(const Output& value, const std::vector<Precision>& precisions) {
  const Precision precision = precisions[value.node->id];
  if (precision != Precision::low || typed_outputs(*value.node)[static_cast<size_t>(value.index)])
    return precision;
  return Precision::exact;
}

std::vector<bool> typed_inputs(const Node& node) {
  return typed(node.op->schema.inputs, node.attrs, node.inputs.size());
}

std::vector<bool> typed_outputs(const Node& node) {
  return typed(node.op->schema.outputs, node.attrs, node.outputs.size());
}

}  // namespace leat
