// structure_loops(): the pass that makes each loop one node.
#include <algorithm>
#include <map>
#include <set>

#include "graph/frames.h"
#include "graph/graph_def.h"
#include "graph/loops.h"
#include "graph/pipeline.h"
#include "graph/rebuild.h"
#include "graph/shape_inference.h"
#include "graph/variable_accesses.h"

namespace leat {
namespace {

// A larger constant from outside is captured, not copied into a loop's parts.
constexpr size_t copied_constant_bytes = 1 << 20;

bool is_switch(const Node& node) { return node.is("Switch") || node.is("RefSwitch"); }
bool is_merge(const Node& node) { return next_iteration(node) != nullptr; }

// The state that a handle stands for: a variable, a queue. Null if the handle is a value that the
// step makes, such as a TensorArray's.
const Node* state_behind(Output handle) {
  while (is_enter(*handle.node) || handle.node->is("Identity") || is_switch(*handle.node))
    handle = handle.node->inputs[0];
  const bool is_state =
      handle.is_handle() && handle.node->inputs.empty() && !handle.node->is("_Feed");
  return is_state ? handle.node : nullptr;
}

// The variable whose memory a value is. Null if it is none.
const Node* variable_behind(Output value) {
  const Output ref = reference_behind(value);
  return ref ? state_behind(ref) : nullptr;
}

// One loop, and how its two parts are cut out.
class Loop {
 public:
  Loop(const Graph& graph, const Frames& frames, int frame)
      : graph_(graph),
        frames_(frames),
        frame_(frame),
        role_(graph.size()),
        is_after_(graph.size()),
        is_conditional_(graph.size()) {
    for (const auto& node : graph.nodes()) {
      if (!is_within(*node)) continue;
      find_role(*node);
      is_after_[node->id] = follows_the_end(*node);
      is_conditional_[node->id] = may_be_dead(*node);
    }
    if (condition_ == nullptr) refuse("it has no LoopCond", *first_);
    for (const auto& node : graph.nodes()) {
      if (is_exit(*node) && frames_.of(*node->inputs[0].node) == frame_) check_exit(*node);
      if (!is_within(*node)) continue;
      note_writes(*node);
      if (is_after_[node->id]) check_after(*node);
    }
    uses_several_tasks_ = tasks_of_state().size() > 1;
    condition_part_ = cut({condition_->inputs[0]}, condition_->control_inputs);
    std::vector<Output> next;
    std::vector<Node*> after;
    for (const Variable& variable : variables_) {
      next.push_back(variable.next->inputs[0]);
      after.insert(after.end(), variable.next->control_inputs.begin(),
                   variable.next->control_inputs.end());
    }
    body_ = cut(next, after);
  }

  // The loop's node in the new graph.
  void add_to(Rebuild& rebuild) const {
    std::vector<Node*> after = controls_in(rebuild);
    std::vector<Output> inputs;
    std::vector<DType> types, captured_types, reference_types;
    for (const Variable& variable : variables_) {
      inputs.push_back(rebuild.map(variable.enter->inputs[0]));
      types.push_back(variable.merge->outputs[0].dtype);
    }
    for (const Captured& captured : captured_) {
      inputs.push_back(captured.read != nullptr ? read_before(captured, after, rebuild)
                                                : rebuild.map(captured.value));
      captured_types.push_back(inputs.back().dtype());
    }
    for (const int variable : references_) {
      inputs.push_back(rebuild.map(graph_.nodes()[variable]->output()));
      reference_types.push_back(inputs.back().dtype());
    }
    NodeSpec spec{.op = "_Loop",
                  .name = condition_->name,
                  .inputs = std::move(inputs),
                  .attrs = {{"T", std::move(types)},
                            {"Tcaptured", std::move(captured_types)},
                            {"Treferences", std::move(reference_types)},
                            {"frame_name", frames_.name(frame_)},
                            {"condition", to_graph_def(condition_part_.graph)},
                            {"predicate", condition_part_.endpoints[0]},
                            {"body", to_graph_def(body_.graph)},
                            {"next", body_.endpoints}},
                  .control_inputs = std::move(after),
                  .location = condition_->location};
    Node& loop = rebuild.graph().insert(std::move(spec), DeviceName());
    // On the condition's task. A loop's parts run on a CPU, whatever the device of a node in them.
    loop.requested_device = condition_->requested_device.task_name();
    for (const auto& node : graph_.nodes()) {
      if (!is_within(*node)) continue;
      const BoundaryRole& role = role_[node->id];
      if (is_after_[node->id]) {
        rebuild.copy(*node);
        continue;
      }
      std::vector<Output> outputs;  // what an Exit reads, or something before it
      if (role.kind == Kind::switch_) outputs = {loop.output(role.variable), {}};
      if (role.kind == Kind::enter) outputs = {rebuild.map(node->inputs[0])};
      rebuild.replace(*node, std::move(outputs), {&loop});
    }
  }

 private:
  struct Variable {
    const Node* enter;
    const Node* merge;
    const Node* next;
  };
  // A value of the graph around the loop. `read`: a read of a variable of every iteration, which
  // may as well run once before the loop, since none writes its variable.
  struct Captured {
    Output value;
    const Node* read = nullptr;
  };
  // What a boundary node of the loop stands for.
  struct BoundaryRole {
    enum class Kind : uint8_t { inner, merge, switch_, enter, condition } kind = Kind::inner;
    int variable = -1;
  };
  using Kind = BoundaryRole::Kind;
  struct Part {
    Graph graph;
    std::vector<std::string> endpoints;
  };

  [[noreturn]] void refuse(const std::string& what, const Node& node) const {
    fail(Code::invalid_argument,
         with_node(concat("while loop '", frames_.name(frame_), "': ", what), node.name));
  }

  bool is_within(const Node& node) const { return frames_.is_within(frames_.of(node), frame_); }

  // Called in the graph's order: a Merge before the Switch of its variable.
  void find_role(const Node& node) {
    if (first_ == nullptr) first_ = &node;
    if (frames_.of(node) != frame_) return;
    if (node.is("RefNextIteration") || (node.is("RefMerge") && is_merge(node)))
      refuse("a reference cannot be a loop variable: pass the variable's value", node);
    BoundaryRole& role = role_[node.id];
    if (is_enter(node)) {
      role.kind = Kind::enter;
    } else if (is_merge(node)) {
      role = {Kind::merge, static_cast<int>(variables_.size())};
      const Node& enter = *node.inputs[0].node;
      if (!is_enter(enter)) refuse("its Merge does not follow an Enter", node);
      const Node& next = *next_iteration(node);
      if (frames_.of(next) != frame_)
        refuse(concat("NextIteration node '", next.name, "' has a value from outside of it"), next);
      variables_.push_back({&enter, &node, &next});
    } else if (node.is("LoopCond")) {
      if (condition_ != nullptr) refuse("it has two LoopConds", node);
      role.kind = Kind::condition;
      condition_ = &node;
    } else if (is_switch(node) && node.inputs[1].node->is("LoopCond")) {
      const BoundaryRole& data = role_[node.inputs[0].node->id];
      if (data.kind != Kind::merge)
        refuse(concat("Switch node '", node.name, "' is not that of a loop variable"), node);
      role = {Kind::switch_, data.variable};
    }
  }

  // The values that the variables have when the loop ends, and what is computed of them, which may
  // as well be done behind it.
  bool is_from_the_end(const Output& value) const {
    return is_after_[value.node->id] ||
           (role_[value.node->id].kind == Kind::switch_ && value.index == 0);
  }
  bool follows_the_end(const Node& node) const {
    return role_[node.id].kind == Kind::inner &&
           std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const Output& input) { return is_from_the_end(input); });
  }

  // In a branch of a condition within the loop, or behind one.
  bool may_be_dead(const Node& node) const {
    if (is_switch(node) && !node.inputs[1].node->is("LoopCond")) return true;
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const Output& input) { return is_conditional_[input.node->id]; }) ||
           std::any_of(node.control_inputs.begin(), node.control_inputs.end(),
                       [&](const Node* control) { return is_conditional_[control->id]; });
  }

  void check_exit(const Node& node) const {
    if (is_from_the_end(node.inputs[0])) return;
    refuse(concat("Exit node '", node.name, "' does not follow the Switch of a loop variable"),
           node);
  }

  void check_after(const Node& node) const {
    for (const Output& input : node.inputs) {
      const bool is_there = !is_within(*input.node) || is_from_the_end(input) ||
                            role_[input.node->id].kind == Kind::enter;
      if (is_there) continue;
      refuse(concat(describe(node), " has '", input.name(),
                    "' of an iteration and a value of the loop's end among its inputs"),
             node);
    }
  }

  void note_writes(const Node& node) {
    if (is_enter(node) || node.is("Identity") || is_switch(node)) return;
    if (node.op->only_reads_state) return;
    for (const Output& input : node.inputs) {
      const Node* state = input.is_handle() ? state_behind(input) : nullptr;
      if (state != nullptr) written_.insert(state->id);
    }
  }

  // The tasks that must have state that the loop has by its handle.
  std::set<std::string> tasks_of_state() const {
    std::set<std::string> out;
    for (const auto& node : graph_.nodes()) {
      if (!is_within(*node) || is_enter(*node) || is_early_read(*node)) continue;
      for (const Output& input : node->inputs) {
        const Node* state = input.is_handle() ? state_behind(input) : nullptr;
        if (state != nullptr) out.insert(state->requested_device.task_name().to_string());
      }
    }
    return out;
  }

  // ---- The parts ----

  bool is_cut(const Node& node) const {
    return !is_within(node) || role_[node.id].kind != Kind::inner || is_after_[node.id];
  }

  // What the roots need of the loop. Values from outside become feeds; constants, variables and
  // queues come along.
  Part cut(const std::vector<Output>& roots, const std::vector<Node*>& targets) {
    std::vector<bool> is_needed(graph_.size());
    std::vector<const Node*> stack;
    std::vector<Output> entering;
    const auto need = [&](const Node& node) {
      if (is_cut(node) || is_early_read(node) || is_needed[node.id]) return;
      is_needed[node.id] = true;
      stack.push_back(&node);
    };
    const auto need_value = [&](const Output& value) {
      if (is_cut(*value.node) || is_early_read(*value.node)) {
        entering.push_back(value);
      } else {
        need(*value.node);
      }
    };
    for (const Output& root : roots) need_value(root);
    for (const Node* target : targets) need(*target);
    while (!stack.empty()) {
      const Node& node = *stack.back();
      stack.pop_back();
      const bool is_brought = is_brought_read(node);
      for (size_t i = is_brought ? 1 : 0; i < node.inputs.size(); ++i) need_value(node.inputs[i]);
      for (const Output& passed : is_brought ? way_of(node.inputs[0]) : std::vector<Output>()) {
        if (is_switch(*passed.node)) need_value(passed.node->inputs[1]);
        for (const Node* control : passed.node->control_inputs) need(*control);
      }
      for (const Node* control : node.control_inputs) need(*control);
      if (const Node* next = next_iteration(node)) need(*next);
    }

    Rebuild rebuild(graph_);
    Feeds feeds;
    std::map<int, std::vector<Output>> outputs;  // of nodes that are cut, by id
    for (const Output& value : entering) {
      std::vector<Output>& all = outputs[value.node->id];
      all.resize(value.node->outputs.size());
      if (!all[value.index]) all[value.index] = enter(value, rebuild, feeds);
    }
    for (auto& [id, all] : outputs) rebuild.replace(*graph_.nodes()[id], all, {});
    for (const auto& node : graph_.nodes()) {
      if (!is_needed[node->id]) continue;
      if (is_brought_read(*node)) {
        add_brought_read(*node, rebuild, feeds);
      } else {
        infer_shapes_or_defer(rebuild.copy(*node));
      }
    }
    Part part;
    StepSignature signature;
    for (const Output& root : roots) part.endpoints.push_back(rebuild.map(root).name());
    signature.fetches = part.endpoints;
    for (const Node* target : targets) {
      if (is_needed[target->id]) signature.targets.push_back(target->name);
    }
    part.graph =
        simplify(read_late(structure_loops(std::move(rebuild).finish(), signature)), signature);
    return part;
  }

  bool is_early_read(const Node& node) const {
    return (node.is("ReadVariableOp") || node.is("VariableShape")) && !is_conditional_[node.id] &&
           reads_unwritten(node);
  }

  // A read that would bind the loop to the task of its variable, of a loop that other state binds
  // to another. The whole variable, or its shape, is read before the loop.
  bool is_brought_read(const Node& node) const {
    const bool is_read =
        node.is("ReadVariableOp") || node.is("ResourceGather") || node.is("VariableShape");
    return uses_several_tasks_ && is_read && is_within(node) && !is_early_read(node) &&
           reads_unwritten(node);
  }

  bool reads_unwritten(const Node& node) const {
    const Node* variable = state_behind(node.inputs[0]);
    return variable != nullptr && !written_.contains(variable->id);
  }

  using Feeds = std::map<std::string, Output>;

  Output feed(const LoopFeed& name, DType dtype, const Location& at, Rebuild& rebuild,
              Feeds& feeds) const {
    Output& made = feeds[name.name()];
    if (!made) {
      made = rebuild.graph()
                 .insert({.op = "_Feed",
                          .name = graph_.unique_name(
                              concat(condition_->name,
                                     name.is_variable ? "/variable_" : "/captured_", name.number)),
                          .attrs = {{"dtype", dtype}, {"name", name.name()}},
                          .location = at},
                         DeviceName())
                 .output();
    }
    return made;
  }

  // The Switches of conditions, and Identities, that a handle comes through within the loop.
  std::vector<Output> way_of(Output handle) const {
    std::vector<Output> out;
    while (!is_cut(*handle.node) && (is_switch(*handle.node) || handle.node->is("Identity"))) {
      out.push_back(handle);
      handle = handle.node->inputs[0];
    }
    std::reverse(out.begin(), out.end());
    return out;
  }

  // What a handle stands for goes the way that the handle went: it is dead where that was.
  Output brought_along(Output whole, const Output& handle, Rebuild& rebuild) const {
    for (const Output& passed : way_of(handle)) {
      std::vector<Output> inputs = {whole};
      if (is_switch(*passed.node)) inputs.push_back(rebuild.map(passed.node->inputs[1]));
      Node& made = rebuild.graph().insert(
          {.op = is_switch(*passed.node) ? "Switch" : "Identity",
           .name = rebuild.graph().unique_name(graph_.unique_name(passed.node->name + "/value")),
           .inputs = std::move(inputs),
           .control_inputs = rebuild.control_inputs_of(*passed.node),
           .location = passed.node->location},
          DeviceName());
      infer_shapes_or_defer(made);
      whole = made.output(passed.index);
    }
    return whole;
  }

  void add_brought_read(const Node& node, Rebuild& rebuild, Feeds& feeds) {
    const Node& variable = *state_behind(node.inputs[0]);
    const Node* read = &node;
    if (!node.is("VariableShape")) read = whole_reads_.try_emplace(variable.id, read).first->second;
    const Output fed = feed({false, capture({state_output(variable), read})}, node.outputs[0].dtype,
                            node.location, rebuild, feeds);
    const Output whole = brought_along(fed, node.inputs[0], rebuild);
    NodeSpec spec{.op = "Identity",
                  .name = node.name,
                  .inputs = {whole},
                  .control_inputs = rebuild.control_inputs_of(node),
                  .location = node.location};
    if (node.is("ResourceGather")) {
      const auto batch_dims = node.attr<int64_t>("batch_dims");
      Node& axis = rebuild.graph().insert(
          {.op = "Const",
           .name = graph_.unique_name(node.name + "/axis"),
           .attrs = {{"dtype", DType::i32},
                     {"value", Tensor::scalar(static_cast<int32_t>(batch_dims))}},
           .location = node.location},
          DeviceName());
      spec.op = "GatherV2";
      spec.inputs = {whole, rebuild.map(node.inputs[1]), axis.output()};
      spec.attrs = {{"batch_dims", batch_dims}};
    }
    Node& made = rebuild.graph().insert(std::move(spec), DeviceName());
    infer_shapes_or_defer(made);
    rebuild.replace(node, {made.output()}, {&made});
  }

  // What stands for a value of the graph around the loop, or for a loop variable.
  Output enter(const Output& value, Rebuild& rebuild, Feeds& feeds) {
    const BoundaryRole& role = role_[value.node->id];
    const auto feed = [&](const LoopFeed& name, DType dtype) {
      return this->feed(name, dtype, value.node->location, rebuild, feeds);
    };
    const bool is_inside = is_within(*value.node);
    if (is_inside && role.kind == Kind::merge && value.index == 0)
      return feed({true, role.variable}, value.dtype());
    if (is_inside && role.kind == Kind::switch_ && value.index == 1)
      return feed({true, role.variable}, value.dtype());
    if (is_inside && (role.kind == Kind::merge || role.kind == Kind::switch_ ||
                      role.kind == Kind::condition || is_after_[value.node->id]))
      refuse(concat("'", value.name(), "' is used within the loop"), *value.node);

    if (is_early_read(*value.node))
      return feed({false, capture({value, value.node})}, value.dtype());
    const Output source = is_inside ? value.node->inputs[0] : value;
    if (source.is_handle() && (value.is_ref() || value.dtype() == DType::resource)) {
      if (const Node* state = state_behind(source)) {
        if (value.is_ref()) {
          references_.insert(state->id);
        } else {
          capture({state_output(*state)});
        }
        return brought(*state, rebuild);
      }
    }
    if (const Node* variable = variable_behind(source);
        variable != nullptr && written_.contains(variable->id)) {
      references_.insert(variable->id);
      return brought(*variable, rebuild);
    }
    if (source.node->is("Const") &&
        source.node->attr<Tensor>("value").bytes() <= copied_constant_bytes)
      return brought(*source.node, rebuild);
    return feed({false, capture({source})}, value.dtype());
  }

  // The part's own copy of a node without inputs.
  static Output brought(const Node& node, Rebuild& rebuild) {
    Node* const known = rebuild.graph().find(node.name);
    return (known != nullptr ? *known : rebuild.copy(node)).output();
  }

  static Output state_output(const Node& state) { return {const_cast<Node*>(&state), 0}; }

  int capture(const Captured& captured) {
    for (size_t c = 0; c < captured_.size(); ++c) {
      if (captured_[c].value == captured.value && captured_[c].read == captured.read)
        return static_cast<int>(c);
    }
    captured_.push_back(captured);
    return static_cast<int>(captured_.size()) - 1;
  }

  // ---- The node ----

  // All that something in the loop waits for outside.
  std::vector<Node*> controls_in(const Rebuild& rebuild) const {
    std::vector<Node*> out;
    for (const auto& node : graph_.nodes()) {
      if (!is_within(*node)) continue;
      for (Node* control : rebuild.control_inputs_of(*node)) {
        if (std::find(out.begin(), out.end(), control) == out.end()) out.push_back(control);
      }
    }
    return out;
  }

  static Output read_before(const Captured& captured, const std::vector<Node*>& after,
                            Rebuild& rebuild) {
    const Node& read = *captured.read;
    const bool is_gather = read.is("ResourceGather");
    Node& copy = rebuild.graph().insert(
        {.op = is_gather ? "ReadVariableOp" : read.op->name,
         .name = read.name,
         .inputs = {rebuild.map(state_output(*state_behind(read.inputs[0])))},
         .attrs = is_gather ? AttrMap{{"dtype", read.outputs[0].dtype}} : read.attrs,
         .control_inputs = after,
         .location = read.location},
        DeviceName());
    copy.requested_device = read.requested_device;
    return copy.output();
  }

  const Graph& graph_;
  const Frames& frames_;
  const int frame_;
  const Node* first_ = nullptr;
  const Node* condition_ = nullptr;
  std::vector<BoundaryRole> role_;    // by node id
  std::vector<bool> is_after_;        // by node id: it is computed once, of what the loop gives
  std::vector<bool> is_conditional_;  // by node id: it may not run in an iteration
  std::vector<Variable> variables_;
  std::vector<Captured> captured_;
  std::set<int> written_;  // variables and other state that an iteration may change, by node id
  bool uses_several_tasks_ = false;         // by handles on state
  std::map<int, const Node*> whole_reads_;  // brought: the first of each variable, by its id
  std::set<int> references_;                // variables that the parts have by reference
  Part condition_part_, body_;
};

void check_endpoints(const Graph& graph, const Frames& frames, const StepSignature& signature) {
  const auto look = [&](const std::string& name, std::string_view what) {
    const Node* node = graph.find(name);
    if (node == nullptr || frames.of(*node) == Frames::none) return;
    fail(Code::invalid_argument,
         with_node(concat("'", name, "' is within the while loop '", frames.name(frames.of(*node)),
                          "' and cannot be ", what,
                          ": it has a value in each iteration; take the loop's result"),
                   name));
  };
  for (const std::string& fetch : signature.normalised().fetches)
    look(fetch.substr(0, fetch.rfind(':')), "fetched");
  for (const std::string& target : signature.targets) look(target, "a target");
}

// A client asks for each stack to be where the value comes from that is pushed on it in a loop. But
// a loop is in one place, and its stacks are there.
void copy_outside(const Node& node, Rebuild& rebuild) {
  Node& copy = rebuild.copy(node);
  if (!makes_step_state(node)) return;
  copy.attrs.erase("_class");
  copy.requested_device = copy.assigned_device = DeviceName();
}

// What an Exit is afterwards: a name for a result of its loop.
void add_result(const Node& exit, Rebuild& rebuild) {
  const Output result = rebuild.map(exit.inputs[0]);
  Node& name = rebuild.graph().insert({.op = "Identity",
                                       .name = exit.name,
                                       .inputs = {result},
                                       .attrs = {{"T", exit.outputs[0].dtype}},
                                       .control_inputs = rebuild.control_inputs_of(exit),
                                       .location = exit.location},
                                      DeviceName());
  name.requested_device = result.node->requested_device;
  rebuild.replace(exit, {name.output()}, {&name});
}

}  // namespace

Graph structure_loops(Graph graph, const StepSignature& signature) {
  const Frames frames(graph);
  if (frames.count() == 0) return graph;
  check_endpoints(graph, frames, signature);
  const FrameOrder order(graph, frames);
  Rebuild rebuild(graph);
  for (const int unit : order.units()) {
    if (const int frame = order.loop(unit); frame != Frames::none) {
      Loop(graph, frames, frame).add_to(rebuild);
    } else if (const Node& node = *graph.nodes()[unit]; is_exit(node)) {
      add_result(node, rebuild);
    } else {
      copy_outside(node, rebuild);
    }
  }
  // Again, if what came behind a loop has loops in it.
  return structure_loops(std::move(rebuild).finish(), signature);
}

}  // namespace leat
