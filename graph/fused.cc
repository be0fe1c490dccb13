#include "graph/fused.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>
#include <unordered_map>

#include "graph/endpoint.h"
#include "graph/import/graph_def.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

// Sorted. Their kernels accept any values, and take every element, or every row, by itself.
constexpr std::string_view elementwise_ops[] = {"Abs",           "Add",
                                                "AddN",          "AddV2",
                                                "BiasAdd",       "BiasAddV1",
                                                "Cast",          "Ceil",
                                                "ClipByValue",   "Cos",
                                                "Div",           "DivNoNan",
                                                "Elu",           "EluGrad",
                                                "Equal",         "Erf",
                                                "Erfc",          "Exp",
                                                "Expm1",         "Floor",
                                                "Greater",       "GreaterEqual",
                                                "Inv",           "InvGrad",
                                                "IsFinite",      "IsInf",
                                                "IsNan",         "LeakyRelu",
                                                "LeakyReluGrad", "Less",
                                                "LessEqual",     "Log",
                                                "Log1p",         "LogicalAnd",
                                                "LogicalNot",    "LogicalOr",
                                                "Maximum",       "Minimum",
                                                "Mul",           "MulNoNan",
                                                "Neg",           "NotEqual",
                                                "Pow",           "RealDiv",
                                                "Reciprocal",    "ReciprocalGrad",
                                                "Relu",          "Relu6",
                                                "Relu6Grad",     "ReluGrad",
                                                "Rint",          "Round",
                                                "Rsqrt",         "RsqrtGrad",
                                                "Select",        "SelectV2",
                                                "Selu",          "SeluGrad",
                                                "Sigmoid",       "SigmoidGrad",
                                                "Sign",          "Sin",
                                                "Softplus",      "SoftplusGrad",
                                                "Softsign",      "SoftsignGrad",
                                                "Sqrt",          "SqrtGrad",
                                                "Square",        "SquaredDifference",
                                                "Sub",           "Tanh",
                                                "TanhGrad",      "Xdivy",
                                                "Xlog1py",       "Xlogy"};
constexpr std::string_view last_axis_ops[] = {"LogSoftmax", "Softmax",
                                              "SoftmaxCrossEntropyWithLogits"};
constexpr std::string_view head_ops[] = {"Conv2D", "DepthwiseConv2dNative", "MatMul"};
constexpr std::string_view reduction_ops[] = {"Max", "Mean", "Min", "Prod", "Sum"};

constexpr size_t most_operands = 8;  // of a member

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::binary_search(names.begin(), names.end(), name);
}

bool is_fraction_or_bool(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 ||
         dtype == DType::bf16 || dtype == DType::boolean;
}

// Sums of sums of other floats would lose digits.
bool is_wide(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

RowRule rule_of_op(const Node& node) {
  const std::string& op = node.op->name;
  if (contains(elementwise_ops, op)) return RowRule::elementwise;
  if (contains(last_axis_ops, op)) return RowRule::last_axis;
  if (contains(head_ops, op)) return RowRule::head;
  if (op == "BiasAddGrad" && is_wide(node.outputs[0].dtype)) return RowRule::sum;
  if (contains(reduction_ops, op) && node.inputs[1].node->is("Const")) return RowRule::reduction;
  return RowRule::none;
}

static_assert(std::ranges::is_sorted(elementwise_ops) && std::ranges::is_sorted(last_axis_ops) &&
              std::ranges::is_sorted(head_ops) && std::ranges::is_sorted(reduction_ops));

bool has_or_lacks(const Node& node, std::string_view attr, std::string_view wanted) {
  const auto found = node.attrs.find(attr);
  return found == node.attrs.end() || found->second.get<std::string>() == wanted;
}

// The last axis alone.
bool reduces_last_axis(const Node& node) {
  const Shape& shape = node.inputs[0].shape();
  const Tensor& axes = node.inputs[1].node->attr<Tensor>("value");
  return shape.rank() > 1 && axes.elements() == 1 &&
         axis_at(axes, 0, shape.rank()) == shape.rank() - 1;
}

}  // namespace

RowRule row_rule(const Node& node) {
  const RowRule rule = rule_of_op(node);
  if (rule == RowRule::none || node.inputs.size() > most_operands) return RowRule::none;
  for (const OutputSpec& output : node.outputs) {
    if (output.is_ref || !is_fraction_or_bool(output.dtype)) return RowRule::none;
  }
  const size_t operands = rule == RowRule::reduction ? 1 : node.inputs.size();
  for (size_t i = 0; i < operands; ++i) {
    if (!is_fraction_or_bool(node.inputs[i].dtype())) return RowRule::none;
  }
  if (node.op->name.starts_with("BiasAdd") && !has_or_lacks(node, "data_format", "NHWC"))
    return RowRule::none;
  if (node.is("Cast") && node.inputs[0].dtype() == node.outputs[0].dtype) return RowRule::none;
  return rule;
}

bool gains_on_gpus(const Node& node) {
  const RowRule rule = row_rule(node);
  const bool fits = rule == RowRule::elementwise || (rule == RowRule::head && node.is("MatMul")) ||
                    (rule == RowRule::reduction && reduces_last_axis(node)) ||
                    (rule == RowRule::last_axis && node.num_outputs() == 1);
  if (!fits) return false;
  const auto is_narrow = [](DType dtype) { return dtype != DType::f64; };
  return is_narrow(node.outputs[0].dtype) &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Output& input) { return is_narrow(input.dtype()); });
}

bool sums_rows(const Node& node) {
  if (node.is("BiasAddGrad")) return true;
  if (!node.is("Sum") || !node.inputs[1].node->is("Const") || !is_wide(node.outputs[0].dtype))
    return false;
  const Shape& shape = node.inputs[0].shape();
  return shape.has_rank() && sums_leading_axes(node.inputs[1].node->attr<Tensor>("value"), shape);
}

int64_t axis_at(const Tensor& axes, int64_t i, int rank) {
  const int64_t axis =
      axes.dtype() == DType::i64 ? axes.data<int64_t>()[i] : axes.data<int32_t>()[i];
  return axis < 0 ? axis + rank : axis;
}

bool sums_leading_axes(const Tensor& axes, const Shape& shape) {
  std::vector<int64_t> sorted;
  for (int64_t i = 0; i < axes.elements(); ++i) sorted.push_back(axis_at(axes, i, shape.rank()));
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return false;
  }
  return !sorted.empty() && sorted.size() < static_cast<size_t>(shape.rank());
}

FusedProgram::FusedProgram(const NodeView& fused) {
  from_graph_def(fused.attr<std::string>("body"), graph_);
  std::unordered_map<const Node*, Operand> made;
  for (const auto& node : graph_.nodes()) {
    if (node->is("_Feed")) {
      const std::string& name = node->attr<std::string>("name");
      Operand& input = made[node.get()];
      std::from_chars(name.data(), name.data() + name.size(), input.index);
      continue;
    }
    made[node.get()] = {static_cast<int>(members_.size()), 0};
    Member& member = members_.emplace_back(Member{node.get(), row_rule(*node), {}});
    for (const Output& input : node->inputs) {
      Operand operand = made.at(input.node);
      if (operand.member >= 0) operand.index = input.index;
      member.operands.push_back(operand);
    }
  }
  for (const std::string& result : fused.attr<std::vector<std::string>>("results")) {
    const Output output = graph_.output(result);
    outputs_.push_back({made.at(output.node).member, output.index});
  }
  num_inputs_ = static_cast<int>(fused.attr<std::vector<DType>>("Tinputs").size());
  if (!members_.empty() && members_[0].rule == RowRule::head) tail_.reset(new FusedProgram(*this));
}

FusedProgram::FusedProgram(const FusedProgram& whole) : num_inputs_(whole.num_inputs_ + 1) {
  const auto moved = [&](const Operand& operand) {
    if (operand.member == 0) return Operand{-1, whole.num_inputs_};
    return operand.member < 0 ? operand : Operand{operand.member - 1, operand.index};
  };
  for (size_t m = 1; m < whole.members_.size(); ++m) {
    Member& member = members_.emplace_back(whole.members_[m]);
    for (Operand& operand : member.operands) operand = moved(operand);
  }
  for (const Operand& output : whole.outputs_) outputs_.push_back(moved(output));
}

std::shared_ptr<const FusedProgram> FusedProgram::of(const NodeView& fused) {
  constexpr size_t most = 4'096;
  using Results = std::vector<std::string>;
  using Program = std::shared_ptr<const FusedProgram>;
  static std::mutex mutex;
  static auto* const known = new std::unordered_map<std::string, std::map<Results, Program>>;
  const std::string& body = fused.attr<std::string>("body");
  const auto& results = fused.attr<Results>("results");
  const std::lock_guard lock(mutex);
  if (known->size() >= most && !known->contains(body)) known->clear();
  Program& program = (*known)[body][results];
  if (program == nullptr) program = std::make_shared<const FusedProgram>(fused);
  return program;
}

const TensorSpec& FusedProgram::spec_of(const Operand& operand, std::span<const TensorSpec> inputs,
                                        const std::vector<std::vector<TensorSpec>>& made) {
  return operand.member < 0 ? inputs[operand.index] : made[operand.member][operand.index];
}

std::vector<std::vector<TensorSpec>> FusedProgram::infer(std::span<const TensorSpec> inputs) const {
  std::vector<std::vector<TensorSpec>> made(members_.size());
  std::vector<TensorSpec> specs;
  for (size_t m = 0; m < members_.size(); ++m) {
    const Node& node = *members_[m].node;
    if (node.is("Const")) {
      const Tensor& value = node.attr<Tensor>("value");
      made[m].push_back({value.dtype(), value.shape(), &value});
      continue;
    }
    specs.clear();
    for (const Operand& operand : members_[m].operands) {
      specs.push_back(spec_of(operand, inputs, made));
    }
    const std::vector<Shape> shapes =
        infer_shapes(node.view(), *node.op, specs, node.num_outputs());
    for (size_t i = 0; i < shapes.size(); ++i) {
      made[m].push_back({node.outputs[i].dtype, shapes[i], nullptr});
    }
  }
  return made;
}

AttrMap fused_attrs(const Graph& body, const std::vector<Output>& inputs,
                    const std::vector<Output>& results) {
  std::vector<DType> input_types, result_types;
  std::vector<std::string> names, ops;
  for (const Output& input : inputs) input_types.push_back(input.dtype());
  for (const Output& result : results) {
    result_types.push_back(result.dtype());
    names.push_back(result.name());
  }
  for (const auto& node : body.nodes()) {
    if (!node->is("_Feed") && !node->is("Const")) ops.push_back(node->op->name);
  }
  return {{"Tinputs", std::move(input_types)},
          {"Tresults", std::move(result_types)},
          {"body", to_graph_def(body)},
          {"results", std::move(names)},
          {"ops", std::move(ops)}};
}

std::string op_title(const NodeView& node) {
  constexpr size_t most = 4;
  if (node.op != "_Fused" || !node.has("ops")) return std::string(node.op);
  const auto& ops = node.attr<std::vector<std::string>>("ops");
  std::string out;
  for (size_t i = 0; i < std::min(ops.size(), most); ++i)
    out += concat(i == 0 ? "" : " + ", ops[i]);
  if (ops.size() > most) out += concat(" + ", ops.size() - most, " more");
  return out;
}

}  // namespace leat
