#include "frontends/cpp/optimizers/moving_average.h"

#include <algorithm>

#include "graph/variable_node.h"

namespace leat {
namespace {

// Of a resource variable any read will do.
bool is_same_variable(const Output& a, const Output& b) {
  return same(variable_handle(a), variable_handle(b));
}

}  // namespace

ExponentialMovingAverage::ExponentialMovingAverage(double decay, Output num_updates)
    : decay_(decay), num_updates_(num_updates) {
  check(decay >= 0 && decay < 1, "a moving average needs a decay in [0, 1), got ", decay);
}

Node& ExponentialMovingAverage::apply(Graph& graph, std::vector<Output> variables, Node* after,
                                      Location at) {
  if (variables.empty()) variables = graph.collection("trainable_variables");
  check(!variables.empty(), "moving averages (", at, "): the graph has no trainable variables");
  const size_t first = averages_.size();
  for (const Output& of : variables) {
    check(is_floating(of.dtype()), "moving averages (", at, "): '", of.name(), "' is ", of.dtype(),
          ", but only floating-point variables have a moving average");
    averages_.push_back({of, slot(of, "ExponentialMovingAverage", initializers::value_of(of), at)});
  }
  const NameScope scope(graph, "moving_averages");
  const ControlScope wait(graph,
                          after == nullptr ? std::vector<Node*>() : std::vector<Node*>{after});
  Output decay = constant(graph, Tensor::scalar(static_cast<float>(decay_)), "decay", at);
  if (num_updates_) {
    const Output n = cast(num_updates_, f32, at);
    decay = minimum(decay, (1.0 + n) / (10.0 + n));
  }
  std::vector<Output> updates;
  for (size_t i = first; i < averages_.size(); ++i) {
    const auto& [of, average] = averages_[i];
    const ColocationScope with(graph, {of});
    const Output rate = cast(1.0 - decay, of.dtype(), at);
    updates.push_back(assign_sub(average, (average - read_variable(of, at)) * rate, at));
  }
  return group(graph, updates, "update", at);
}

Node& ExponentialMovingAverage::apply(const std::vector<Output>& variables, Location at) {
  check(!variables.empty() && variables.front(), "moving averages (", at,
        "): apply() needs a variable, or the graph for all trainable ones: apply(graph)");
  return apply(variables.front().graph(), variables, nullptr, at);
}

Output ExponentialMovingAverage::average(Output variable) const {
  const auto found = std::find_if(averages_.begin(), averages_.end(), [&](const Pair& pair) {
    return is_same_variable(pair.variable, variable);
  });
  if (found == averages_.end())
    fail(Code::not_found, "apply() made no moving average of '", variable.name(), "'");
  return found->average;
}

std::multimap<std::string, Output> ExponentialMovingAverage::variables_to_restore(
    const Graph& graph) const {
  std::multimap<std::string, Output> out;
  for (const Output& variable : graph.collection("variables")) {
    const auto is_of = [&](const Pair& pair) { return is_same_variable(pair.average, variable); };
    const auto has_one = [&](const Pair& pair) {
      return is_same_variable(pair.variable, variable);
    };
    if (std::any_of(averages_.begin(), averages_.end(), is_of)) continue;
    const auto pair = std::find_if(averages_.begin(), averages_.end(), has_one);
    out.emplace(checkpoint_name(pair == averages_.end() ? variable : pair->average), variable);
  }
  return out;
}

Node& ExponentialMovingAverage::assign_averages(Location at) const {
  check(!averages_.empty(), "there are no moving averages to assign (", at,
        "): call apply() first");
  Graph& graph = averages_.front().variable.graph();
  const NameScope scope(graph, "assign_averages");
  std::vector<Output> assigns;
  for (const auto& [variable, average] : averages_) {
    const ColocationScope with(graph, {variable});
    assigns.push_back(assign(variable, average, at));
  }
  return group(graph, assigns, "assign", at);
}

}  // namespace leat
