#include "frontends/cpp/strategies/sharding/emission.h"

#include <algorithm>
#include <map>
#include <optional>

#include "frontends/cpp/strategies/sharding/sharded_variables.h"
#include "frontends/cpp/variables.h"
#include "graph/variable_node.h"

namespace leat::sharding {

using collectives::PerReplica;

Replicas Mesh::group(int g) const {
  std::vector<int> members;
  for (int k = 0; k < n; ++k) members.push_back(g * n + k);
  return all.only(members);
}

Replicas Mesh::across(int k) const {
  std::vector<int> members;
  for (int g = 0; g < groups(); ++g) members.push_back(g * n + k);
  return all.only(members);
}

namespace {

class Emission {
 public:
  Emission(Graph& graph, const Step& step, const Plan& plan, const Mesh& mesh,
           const std::function<Output(const Output&, int)>& inputs,
           const std::vector<Output>& means, Location at)
      : graph_(graph),
        step_(step),
        plan_(plan),
        mesh_(mesh),
        inputs_(inputs),
        means_(means),
        at_(at),
        variables_(graph, step, mesh),
        values_(plan.outputs()),
        emitted_(step.graph.size()) {
    for (int g = 0; g < mesh.groups(); ++g) groups_.push_back(mesh.group(g));
    for (int worker = 1; worker < mesh.all.count(); ++worker)
      const ReplicaScope copy = mesh.all.copy(graph, worker);  // makes its prefix known
  }

  Emitted run() {
    for (const auto& node : step_.graph.nodes()) {
      if (node->id == step_.update_begin) take_means();
      if (plan_.is_needed(*node)) make(*node);
    }
    Emitted out;
    out.results.resize(static_cast<size_t>(mesh_.groups()));
    for (const Output& result : step_.results) {
      const PerReplica& values = value(result, State(), *result.node);
      for (int g = 0; g < mesh_.groups(); ++g)
        out.results[static_cast<size_t>(g)].push_back(values[static_cast<size_t>(g * mesh_.n)]);
    }
    for (const Node* target : step_.targets) {
      for (Node* made : emitted_[static_cast<size_t>(target->id)]) out.targets.push_back({made, 0});
    }
    out.made = std::move(made_);
    return out;
  }

 private:
  using ByState = std::map<int, PerReplica>;  // by State::code(), then by worker

  // "layer/" of "layer/MatMul".
  static std::string path(const std::string& name) { return name.substr(0, name.rfind('/') + 1); }

  // Of a worker's nodes that stand for that node.
  ReplicaScope scopes_of(const Node& node, int worker) const {
    Graph::Scopes scopes = graph_.scopes();
    scopes.name = concat(worker == 0 ? "" : mesh_.all.prefix(worker), path(node.name));
    scopes.device = mesh_.all.worker(worker).with_defaults(*node.requested_device);
    scopes.control_inputs.clear();
    scopes.colocate_with.clear();
    return {graph_, std::move(scopes)};
  }

  PerReplica callers(const Output& output) const {
    PerReplica out;
    const Output same{graph_.nodes()[static_cast<size_t>(output.node->id)].get(), output.index};
    for (int worker = 0; worker < mesh_.all.count(); ++worker) {
      const Output own = inputs_(output, worker / mesh_.n);
      out.push_back(own ? own : same);
    }
    return out;
  }

  // What the workers have of an output in that state, made of another one if need be, for `user`.
  const PerReplica& value(const Output& output, State state, const Node& user) {
    ByState& states = values_[plan_.flat(output)];
    if (states.empty() && output.node->id < step_.begin) states[State().code()] = callers(output);
    if (const auto found = states.find(state.code()); found != states.end()) return found->second;
    uint32_t have = 0;
    for (const auto& [code, values] : states) have |= uint32_t{1} << code;
    const State from = cheapest_source(have, state, plan_.bytes(output), mesh_.n);
    if (collective_between(from, state) == Collective::all_gather && !state.is_replicated()) {
      value(output, State(), user);
      return value(output, state, user);
    }
    note_conversion(output, from, state);
    const PerReplica& source = states.at(from.code());
    PerReplica made;
    for (int g = 0; g < mesh_.groups(); ++g) {
      const auto first = source.begin() + g * mesh_.n;
      const NameScope scope(graph_, path(user.name));
      const PerReplica of_group = converted(
          groups_[static_cast<size_t>(g)], {first, first + mesh_.n}, from, state,
          [&](int k) { return scopes_of(user, g * mesh_.n + k); }, user.location);
      made.insert(made.end(), of_group.begin(), of_group.end());
    }
    for (const Output& each : made) refine(each, output.shape(), state);
    return states[state.code()] = std::move(made);
  }

  // What the step knew of the shape is known of the part.
  void refine(const Output& made, const Shape& whole, State state) const {
    if (made.is_handle() || !whole.has_rank()) return;
    const Shape local = local_shape(whole, state, mesh_.n);
    check_internal(made.shape().is_compatible(local), "the part '", made.name(), "' of ", whole,
                   " should be ", local, ", but is ", made.shape());
    const Shape known = made.shape().merged(local);
    if (!(known == made.shape()))
      made.node->outputs.write()[static_cast<size_t>(made.index)].shape = known;
  }

  std::vector<Node*> controls(const Node& node, int worker) const {
    std::vector<Node*> out;
    for (const Node* control : node.control_inputs) {
      if (control->id < step_.begin) {
        out.push_back(graph_.nodes()[static_cast<size_t>(control->id)].get());
        continue;
      }
      const std::vector<Node*>& made = emitted_[static_cast<size_t>(control->id)];
      check_internal(!made.empty(), "'", control->name, "' has not been made");
      out.push_back(made[static_cast<size_t>(worker)]);
    }
    return out;
  }

  void make(const Node& node) {
    if (node.op->is_variable) return make_variable(node);
    if (variables_.is_first_read(node)) return make_first_read(node);
    const Where where = plan_.where(node);
    Signature replicated;
    if (where != Where::each)
      replicated = {
          std::vector<State>(node.inputs.size()), std::vector<State>(node.outputs.size()), {}};
    const Signature& signature = where == Where::each ? plan_.signature(node) : replicated;
    std::vector<PerReplica> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const Output& input = node.inputs[i];
      // A handle that is not a variable's part is there once.
      const bool is_one = input.is_handle() && where != Where::each;
      inputs.push_back(is_one ? any_state(input) : value(input, signature.inputs[i], node));
    }
    note(node, signature);
    std::vector<PerReplica> outputs(node.outputs.size());
    std::vector<Node*>& emitted = emitted_[static_cast<size_t>(node.id)];
    for (int worker = 0; worker < mesh_.all.count(); ++worker) {
      const bool runs = where == Where::each || worker == 0 ||
                        (where == Where::first_of_group && worker % mesh_.n == 0);
      if (!runs) {  // what the last one that ran it has
        emitted.push_back(emitted.back());
        for (PerReplica& of_output : outputs) of_output.push_back(of_output.back());
        continue;
      }
      std::vector<Output> own;
      for (const PerReplica& of_input : inputs)
        own.push_back(of_input[static_cast<size_t>(worker)]);
      const std::vector<Output> made = make_on(worker, node, signature, std::move(own));
      emitted.push_back(graph_.nodes().back().get());
      for (size_t i = 0; i < made.size(); ++i) {
        refine(made[i], node.outputs[i].shape, signature.outputs[i]);
        outputs[i].push_back(made[i]);
      }
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      values_[plan_.flat({const_cast<Node*>(&node), static_cast<int>(i)})]
             [signature.outputs[i].code()] = std::move(outputs[i]);
  }

  std::vector<Output> make_on(int worker, const Node& node, const Signature& signature,
                              std::vector<Output> inputs) {
    const std::vector<Node*> after = controls(node, worker);
    const ReplicaScope there = scopes_of(node, worker);
    const ControlScope wait(graph_, after);
    // What belongs to the caller is where the caller has put it.
    std::optional<ColocationScope> beside;
    if (plan_.where(node) == Where::first) {
      for (const Output& input : inputs) {
        if (!beside && input.is_handle()) beside.emplace(graph_, std::vector<Output>{input});
      }
    }
    const Shard shard{graph_, worker % mesh_.n, mesh_.n};
    if (signature.emit) return signature.emit(shard, node, std::move(inputs));
    return same_op(graph_, node, std::move(inputs));
  }

  const PerReplica& any_state(const Output& handle) {
    ByState& states = values_[plan_.flat(handle)];
    if (states.empty()) states[State().code()] = callers(handle);
    return states.begin()->second;
  }

  void make_variable(const Node& node) {
    const State state = plan_.state_of_variable(node);
    const PerReplica made = variables_.make(node, state);
    made_.variables.push_back(concat(node.name, " ", node.outputs[0].shape, " ", state.text()));
    PerReplica handles;
    for (const Output& each : made) {
      handles.push_back(variable_handle(each));
      emitted_[static_cast<size_t>(node.id)].push_back(handles.back().node);
    }
    values_[plan_.flat({const_cast<Node*>(&node), 0})][state.code()] = std::move(handles);
  }

  // A resource variable comes with its first read.
  void make_first_read(const Node& read) {
    const Node& variable = *read.inputs[0].node;
    const PerReplica& made = variables_.made(variable);
    for (const Output& each : made) emitted_[static_cast<size_t>(read.id)].push_back(each.node);
    values_[plan_.flat({const_cast<Node*>(&read), 0})][plan_.state_of_variable(variable).code()] =
        made;
  }

  // The groups go on with the mean of what each has.
  void take_means() {
    if (mesh_.groups() == 1 || means_.empty()) return;
    for (int k = 0; k < mesh_.n; ++k) {
      std::vector<PerReplica> tensors;
      for (size_t i = means_.size(); i-- > 0;) {  // as backward makes them
        tensors.emplace_back();
        const PerReplica& values = any_state(means_[i]);
        for (int g = 0; g < mesh_.groups(); ++g)
          tensors.back().push_back(values[static_cast<size_t>(g * mesh_.n + k)]);
      }
      const auto means = collectives::all_reduce(mesh_.across(k), tensors, {}, at_);
      for (size_t i = 0; i < means.size(); ++i) {
        ByState& states = values_[plan_.flat(means_[means_.size() - 1 - i])];
        for (int g = 0; g < mesh_.groups(); ++g)
          states.begin()->second[static_cast<size_t>(g * mesh_.n + k)] =
              means[i][static_cast<size_t>(g)];
      }
    }
    for (const Output& mean : means_) {
      made_.rows.push_back(
          {.op = "",
           .name = mean.name(),
           .states = "mean of the groups",
           .collective = "all-reduce",
           .bytes = bytes_sent(State::partial(), State(), local_bytes(mean), mesh_.groups())});
    }
  }
  double local_bytes(const Output& output) {
    const State state = State::of_code(values_[plan_.flat(output)].begin()->first);
    return plan_.bytes(output) / (state.is_split() ? mesh_.n : 1);
  }

  // ---- What was made ----

  void note(const Node& node, const Signature& signature) {
    std::string states;
    for (const State state : signature.inputs)
      states += concat(states.empty() ? "" : ", ", state.text());
    std::string outputs;
    for (const State state : signature.outputs)
      outputs += concat(outputs.empty() ? "" : ", ", state.text());
    if (plan_.where(node) != Where::each) outputs += ", made by one worker";
    made_.rows.push_back({.op = node.op->name,
                          .name = node.name,
                          .states = concat(states, " -> ", outputs),
                          .is_update = node.id >= step_.update_begin});
  }
  void note_conversion(const Output& output, State from, State to) {
    const Collective collective = collective_between(from, to);
    if (collective == Collective::none) return;
    made_.rows.push_back({.op = "",
                          .name = output.name(),
                          .states = concat(from.text(), " -> ", to.text()),
                          .collective = std::string(name_of(collective)),
                          .bytes = bytes_sent(from, to, plan_.bytes(output), mesh_.n),
                          .is_complete = output.shape().is_complete()});
  }

  Graph& graph_;
  const Step& step_;
  const Plan& plan_;
  const Mesh& mesh_;
  const std::function<Output(const Output&, int)>& inputs_;
  const std::vector<Output>& means_;
  const Location at_;
  std::vector<Replicas> groups_;
  ShardedVariables variables_;
  std::vector<ByState> values_;              // by output of the step
  std::vector<std::vector<Node*>> emitted_;  // by node of the step and worker: the last one made
  Made made_;
};

}  // namespace

Emitted emit(Graph& graph, const Step& step, const Plan& plan, const Mesh& mesh,
             const std::function<Output(const Output&, int g)>& inputs,
             const std::vector<Output>& means, Location at) {
  return Emission(graph, step, plan, mesh, inputs, means, at).run();
}

std::string Made::text(bool with_ops) const {
  std::string out =
      "tensor_parallel: the variables, and what passes between the workers of a group\n";
  for (const std::string& each : variables) out += concat("  ", each, "\n");
  double total = 0;
  size_t collectives = 0;
  for (const Row& row : rows) {
    if (row.collective.empty()) {
      if (with_ops) out += concat("  ", row.op, " ", row.name, ": ", row.states, "\n");
      continue;
    }
    out += concat("  * ", row.collective, " of ", row.name, ": ", row.states, ", ", row.bytes,
                  " bytes", row.is_complete ? "" : " for 32 examples", "\n");
    total += row.bytes;
    ++collectives;
  }
  out += concat(collectives, " collectives, in which each worker sends ", total, " bytes\n");
  return out;
}

}  // namespace leat::sharding
