// fuse: connected nodes whose kernels go through rows or elements one by one become one `_Fused`
// node, so that values between them stay in the cache.
//
// Two nodes may be in one group if nothing else has to run between them. Levels tell: an edge
// within a group keeps the level, every other edge raises it. All nodes of a group are on one
// level, so groups cannot wait for each other in a circle. A node that only uses values from other
// groups moves up to the level of its users, and is computed with them.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "graph/endpoint.h"
#include "graph/fused.h"
#include "graph/import/graph_def.h"
#include "graph/loops/loop_frame.h"
#include "graph/loops/loops.h"
#include "graph/passes/dead_together.h"
#include "graph/passes/device_kernels.h"
#include "graph/passes/gradient_nodes.h"
#include "graph/passes/simplify/simplify.h"
#include "graph/passes/variable_accesses.h"
#include "graph/rebuild.h"

namespace leat {
namespace {

// Smaller values are in the cache in any case.
constexpr int64_t least_elements = 256;

// Nodes behind a head: the kernel has room for the inputs and the results of so many.
constexpr int most_behind_head = 7;

std::vector<Node*> writers(const Graph& graph);

// Of the resource behind a handle. Within a loop, that of a TensorArray or of a stack is fed.
bool updates_variable(const Node& node, const Output& handle) {
  if (handle.dtype() != DType::resource) return false;
  if (const Node* state = state_behind(handle)) return state->op->is_variable;
  return node.op->name.starts_with("Assign") || node.op->name.starts_with("Resource");
}

// Nodes that write to variables: what runs after them reads what they wrote.
bool is_writer(const Node& node) {
  if (node.is("_Loop")) {
    const LoopParts parts(node);
    return !writers(parts.condition).empty() || !writers(parts.body).empty();
  }
  if (!node.op->is_stateful || node.op->only_reads_state) return false;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](const Output& input) { return updates_variable(node, input); });
}

std::vector<Node*> writers(const Graph& graph) {
  const VariableAccesses accesses(graph);
  std::vector<Node*> out;
  for (const auto& node : graph.nodes()) {
    if (node->op->is_variable) {
      const std::vector<Node*>& of_it = accesses.writers(node->id);
      out.insert(out.end(), of_it.begin(), of_it.end());
    }
    if (is_writer(*node)) out.push_back(node.get());
  }
  return out;
}

// Values of equal rows: of one shape, or one of them with a last axis of 1 or without its last
// axis.
bool has_rows_of(const Shape& a, const Shape& b) {
  if (a == b) return true;  // if both are unknown: the kernel looks at those of the step
  if (!a.has_rank() || !b.has_rank()) return false;
  const Shape &longer = a.rank() >= b.rank() ? a : b, &shorter = a.rank() >= b.rank() ? b : a;
  const int axes = longer.rank() - 1;  // of the rows
  if (axes < 1 || shorter.rank() < axes) return false;
  if (!std::equal(longer.dims().begin(), longer.dims().begin() + axes, shorter.dims().begin()))
    return false;
  return shorter.rank() == axes || longer[axes] == 1 || shorter[axes] == 1;
}

class Fusion {
 public:
  // `device`: that of nodes without one.
  Fusion(Graph& graph, const KeptNames& kept, const std::set<std::string>& gpus,
         const DeviceName& device)
      : graph_(graph),
        kept_(kept),
        gpus_(gpus),
        device_(device),
        dead_together_(graph),
        gradients_(graph),
        rules_(graph.size()),
        levels_(graph.size()),
        group_(graph.size()) {}

  // False if there is nothing to fuse.
  bool run() {
    find_candidates();
    find_levels();
    sink();
    if (!find_groups()) return false;
    build();
    graph_ = std::move(*rebuild_).finish();
    return true;
  }

 private:
  // ---- Which nodes, and which edges ----

  void find_candidates() {
    const std::vector<bool> reads_updates = followers(graph_, writers(graph_));
    for (const auto& node : graph_.nodes()) {
      if (!reads_updates[node->id] && is_candidate(*node)) rules_[node->id] = row_rule(*node);
    }
  }

  bool is_candidate(const Node& node) const {
    if (node.op->name.starts_with('_') || !node.control_inputs.empty()) return false;
    if (kept_.contains(node) && node.num_outputs() != 1) return false;
    const DeviceName& device = device_of(node);
    if (device.type == "CPU") return true;
    return device.type == "GPU" && gpus_.contains(device.to_string()) && gains_on_gpus(node);
  }
  const DeviceName& device_of(const Node& node) const {
    return node.assigned_device->type ? *node.assigned_device : device_;
  }

  // On a GPU each launch that is saved is a gain.
  bool is_small(const std::vector<Node*>& group) const {
    if (device_of(*group[0]).type == "GPU") return false;
    for (const Node* node : group) {
      for (const OutputSpec& output : node->outputs) {
        const int64_t elements = output.shape.elements();
        if (elements < 0 || elements >= least_elements) return false;
      }
    }
    return true;
  }

  bool goes_by_rows(const Node& node) const {
    return rules_[node.id] != RowRule::none && rules_[node.id] != RowRule::head;
  }

  bool may_join(const Output& input, const Node& user) const {
    const Node& node = *input.node;
    return goes_by_rows(node) && goes_by_rows(user) && !sums_rows(node) &&
           node.assigned_device == user.assigned_device && dead_together_.are(node, user) &&
           !is_early_factor(node, user) &&
           (sums_rows(user) || has_rows_of(input.shape(), user.outputs[0].shape));
  }

  // A factor of a gradient would be computed with forward nodes, and kept until the backward part
  // needs it.
  bool is_early_factor(const Node& node, const Node& user) const {
    return gradients_.is_factor(user) && !gradients_.contains(node);
  }

  // ---- Groups ----

  void find_levels() {
    for (const auto& node : graph_.nodes()) {
      int level = 0;
      for (const Output& input : node->inputs) {
        const int step = may_join(input, *node) ? 0 : 1;
        level = std::max(level, levels_[input.node->id] + step);
      }
      for (const Node* control : node->control_inputs)
        level = std::max(level, levels_[control->id] + 1);
      levels_[node->id] = level;
    }
  }

  // Moves nodes that are in no group with their inputs to their users' level.
  void sink() {
    constexpr int none = std::numeric_limits<int>::max();
    std::vector<int> latest(graph_.size(), none);  // as users allow
    std::vector<bool> would_join(graph_.size());   // is a user's level the latest?
    for (auto it = graph_.nodes().rbegin(); it != graph_.nodes().rend(); ++it) {
      const Node& node = **it;
      if (would_join[node.id] && latest[node.id] != none && goes_by_rows(node) &&
          latest[node.id] > levels_[node.id] && !has_joined_an_input(node) && !keeps_more(node)) {
        levels_[node.id] = latest[node.id];
      }
      const auto limit = [&](int id, int level, bool joins) {
        if (level < latest[id]) {
          latest[id] = level;
          would_join[id] = joins;
        } else if (level == latest[id]) {
          would_join[id] = would_join[id] || joins;
        }
      };
      for (const Output& input : node.inputs) {
        const bool joins = may_join(input, node);
        limit(input.node->id, levels_[node.id] - (joins ? 0 : 1), joins);
      }
      for (const Node* control : node.control_inputs)
        limit(control->id, levels_[node.id] - 1, false);
    }
  }

  // Do its inputs take more memory than its value? The inputs have to live until it is computed.
  bool keeps_more(const Node& node) const {
    if (rules_[node.id] == RowRule::reduction) return true;
    size_t bytes = 0;  // per element
    for (const Output& input : node.inputs) {
      if (input.shape() == node.outputs[0].shape) bytes += dtype_size(input.dtype());
    }
    return bytes > dtype_size(node.outputs[0].dtype);
  }

  bool has_joined(const Output& input, const Node& user) const {
    return levels_[input.node->id] == levels_[user.id] && may_join(input, user);
  }

  bool has_joined_an_input(const Node& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(),
                       [&](const Output& input) { return has_joined(input, node); });
  }

  int root_of(int id) {
    while (group_[id] != id) id = group_[id] = group_[group_[id]];
    return id;
  }

  bool find_groups() {
    std::iota(group_.begin(), group_.end(), 0);
    for (const auto& node : graph_.nodes()) {
      for (const Output& input : node->inputs) {
        if (has_joined(input, *node)) group_[root_of(node->id)] = root_of(input.node->id);
      }
    }
    add_heads();
    std::vector<int> sizes(graph_.size());
    for (size_t id = 0; id < graph_.size(); ++id) ++sizes[root_of(static_cast<int>(id))];
    for (const auto& node : graph_.nodes()) {
      const int root = root_of(node->id);
      if (sizes[root] > 1) members_[root].push_back(node.get());
    }
    std::erase_if(members_, [&](const auto& group) { return is_small(group.second); });
    return !members_.empty();
  }

  // A product is added to the other term in place, if that has its shape, and then rounds once
  // less. A loop's variable gains from it; of other terms the last bits would depend on which nodes
  // are on one device.
  bool may_add_in_place(const Node& sum, const Node& product) const {
    const bool is_sum = sum.is("Add") || sum.is("AddV2") || sum.is("AddN");
    if (!is_sum || !product.is("MatMul") || sum.inputs.size() != 2) return true;
    const Output& term = sum.inputs[sum.inputs[0].node == &product ? 1 : 0];
    return term.node->is("_Feed") || !term.shape().is_compatible(sum.outputs[0].shape);
  }

  // A product or a convolution whose value only one group uses comes at its head.
  void add_heads() {
    constexpr int nobody = -1, several = -2;
    std::vector<int> user(graph_.size(), nobody);  // by id: the root of the group that uses it
    for (const auto& node : graph_.nodes()) {
      for (const Output& input : node->inputs) {
        const bool may = goes_by_rows(*node) && rules_[input.node->id] == RowRule::head &&
                         input.shape().is_compatible(node->outputs[0].shape) &&
                         input.node->assigned_device == node->assigned_device &&
                         dead_together_.are(*input.node, *node);
        int& known = user[input.node->id];
        const int root = may ? root_of(node->id) : several;
        known = known == nobody || known == root ? root : several;
      }
      for (const Node* control : node->control_inputs) user[control->id] = several;
    }
    std::vector<int> sizes(graph_.size());  // by root
    for (size_t id = 0; id < graph_.size(); ++id) ++sizes[root_of(static_cast<int>(id))];
    std::map<int, std::vector<Node*>> heads;  // that a group could have, by root
    for (const auto& node : graph_.nodes()) {
      const int root = user[node->id];
      const bool may = rules_[node->id] == RowRule::head && root >= 0 && !kept_.contains(*node) &&
                       sizes[root] <= most_behind_head;
      if (may) heads[root].push_back(node.get());
    }
    for (const auto& [root, nodes] : heads) {
      if (sizes[root] == 1 && !may_add_in_place(*graph_.nodes()[root], *nodes[0])) continue;
      group_[nodes[0]->id] = root;
    }
  }

  const std::vector<Node*>* group_of(const Node& node) {
    const auto found = members_.find(root_of(node.id));
    return found == members_.end() ? nullptr : &found->second;
  }

  // ---- The new graph ----

  // In the old order, but a group comes where its last member was, or before its first user.
  void build() {
    rebuild_.emplace(graph_);
    is_done_.resize(graph_.size());
    for (const auto& node : graph_.nodes()) {
      const std::vector<Node*>* group = group_of(*node);
      if (group == nullptr || group->back() == node.get()) add(*node);
    }
  }

  // Adds the node, or its group, behind all that it needs. Without recursion: chains may be long.
  void add(Node& wanted) {
    std::vector<Node*> waiting = {&wanted};
    while (!waiting.empty()) {
      Node& node = *waiting.back();
      if (is_done_[node.id]) {
        waiting.pop_back();
        continue;
      }
      const std::vector<Node*>* group = group_of(node);
      const size_t before = waiting.size();
      if (group == nullptr) {
        need_inputs(node, nullptr, waiting);
      } else {
        for (const Node* member : *group) need_inputs(*member, group, waiting);
      }
      if (waiting.size() > before) continue;
      waiting.pop_back();
      if (group == nullptr) {
        rebuild_->copy(node);
        is_done_[node.id] = true;
      } else {
        add_group(*group);
        for (const Node* member : *group) is_done_[member->id] = true;
      }
    }
  }

  void need_inputs(const Node& node, const std::vector<Node*>* group, std::vector<Node*>& waiting) {
    const auto need = [&](Node* other) {
      if (!is_done_[other->id] && (group == nullptr || group_of(*other) != group))
        waiting.push_back(other);
    };
    for (const Output& input : node.inputs) need(input.node);
    for (Node* control : node.control_inputs) need(control);
  }

  void add_group(const std::vector<Node*>& group) {
    const std::vector<Output> results = results_of(group);
    Node& last = *group.back();
    Graph body;
    std::vector<Output> inputs;                  // of the old graph
    std::map<std::pair<int, int>, Output> made;  // in the body, by old node and output
    const auto feed = [&](const Output& input) {
      Node& node = body.insert(
          {.op = "_Feed",
           .name = concat("_input_", inputs.size()),
           .attrs = {{"dtype", input.dtype()}, {"name", std::to_string(inputs.size())}}},
          {});
      inputs.push_back(input);
      return node.output();
    };
    std::vector<Node*> members = group;
    std::stable_partition(members.begin(), members.end(),
                          [&](const Node* member) { return rules_[member->id] == RowRule::head; });
    for (Node* member : members) {
      std::vector<Output> operands;
      for (size_t i = 0; i < member->inputs.size(); ++i) {
        const Output& input = member->inputs[i];
        Output& operand = made[{input.node->id, input.index}];
        if (!operand) {
          const bool is_axes = rules_[member->id] == RowRule::reduction && i == 1;
          operand = is_axes ? body.copy(*input.node, {}, {}).output(input.index) : feed(input);
        }
        operands.push_back(operand);
      }
      Node& copy = body.copy(*member, std::move(operands), {});
      copy.attrs.erase("_class");
      for (int o = 0; o < member->num_outputs(); ++o) made[{member->id, o}] = copy.output(o);
    }
    std::vector<Output> body_results, new_inputs;
    for (const Output& result : results)
      body_results.push_back(made.at({result.node->id, result.index}));
    for (const Output& input : inputs) new_inputs.push_back(rebuild_->map(input));
    std::optional<Error> deferred;  // of a node that no step may ever run
    Node& fused = rebuild_->graph().insert({.op = "_Fused",
                                            .name = name_of(group, results),
                                            .inputs = std::move(new_inputs),
                                            .attrs = fused_attrs(body, inputs, body_results),
                                            .location = last.location},
                                           last.assigned_device, &deferred);
    fused.requested_device = last.requested_device;
    fused.placement_reason = last.placement_reason;
    std::vector<OutputSpec>& specs = fused.outputs.write();
    for (size_t r = 0; r < results.size(); ++r) {
      specs[r].shape = results[r].node->outputs[results[r].index].shape;
    }
    for (Node* member : group) replace(*member, results, fused);
  }

  // That of the member whose value is its only or first result.
  std::string name_of(const std::vector<Node*>& group, const std::vector<Output>& results) const {
    const Node& first = *results[0].node;
    const bool stands_for_it = results.size() == 1 || kept_.contains(first);
    if (first.num_outputs() == 1 && stands_for_it) return first.name;
    return graph_.unique_name(std::as_const(group.back()->name) + "/fused");
  }

  // What is used outside of the group; what must keep its name comes first.
  std::vector<Output> results_of(const std::vector<Node*>& group) {
    if (users_.empty()) find_users();
    std::vector<Output> out;
    for (Node* member : group) {
      for (int o = 0; o < member->num_outputs(); ++o) {
        const Output value = member->output(o);
        const auto used = users_.find({member->id, o});
        const bool is_used =
            kept_.contains(*member) ||
            (used != users_.end() &&
             std::any_of(used->second.begin(), used->second.end(), [&](const Node* user) {
               return root_of(user->id) != root_of(member->id);
             }));
        if (is_used) out.push_back(value);
      }
    }
    if (out.empty()) out.push_back(group.back()->output());  // only awaited
    std::stable_partition(out.begin(), out.end(),
                          [&](const Output& value) { return kept_.contains(*value.node); });
    return out;
  }

  void find_users() {
    for (const auto& node : graph_.nodes()) {
      for (const Output& input : node->inputs)
        users_[{input.node->id, input.index}].push_back(node.get());
    }
  }

  void replace(Node& member, const std::vector<Output>& results, Node& fused) {
    std::vector<Output> outputs(static_cast<size_t>(member.num_outputs()));
    for (size_t r = 0; r < results.size(); ++r) {
      if (results[r].node == &member)
        outputs[static_cast<size_t>(results[r].index)] = fused.output(static_cast<int>(r));
    }
    if (!kept_.contains(member) || fused.name == member.name)
      return rebuild_->replace(member, std::move(outputs), {&fused});
    Node& named = rebuild_->graph().insert({.op = "Identity",
                                            .name = member.name,
                                            .inputs = {outputs[0]},
                                            .location = member.location},
                                           member.assigned_device);
    named.requested_device = member.requested_device;
    named.placement_reason = member.placement_reason;
    rebuild_->replace(member, {named.output()}, {&named});
  }

  Graph& graph_;
  const KeptNames& kept_;
  const std::set<std::string>& gpus_;
  const DeviceName device_;
  const DeadTogether dead_together_;
  const GradientNodes gradients_;
  std::vector<RowRule> rules_;  // by id, as all of these
  std::vector<int> levels_;
  std::vector<int> group_;                     // union-find
  std::map<int, std::vector<Node*>> members_;  // by root, in the order of the graph
  std::map<std::pair<int, int>, std::vector<const Node*>> users_;
  std::vector<bool> is_done_;
  std::optional<Rebuild> rebuild_;
};

// The parts of a loop, which run on its device.
class LoopFusion {
 public:
  LoopFusion(Node& loop, const std::set<std::string>& gpus, const DeviceName& device)
      : loop_(loop), gpus_(gpus), device_(device), parts_(loop) {}

  void run() {
    find_shapes();
    fuse_part("condition", std::move(parts_.condition), {parts_.predicate});
    fuse_part("body", std::move(parts_.body), parts_.next);
  }

 private:
  // Variables have the shapes that they begin with, as long as the body keeps them.
  void find_shapes() {
    const size_t variables = parts_.next.size();
    for (size_t i = 0; i < variables; ++i) shapes_.push_back(loop_.inputs[i].shape());
    for (bool is_settled = false; !is_settled;) {
      set_shapes(parts_.body);
      is_settled = true;
      for (size_t i = 0; i < variables; ++i) {
        if (parts_.body.output(parts_.next[i]).shape() == shapes_[i] || !shapes_[i].has_rank())
          continue;
        shapes_[i] = Shape::unknown();
        is_settled = false;
      }
    }
  }

  void set_shapes(Graph& part) const {
    for (const auto& node : part.nodes()) {
      if (!node->is("_Feed")) continue;
      const LoopFeed feed = LoopFeed::parse(node->attr<std::string>("name"));
      const auto number = static_cast<size_t>(feed.number);
      node->attrs["shape"] =
          feed.is_variable ? shapes_[number] : loop_.inputs[shapes_.size() + number].shape();
    }
    infer(part);
  }

  void fuse_part(std::string_view attr, Graph part, std::vector<std::string> endpoints) {
    // What the other devices of a spread loop do between two nodes is not in the part.
    for (const auto& node : part.nodes()) {
      if (node->is("_Send") || node->is("_Recv")) return;
    }
    set_shapes(part);
    const StepSignature signature{.fetches = std::move(endpoints)};
    const KeptNames kept(part, signature);
    bool has_changed = Fusion(part, kept, gpus_, device_).run();
    for (const auto& node : part.nodes()) {
      if (node->is("_Feed")) node->attrs["shape"] = Shape::unknown();
      if (!node->is("_Loop")) continue;
      LoopFusion(*node, gpus_, device_).run();
      has_changed = true;
    }
    if (has_changed) loop_.attrs[std::string(attr)] = to_graph_def(part);
  }

  Node& loop_;
  const std::set<std::string>& gpus_;
  const DeviceName& device_;
  LoopParts parts_;
  std::vector<Shape> shapes_;  // of the variables
};

}  // namespace

bool fuse(Graph& graph, const StepSignature& signature, const std::vector<DeviceSpec>& devices) {
  const KeptNames kept(graph, signature);
  const std::set<std::string> gpus = gpus_with_kernels(devices, {"_Fused"});
  const bool has_changed = Fusion(graph, kept, gpus, {}).run();
  for (const auto& node : graph.nodes()) {
    const DeviceName& device = *node->assigned_device;
    if (node->is("_Loop") && (device.type == "CPU" || gpus.contains(device.to_string())))
      LoopFusion(*node, gpus, device).run();
  }
  return has_changed;
}

}  // namespace leat
