// to_dot(): every node, as Graphviz draws it.
#include <map>

#include "graph/fused.h"
#include "graph/text.h"

namespace leat {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

struct Box {
  std::map<std::string, Box, std::less<>> inner;
  std::vector<const Node*> nodes;
};

class Dot {
 public:
  std::string draw(const Graph& graph) {
    std::map<std::string, Box> devices;
    for (const auto& node : graph.nodes()) {
      const DeviceName& device =
          node->assigned_device->is_empty() ? node->requested_device : node->assigned_device;
      scope_of(*node, devices[device.to_string()]).nodes.push_back(node.get());
    }
    out_ =
        "digraph leat {\n  rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"Helvetica\", "
        "fontsize=10];\n"
        "  edge [fontname=\"Helvetica\", fontsize=8];\n";
    for (const auto& [device, box] : devices) {
      if (device.empty()) {
        content(box, 1);
      } else {
        cluster(device, box, 1, "style=filled, fillcolor=\"#f4f6f8\"");
      }
    }
    for (const auto& node : graph.nodes()) edges(*node);
    cables(graph);
    return out_ + "}\n";
  }

 private:
  static Box& scope_of(const Node& node, Box& device) {
    Box* box = &device;
    std::string_view rest = node.name;
    for (size_t slash = rest.find('/'); slash != std::string_view::npos; slash = rest.find('/')) {
      box = &box->inner[std::string(rest.substr(0, slash))];
      rest.remove_prefix(slash + 1);
    }
    return *box;
  }

  void line(int depth, std::string_view text) {
    out_ += concat(std::string(2 * depth, ' '), text, "\n");
  }

  void cluster(std::string_view label, const Box& box, int depth, std::string_view style) {
    line(depth, concat("subgraph cluster_", clusters_++, " {"));
    line(depth + 1, concat("label=", quoted(label), "; ", style, ";"));
    content(box, depth + 1);
    line(depth, "}");
  }

  void content(const Box& box, int depth) {
    for (const Node* node : box.nodes) {
      const size_t slash = node->name.rfind('/');
      const std::string_view last =
          std::string_view(node->name).substr(slash == std::string::npos ? 0 : slash + 1);
      const std::string op = op_title(node->view());
      const std::string label = last == op ? op : concat(last, "\n", op);
      line(depth, concat("n", node->id, " [label=", quoted(label), ", tooltip=", quoted(node->name),
                         "];"));
    }
    for (const auto& [name, inner] : box.inner)
      cluster(name, inner, depth, "style=rounded, color=\"#a0a8b0\"");
  }

  void edges(const Node& node) {
    for (const Output& input : node.inputs) {
      line(1, concat("n", input.node->id, " -> n", node.id,
                     " [label=", quoted(concat(input.dtype(), input.shape())), "];"));
    }
    for (const Node* control : node.control_inputs) {
      line(1, concat("n", control->id, " -> n", node.id, " [style=dotted];"));
    }
  }

  void cables(const Graph& graph) {
    std::map<int64_t, const Node*> senders;
    for (const auto& node : graph.nodes()) {
      if (node->is("_Send")) senders[node->attr<int64_t>("edge")] = node.get();
    }
    for (const auto& node : graph.nodes()) {
      if (!node->is("_Recv")) continue;
      const auto sender = senders.find(node->attr<int64_t>("edge"));
      if (sender == senders.end()) continue;
      line(1, concat("n", sender->second->id, " -> n", node->id,
                     " [style=dashed, constraint=false];"));
    }
  }

  std::string out_;
  int clusters_ = 0;
};

}  // namespace

std::string to_dot(const Graph& graph) { return Dot().draw(graph); }

}  // namespace leat
