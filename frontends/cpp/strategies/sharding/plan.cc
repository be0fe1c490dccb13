#include "frontends/cpp/strategies/sharding/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "frontends/cpp/variables.h"
#include "graph/passes/simplify/simplify.h"
#include "graph/signature.h"
#include "graph/variable_node.h"

namespace leat::sharding {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

constexpr double usual_batch = 32;  // for an extent that is not known

// The product of the known extents, and how many are not known.
struct Known {
  double elements = 1;
  int unknown = 0;
};
Known known_of(const Shape& shape) {
  Known out;
  for (const int64_t extent : shape.dims()) {
    if (extent == any) {
      ++out.unknown;
    } else {
      out.elements *= static_cast<double>(extent);
    }
  }
  return out;
}

double bytes_of(const OutputSpec& output, double elements) {
  if (output.dtype == DType::resource || output.dtype == DType::variant || !output.shape.has_rank())
    return 1;
  return elements *
         (output.dtype == DType::string ? 8 : static_cast<double>(dtype_size(output.dtype)));
}

bool moves_elements(const Node& node) {
  return node.is("Reshape") || node.is("ExpandDims") || node.is("Squeeze") || node.is("Transpose");
}

// Whether the op takes its input as what it stands for, not its value.
std::vector<bool> handle_inputs(const Node& node) {
  std::vector<bool> out(node.inputs.size());
  for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
    for (int i = range.begin; i < range.end; ++i) {
      const auto at = static_cast<size_t>(i);
      out[at] = range.arg->is_ref || node.inputs[at].dtype() == DType::resource;
    }
  }
  return out;
}

// What passes a variable's value on.
bool reads(const Node& node) {
  return node.is("Identity") || node.is("ReadVariableOp") || node.is("Cast") ||
         node.is("Transpose") || node.is("Reshape");
}

}  // namespace

Plan::Plan(const Step& step, int n) : step_(step), n_(n) {
  // With unknown extents as those of an input, if it has as many of them: the batch.
  std::vector<double> elements;
  for (const auto& node : step.graph.nodes()) {
    first_output_.push_back(bytes_.size());
    for (const OutputSpec& output : node->outputs) {
      const Known known = known_of(output.shape);
      double count = known.elements * std::pow(usual_batch, known.unknown);
      for (const Output& input : node->inputs) {
        const Known of_input = known_of(input.shape());
        if (known.unknown == 0 || of_input.unknown == 0 || input.node->id >= node->id) continue;
        const double all = elements[flat(input)];
        if (moves_elements(*node)) {
          count = all;
        } else if (of_input.unknown == known.unknown) {
          count = all / std::max(of_input.elements, 1.0) * known.elements;
        } else {
          continue;
        }
        break;
      }
      elements.push_back(count);
      bytes_.push_back(bytes_of(output, count));
    }
  }
  find_needed();
  find_places();
  find_families();
  find_candidates();
  find_destinations();
  search();
}

void Plan::find_needed() {
  const auto& nodes = step_.graph.nodes();
  is_needed_.resize(nodes.size());
  std::vector<const Node*> pending(step_.targets.begin(), step_.targets.end());
  pending.insert(pending.end(), step_.kept.begin(), step_.kept.end());
  for (const Output& result : step_.results) pending.push_back(result.node);
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (node->id < step_.begin || is_needed_[static_cast<size_t>(node->id)]) continue;
    is_needed_[static_cast<size_t>(node->id)] = true;
    if (is_control_flow(*node)) {
      fail(Code::unimplemented, "tensor_parallel: ", describe(*node),
           " is part of a while loop or a condition, which this strategy cannot split yet: train ",
           "this model with another one, such as all_reduce");
    }
    for (const Output& input : node->inputs) pending.push_back(input.node);
    for (const Node* control : node->control_inputs) pending.push_back(control);
  }
  for (const auto& node : nodes) {
    if (is_needed_[static_cast<size_t>(node->id)]) order_.push_back(node.get());
  }
}

void Plan::find_places() {
  where_.resize(step_.graph.size());
  choices_.resize(step_.graph.size());
  is_variable_value_.resize(bytes_.size());
  for (const Node* node : order_) {
    Where& where = where_[static_cast<size_t>(node->id)];
    Choices& choices = choices_[static_cast<size_t>(node->id)];
    choices.takes_handle = handle_inputs(*node);
    bool uses_variable = node->op->is_variable;
    if (node->op->is_variable) is_variable_value_[flat(const_cast<Node*>(node)->output())] = true;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const Output& input = node->inputs[i];
      if (is_variable_value_[flat(input)] && reads(*node) && i == 0)
        is_variable_value_[first_output_[static_cast<size_t>(node->id)]] = true;
      if (!choices.takes_handle[i]) continue;
      const Node* variable = variable_node(input);
      const Node* holder = variable == nullptr ? input.node : variable;
      const bool is_callers = holder->id < step_.begin;
      if (is_callers && (!node->op->only_reads_state || input.dtype() == DType::resource)) {
        where = Where::first;
      } else if (variable == nullptr) {
        where = std::max(where, Where::first_of_group);
      } else {
        uses_variable = true;
      }
    }
    if (node->op->is_stateful && !uses_variable) where = std::max(where, Where::first_of_group);
    if (where == Where::each && !node->op->is_variable) choices.signatures = signatures(*node, n_);
  }
}

void Plan::find_families() {
  const std::vector<Output>& trainable = step_.graph.collection("trainable_variables");
  for (const Node* node : order_) {
    if (!node->op->is_variable) continue;
    const Shape& shape = node->outputs[0].shape;
    const bool is_trained =
        node->id < step_.update_begin &&
        std::any_of(trainable.begin(), trainable.end(),
                    [&](const Output& each) { return variable_node(each) == node; });
    if (!is_trained) {
      // What the optimizer keeps is called as the variable to which it belongs, with a suffix.
      const auto owner = std::find_if(families_.begin(), families_.end(), [&](const Family& each) {
        const Node& first = *each.variables.front();
        return node->id >= step_.update_begin && node->name.starts_with(first.name + "/") &&
               first.outputs[0].shape == shape;
      });
      if (owner != families_.end()) {
        owner->variables.push_back(node);
        family_of_[node] = static_cast<size_t>(owner - families_.begin());
        continue;
      }
    }
    Family family{.variables = {node}, .candidates = {State()}};
    for (int axis = shape.rank() - 1; is_trained && n_ > 1 && axis >= 0; --axis) {
      if (can_split(shape, axis, n_)) family.candidates.push_back(State::split(axis));
    }
    if (is_trained && shape.rank() > 1)
      family.bytes = bytes_[first_output_[static_cast<size_t>(node->id)]];
    family_of_[node] = families_.size();
    families_.push_back(std::move(family));
  }
}

// Without those in which an op cannot change the variable.
void Plan::find_candidates() {
  for (const Node* node : order_) {
    const auto& choice = choices_[static_cast<size_t>(node->id)];
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const auto family = family_of_.find(variable_node(node->inputs[i]));
      if (!choice.takes_handle[i] || family == family_of_.end()) continue;
      std::erase_if(families_[family->second].candidates, [&](State state) {
        return !state.is_replicated() &&
               std::none_of(choice.signatures.begin(), choice.signatures.end(),
                            [&](const Signature& each) { return each.inputs[i] == state; });
      });
    }
  }
  for (Family& family : families_)
    family.state = family.candidates[family.candidates.size() > 1 ? 1 : 0];
}

// Gradients, and what elementwise ops make of them before the update.
void Plan::find_destinations() {
  destination_.assign(bytes_.size(), -1);
  for (auto at = order_.rbegin(); at != order_.rend(); ++at) {
    const Node& node = **at;
    const std::vector<bool>& takes_handle = choices_[static_cast<size_t>(node.id)].takes_handle;
    if (node.op->is_variable || node.inputs.empty()) continue;
    int family = -1;
    Shape shape;
    if (takes_handle[0]) {
      const auto found = family_of_.find(variable_node(node.inputs[0]));
      if (found != family_of_.end()) family = static_cast<int>(found->second);
      shape = node.inputs[0].shape();
    } else if (elementwise_rule_of(*node.op) != nullptr) {
      family = destination_[first_output_[static_cast<size_t>(node.id)]];
      shape = node.outputs[0].shape;
    }
    if (family < 0 || shape.rank() < 1) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!takes_handle[i] && node.inputs[i].shape().is_compatible(shape))
        destination_[flat(node.inputs[i])] = family;
    }
  }
}

void Plan::search() {
  Cost best = run(nullptr);
  if (best.variable_bytes == infinite) {  // begin with all of them whole
    for (Family& family : families_) family.state = State();
    best = run(nullptr);
  }
  constexpr int sweeps = 4;
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    bool has_changed = false;
    for (Family& family : families_) {
      const State before = family.state;
      State kept = before;
      for (const State candidate : family.candidates) {
        if (candidate == before) continue;
        family.state = candidate;
        const Cost cost = run(nullptr);
        if (!cost.is_below(best)) continue;
        best = cost;
        kept = candidate;
      }
      family.state = kept;
      has_changed = has_changed || !(kept == before);
    }
    if (!has_changed) break;
  }
  chosen_.resize(step_.graph.size());
  run(&chosen_);
}

// The bytes of a variable of rank 2 and more that each worker would get whole in each step, which
// is no better than to keep it whole.
double Plan::gathered_variable(const Output& input, State to) const {
  const bool counts = is_variable_value_[flat(input)] && input.shape().rank() > 1;
  return counts && !to.is_split() ? bytes_[flat(input)] : 0;
}

bool Plan::is_reduced_activation(const Node& node) const {
  return (node.is("Sum") || node.is("Mean")) && !is_variable_value_[flat(node.inputs[0])] &&
         destination_[flat(node.inputs[0])] < 0;
}

State Plan::state_of_handle(const Output& handle) const {
  const auto family = family_of_.find(variable_node(handle));
  return family == family_of_.end() ? State() : families_[family->second].state;
}

Plan::Cost Plan::run(std::vector<int>* chosen) const {
  Cost total;
  for (const Family& family : families_) {
    if (!family.state.is_split()) total.variable_bytes += family.bytes;
  }
  std::vector<uint32_t> have(bytes_.size(), 1);  // of the caller's nodes: replicated
  const auto bit = [](State state) { return uint32_t{1} << state.code(); };
  const auto source = [&](const Output& input, State to) {
    return cheapest_source(have[flat(input)], to, bytes_[flat(input)], n_);
  };
  const auto cost_of = [&](const Output& input, State to) {
    Cost cost;
    if ((have[flat(input)] & bit(to)) != 0) return cost;
    const State from = source(input, to);
    cost.exchange = price(from, to, bytes_[flat(input)], n_);
    if (from.is_split()) cost.variable_bytes = gathered_variable(input, to);
    return cost;
  };
  const auto convert = [&](const Output& input, State to) {
    const Cost cost = cost_of(input, to);
    total.variable_bytes += cost.variable_bytes;
    total.exchange += cost.exchange;
    uint32_t& states = have[flat(input)];
    if ((states & bit(to)) == 0 &&
        collective_between(source(input, to), to) == Collective::all_gather)
      states |= bit(State());
    states |= bit(to);
  };
  // What will be paid if all of it is needed: by the update, or replicated.
  const auto later = [&](const Node& node, const Signature& signature) {
    double cost = 0;
    for (int i = 0; i < node.num_outputs(); ++i) {
      const State state = signature.outputs[static_cast<size_t>(i)];
      if (state.is_replicated() || node.outputs[static_cast<size_t>(i)].is_ref) continue;
      const size_t at = first_output_[static_cast<size_t>(node.id)] + static_cast<size_t>(i);
      const int family = destination_[at];
      const State needed = family < 0 ? State() : families_[static_cast<size_t>(family)].state;
      const double of_it = price(state, needed, bytes_[at], n_);
      // Sums wait only for other sums.
      cost += state.is_partial() ? of_it + 1 : of_it;
    }
    // Who takes the mean of an activation, in a normalisation, goes on to use that itself: summing
    // the means of its parts would not spare the workers from joining them.
    if (is_reduced_activation(node) && signature.inputs[0].is_split() &&
        signature.outputs[0].is_partial())
      cost += price(signature.inputs[0], State(), bytes_[flat(node.inputs[0])], n_);
    return cost;
  };

  for (const Node* node : order_) {
    const size_t first = first_output_[static_cast<size_t>(node->id)];
    if (node->op->is_variable) {
      have[first] = bit(families_[family_of_.at(node)].state);
      continue;
    }
    if (where(*node) != Where::each) {
      for (const Output& input : node->inputs) {
        if (!input.is_handle()) convert(input, State());
      }
      continue;
    }
    const auto& [takes_handle, all] = choices_[static_cast<size_t>(node->id)];
    int best = -1;
    Cost best_now, best_sum;
    for (size_t s = 0; s < all.size(); ++s) {
      Cost now;
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        const Output& input = node->inputs[i];
        const State wanted = all[s].inputs[i];
        if (takes_handle[i]) {  // a part of it is no variable
          if (!(wanted == state_of_handle(input))) now.exchange = infinite;
          continue;
        }
        const Cost of_it = cost_of(input, wanted);
        now.exchange += of_it.exchange;
        now.variable_bytes += of_it.variable_bytes;
      }
      if (now.exchange == infinite) continue;
      const Cost sum{now.variable_bytes, now.exchange + later(*node, all[s])};
      const bool is_equal = best >= 0 && sum.variable_bytes == best_sum.variable_bytes &&
                            sum.exchange == best_sum.exchange;
      if (best >= 0 && !(is_equal ? now.is_below(best_now) : sum.is_below(best_sum))) continue;
      best = static_cast<int>(s);
      best_now = now;
      best_sum = sum;
    }
    if (best < 0) {  // it cannot work on the variable's parts
      total.variable_bytes = infinite;
      return total;
    }
    const Signature& signature = all[static_cast<size_t>(best)];
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (!takes_handle[i]) convert(node->inputs[i], signature.inputs[i]);
    }
    for (int i = 0; i < node->num_outputs(); ++i)
      have[first + static_cast<size_t>(i)] = bit(signature.outputs[static_cast<size_t>(i)]);
    if (chosen != nullptr) (*chosen)[static_cast<size_t>(node->id)] = best;
  }
  for (const Output& result : step_.results) convert(result, State());
  return total;
}

const Signature& Plan::signature(const Node& node) const {
  const auto id = static_cast<size_t>(node.id);
  return choices_[id].signatures[static_cast<size_t>(chosen_[id])];
}

State Plan::state_of_variable(const Node& node) const {
  return families_[family_of_.at(&node)].state;
}

}  // namespace leat::sharding
