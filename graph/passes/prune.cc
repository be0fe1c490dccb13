// prune: keeps only what a step needs. Errors for bad endpoints have TensorFlow's codes and texts,
// since clients look for them.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "graph/endpoint.h"
#include "graph/import/dataset_graph.h"
#include "graph/loops/loops.h"
#include "graph/near_misses.h"
#include "graph/passes/pipeline.h"
#include "graph/passes/variable_accesses.h"
#include "graph/rebuild.h"
#include "graph/refused_ops.h"
#include "graph/signature.h"

namespace leat {
namespace {

Endpoint parse_endpoint(std::string_view what, const std::string& text) {
  const std::optional<Endpoint> endpoint = Endpoint::parse(text);
  check(endpoint.has_value(), what, " '", text, "' does not name an output: expected 'node:0'");
  return *endpoint;
}

std::string suggestion(const Graph& graph, std::string_view wanted) {
  std::vector<std::string_view> names;
  names.reserve(graph.size());
  for (const auto& node : graph.nodes()) names.push_back(node->name);
  return did_you_mean(wanted, names);
}

Output find_feed(const Graph& graph, const Endpoint& feed) {
  Node* node = graph.find(feed.node);
  if (node == nullptr) {
    fail(Code::not_found, "FeedInputs: unable to find feed output ", feed.full_name(),
         suggestion(graph, feed.node));
  }
  check(feed.index < node->num_outputs(), "FeedInputs: ", feed.full_name(),
        " should have output index < ", node->num_outputs());
  return node->output(feed.index);
}

Output find_fetch(const Graph& graph, const Endpoint& fetch) {
  Node* node = graph.find(fetch.node);
  if (node == nullptr) {
    fail(Code::not_found, "FetchOutputs node ", fetch.full_name(), ": not found",
         suggestion(graph, fetch.node));
  }
  check(node->num_outputs() > 0, "Tried to fetch data for '", fetch.full_name(),
        "', which has no output. To run a node without fetching anything, pass '", fetch.node,
        "' as a target");
  check(fetch.index < node->num_outputs(), "FetchOutputs ", fetch.full_name(),
        ": output index too large, must be < ", node->num_outputs());
  const bool stays = node->output(fetch.index).dtype() == DType::variant && !node->is("_Result");
  check(!stays, "'", fetch.full_name(),
        "' is a variant, such as a TensorList, which stays on its task: fetch what is computed "
        "from it");
  return node->output(fetch.index);
}

// The signature, looked up in the graph.
struct Step {
  std::map<std::pair<int, int>, std::string> feeds;  // (node id, output) → "node:index"
  std::vector<Output> fetches;
  std::vector<Node*> targets;

  bool is_fed(const Output& output) const {
    return !feeds.empty() && feeds.contains({output.node->id, output.index});
  }
};

Step resolve(const Graph& graph, const StepSignature& signature) {
  check(!signature.fetches.empty() || !signature.targets.empty(),
        "Must specify at least one target to fetch or execute.");
  Step step;
  for (const std::string& text : signature.feeds) {
    const Endpoint feed = parse_endpoint("feed", text);
    const Output output = find_feed(graph, feed);
    const bool is_new = step.feeds.insert({{output.node->id, feed.index}, feed.full_name()}).second;
    check(is_new, "Endpoint \"", feed.full_name(), "\" fed more than once.");
  }
  for (const std::string& text : signature.fetches) {
    const Endpoint fetch = parse_endpoint("fetch", text);
    const Output output = find_fetch(graph, fetch);
    check(!step.is_fed(output), "Endpoint \"", fetch.full_name(), "\" is both fed and fetched.");
    step.fetches.push_back(output);
  }
  std::string unknown;
  for (const std::string& target : signature.targets) {
    Node* node = graph.find(target);
    if (node != nullptr) {
      step.targets.push_back(node);
    } else {
      unknown += concat(unknown.empty() ? "" : ", ", target, suggestion(graph, target));
    }
  }
  if (!unknown.empty()) {
    fail(Code::not_found, "PruneForTargets: Some target nodes not found: ", unknown);
  }
  return step;
}

// A Placeholder has nothing to run: where its value is fed, who waits for it waits for the feed.
// Any other fed node runs if somebody waits for it.
bool is_replaced(const Node& node, const Step& step) {
  return node.is("Placeholder") && step.feeds.contains({node.id, 0});
}

struct Needed {
  std::vector<bool> nodes;              // by id
  std::set<std::pair<int, int>> feeds;  // those that something consumes
};

Needed find_needed(const Graph& graph, const Step& step) {
  Needed needed;
  needed.nodes.resize(graph.size());
  std::vector<const Node*> stack;
  const auto need = [&](const Node& node) {
    if (is_replaced(node, step)) {
      needed.feeds.insert({node.id, 0});
    } else if (!needed.nodes[node.id]) {
      needed.nodes[node.id] = true;
      stack.push_back(&node);
    }
  };
  for (const Output& fetch : step.fetches) need(*fetch.node);
  for (const Node* target : step.targets) need(*target);
  while (!stack.empty()) {
    const Node& node = *stack.back();
    stack.pop_back();
    for (const Output& input : node.inputs) {
      if (is_dataset_to_graph(node)) break;  // it is about nodes, which need not run
      if (step.is_fed(input)) {
        needed.feeds.insert({input.node->id, input.index});
      } else {
        need(*input.node);
      }
    }
    for (const Node* control : node.control_inputs) need(*control);
    if (const Node* next = next_iteration(node)) need(*next);
  }
  return needed;
}

// A fed value has no variable behind it.
void check_fed_handles(const Node& node, const Step& step) {
  if (std::ranges::none_of(node.inputs, [&](const Output& input) { return step.is_fed(input); }))
    return;
  for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
    for (int i = range.begin; i < range.end; ++i) {
      const bool is_handle = range.arg->is_ref || node.inputs[i].dtype() == DType::resource;
      if (!is_handle || !step.is_fed(node.inputs[i])) continue;
      fail(Code::invalid_argument, describe(node), ": input ", range.arg->name,
           " is a variable or other state, so '", node.inputs[i].name(),
           "' cannot be fed: feed the value that is assigned instead");
    }
  }
}

// Assign says beforehand that the shape may change. AssignVariableOp does not validate it unless it
// is asked to, so only another shape counts.
bool may_change_shape(const Node& assign) {
  if (!assign.is("Assign") && !assign.is("AssignVariableOp")) return false;
  if (assign.attr<bool>("validate_shape")) return false;
  const Shape &declared = assign.inputs[0].shape(), &value = assign.inputs[1].shape();
  return assign.is("Assign") ? !(declared == value) : !declared.is_compatible(value);
}

std::set<const Node*> variables_of_any_shape(const Graph& graph) {
  std::set<const Node*> out;
  for (const auto& assign : graph.nodes()) {
    if (!may_change_shape(*assign)) continue;
    const Node* node = assign->inputs[0].node;
    while (!node->inputs.empty() && node->inputs[0].is_handle()) node = node->inputs[0].node;
    out.insert(node);
  }
  return out;
}

void check_runnable(const std::vector<const Node*>& refused) {
  if (refused.empty()) return;
  std::string message;
  for (const Node* node : refused) {
    message += concat(message.empty() ? "" : "\n", "the step needs ", describe(*node), ": ",
                      refusal(node->op->name));
  }
  fail_at(refused.front()->name, Code::invalid_argument, message);
}

}  // namespace

Graph prune(const Graph& graph, const StepSignature& signature) {
  const Step step = resolve(graph, signature);
  const Needed needed = find_needed(graph, step);

  Rebuild rebuild(graph);
  std::map<int, std::vector<Output>> fed_outputs;  // of nodes by id
  for (const auto& [id, index] : needed.feeds) {
    const Node& node = *graph.nodes()[id];
    const bool takes_name = index == 0 && !needed.nodes[id];
    const OutputSpec& spec = node.outputs[index];
    Node& feed = rebuild.graph().insert(
        {.op = "_Feed",
         .name = takes_name ? node.name : graph.unique_name(concat(node.name, "/_feed_", index)),
         .attrs = {{"dtype", spec.dtype},
                   {"shape", spec.shape},
                   {"name", step.feeds.at({id, index})}},
         .location = node.location},
        DeviceName());
    std::vector<Output>& outputs = fed_outputs[id];
    outputs.resize(node.outputs.size());
    outputs[index] = feed.output();
  }
  const std::set<const Node*> any_shape = variables_of_any_shape(graph);
  std::vector<const Node*> refused;
  std::unordered_map<const OpDef*, bool> refusals;
  const auto is_refused = [&](const OpDef& op) {
    const auto [known, is_new] = refusals.try_emplace(&op);
    if (is_new) known->second = !refusal(op.name).empty();
    return known->second;
  };
  for (const auto& owned : graph.nodes()) {
    const Node& node = *owned;
    const auto fed = fed_outputs.find(node.id);
    if (needed.nodes[node.id] && is_dataset_to_graph(node)) {
      Node& written = rebuild.graph().insert(
          {.op = "Const",
           .name = node.name,
           .attrs = {{"dtype", DType::string}, {"value", dataset_graph(graph, node)}},
           .control_inputs = rebuild.control_inputs_of(node),
           .location = node.location},
          DeviceName());
      written.requested_device = node.requested_device;
      rebuild.replace(node, {written.output()}, {&written});
    } else if (needed.nodes[node.id]) {
      check_fed_handles(node, step);
      if (is_refused(*node.op)) refused.push_back(&node);
      Node& copy = rebuild.copy(node);
      if (any_shape.contains(&node)) copy.attrs.emplace(any_shape_attr, true);
      if (fed == fed_outputs.end()) continue;
      for (int i = 0; i < copy.num_outputs(); ++i) {
        if (!fed->second[i]) fed->second[i] = copy.output(i);
      }
      rebuild.replace(node, fed->second, {&copy});
    } else if (fed != fed_outputs.end()) {
      rebuild.replace(node, fed->second, {fed->second.front().node});
    }
  }
  check_runnable(refused);
  return std::move(rebuild).finish();
}

}  // namespace leat
