#include "frontends/cpp/strategies/parts/copies.h"

#include <algorithm>

namespace leat {

std::vector<Output> float_variables(const Graph& graph, size_t from) {
  const std::vector<Output>& all = graph.collection("variables");
  std::vector<Output> out;
  for (size_t i = from; i < all.size(); ++i) {
    if (is_floating(all[i].dtype())) out.push_back(all[i]);
  }
  return out;
}

CopiedModel::CopiedModel(const Strategy& strategy, Training& training, const Dataset& data,
                         const ModelFunction& model, Location at)
    : graph_(*training.graph), replicas_(strategy.replicas()) {
  const int own = replicas_.own();
  Graph& graph = graph_;
  const Batch batch = strategy.next_batch(training, data, own, at);
  training.inputs.clear();  // how far a share had been read is not known after a restart
  const size_t before = graph.collection("variables").size(),
               trainable_before = trainable_variables(graph).size();
  {
    const auto servers = replicas_.on_servers(graph, own);
    step_ = global_step(graph, at);
    model(batch);
  }
  const std::vector<Output> trainable = trainable_variables(graph);
  trainable_.assign(trainable.begin() + static_cast<std::ptrdiff_t>(trainable_before),
                    trainable.end());
  for (const Output& variable : float_variables(graph, before)) {
    const auto is_it = [&](const Output& other) { return same(variable, other); };
    if (std::none_of(trainable_.begin(), trainable_.end(), is_it)) state_.push_back(variable);
  }
  check(!trainable_.empty(), "the model function (", at, ") makes no trainable variable");
  const auto copy = replicas_.copy(graph, own, /*own_state=*/true);
  losses_ = model(batch);
  check(bool{losses_.loss}, "the model function (", at, ") returns no loss");
}

std::vector<Output> CopiedModel::copies_of(const std::vector<Output>& variables) const {
  std::vector<Output> out;
  for (const Output& variable : variables)
    out.push_back(replicas_.copy_of(variable, replicas_.own()));
  return out;
}

Output CopiedModel::fetch_also(Output variable, Location at) {
  fetched_also_.push_back(variable);
  const auto worker = replicas_.copy(graph_, replicas_.own());
  const NameScope absolute(graph_, replicas_.prefix(replicas_.own()));
  return leat::variable(graph_, variable_name(variable), variable.shape(), variable.dtype(),
                        {.trainable = false, .use_resource = is_resource_variable(variable)}, at);
}

Node& CopiedModel::fetch(const std::vector<Output>& after, Location at) const {
  const auto worker = replicas_.on_worker(graph_, replicas_.own());
  const NameScope scope(graph_, "fetch");
  std::vector<Output> fetched;
  std::vector<Output> all = trainable_;
  all.insert(all.end(), fetched_also_.begin(), fetched_also_.end());
  const std::vector<Output> copies = copies_of(all);
  for (size_t i = 0; i < copies.size(); ++i) {
    const Output value = [&] {
      const ColocationScope with(graph_, {all[i]});
      const ControlScope wait(graph_, after);
      return read_variable(all[i], at);
    }();
    const ColocationScope with(graph_, {copies[i]});
    fetched.push_back(assign(copies[i], value, at));
  }
  return group(graph_, fetched, "fetched", at);
}

std::vector<Output> CopiedModel::push_state(const std::vector<Output>& after, Location at) const {
  std::vector<Output> pushed;
  const std::vector<Output> copies = copies_of(state_);
  for (size_t i = 0; i < copies.size(); ++i) {
    const Output value = [&] {
      const ColocationScope with(graph_, {copies[i]});
      const ControlScope wait(graph_, after);
      return read_variable(copies[i], at);
    }();
    const ColocationScope with(graph_, {state_[i]});
    pushed.push_back(assign(state_[i], value, at));
  }
  return pushed;
}

Output CopiedModel::own_step(Location at) const {
  const auto copy = replicas_.copy(graph_, replicas_.own());
  return variable(graph_, "global_step", {}, i64, {.trainable = false}, at);
}

}  // namespace leat
