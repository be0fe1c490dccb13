// Ops of which each element of the result depends on the elements at the same place, with NumPy's
// broadcasting, and updates of variables, which are such ops.
#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "frontends/cpp/strategies/sharding/rules.h"

namespace leat::sharding {
namespace {

using Names = std::unordered_set<std::string_view>;

// Adds the signatures that split the result along each axis: an input that is broadcast along it is
// replicated.
void split_alike(const Rule& rule) {
  const Shape& out = rule.result();
  for (int axis = 0; axis < out.rank(); ++axis) {
    if (!rule.splits(out, axis)) continue;
    std::vector<std::pair<int, State>> inputs;
    bool fits = true, has_any = false;
    for (int i = 0; i < rule.inputs(); ++i) {
      const Shape& in = rule.in(i);
      fits = fits && in.has_rank();
      const int own = axis - (out.rank() - in.rank());
      if (!fits || own < 0 || in[own] == 1) continue;
      fits = in[own] == out[axis];
      inputs.push_back({i, State::split(own)});
      has_any = true;
    }
    if (fits && has_any) rule.add(inputs, {{0, State::split(axis)}});
  }
}

void elementwise(const Rule& rule) { split_alike(rule); }
void linear_in_all(const Rule& rule) {
  split_alike(rule);
  rule.add_all_partial();
}
void linear_in_each(const Rule& rule) {
  split_alike(rule);
  rule.add({{0, State::partial()}}, {{0, State::partial()}});
  rule.add({{1, State::partial()}}, {{0, State::partial()}});
}
void linear_in_first(const Rule& rule) {
  split_alike(rule);
  rule.add({{0, State::partial()}}, {{0, State::partial()}});
}

// Select(condition, t, e), whose condition may be a vector for the first axis, or a scalar.
void select(const Rule& rule) {
  const Shape &condition = rule.in(0), &all = rule.in(1);
  if (!condition.has_rank() || !all.has_rank()) return;
  for (int axis = 0; axis < all.rank(); ++axis) {
    if (!rule.splits(all, axis)) continue;
    std::vector<std::pair<int, State>> inputs = {{1, State::split(axis)}, {2, State::split(axis)}};
    if (axis < condition.rank()) inputs.push_back({0, State::split(axis)});
    rule.add(inputs, {{0, State::split(axis)}});
  }
}

// Of a variable, its slots and its gradient, which have one shape, and of scalars.
void update(const Rule& rule) {
  const Shape& all = rule.in(0);
  for (int axis = 0; axis < all.rank(); ++axis) {
    if (!rule.splits(all, axis)) continue;
    std::vector<std::pair<int, State>> inputs, outputs;
    bool fits = true;
    for (int i = 0; i < rule.inputs(); ++i) {
      const Shape& in = rule.in(i);
      if (in.rank() == 0) continue;
      fits = fits && in.rank() == all.rank() && in.is_compatible(all);
      inputs.push_back({i, State::split(axis)});
    }
    if (!fits) continue;
    if (rule.node.num_outputs() > 0) outputs.push_back({0, State::split(axis)});
    rule.add(inputs, outputs);
  }
}

// The first input and the output have one shape, the rest is replicated.
void like_first(const Rule& rule) {
  for (int axis = 0; axis < rule.in(0).rank(); ++axis) {
    if (rule.splits(rule.in(0), axis) && rule.result().rank() == rule.in(0).rank())
      rule.add({{0, State::split(axis)}}, {{0, State::split(axis)}});
  }
}

// All but the last axis, along which each row is normalised.
void rows(const Rule& rule) {
  for (int axis = 0; axis + 1 < rule.in(0).rank(); ++axis) {
    if (rule.splits(rule.in(0), axis))
      rule.add({{0, State::split(axis)}}, {{0, State::split(axis)}});
  }
}

const Names& elementwise_names() {
  static const Names names = {
      // of one value
      "Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "Tanh", "Sigmoid", "Exp",
      "Expm1", "Log", "Log1p", "Sqrt", "Rsqrt", "Square", "Reciprocal", "Inv", "Abs", "Sign", "Erf",
      "Erfc", "Floor", "Ceil", "Round", "Rint", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh",
      "Cosh", "Lgamma", "Digamma", "LogicalNot", "IsNan", "IsInf", "IsFinite", "OnesLike",
      "ZerosLike", "CheckNumerics",
      // gradients
      "ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad",
      "SoftsignGrad", "TanhGrad", "SigmoidGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad",
      // of more
      "Maximum", "Minimum", "Pow", "SquaredDifference", "FloorDiv", "FloorMod", "Mod", "Xlogy",
      "Xdivy", "Atan2", "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual",
      "LogicalAnd", "LogicalOr", "SelectV2"};
  return names;
}

}  // namespace

RuleFunction elementwise_rule_of(const OpDef& op) {
  const std::string_view name = op.name;
  static const Names all_linear = {"Add", "AddV2",        "AddN",     "Sub",
                                   "Neg", "StopGradient", "Identity", "PreventGradient"},
                     each_linear = {"Mul"}, first_linear = {"RealDiv", "Div"},
                     of_variables = {
                         "Assign",           "AssignAdd",           "AssignSub",
                         "AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp",
                         "ReadVariableOp"};
  if (elementwise_names().contains(name)) return elementwise;
  if (all_linear.contains(name)) return linear_in_all;
  if (each_linear.contains(name)) return linear_in_each;
  if (first_linear.contains(name)) return linear_in_first;
  if (name == "DivNoNan" || name == "MulNoNan" || name == "Cast") return elementwise;
  if (name == "Select") return select;
  if (name == "ClipByValue") return like_first;
  if (name == "Softmax" || name == "LogSoftmax") return rows;
  // Of rows (Sparse…): rules_rows.cc.
  if (of_variables.contains(name) || name.starts_with("Apply") || name.starts_with("ResourceApply"))
    return update;
  return nullptr;
}

}  // namespace leat::sharding
