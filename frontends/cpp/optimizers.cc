#include "frontends/cpp/optimizers.h"

namespace leat {
namespace {

Output number(Graph& graph, DType dtype, double value, std::string_view name) {
  Tensor scalar(dtype, {});
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, std::string>) *scalar.data<T>() = static_cast<T>(value);
  });
  return constant(graph, std::move(scalar), name);
}

}  // namespace

Output Rate::in(Graph& graph, DType dtype) const {
  if (!scalar_) return number(graph, dtype, value_, "learning_rate");
  check(&scalar_.graph() == &graph, "the learning rate '", scalar_.name(),
        "' is in another graph than the variables");
  check(!scalar_.shape().has_rank() || scalar_.shape().rank() == 0, "the learning rate '",
        scalar_.name(), "' must be a scalar, got ", scalar_.shape());
  return scalar_.dtype() == dtype ? scalar_ : cast(scalar_, dtype);
}

std::vector<GradientAndVariable> Optimizer::gradients(Output loss,
                                                      std::vector<Output> variables) const {
  check(static_cast<bool>(loss), "the loss is an empty Output");
  if (variables.empty()) variables = loss.graph().collection("trainable_variables");
  check(
      !variables.empty(),
      "there is nothing to train: the graph has no trainable variables; make them with variable()");
  const std::vector<Output> gradients = leat::gradients({loss}, variables);
  std::vector<GradientAndVariable> out;
  for (size_t i = 0; i < variables.size(); ++i) out.push_back({gradients[i], variables[i]});
  return out;
}

Node& Optimizer::apply(const std::vector<GradientAndVariable>& gradients, Output global_step,
                       Location at) const {
  std::vector<GradientAndVariable> used;
  for (const GradientAndVariable& pair : gradients) {
    if (pair.gradient) used.push_back(pair);
  }
  check(!used.empty(), "no variable has a gradient (", at, "): the loss does not depend on any of ",
        "the ", gradients.size(), " given, or only by ops through which no gradient flows");
  Graph& graph = used.front().variable.graph();
  const NameScope scope(graph, "train");
  if (transform_) used = transform_(std::move(used));
  check(!used.empty(), "the transformation of gradients has left none (", at, ")");
  for (const GradientAndVariable& pair : used) {
    check(pair.gradient && pair.variable,
          "the transformation of gradients has left a pair with an empty Output (", at, ")");
  }
  const Shared shared = make_shared_state(graph, used);
  std::vector<Output> updates;
  for (const auto& [gradient, variable] : used) {
    const ColocationScope with(graph, {variable});
    updates.push_back(update(variable, gradient, shared));
  }
  {
    const ControlScope after(graph, updates);
    for (const Output& done : finish(shared)) updates.push_back(done);
    if (global_step) {
      const ColocationScope with(graph, {global_step});
      updates.push_back(
          op("AssignAdd", {global_step, number(graph, global_step.dtype(), 1, "one")}, {}, at));
    }
  }
  const std::vector<Output>& others = graph.collection("update_ops");
  updates.insert(updates.end(), others.begin(), others.end());
  return group(graph, updates, "update", at);
}

Node& Optimizer::minimize(Output loss, Output global_step, Location at) const {
  return apply(gradients(loss), global_step, at);
}

Output GradientDescent::update(Output variable, Output gradient, const Shared&) const {
  return op("ApplyGradientDescent",
            {variable, rate_.in(variable.graph(), variable.dtype()), gradient});
}

Output Momentum::update(Output variable, Output gradient, const Shared&) const {
  Graph& graph = variable.graph();
  const DType dtype = variable.dtype();
  return op("ApplyMomentum",
            {variable, slot(variable, "Momentum"), rate_.in(graph, dtype), gradient,
             number(graph, dtype, momentum_, "momentum")},
            {{"use_nesterov", use_nesterov_}});
}

Output Adagrad::update(Output variable, Output gradient, const Shared&) const {
  return op("ApplyAdagrad", {variable, slot(variable, "Adagrad", initializers::constant(initial_)),
                             rate_.in(variable.graph(), variable.dtype()), gradient});
}

Output RmsProp::update(Output variable, Output gradient, const Shared&) const {
  Graph& graph = variable.graph();
  const DType dtype = variable.dtype();
  const Output squares = slot(variable, "RMSProp", initializers::ones());
  std::vector<Output> inputs = {variable};
  if (options_.is_centered) inputs.push_back(slot(variable, "RMSProp"));
  for (const Output& input : {squares, slot(variable, "RMSProp"), rate_.in(graph, dtype),
                              number(graph, dtype, options_.decay, "decay"),
                              number(graph, dtype, options_.momentum, "momentum"),
                              number(graph, dtype, options_.epsilon, "epsilon"), gradient})
    inputs.push_back(input);
  return op(options_.is_centered ? "ApplyCenteredRMSProp" : "ApplyRMSProp", inputs);
}

Adam::Shared Adam::make_shared_state(Graph& graph,
                                     const std::vector<GradientAndVariable>& gradients) const {
  const Output first = gradients.front().variable;
  const ColocationScope with(graph, {first});
  // TensorFlow's names have no prefix.
  const NameScope absolute(graph, copy_root_of(graph, first.node->name));
  Shared powers;
  for (const auto& [name, beta] :
       {std::pair{"beta1_power", options_.beta1}, {"beta2_power", options_.beta2}}) {
    powers.push_back(variable(graph, name, {}, initializers::constant(beta), first.dtype(),
                              {.trainable = false}));
  }
  return powers;
}

Output Adam::update(Output variable, Output gradient, const Shared& powers) const {
  Graph& graph = variable.graph();
  const DType dtype = variable.dtype();
  const auto power = [&](size_t i) {
    return powers[i].dtype() == dtype ? powers[i] : cast(powers[i], dtype);
  };
  return op("ApplyAdam",
            {variable, slot(variable, "Adam"), slot(variable, "Adam_1"), power(0), power(1),
             rate_.in(graph, dtype), number(graph, dtype, options_.beta1, "beta1"),
             number(graph, dtype, options_.beta2, "beta2"),
             number(graph, dtype, options_.epsilon, "epsilon"), gradient});
}

std::vector<Output> Adam::finish(const Shared& powers) const {
  Graph& graph = powers[0].graph();
  const DType dtype = powers[0].dtype();
  const ColocationScope with(graph, {powers[0]});
  std::vector<Output> out;
  for (const auto& [power, beta] :
       {std::pair{powers[0], options_.beta1}, {powers[1], options_.beta2}}) {
    const Output next = op("Mul", {power, number(graph, dtype, beta, "beta")});
    out.push_back(op("Assign", {power, next}, {{"use_locking", false}}));
  }
  return out;
}

}  // namespace leat
