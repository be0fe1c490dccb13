#include "frontends/cpp/strategies/pipeline_model.h"

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_set>

#include "frontends/cpp/control_flow/node_copies.h"
#include "graph/loops/conditions.h"
#include "graph/loops/loops.h"

namespace leat {
namespace {

// While gradients are made, each node of the model has a device of its own, which is how gradients
// are recognised: they have the device of their node.
constexpr const char* mark = "pipeline_node";

bool is_colocated(const Node& node) { return node.attrs.contains("_class"); }

std::vector<const Node*> colocated_with(const Node& node) {
  constexpr std::string_view prefix = "loc:@";
  std::vector<const Node*> out;
  if (!is_colocated(node)) return out;
  for (const std::string& name : node.attr<std::vector<std::string>>("_class")) {
    const Node* const found =
        name.starts_with(prefix) ? node.graph->find(name.substr(prefix.size())) : nullptr;
    if (found != nullptr) out.push_back(found);
  }
  return out;
}

// Reads the same value for all micro-batches: variables change when all are done.
bool is_read(const Node& node) { return node.is("ReadVariableOp"); }

}  // namespace

PipelineModel::PipelineModel(Graph& graph, std::string root, MicroBatches input,
                             const std::function<Losses(const Batch&)>& build,
                             const ComputeGradients& gradients)
    : graph_(graph), root_(std::move(root)), input_(std::move(input)), first_(graph.size()) {
  const size_t updates_before = graph.collection("update_ops").size();
  losses_ = build(input_.parts.front());
  const auto& updates = graph.collection("update_ops");
  update_ops_.assign(updates.begin() + static_cast<std::ptrdiff_t>(updates_before), updates.end());
  model_end_ = graph.size();
  for (size_t i = first_; i < model_end_; ++i) {
    Node& node = *graph.nodes()[i];
    DeviceName device;
    device.job = mark;
    device.task = node.id;
    node.requested_device = device;
  }
  gradients_ = gradients(losses_.loss);
  find_owners();
  find_what_differs();
  find_depths();
  const auto needed = [&](const std::vector<Output>& outputs) {
    std::vector<const Node*> out = needed_by(outputs, first_);
    std::erase_if(out, [&](const Node* node) { return !differs_[index(*node)]; });
    return out;
  };
  std::vector<Output> results = {losses_.loss};
  results.insert(results.end(), update_ops_.begin(), update_ops_.end());
  for (const GradientAndVariable& each : gradients_) {
    if (each.gradient) results.push_back(each.gradient);
    if (each.indices) results.push_back(each.indices);
  }
  // Forward: the model's own nodes, and what its loops keep for the gradient, which the gradient
  // has added to them. With all that these need.
  std::vector<Output> ends;
  const std::vector<const Node*> of_training = needed(results);
  for (const Node* node : of_training) {
    if (static_cast<size_t>(node->id) < model_end_ || in_loops_of_model_[index(*node)])
      ends.emplace_back(const_cast<Node*>(node), 0);
  }
  forward_ = needed(ends);
  const std::unordered_set<const Node*> forward(forward_.begin(), forward_.end());
  for (const Node* node : of_training) {
    if (!forward.contains(node)) backward_.push_back(node);
  }
  results.clear();
  for (const auto& [name, value] : losses_.metrics) results.push_back(value);
  const std::unordered_set<const Node*> trained(of_training.begin(), of_training.end());
  for (const Node* node : needed(results)) {
    if (!trained.contains(node)) metrics_.push_back(node);
  }
}

void PipelineModel::find_owners() {
  owners_.assign(graph_.size() - first_, -1);
  stages_.assign(owners_.size(), -1);
  for (size_t i = first_; i < graph_.size(); ++i) {
    const DeviceName& device = *graph_.nodes()[i]->requested_device;
    if (device.job == mark) owners_[i - first_] = *device.task;
  }
}

void PipelineModel::find_what_differs() {
  differs_.assign(graph_.size() - first_, false);
  std::set<std::string> frames;  // of loops that differ
  const Batch& batch = input_.parts.front();
  const auto is_of_batch = [&](const Output& output) {
    return std::any_of(batch.begin(), batch.end(),
                       [&](const Output& component) { return same(output, component); });
  };
  const auto does = [&](const Node* node) {
    return node != nullptr && is_own(*node) && differs_[index(*node)];
  };
  const auto differs = [&](const Node& node) {
    if (node.op->is_stateful && !is_state(node) && !is_read(node)) return true;
    if (does(next_iteration(node))) return true;
    if (node.is("Enter") && frames.contains(node.attr<std::string>("frame_name"))) return true;
    return std::any_of(
               node.inputs.begin(), node.inputs.end(),
               [&](const Output& input) { return is_of_batch(input) || does(input.node); }) ||
           std::any_of(node.control_inputs.begin(), node.control_inputs.end(), does);
  };
  for (bool changed = true; changed;) {  // more than once for loops only
    changed = false;
    for (size_t i = first_; i < graph_.size(); ++i) {
      const Node& node = *graph_.nodes()[i];
      if (differs_[i - first_] || !differs(node)) continue;
      differs_[i - first_] = true;
      if (node.is("Enter") && frames.insert(node.attr<std::string>("frame_name")).second)
        changed = true;
      if (node.is("NextIteration")) changed = true;
    }
  }
}

void PipelineModel::find_depths() {
  depths_.assign(graph_.size() - first_, 0);
  in_loops_of_model_.assign(depths_.size(), false);
  std::vector<std::string> loops(depths_.size());  // the outermost loop that a value is in, or ""
  std::vector<int> loop_depths(depths_.size(), 0);
  std::set<std::string> of_model;
  for (size_t i = first_; i < graph_.size(); ++i) {
    const Node& node = *graph_.nodes()[i];
    int& loop_depth = loop_depths[i - first_];
    std::string& loop = loops[i - first_];
    const auto see = [&](const Node* input) {
      if (!is_own(*input) || loop_depths[index(*input)] <= loop_depth) return;
      loop_depth = loop_depths[index(*input)];
      loop = loops[index(*input)];
    };
    for (const Output& input : node.inputs) see(input.node);
    for (const Node* control : node.control_inputs) see(control);
    if (node.is("Enter") && loop_depth == 0) {
      loop = node.attr<std::string>("frame_name");
      if (i < model_end_) of_model.insert(loop);
    }
    in_loops_of_model_[i - first_] = of_model.contains(loop);
    if (node.is("Enter")) ++loop_depth;
    if (node.is("Exit")) --loop_depth;
    if (loop_depth == 0) loop.clear();
    const int branches = static_cast<int>(pivots_of(node).size());
    depths_[i - first_] = loop_depth + branches + (node.is("Switch") || is_pivot(node) ? 1 : 0);
  }
}

std::vector<Output> PipelineModel::targets() const {
  std::vector<Output> out = {losses_.loss};
  for (const GradientAndVariable& each : gradients_) {
    if (each.gradient) out.push_back(each.gradient);
  }
  return out;
}

// ---- Stages ----

std::vector<PipelineModel::Item> PipelineModel::items(const NodeCosts& costs,
                                                      double bytes_per_second) const {
  std::vector<const Node*> nodes = forward_;
  std::erase_if(nodes, [&](const Node* node) { return !is_of_model(*node); });
  nodes.insert(nodes.end(), metrics_.begin(), metrics_.end());
  std::sort(nodes.begin(), nodes.end(), [](const Node* a, const Node* b) { return a->id < b->id; });
  std::vector<Item> out;
  std::map<int, size_t> position;  // by id
  for (const Node* node : nodes) {
    position[node->id] = out.size();
    out.push_back({.node = node, .forward = costs.seconds[static_cast<size_t>(node->id)]});
  }
  for (size_t id = model_end_; id < graph_.size(); ++id) {
    const auto found = position.find(owners_[id - first_]);
    if (found != position.end()) out[found->second].backward += costs.seconds[id];
  }
  // Values that cross: from each item to its last user.
  std::vector<double> bytes(out.size() + 1);  // differences
  std::vector<size_t> last(out.size());
  std::vector<bool> may_cut(out.size(), true);
  const auto use = [&](const Node* from, size_t user) {
    const auto found = position.find(from->id);
    if (found != position.end()) last[found->second] = std::max(last[found->second], user);
  };
  for (size_t i = 0; i < out.size(); ++i) {
    for (const Output& input : out[i].node->inputs) use(input.node, i);
    for (const Node* control : out[i].node->control_inputs) use(control, i);
    if (const Node* next = next_iteration(*out[i].node)) {
      const auto found = position.find(next->id);
      if (found != position.end()) last[i] = std::max(last[i], found->second);
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (last[i] <= i) continue;
    const double of_node = costs.bytes[static_cast<size_t>(out[i].node->id)];
    bytes[i + 1] += of_node;
    bytes[last[i] + 1] -= of_node;
    if (depths_[index(*out[i].node)] == 0) continue;
    for (size_t cut = i + 1; cut <= last[i]; ++cut) may_cut[cut] = false;
  }
  double crossing = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    crossing += bytes[i];
    if (may_cut[i]) out[i].cut = 2 * crossing / bytes_per_second;  // and the gradient back
  }
  return out;
}

std::vector<size_t> PipelineModel::named_cuts(const std::vector<Item>& items,
                                              const std::vector<std::string>& names) const {
  std::vector<size_t> out = {0};
  for (const std::string& name : names) {
    const auto found = std::find_if(items.begin(), items.end(), [&](const Item& item) {
      return item.node->name == root_ + name || item.node->name.starts_with(root_ + name + "/");
    });
    check(found != items.end(), "pipeline: stage ", out.size(), " cannot begin at '", name,
          "': the model has no such node that depends on the batch, and no such scope with one");
    const auto at = static_cast<size_t>(found - items.begin());
    check(found->cut != no_cut, "pipeline: stage ", out.size(), " cannot begin at '", name,
          "': it lies in a loop or a condition, which are not cut");
    check(at > out.back(), "pipeline: stage ", out.size(), " begins at '", name,
          "', which the model makes before stage ", out.size() - 1, " begins: name the cuts in ",
          "the order of the model");
    out.push_back(at);
  }
  return out;
}

PipelineModel::Stages PipelineModel::stages_of(const std::vector<Item>& items,
                                               const std::vector<size_t>& begins) const {
  Stages out;
  for (size_t stage = 0; stage < begins.size(); ++stage) {
    const size_t end = stage + 1 < begins.size() ? begins[stage + 1] : items.size();
    for (size_t i = begins[stage]; i < end; ++i)
      out[items[i].node->name.substr(root_.size())] = static_cast<int>(stage);
  }
  return out;
}

void PipelineModel::place(const Stages& stages, const std::vector<DeviceName>& devices) {
  const auto place_item = [&](const Node* node) {
    const auto found = stages.find(node->name.substr(root_.size()));
    check(found != stages.end(), "pipeline: the model function made '", node->name,
          "' for this replica, but not for the first: it must make the same nodes each time");
    stages_[index(*node)] = found->second;
  };
  for (const Node* node : forward_) {
    if (is_of_model(*node)) place_item(node);
  }
  for (const Node* node : metrics_) place_item(node);
  // What all micro-batches share goes to the first stage that uses it; what has no user, such as an
  // initialiser, to that of its variable. Initialisers come before the users of their variables, so
  // one pass from the last node to the first is for the variables, one for the initialisers.
  const auto lower = [&](const Node* node, int stage) {
    if (!is_own(*node) || differs_[index(*node)] || stage < 0) return;
    int& own = stages_[index(*node)];
    own = own < 0 ? stage : std::min(own, stage);
  };
  const auto of_state = [&](const Node& node) {
    std::vector<const Node*> known = colocated_with(node);
    for (const Output& input : node.inputs) {
      if (is_state(*input.node)) known.push_back(input.node);
    }
    for (const Node* each : known) {
      if (is_own(*each) && stages_[index(*each)] >= 0) return stages_[index(*each)];
    }
    return -1;
  };
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = model_end_; i-- > first_;) {
      const Node& node = *graph_.nodes()[i];
      int& stage = stages_[i - first_];
      if (stage < 0) stage = of_state(node);
      for (const Output& input : node.inputs) lower(input.node, stage);
      for (const Node* control : node.control_inputs) lower(control, stage);
    }
  }
  // Gradients are where the nodes are whose gradients they are. A sum of gradients of several
  // stages is where the last of them is made: backward goes from the last stage to the first.
  for (size_t i = model_end_ - first_; i < stages_.size(); ++i) {
    const Node& node = *graph_.nodes()[first_ + i];
    int& stage = stages_[i];
    if (owners_[i] >= 0) stage = stages_[static_cast<size_t>(owners_[i]) - first_];
    if (stage < 0) stage = of_state(node);
    for (const Output& input : node.inputs) {
      const int other = is_own(*input.node) ? stages_[index(*input.node)] : -1;
      if (other >= 0 && !is_of_model(*input.node))
        stage = stage < 0 ? other : std::min(stage, other);
    }
  }
  for (size_t i = 0; i < stages_.size(); ++i) {
    Node& node = *graph_.nodes()[first_ + i];
    const size_t stage = static_cast<size_t>(std::max(stages_[i], 0));
    node.requested_device = is_colocated(node) ? DeviceName() : devices[stage];
  }
}

int PipelineModel::stage_of(const Output& variable) const {
  const Node* node = variable.node;
  while (!is_state(*node) && !node->inputs.empty()) node = node->inputs[0].node;
  return is_own(*node) ? std::max(stages_[index(*node)], 0) : 0;
}

// ---- Micro-batches ----

void PipelineModel::add_micro_batches(const std::vector<PipelineBlock>& blocks,
                                      const std::vector<DeviceName>& devices) {
  const std::string base = graph_.unique_name(root_ + "micro_batches");
  graph_.reserve_name(base);
  std::vector<const Node*> all = forward_;
  all.insert(all.end(), backward_.begin(), backward_.end());
  all.insert(all.end(), metrics_.begin(), metrics_.end());
  std::vector<std::shared_ptr<NodeCopies>> copies;
  for (size_t m = 0; m < input_.parts.size(); ++m) {
    const auto rename = [prefix = concat(base, "/", m, "/"),
                         root = root_](const std::string& name) {
      return prefix + (name.starts_with(root) ? name.substr(root.size()) : name);
    };
    copies.push_back(std::make_shared<NodeCopies>(graph_, all, rename));
    for (int i = 0; i < input_.parts[m].size(); ++i)
      copies[m]->replace(input_.parts.front()[i], input_.parts[m][i]);
  }
  const auto copy = [&](const Node& node, int m, const std::vector<Node*>& after) {
    Node& made = copies[static_cast<size_t>(m)]->copy(node, after);
    if (m == 0 || !made.attrs.contains("seed") || !made.attrs.contains("seed2")) return;
    // A seed that is given: without this, all would draw the same numbers.
    const auto seed = made.attr<int64_t>("seed"), second = made.attr<int64_t>("seed2");
    if (seed != 0 || second != 0) made.attrs.insert_or_assign("seed2", second + m);
  };

  // The nodes of each block, those that end it, and those that begin it.
  struct Pattern {
    std::vector<const Node*> nodes;
    std::unordered_set<const Node*> members, begins, ends;
  };
  std::map<std::pair<int, bool>, Pattern> patterns;
  const auto add = [&](const Node* node, bool is_backward) {
    Pattern& pattern = patterns[{std::max(stages_[index(*node)], 0), is_backward}];
    bool begins = true;
    const auto see = [&](const Node* input) {
      if (!pattern.members.contains(input)) return;
      begins = false;
      pattern.ends.erase(input);
    };
    for (const Output& input : node->inputs) see(input.node);
    for (const Node* control : node->control_inputs) see(control);
    if (begins) pattern.begins.insert(node);
    // Of a branch or an iteration that may not run, nobody can wait for a node.
    if (depths_[index(*node)] == 0) pattern.ends.insert(node);
    pattern.nodes.push_back(node);
    pattern.members.insert(node);
  };
  for (const Node* node : forward_) add(node, false);
  for (const Node* node : backward_) add(node, true);

  ends_.assign(devices.size(), nullptr);
  for (const PipelineBlock& block : blocks) {
    const Pattern& pattern = patterns[{block.stage, block.is_backward}];
    if (pattern.nodes.empty()) continue;
    Node*& previous = ends_[static_cast<size_t>(block.stage)];
    const std::vector<Node*> after =
        previous == nullptr ? std::vector<Node*>{} : std::vector{previous};
    for (const Node* node : pattern.nodes)
      copy(*node, block.micro_batch, pattern.begins.contains(node) ? after : std::vector<Node*>{});
    std::vector<Node*> ends;
    for (const Node* node : pattern.nodes) {
      if (pattern.ends.contains(node))
        ends.push_back(
            copies[static_cast<size_t>(block.micro_batch)]->of({const_cast<Node*>(node), 0}).node);
    }
    previous = &graph_.insert({.op = "NoOp",
                               .name = concat(base, "/", block.micro_batch, "/stage_", block.stage,
                                              block.is_backward ? "_backward" : "_forward"),
                               .control_inputs = std::move(ends)},
                              {});
    previous->requested_device = devices[static_cast<size_t>(block.stage)];
  }
  for (size_t m = 0; m < copies.size(); ++m) {
    for (const Node* node : metrics_) copy(*node, static_cast<int>(m), {});
    copies_.push_back([of = copies[m]](Output output) { return of->of(output); });
  }
}

std::vector<Output> PipelineModel::micro_batches_of(const Output& output) const {
  std::vector<Output> out;
  for (const auto& of : copies_) out.push_back(of(output));
  return out;
}

Losses PipelineModel::mean_losses(Location at) const {
  Losses out{.loss = input_.mean_of(micro_batches_of(losses_.loss), at)};
  for (const auto& [name, value] : losses_.metrics)
    out.metrics.emplace_back(name, input_.mean_of(micro_batches_of(value), at));
  return out;
}

std::vector<GradientAndVariable> PipelineModel::mean_gradients(PipelineSchedule schedule,
                                                               Location at) const {
  MicroBatches input = input_;
  // In the order in which backward makes them, so that each can go once it is added.
  const bool is_reverse = schedule == PipelineSchedule::gpipe;
  if (is_reverse) std::reverse(input.weights.begin(), input.weights.end());
  std::vector<GradientAndVariable> out;
  for (const GradientAndVariable& each : gradients_) {
    out.push_back({Output(), each.variable});
    if (!each.gradient) continue;
    const ColocationScope with(graph_, {each.variable});
    std::vector<Output> values = micro_batches_of(each.gradient);
    if (!each.indices) {
      if (is_reverse) std::reverse(values.begin(), values.end());
      out.back().gradient = input.mean_of(values, at);
    } else {
      const std::vector<Output> indices = micro_batches_of(each.indices);
      std::vector<GradientAndVariable> rows;
      for (size_t m = 0; m < values.size(); ++m) {
        if (!input_.weights.empty())
          values[m] = values[m] * cast(input_.weights[m], values[m].dtype(), at);
        rows.push_back({values[m], each.variable, indices[m]});
      }
      out.back() = input_.weights.empty() ? mean_of(rows, at) : sum_of(rows, at);
    }
    // No variable changes before the last backward of its stage has read it.
    if (Node* const end = ends_[static_cast<size_t>(stage_of(each.variable))]) {
      const ControlScope after(graph_, {end});
      out.back().gradient = identity(out.back().gradient, at);
    }
  }
  return out;
}

std::vector<Output> PipelineModel::update_ops() const {
  std::vector<Output> out;
  for (const Output& op : update_ops_) {
    for (const Output& copy : micro_batches_of(op)) out.push_back(copy);
  }
  return out;
}

}  // namespace leat
