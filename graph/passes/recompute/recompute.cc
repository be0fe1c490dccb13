// recompute: the backward part of a training step reads values of the forward part from copies of
// the nodes that made them. Copies have a control edge from the node of the backward part that
// comes before their first reader, so that they do not run before it gets there. They are copies of
// what fuse() made, so that they compute the same to the bit; and no later pass merges nodes.
#include "graph/passes/recompute/recompute.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "graph/passes/dead_together.h"
#include "graph/passes/gradient_nodes.h"
#include "graph/passes/recompute/recompute_plan.h"
#include "graph/passes/simplify/simplify.h"
#include "graph/passes/variable_accesses.h"
#include "graph/rebuild.h"

namespace leat {
namespace {

// Copies of smaller values would save nothing.
constexpr double least_bytes = 1024;
// An extent that is not known, often that of the batch.
constexpr double usual_extent = 64;

// Its output shares the memory of its first input.
bool passes_memory_on(const Node& node) {
  constexpr std::array<std::string_view, 6> names = {"Identity", "Reshape",      "ExpandDims",
                                                     "Squeeze",  "StopGradient", "PreventGradient"};
  return std::find(names.begin(), names.end(), node.op->name) != names.end();
}

// Without memory of its own: a constant, a feed, a variable or its value.
bool has_no_memory(const Node& node) {
  if (node.is("Const") || node.is("_Feed") || node.op->is_variable) return true;
  return !node.inputs.empty() && node.inputs[0].is_handle() &&
         (node.is("Identity") || node.is("ReadVariableOp"));
}

double bytes_of(const OutputSpec& output) {
  if (output.is_handle() || output.dtype == DType::variant || output.dtype == DType::string)
    return 0;
  double bytes = static_cast<double>(dtype_size(output.dtype));
  if (!output.shape.has_rank()) return bytes * usual_extent * usual_extent;
  for (const int64_t extent : output.shape.dims())
    bytes *= extent < 0 ? usual_extent : static_cast<double>(extent);
  return bytes;
}

class Recomputation {
 public:
  Recomputation(Graph& graph, const KeptNames& kept, Recompute extent)
      : graph_(graph),
        kept_(kept),
        extent_(extent),
        dead_together_(graph),
        accesses_(graph),
        is_backward_(graph.size()),
        is_forward_(graph.size()),
        groups_(graph.size(), none),
        latest_(graph.size(), none) {}

  // False if there is nothing to compute again.
  bool run() {
    if (!find_backward()) return false;
    find_forward();
    std::map<std::string, std::vector<Node*>> devices;
    for (const auto& node : graph_.nodes()) {
      if (is_forward_[node->id]) devices[node->assigned_device->to_string()].push_back(node.get());
    }
    for (const auto& [name, nodes] : devices) plan_device(nodes);
    find_readers();
    for (Group& group : group_list_) {
      if (!group.readers.empty()) group.trigger = trigger_of(group);
    }
    const bool has_any = std::ranges::any_of(
        group_list_, [](const Group& group) { return group.trigger != nullptr; });
    if (has_any) build();
    return has_any;
  }

 private:
  static constexpr int none = -1;

  // The nodes of a segment that run again.
  struct Group {
    std::vector<Node*> nodes;
    std::vector<Node*> readers;  // in the backward part
    Node* trigger = nullptr;     // null: they do not run again after all
  };

  // ---- The two parts ----

  bool find_backward() {
    std::vector<Node*> gradients;
    for (const auto& node : graph_.nodes()) {
      if (is_called_gradient(node->name)) gradients.push_back(node.get());
    }
    if (gradients.empty()) return false;
    last_gradient_ = gradients.back()->id;
    is_backward_ = followers(graph_, gradients);
    return true;
  }

  // What the backward part needs, and is not in it.
  void find_forward() {
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      const Node& node = **it;
      if (!is_backward_[node.id] && !is_forward_[node.id]) continue;
      for (const Output& input : node.inputs) {
        if (!is_backward_[input.node->id]) is_forward_[input.node->id] = true;
      }
    }
  }

  // The elements of the value, not its shape alone, and where it is.
  bool reads(const Node& user, const Node& maker) const {
    return !user.op->tells_shape && user.assigned_device == maker.assigned_device;
  }

  bool may_repeat(const Node& node) const {
    const OpDef& op = *node.op;
    const bool is_hidden = op.name.starts_with('_') && !node.is("_Fused");
    if (is_hidden || op.is_stateful || op.tells_shape || op.has_data_dependent_shape ||
        is_control_flow(node) || has_no_memory(node) || node.inputs.empty() ||
        kept_.endpoints.contains(node.name))
      return false;
    double bytes = 0;
    for (const OutputSpec& output : node.outputs) {
      const DType dtype = output.dtype;
      if (output.is_handle() || dtype == DType::variant || dtype == DType::string) return false;
      bytes += bytes_of(output);
    }
    return bytes > least_bytes && std::ranges::all_of(node.inputs, [&](const Output& input) {
             return !input.is_handle() || reads_unchanged(input, node);
           });
  }

  // The variable still has its value while the backward part runs: what writes to it comes later
  // and will wait for the copies.
  bool reads_unchanged(const Output& input, const Node& reader) const {
    if (!input.is_ref()) return false;
    const int variable = accesses_.variable_of(*input.node);
    if (variable < 0 || is_in_loop_[variable]) return false;
    return std::ranges::none_of(accesses_.writers(variable), [&](const Node* writer) {
      return writer == &reader || writer->id <= last_gradient_;
    });
  }

  // ---- Plans ----

  void plan_device(const std::vector<Node*>& nodes) {
    find_variables_in_loops();
    ForwardPart part;
    std::map<const Node*, int> steps;
    std::map<std::pair<const Node*, int>, int> values;  // by node and output
    for (Node* node : nodes) {
      const int number = static_cast<int>(part.steps.size());
      steps.emplace(node, number);
      ForwardPart::Step step{.may_repeat = may_repeat(*node)};
      for (const Output& input : node->inputs) {
        if (reads_variable(input)) {
          step.follows_variable = true;
          step.begins_layer |= !input.shape().has_rank() || input.shape().rank() >= 2;
        }
        const auto from = steps.find(input.node);
        if (from == steps.end()) continue;
        step.follows_variable |= part.steps[from->second].follows_variable;
        if (const auto value = values.find({input.node, input.index});
            value != values.end() && reads(*node, *input.node))
          step.inputs.push_back({from->second, value->second});
      }
      for (int o = 0; o < node->num_outputs(); ++o) {
        const auto whole = passes_memory_on(*node) && o == 0
                               ? values.find({node->inputs[0].node, node->inputs[0].index})
                               : values.end();
        if (whole != values.end()) {
          values.emplace(std::pair(node, o), whole->second);
          continue;
        }
        values.emplace(std::pair(node, o), static_cast<int>(part.values.size()));
        const bool is_free = has_no_memory(*node) || kept_.endpoints.contains(node->name);
        part.values.push_back({is_free ? 0 : bytes_of(node->outputs[o]), number});
      }
      part.steps.push_back(std::move(step));
    }
    for (const auto& node : graph_.nodes()) {
      if (!is_backward_[node->id]) continue;
      for (const Output& input : node->inputs) {
        const auto from = steps.find(input.node);
        if (from != steps.end() && reads(*node, *input.node))
          part.steps[from->second].read.push_back(values.at({input.node, input.index}));
      }
    }
    const RecomputePlan plan = plan_recompute(part, extent_);
    const size_t first = group_list_.size();
    if (plan.segments.empty()) return;
    group_list_.resize(first + static_cast<size_t>(plan.segments.back()) + 1);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (!plan.is_again[i]) continue;
      const size_t group = first + static_cast<size_t>(plan.segments[i]);
      groups_[nodes[i]->id] = static_cast<int>(group);
      group_list_[group].nodes.push_back(nodes[i]);
    }
  }

  // The input is a variable, or its value.
  static bool reads_variable(const Output& input) {
    return input.is_handle() ||
           (!input.node->is("Const") && !input.node->is("_Feed") && has_no_memory(*input.node));
  }

  void find_variables_in_loops() {
    if (!is_in_loop_.empty()) return;
    is_in_loop_.resize(graph_.size());
    for (const auto& node : graph_.nodes()) {
      if (!node->is("_Loop")) continue;
      for (const Output& input : node->inputs) {
        if (const int variable = accesses_.variable_of(*input.node); variable >= 0)
          is_in_loop_[variable] = true;
      }
    }
  }

  // ---- When ----

  void find_readers() {
    for (const auto& node : graph_.nodes()) {
      if (!is_backward_[node->id]) continue;
      for (const Output& input : node->inputs) {
        const int id = input.node->id;
        latest_[node->id] = std::max(latest_[node->id], is_backward_[id] ? latest_[id] : id);
        if (!may_read_copy(*node, *input.node)) continue;
        std::vector<Node*>& readers = group_list_[groups_[id]].readers;
        if (readers.empty() || readers.back() != node.get()) readers.push_back(node.get());
      }
    }
  }

  // Not what comes before all of a group has run for the first time: it may belong to another
  // network of the step.
  bool may_read_copy(const Node& reader, const Node& maker) const {
    const int group = groups_[maker.id];
    return is_backward_[reader.id] && group != none && reads(reader, maker) &&
           reader.id > group_list_[group].nodes.back()->id;
  }

  // The node of the backward part before the first reader, on its device, that comes from as far
  // behind as the readers do: from the loss. If a reader runs, it does: a dead node would keep the
  // copies from running. Without one, the last node of the forward part.
  Node* trigger_of(const Group& group) const {
    int latest = none;
    for (const Node* reader : group.readers) latest = std::max(latest, latest_[reader->id]);
    const auto fits = [&](const Node& node) {
      return node.assigned_device == group.nodes.front()->assigned_device &&
             !node.op->is_stateful && !node.outputs.empty() && !node.is("Const") &&
             std::ranges::all_of(group.readers, [&](const Node* reader) {
               return dead_together_.are(node, *reader);
             });
    };
    const int first = group.readers.front()->id;
    for (int id = first - 1; id >= 0; --id) {
      Node& node = *graph_.nodes()[id];
      if (is_backward_[id] && latest_[id] >= latest && fits(node)) return &node;
    }
    for (int id = first - 1; id > group.nodes.back()->id; --id) {
      Node& node = *graph_.nodes()[id];
      if (is_forward_[id] && fits(node)) return &node;
    }
    return nullptr;
  }

  // ---- The new graph ----

  void build() {
    Rebuild rebuild(graph_);
    std::vector<Node*> copies(graph_.size());                // by old id: what runs again
    std::map<int, std::vector<Node*>> readers_of_variables;  // copies that read a reference
    std::vector<bool> is_made(group_list_.size());
    const auto copied = [&](const Output& input) {
      Node* const copy = copies[input.node->id];
      return copy == nullptr ? rebuild.map(input) : Output{copy, input.index};
    };
    const auto make = [&](const Group& group) {
      Node& trigger = *rebuild.map({group.trigger, 0}).node;
      for (Node* node : group.nodes) {
        std::vector<Output> inputs;
        bool reads_copies = false;
        for (const Output& input : node->inputs) {
          const bool is_here = groups_[input.node->id] == groups_[node->id];
          inputs.push_back(is_here ? copied(input) : rebuild.map(input));
          reads_copies = reads_copies || (is_here && copies[input.node->id] != nullptr);
        }
        Node& copy = add_copy(*node, std::move(inputs), rebuild);
        if (!reads_copies) {
          copy.control_inputs.push_back(&trigger);
          sort_by_id(copy.control_inputs);
        }
        copies[node->id] = &copy;
        for (const Output& input : node->inputs) {
          if (input.is_ref())
            readers_of_variables[accesses_.variable_of(*input.node)].push_back(&copy);
        }
      }
    };
    for (const auto& node : graph_.nodes()) {
      for (const Output& input : node->inputs) {
        if (!may_read_copy(*node, *input.node)) continue;
        const int group = groups_[input.node->id];
        if (group_list_[group].trigger == nullptr || is_made[group]) continue;
        is_made[group] = true;
        make(group_list_[group]);
      }
      Node& same = rebuild.copy(*node);
      if (!is_backward_[node->id]) continue;
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        if (may_read_copy(*node, *node->inputs[i].node)) same.inputs[i] = copied(node->inputs[i]);
      }
      wait_for_readers(*node, same, readers_of_variables);
    }
    std::vector<bool> was_copied(rebuild.graph().size());
    for (const auto& node : graph_.nodes()) {
      if (copies[node->id] != nullptr) was_copied[rebuild.map({node.get(), 0}).node->id] = true;
    }
    graph_ = std::move(rebuild).finish();
    drop_unread_originals(was_copied);
  }

  Node& add_copy(const Node& node, std::vector<Output> inputs, Rebuild& rebuild) const {
    std::string name = concat("Recomputed/", node.name);
    while (graph_.find(name) != nullptr || rebuild.graph().find(name) != nullptr) name += "_";
    std::optional<Error> deferred;
    Node& copy = rebuild.graph().insert({.op = node.op->name,
                                         .name = std::move(name),
                                         .inputs = std::move(inputs),
                                         .attrs = node.attrs,
                                         .control_inputs = rebuild.control_inputs_of(node),
                                         .location = node.location},
                                        node.assigned_device, &deferred);
    copy.outputs = node.outputs;
    copy.requested_device = node.requested_device;
    copy.placement_reason = node.placement_reason;
    return copy;
  }

  // A node that writes to variables waits for the copies that read them.
  void wait_for_readers(const Node& node, Node& same,
                        const std::map<int, std::vector<Node*>>& readers) const {
    bool has_more = false;
    for (const Output& input : node.inputs) {
      if (!input.is_ref()) continue;
      const int variable = accesses_.variable_of(*input.node);
      const auto found = readers.find(variable);
      if (found == readers.end() || !std::ranges::count(accesses_.writers(variable), &node))
        continue;
      same.control_inputs.insert(same.control_inputs.end(), found->second.begin(),
                                 found->second.end());
      has_more = true;
    }
    if (has_more) sort_by_id(same.control_inputs);
  }

  // Nodes that only the backward part had read.
  void drop_unread_originals(const std::vector<bool>& was_copied) {
    std::vector<int> uses(graph_.size());
    std::vector<bool> stays(graph_.size(), true);
    for (const auto& node : graph_.nodes()) {
      for (const Output& input : node->inputs) ++uses[input.node->id];
      for (const Node* control : node->control_inputs) ++uses[control->id];
    }
    for (int id = static_cast<int>(graph_.size()) - 1; id >= 0; --id) {
      const Node& node = *graph_.nodes()[id];
      if (!was_copied[id] || uses[id] > 0 || kept_.contains(node)) continue;
      stays[id] = false;
      for (const Output& input : node.inputs) --uses[input.node->id];
      for (const Node* control : node.control_inputs) --uses[control->id];
    }
    graph_.keep(stays);
  }

  Graph& graph_;
  const KeptNames& kept_;
  const Recompute extent_;
  const DeadTogether dead_together_;
  const VariableAccesses accesses_;
  std::vector<bool> is_backward_;  // by id, as all of these
  std::vector<bool> is_forward_;
  std::vector<int> groups_;       // in which group it runs again
  std::vector<int> latest_;       // of the backward part: the last forward node that it comes from
  std::vector<bool> is_in_loop_;  // of a variable: a `_Loop` uses it
  std::vector<Group> group_list_;
  int last_gradient_ = none;
};

}  // namespace

Recompute recompute_from_text(std::string_view text) {
  if (text == "none") return Recompute::nothing;
  if (text == "layers") return Recompute::layers;
  if (text == "auto") return Recompute::automatic;
  fail(Code::invalid_argument, "recompute = '", text, "': it is none, layers or auto");
}

bool recompute(Graph& graph, const StepSignature& signature, Recompute extent) {
  if (extent == Recompute::nothing) return false;
  const KeptNames kept(graph, signature);
  return Recomputation(graph, kept, extent).run();
}

}  // namespace leat
