// Reads GraphDefs into a graph: checks everything and reports every problem. Only a GraphDef
// without problems changes the graph.

#include <absl/container/flat_hash_map.h>
#include <google/protobuf/arena.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <unordered_set>
#include <utility>

#include "graph/endpoint.h"
#include "graph/functions/functions.h"
#include "graph/import/dataset_graph.h"
#include "graph/import/graph_def.h"
#include "graph/import/graph_versions.h"
#include "graph/import/proto_codec.h"
#include "graph/kernel_lookup.h"
#include "graph/loops/loops.h"
#include "graph/near_misses.h"
#include "graph/node_name.h"
#include "graph/proto/graph.pb.h"
#include "graph/refused_ops.h"

namespace leat {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

constexpr int64_t most_outputs = 1 << 16;  // of one node
constexpr size_t most_problems = 50;       // in one message

struct InputName {
  std::string_view node;
  int index = 0;
  bool is_control = false;
};

InputName parse_input(std::string_view text) {
  if (text.starts_with('^')) return {text.substr(1), 0, true};
  const std::optional<Endpoint> name = Endpoint::parse(text);
  check(name.has_value(), "input '", text, "' is not of the form 'node', 'node:1' or '^node'");
  return {name->node, name->index, false};
}

bool is_next_iteration(std::string_view op) {
  return op == "NextIteration" || op == "RefNextIteration";
}

// True only if both hold the same value. False as well for kinds that take long to compare.
bool is_same(const tensorflow::AttrValue& a, const tensorflow::AttrValue& b) {
  if (a.value_case() != b.value_case()) return false;
  switch (a.value_case()) {
    case tensorflow::AttrValue::kType:
      return a.type() == b.type();
    case tensorflow::AttrValue::kI:
      return a.i() == b.i();
    case tensorflow::AttrValue::kB:
      return a.b() == b.b();
    case tensorflow::AttrValue::kS:
      return a.s() == b.s();
    default:
      return false;
  }
}

bool has_same_attrs(const NodeDef& a, const NodeDef& b) {
  if (a.attr().size() != b.attr().size()) return false;
  return std::all_of(a.attr().begin(), a.attr().end(), [&](const auto& attr) {
    const auto other = b.attr().find(attr.first);
    return other != b.attr().end() && is_same(attr.second, other->second);
  });
}

class Import {
 public:
  // Empties the tensors of `def` as its nodes are added.
  Import(GraphDef& def, Graph& graph, const ImportOptions& options)
      : def_(def), graph_(graph), options_(options), waits_(def.node_size()) {
    index_.reserve(def.node_size());
  }

  std::vector<std::string> run() {
    for (int i = 0; i < def_.node_size(); ++i) check_node(i);
    const size_t size_before = graph_.size();
    if (is_clean()) {
      graph_.reserve(size_before + def_.node_size());
      add_in_order();
      if (!is_clean()) graph_.truncate(size_before);
    }
    report();
    note_missing_kernels(size_before);
    return std::move(notes_);
  }

 private:
  bool is_clean() const { return problems_.empty() && unknown_ops_.empty(); }

  template <class... Parts>
  void problem(const Parts&... parts) {
    problems_.push_back(concat(parts...));
  }
  static std::string title(const NodeDef& def) {
    return concat("node '", def.name(), "' (", def.op(), ")");
  }

  // What was read of a node, to be used again where the next of its op says the same.
  struct Attributes {
    const NodeDef* of = nullptr;
    AttrMap read;
  };

  // ---- Before anything is added ----

  void check_node(int i) {
    const NodeDef& def = def_.node(i);
    if (!is_node_name(def.name(), options_.allow_internal)) {
      problem("'", def.name(), "' (", def.op(), ") is not a node name: ", node_name_rule);
    } else if (graph_.size() > 0 && graph_.find(def.name()) != nullptr) {
      problem(title(def), " is already in the graph");
    } else if (!index_.emplace(def.name(), i).second) {
      problem(title(def), " comes twice");
    }
    if (!options_.allow_internal && def.op().starts_with('_')) {
      problem(title(def), ": ops that start with '_' are the runtime's own");
    } else if (op(def) == nullptr) {
      unknown_ops_.emplace(def.op(), def.name());
    }
    try {
      device(def);
    } catch (const Error& error) {
      problem(title(def), ": ", error.message());
    }
  }

  // Few ops and devices, many nodes: what is new is looked up.
  const OpDef* op(const NodeDef& def) {
    const auto [known, is_new] = ops_.try_emplace(def.op());
    if (is_new) {
      known->second = find_op(def.op());
      check_not_deprecated(def.op(), def_.versions().producer());
    }
    return known->second;
  }
  const Shared<DeviceName>& device(const NodeDef& def) {
    const auto known = devices_.find(def.device());
    if (known != devices_.end()) return known->second;
    return devices_.emplace(def.device(), DeviceName::parse(def.device())).first->second;
  }

  // ---- Adding, inputs first and otherwise in the order of the file ----

  static constexpr int in_graph = -1;  // already
  static constexpr int nowhere = -2;

  // Position in the file of the node that an input names, or one of the above.
  int position(std::string_view name, int user) const {
    if (user > 0 && def_.node(user - 1).name() == name) return user - 1;  // often
    const auto found = index_.find(name);
    if (found != index_.end()) return found->second;
    return graph_.find(name) != nullptr ? in_graph : nowhere;
  }

  static bool may_have_back_edge(const NodeDef& user) {
    return user.op() == "Merge" || user.op() == "RefMerge";
  }
  bool is_back_edge(const NodeDef& user, int source) const {
    return source >= 0 && may_have_back_edge(user) && is_next_iteration(def_.node(source).op());
  }

  void count_waits() {
    std::vector<std::pair<int, int>> edges;  // (from, to)
    first_source_.reserve(def_.node_size());
    for (int i = 0; i < def_.node_size(); ++i) {
      const NodeDef& def = def_.node(i);
      first_source_.push_back(sources_.size());
      for (const std::string& text : def.input()) {
        try {
          const InputName input = parse_input(text);
          const int source = position(input.node, i);
          sources_.push_back(source);
          if (source == nowhere) {
            problem(title(def), ": input '", text, "' is not in the graph",
                    did_you_mean(input.node));
            continue;
          }
          if (source < 0 || is_back_edge(def, source)) continue;
          ++waits_[i];
          edges.emplace_back(source, i);
        } catch (const Error& error) {
          problem(title(def), ": ", error.message());
        }
      }
    }
    first_user_.assign(def_.node_size() + 2, 0);
    for (const auto& [from, to] : edges) ++first_user_[from + 2];
    std::partial_sum(first_user_.begin(), first_user_.end(), first_user_.begin());
    users_.resize(edges.size());
    for (const auto& [from, to] : edges) users_[first_user_[from + 1]++] = to;
  }

  std::string did_you_mean(std::string_view wanted) const {
    if (problems_.size() >= most_problems) return {};  // nobody reads it
    std::vector<std::string_view> names;
    for (const auto& [name, i] : index_) names.push_back(name);
    std::sort(names.begin(), names.end());
    return leat::did_you_mean(wanted, names);
  }

  void add_in_order() {
    count_waits();
    if (!is_clean()) return;
    added_.resize(def_.node_size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int i = 0; i < def_.node_size(); ++i) {
      if (waits_[i] == 0) ready.push(i);
    }
    int done = 0;
    while (!ready.empty()) {
      const int i = ready.top();
      ready.pop();
      ++done;
      add(i);
      drop_tensor(*def_.mutable_node(i));
      for (size_t at = first_user_[i]; at < first_user_[i + 1]; ++at) {
        if (--waits_[users_[at]] == 0) ready.push(users_[at]);
      }
    }
    if (done < def_.node_size()) report_cycle();
  }

  // It may be large, and is not needed twice.
  static void drop_tensor(NodeDef& def) {
    for (auto& [name, attr] : *def.mutable_attr()) {
      if (attr.has_tensor()) std::string().swap(*attr.mutable_tensor()->mutable_tensor_content());
    }
  }

  void report_cycle() {
    std::string names;
    int count = 0;
    for (int i = 0; i < def_.node_size(); ++i) {
      if (waits_[i] > 0 && ++count <= 5) names += (names.empty() ? "" : ", ") + def_.node(i).name();
    }
    problem(
        "the graph has a cycle that is not a while loop (only a Merge may wait for a "
        "NextIteration), in or before ",
        count, count == 1 ? " node: " : " nodes: ", names, count > 5 ? ", …" : "");
  }

  void add(int i) {
    const NodeDef& def = def_.node(i);
    const size_t problems = problems_.size();
    NodeSpec spec{.op = def.op(), .name = def.name()};
    if (!read_inputs(i, spec)) return;  // follows from another problem
    const bool has_back_edge = !spec.attrs.empty();
    Attributes& last = last_attrs_[op(def)];
    if (!has_back_edge && last.of != nullptr && has_same_attrs(def, *last.of)) {
      spec.attrs = last.read;
    } else {
      read_attrs(def, spec);
      if (!has_back_edge && problems_.size() == problems) last = {&def, spec.attrs};
    }
    if (problems_.size() > problems) return;
    try {
      std::optional<Error> deferred;
      Node& node = graph_.insert(std::move(spec), {}, &deferred);
      if (deferred) notes_.push_back(deferred->message() + "; steps that need it will fail");
      node.requested_device = device(def);
      added_[i] = &node;
    } catch (const Error& error) {
      problem(error.message());
    }
  }

  // False if an input could not be added.
  bool read_inputs(int i, NodeSpec& spec) {
    const NodeDef& def = def_.node(i);
    const int* position = sources_.data() + first_source_[i];
    std::string back_edge;
    std::unordered_set<const Node*> controls;
    spec.inputs.reserve(def.input_size());
    for (const std::string& text : def.input()) {
      const InputName input = parse_input(text);
      const int at = *position++;
      Node* source = at >= 0 ? added_[at] : graph_.find(input.node);
      if (!input.is_control && is_back_edge(def, at)) {
        back_edge = text;
        continue;
      }
      if (source == nullptr) return false;
      if (input.is_control) {
        if (controls.insert(source).second) spec.control_inputs.push_back(source);
        continue;
      }
      if (!spec.control_inputs.empty()) {
        problem(title(def), ": input '", text, "' comes after a control input");
      } else if (input.index >= source->num_outputs()) {
        problem(title(def), ": input '", text, "': ", describe(*source), " has ",
                source->num_outputs(), source->num_outputs() == 1 ? " output" : " outputs");
        return true;
      }
      spec.inputs.push_back(source->output(input.index));
    }
    if (!back_edge.empty()) {
      if (spec.inputs.size() != 1) {
        problem(title(def),
                ": a Merge that waits for a NextIteration must have one other input, "
                "the loop's Enter");
        return true;
      }
      spec.inputs.push_back(spec.inputs.front());
      spec.attrs.emplace(back_edge_attr, back_edge);
    }
    return true;
  }

  void read_attrs(const NodeDef& def, NodeSpec& spec) {
    const OpSchema& schema = op(def)->schema;
    std::vector<std::pair<std::string_view, const tensorflow::AttrValue*>> sorted;
    sorted.reserve(def.attr().size());
    for (const auto& [name, value] : def.attr()) sorted.emplace_back(name, &value);
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [name, value] : sorted) {
      const AttrDef* attr = schema.attr(name);
      const bool is_free = name.starts_with('_');
      if (attr == nullptr && !is_free) {
        note_dropped(def, name, *value);
        continue;
      }
      try {
        spec.attrs.emplace(name, read_attr(*value, attr == nullptr ? "" : attr->kind));
      } catch (const Error& error) {
        if (is_free) {
          note_dropped(def, name, *value);
        } else {
          problem(title(def), ": attribute '", name, "': ", error.message());
        }
      }
    }
    for (const ArgDef& arg : schema.outputs) check_length(def, arg, spec.attrs);
    for (const AttrDef& attr : schema.attrs) {
      if (!attr.default_value && !def.attr().contains(attr.name)) {
        problem(title(def), ": attribute '", attr.name, "' (", attr.kind,
                ") is missing and has no default");
      }
    }
  }

  // Nothing else in the message bounds how many outputs a node claims to have.
  void check_length(const NodeDef& def, const ArgDef& arg, const AttrMap& attrs) {
    const auto found = attrs.find(arg.number_attr);
    if (found == attrs.end() || !found->second.is<int64_t>()) return;
    const auto length = found->second.get<int64_t>();
    if (length > most_outputs) {
      problem(title(def), ": attribute '", arg.number_attr, "' asks for ", length,
              " outputs; at most ", most_outputs, " are possible");
    }
  }

  // ---- Reports ----

  void note_dropped(const NodeDef& def, std::string_view name, const tensorflow::AttrValue& value) {
    if (!dropped_.emplace(def.op(), name).second) return;
    std::string text = value.ShortDebugString();
    if (text.size() > 100) text = text.substr(0, 100) + "…";
    notes_.push_back(concat(def.op(), ": attribute '", name, "' is not known and was ignored; on '",
                            def.name(), "' it is {", text, "}"));
  }

  void note_missing_kernels(size_t size_before) {
    std::map<std::string, std::vector<const Node*>> lacking;  // by op
    KernelLookup find_kernel;
    for (size_t i = size_before; i < graph_.size(); ++i) {
      const Node& node = *graph_.nodes()[i];
      const bool has_kernel = find_kernel(node, DeviceType::cpu) != nullptr ||
                              find_kernel(node, DeviceType::gpu) != nullptr;
      const bool is_for_passes =
          node.op->name.starts_with('_') || is_loop_node(node) || is_dataset_to_graph(node);
      if (!has_kernel && !is_for_passes) lacking[node.op->name].push_back(&node);
    }
    for (const auto& [op, nodes] : lacking) {
      notes_.push_back(concat(
          op, ": no kernel for ", nodes.size(), " of its nodes, such as '", nodes.front()->name,
          "'; steps that need one will fail. Kernels: ", describe_kernels(*nodes.front()->op)));
    }
  }

  void report() const {
    if (is_clean()) return;
    std::string message;
    for (const auto& [op, node] : unknown_ops_) {
      message +=
          concat(message.empty() ? "Op type not registered '" : ", '", op, "' (node '", node, "')");
    }
    size_t shown = 0;
    for (const std::string& text : problems_) {
      if (++shown > most_problems) break;
      message += (message.empty() ? "" : "\n") + text;
    }
    if (problems_.size() > most_problems) {
      message += concat("\n… and ", problems_.size() - most_problems, " more problems");
    }
    fail(unknown_ops_.empty() ? Code::invalid_argument : Code::not_found, message);
  }

  GraphDef& def_;
  Graph& graph_;
  const ImportOptions options_;
  absl::flat_hash_map<std::string_view, int> index_;  // node name → position in the file
  std::vector<int> waits_;                            // by position: inputs that are not added yet
  std::vector<int> sources_;          // position() of the inputs of all nodes, one after the other
  std::vector<size_t> first_source_;  // by position: where its own begin
  std::vector<Node*> added_;          // by position
  std::vector<int> users_;            // of all nodes, one after the other
  std::vector<size_t> first_user_;    // by position: where its own begin
  absl::flat_hash_map<std::string_view, const OpDef*> ops_;            // by name
  absl::flat_hash_map<std::string_view, Shared<DeviceName>> devices_;  // by the text
  absl::flat_hash_map<const OpDef*, Attributes> last_attrs_;  // of the last node of each op
  std::map<std::string, std::string> unknown_ops_;            // op → a node
  std::vector<std::string> problems_;
  std::vector<std::string> notes_;
  std::set<std::pair<std::string, std::string>> dropped_;  // (op, attribute)
};

void check_size(size_t bytes) {
  if (bytes <= static_cast<size_t>(std::numeric_limits<int>::max())) return;
  fail(Code::resource_exhausted, "a GraphDef of ", bytes, " bytes is too large; the limit is ",
       std::numeric_limits<int>::max());
}

std::vector<std::string> import(GraphDef& def, Graph& graph, const ImportOptions& options) {
  check_versions(def);
  if (!options.allow_internal) drop_written_functions(def);
  inline_functions(def, graph);
  write_as_today(def, graph);
  return Import(def, graph, options).run();
}

}  // namespace

std::vector<std::string> from_graph_def(std::string_view bytes, Graph& graph,
                                        const ImportOptions& options) {
  check_size(bytes.size());
  google::protobuf::Arena arena;  // what is parsed and forgotten at once
  GraphDef& def = *google::protobuf::Arena::CreateMessage<GraphDef>(&arena);
  check(def.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
        "this is not a GraphDef: its ", bytes.size(), " bytes do not parse");
  return import(def, graph, options);
}

std::vector<std::string> from_graph_def_text(std::string_view text, Graph& graph,
                                             const ImportOptions& options) {
  check_size(text.size());
  GraphDef def;
  const std::string problem = parse_text(text, def);
  check(problem.empty(), "this is not a GraphDef: ", problem);
  return import(def, graph, options);
}

}  // namespace leat
