// structure_loops(): the pass that makes each loop one node.
#include <algorithm>

#include "graph/endpoint.h"
#include "graph/import/graph_def.h"
#include "graph/loops/loop_frame.h"
#include "graph/loops/loops.h"
#include "graph/passes/loop_cut.h"
#include "graph/passes/pipeline.h"
#include "graph/rebuild.h"

namespace leat {
namespace {

// All that something in the loop waits for outside.
std::vector<Node*> controls_in(const LoopFrame& frame, const Rebuild& rebuild) {
  std::vector<Node*> out;
  for (const auto& node : frame.graph().nodes()) {
    if (!frame.is_within(*node)) continue;
    for (Node* control : rebuild.control_inputs_of(*node)) {
      if (std::find(out.begin(), out.end(), control) == out.end()) out.push_back(control);
    }
  }
  return out;
}

Output read_before(const Node& read, const std::vector<Node*>& after, Rebuild& rebuild) {
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

Node& add_loop_node(const LoopFrame& frame, Simplify extent, Rebuild& rebuild) {
  const LoopCut cut = cut_loop(frame, extent);
  std::vector<Node*> after = controls_in(frame, rebuild);
  std::vector<Output> inputs;
  std::vector<DType> types, captured_types, reference_types;
  for (const LoopFrame::Variable& variable : frame.variables()) {
    inputs.push_back(rebuild.map(variable.enter->inputs[0]));
    types.push_back(variable.merge->outputs[0].dtype);
  }
  for (const Captured& captured : cut.captured) {
    inputs.push_back(captured.read != nullptr ? read_before(*captured.read, after, rebuild)
                                              : rebuild.map(captured.value));
    captured_types.push_back(inputs.back().dtype());
  }
  for (const int variable : cut.references) {
    inputs.push_back(rebuild.map(frame.graph().nodes()[variable]->output()));
    reference_types.push_back(inputs.back().dtype());
  }
  NodeSpec spec{.op = "_Loop",
                .name = frame.condition().name,
                .inputs = std::move(inputs),
                .attrs = {{"T", std::move(types)},
                          {"Tcaptured", std::move(captured_types)},
                          {"Treferences", std::move(reference_types)},
                          {"frame_name", frame.name()},
                          {"condition", to_graph_def(cut.condition.graph)},
                          {"predicate", cut.condition.endpoints[0]},
                          {"body", to_graph_def(cut.body.graph)},
                          {"next", cut.body.endpoints},
                          {"last", cut.last.graph.size() == 0 ? "" : to_graph_def(cut.last.graph)}},
                .control_inputs = std::move(after),
                .location = frame.condition().location};
  Node& loop = rebuild.graph().insert(std::move(spec), DeviceName());
  // A GPU that lacks a kernel for some node of the loop cannot run it: of a GPU, only the task
  // counts.
  const DeviceName& asked = *frame.condition().requested_device;
  loop.requested_device = asked.type == "CPU" ? asked : asked.task_name();
  return loop;
}

// A variable, after the loop that its reference went round.
Node& add_end_of_reference(const LoopFrame& frame, const Node& node, int number, Node& loop,
                           Rebuild& rebuild) {
  const Output variable = rebuild.map(frame.references()[number].enter->inputs[0]);
  Node& out = rebuild.graph().insert({.op = "RefIdentity",
                                      .name = node.name,
                                      .inputs = {variable},
                                      .attrs = {{"T", variable.dtype()}},
                                      .control_inputs = {&loop},
                                      .location = node.location},
                                     DeviceName());
  out.requested_device = variable.node->requested_device;
  return out;
}

// The loop's node, and what stands for the loop's nodes behind it.
void add_loop(const LoopFrame& frame, Simplify extent, Rebuild& rebuild) {
  Node& loop = add_loop_node(frame, extent, rebuild);
  for (const auto& node : frame.graph().nodes()) {
    if (!frame.is_within(*node)) continue;
    if (frame.is_after(*node)) {
      rebuild.copy(*node);
      continue;
    }
    const auto [kind, variable] = frame.boundary(*node);
    std::vector<Output> outputs;  // what an Exit reads, or something before it
    if (kind == LoopFrame::Kind::switch_) outputs = {loop.output(variable), {}};
    if (kind == LoopFrame::Kind::enter) outputs = {rebuild.map(node->inputs[0])};
    if (kind == LoopFrame::Kind::reference && is_switch(*node))
      outputs = {add_end_of_reference(frame, *node, variable, loop, rebuild).output(), {}};
    rebuild.replace(*node, std::move(outputs), {&loop});
  }
}

void check_endpoints(const Graph& graph, const Frames& frames, const StepSignature& signature) {
  const auto look = [&](std::string_view name, std::string_view what) {
    const Node* node = graph.find(name);
    if (node == nullptr || frames.of(*node) == Frames::none) return;
    fail_at(name, Code::invalid_argument, "'", name, "' is within the while loop '",
            frames.name(frames.of(*node)), "' and cannot be ", what,
            ": it has a value in each iteration; take the loop's result");
  };
  for (const std::string& fetch : signature.normalised().fetches) look(node_of(fetch), "fetched");
  for (const std::string& target : signature.targets) look(target, "a target");
}

// A client asks for each stack to be where the value comes from that is pushed on it in a loop, and
// for each array, with what fills and reads it, to be where its first value comes from. But a loop
// is in one place, and its stacks and arrays are there.
void copy_outside(const Node& node, Rebuild& rebuild) {
  Node& copy = rebuild.copy(node);
  if (!makes_step_state(node) && !uses_step_state(node)) return;
  copy.attrs.erase("_class");
  copy.requested_device = copy.assigned_device = DeviceName();
}

// What an Exit is afterwards: a name for a result of its loop.
void add_result(const Node& exit, Rebuild& rebuild) {
  const Output result = rebuild.map(exit.inputs[0]);
  Node& name = rebuild.graph().insert({.op = exit.is("RefExit") ? "RefIdentity" : "Identity",
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

bool structure_loops(Graph& graph, const StepSignature& signature, Simplify extent) {
  if (!has_frames(graph)) return false;
  const Frames frames(graph);
  if (frames.count() == 0) return false;
  check_endpoints(graph, frames, signature);
  const FrameOrder order(graph, frames);
  Rebuild rebuild(graph);
  for (const int unit : order.units()) {
    if (const int frame = order.loop(unit); frame != Frames::none) {
      add_loop(LoopFrame(graph, frames, frame), extent, rebuild);
    } else if (const Node& node = *graph.nodes()[unit]; is_exit(node)) {
      add_result(node, rebuild);
    } else {
      copy_outside(node, rebuild);
    }
  }
  graph = std::move(rebuild).finish();
  structure_loops(graph, signature, extent);  // again, if what came behind a loop has loops in it
  return true;
}

}  // namespace leat
