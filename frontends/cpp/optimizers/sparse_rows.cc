#include "frontends/cpp/optimizers/sparse_rows.h"

#include <algorithm>

#include "graph/ops.h"

namespace leat {

GradientAndVariable sum_repeated(const GradientAndVariable& gradient, Location at) {
  const Output& indices = gradient.indices;
  // The first output of Unique is what is different; the second one repeats.
  if (!indices || (indices.node->is("Unique") && indices.index == 0)) return gradient;
  Graph& graph = gradient.variable.graph();
  const NameScope scope(graph, "sum_repeated");
  const ColocationScope with(graph, {gradient.variable});
  const auto [rows, numbers] = unique(gradient.indices, i32, at);
  return {segment_sum(gradient.gradient, numbers, size_of(rows, i32, at), at), gradient.variable,
          rows};
}

GradientAndVariable sum_of(const std::vector<GradientAndVariable>& gradients, Location at) {
  if (gradients.size() == 1) return gradients.front();
  const bool are_rows =
      std::all_of(gradients.begin(), gradients.end(),
                  [](const GradientAndVariable& each) { return bool{each.indices}; });
  const bool are_long = std::any_of(
      gradients.begin(), gradients.end(),
      [](const GradientAndVariable& each) { return each.indices && each.indices.dtype() == i64; });
  std::vector<Output> values, indices;
  for (const GradientAndVariable& each : gradients) {
    values.push_back(are_rows ? each.gradient : densify(each, at).gradient);
    if (!are_rows) continue;
    const bool is_cast = are_long && each.indices.dtype() != i64;
    indices.push_back(is_cast ? cast(each.indices, i64, at) : each.indices);
  }
  const Output variable = gradients.front().variable;
  if (!are_rows) return {add_n(values, at), variable};
  return {concatenate(values, 0, at), variable, concatenate(indices, 0, at)};
}

GradientAndVariable densify(const GradientAndVariable& gradient, Location at) {
  if (!gradient.indices) return gradient;
  Graph& graph = gradient.variable.graph();
  const NameScope scope(graph, "densify");
  const ColocationScope with(graph, {gradient.variable});
  const Output rows =
      constant(graph, Tensor::scalar<int64_t>(gradient.variable.shape()[0]), "rows", at);
  return {segment_sum(gradient.gradient, gradient.indices, rows, at), gradient.variable};
}

}  // namespace leat
