#include "frontends/cpp/strategies/sharding/sharded_variables.h"

#include <algorithm>

#include "frontends/cpp/variables.h"
#include "graph/shape_inference.h"
#include "graph/variable_node.h"

namespace leat::sharding {

using collectives::PerReplica;

ShardedVariables::ShardedVariables(Graph& graph, const Step& step, const Mesh& mesh)
    : graph_(graph), step_(step), mesh_(mesh) {
  for (const Output& initializer : step.graph.collection("initializers"))
    initializers_.emplace(variable_node(initializer.node->inputs[0]), initializer.node);
}

bool ShardedVariables::is_first_read(const Node& node) const {
  if (!node.is("ReadVariableOp") || !node.control_inputs.empty()) return false;
  const Node& variable = *node.inputs[0].node;
  return made_.contains(&variable) && node.name == variable.name + "/Read/ReadVariableOp";
}

const PerReplica& ShardedVariables::make(const Node& variable, State state) {
  const int n = mesh_.n;
  const Shape& shape = variable.outputs[0].shape;
  const std::vector<Output>& trainable = step_.graph.collection("trainable_variables");
  VariableOptions options{.trainable = std::any_of(
                              trainable.begin(), trainable.end(),
                              [&](const Output& each) { return variable_node(each) == &variable; }),
                          .container = variable.attr<std::string>("container"),
                          .use_resource = is_resource_variable(*variable.op)};
  std::string shared_name = variable.attr<std::string>("shared_name");
  if (shared_name == variable.name) shared_name.clear();
  const bool kind = graph_.uses_resource_variables();
  graph_.use_resource_variables(options.use_resource);
  PerReplica out;
  states_[&variable] = state;
  for (int worker = 0; worker < mesh_.all.count(); ++worker) {
    const NameScope absolute(graph_, "");
    // A part of the first group is the model's, as is the whole on worker 0.
    const bool is_model = state.is_split() ? worker < n : worker == 0;
    const ReplicaScope there =
        is_model ? mesh_.all.on_worker(graph_, worker) : mesh_.all.copy(graph_, worker);
    graph_.scopes().device = mesh_.all.worker(worker).with_defaults(*variable.requested_device);
    graph_.scopes().colocate_with.clear();
    std::string name = variable.name;
    options.part.reset();
    options.shared_name = shared_name;
    TensorSlice slice = TensorSlice::whole(shape.rank()).resolved(shape);
    if (state.is_split()) {
      TensorSlice::Extent& own = slice.extents[static_cast<size_t>(state.axis())];
      own.length = shape[state.axis()] / n;
      own.start = own.length * (worker % n);
      options.part.emplace(variable.name, shape, slice);
      name += concat("/part_", worker % n);
      if (!shared_name.empty()) options.shared_name += concat("/part_", worker % n);
    }
    const auto initial = [&](Graph&, DType, const VariablePart& part) {
      return initial_value(variable, part);
    };
    const std::string wanted = graph_.scopes().name + name;
    const Output made = leat::variable(graph_, name, slice.shape(), Initializer(initial),
                                       variable.attr<DType>("dtype"), options, variable.location);
    check(variable_name(made) == wanted, "the name '", wanted, "' of a variable that ",
          "tensor_parallel makes (", variable.location, ") is taken: give the layer another one");
    out.push_back(made);
  }
  graph_.use_resource_variables(kind);
  return made_[&variable] = std::move(out);
}

Output ShardedVariables::initial_value(const Node& variable, const VariablePart& part) {
  const auto found = initializers_.find(&variable);
  check(found != initializers_.end(), "the variable '", variable.name,
        "' has no initialiser: ", "make it with variable()");
  const Output value = found->second->inputs[1];
  const bool is_whole = part.slice.covers(part.whole);
  if (!is_whole && value.node->is("Fill")) {
    std::map<const Node*, Node*> copies;
    return op("Fill", {Dims(part.shape()).in(graph_), copied(value.node->inputs[1], copies)});
  }
  std::map<const Node*, Node*> copies;
  const Output whole = copied(value, copies);
  if (is_whole) return whole;
  std::vector<int64_t> begin, size;
  for (const TensorSlice::Extent& extent : part.slice.extents) {
    begin.push_back(extent.start);
    size.push_back(extent.length);
  }
  return op("Slice", {whole, constant(graph_, integers(i64, begin), "begin"),
                      constant(graph_, integers(i64, size), "size")});
}

Output ShardedVariables::copied(const Output& output, std::map<const Node*, Node*>& copies) {
  const Node& node = *output.node;
  if (node.id < step_.begin)
    return {graph_.nodes()[static_cast<size_t>(node.id)].get(), output.index};
  if (const auto found = made_.find(&node); found != made_.end()) {
    // A variable that was made earlier: its value.
    const State state = states_.at(&node);
    const PerReplica& parts = found->second;
    std::vector<Output> read;
    for (int k = 0; k < (state.is_split() ? mesh_.n : 1); ++k) {
      const Output& part = parts[static_cast<size_t>(k)];
      const ControlScope after(graph_, {initializer_of(graph_, part)});
      read.push_back(read_variable(part));
    }
    return read.size() == 1 ? read.front() : concatenate(read, state.axis());
  }
  // The read of one.
  if (node.is("ReadVariableOp")) return copied(node.inputs[0], copies);
  Node*& copy = copies[&node];
  if (copy == nullptr) {
    std::vector<Output> inputs;
    for (const Output& input : node.inputs) inputs.push_back(copied(input, copies));
    // Others are initialisers of variables that it reads.
    std::vector<Node*> after;
    for (const Node* control : node.control_inputs) {
      if (control->id < step_.begin)
        after.push_back(graph_.nodes()[static_cast<size_t>(control->id)].get());
    }
    const ControlScope wait(graph_, after);
    copy = same_op(graph_, node, std::move(inputs)).front().node;
  }
  return {copy, output.index};
}

}  // namespace leat::sharding
