#include "frontends/cpp/optimizers/optimizer.h"

#include <algorithm>
#include <cmath>

#include "frontends/cpp/optimizers/gradient_clipping.h"
#include "graph/variable_node.h"

namespace leat {

Rate::Rate(double value, Location at) : value_(value) {
  check(value >= 0 && std::isfinite(value), "a learning rate (", at,
        ") must be finite and not negative, got ", value);
}
Rate::Rate(Output scalar, Location at) : value_(0), scalar_(scalar) {
  check(bool{scalar}, "a learning rate (", at, ") is an empty Output: it was never set to a ",
        "result of the graph");
}

Output Rate::like(const Output& variable, std::string_view name) const {
  const DType dtype = variable.dtype();
  if (!scalar_) return constant(variable.graph(), value_, dtype, name);
  check(&scalar_.graph() == &variable.graph(), "the learning rate '", scalar_.name(),
        "' is in another graph than the variables");
  check(!scalar_.shape().has_rank() || scalar_.shape().rank() == 0, "the learning rate '",
        scalar_.name(), "' must be a scalar, got ", scalar_.shape());
  return scalar_.dtype() == dtype ? scalar_ : cast(scalar_, dtype);
}

std::vector<GradientAndVariable> Optimizer::compute_gradients(Output loss,
                                                              std::vector<Output> variables) const {
  check(static_cast<bool>(loss), "the loss is an empty Output");
  if (variables.empty()) variables = loss.graph().collection("trainable_variables");
  check(
      !variables.empty(),
      "there is nothing to train: the graph has no trainable variables; make them with variable()");
  std::vector<Output> xs;  // with all that reads a resource variable
  for (const Output& variable : variables) xs.push_back(variable_handle(variable));
  std::optional<LossScaling> scaling;
  if (loss_scale_) {
    scaling.emplace(loss.graph(), *loss_scale_, here());
    loss = scaling->scaled(loss);
  }
  const std::vector<IndexedSlices> gradients = sparse_gradients({loss}, xs);
  std::vector<GradientAndVariable> out;
  for (size_t i = 0; i < variables.size(); ++i)
    out.push_back({gradients[i].values, variables[i], gradients[i].indices});
  if (scaling) out = scaling->unscaled(std::move(out));
  return out;
}

Node& Optimizer::apply_gradients(const std::vector<GradientAndVariable>& gradients_and_variables,
                                 const ApplyOptions& options, Location at) const {
  if (const Output step = options.global_step)
    check(is_integer(step.dtype()), "the global_step (", at, ") must be an integer variable, got '",
          step.name(), "', which is ", step.dtype(), "; pass the variables to train as .variables");
  std::vector<GradientAndVariable> used;
  for (const GradientAndVariable& pair : gradients_and_variables) {
    if (pair.gradient) used.push_back(pair);
  }
  check(!used.empty(), "no variable has a gradient (", at, "): the loss does not depend on any of ",
        "the ", gradients_and_variables.size(),
        " variables, or only through ops without a gradient");
  Graph& graph = used.front().variable.graph();
  const NameScope scope(graph, "train");
  if (transform_) used = transform_(std::move(used));
  check(!used.empty(), "the gradient transformation left no gradient (", at, ")");
  for (const GradientAndVariable& pair : used) {
    check(pair.gradient && pair.variable,
          "the gradient transformation left a pair with an empty Output (", at, ")");
  }
  std::optional<LossScaling> scaling;
  Output are_finite;
  if (loss_scale_) {
    scaling.emplace(graph, *loss_scale_, at);
    are_finite = scaling->are_finite(used);
  }
  const Shared shared = make_shared_state(graph, used);
  std::vector<Output> updates;
  std::optional<ControlScope> only_if_finite;
  if (scaling) only_if_finite.emplace(graph, std::vector<Output>{scaling->runs_if(are_finite)});
  for (const GradientAndVariable& pair : used) {
    const ColocationScope with(graph, {pair.variable});
    updates.push_back(update(pair, shared, at));
  }
  {
    const ControlScope after(graph, updates);
    for (const Output& done : finish(shared)) updates.push_back(done);
    if (const Output step = options.global_step) {
      const ColocationScope with(graph, {step});
      updates.push_back(assign_add(step, 1, at));
    }
  }
  only_if_finite.reset();
  if (scaling) updates = scaling->finish(are_finite, updates);
  if (options.update_ops) {
    updates.insert(updates.end(), options.update_ops->begin(), options.update_ops->end());
    return group(graph, updates, "update", at);
  }
  // Of this replica, if each has variables of its own.
  const std::string_view root = copy_root_of(graph, variable_name(used.front().variable));
  for (const Output& other : graph.collection("update_ops")) {
    if (copy_root_of(graph, other.node->name) == root) updates.push_back(other);
  }
  return group(graph, updates, "update", at);
}

Node& Optimizer::apply_gradients(const std::vector<Output>& gradients,
                                 const std::vector<Output>& variables, const ApplyOptions& options,
                                 Location at) const {
  check(gradients.size() == variables.size(), "apply_gradients (", at, "): there are ",
        gradients.size(), " gradients for ", variables.size(), " variables");
  std::vector<GradientAndVariable> pairs;
  for (size_t i = 0; i < variables.size(); ++i) pairs.push_back({gradients[i], variables[i]});
  return apply_gradients(pairs, options, at);
}

Node& Optimizer::minimize(Output loss, const MinimizeOptions& options, Location at) const {
  check(bool{loss}, "minimize (", at, "): the loss is an empty Output");
  check(!options.variables.empty() || !loss.graph().collection("trainable_variables").empty(),
        "minimize (", at, "): there is nothing to train: the graph has no trainable variables; ",
        "make them with variable()");
  const double norm = options.clip_norm;
  check(norm >= 0 && std::isfinite(norm), "minimize (", at,
        "): clip_norm must be finite and not negative, got ", norm, "; 0 does not clip");
  std::vector<GradientAndVariable> gradients = compute_gradients(loss, options.variables);
  const bool has_any =
      std::any_of(gradients.begin(), gradients.end(),
                  [](const GradientAndVariable& pair) { return bool{pair.gradient}; });
  if (norm > 0 && has_any) gradients = clip_by_global_norm(std::move(gradients), norm, at);
  return apply_gradients(
      gradients, {.global_step = options.global_step, .update_ops = options.update_ops}, at);
}

}  // namespace leat
