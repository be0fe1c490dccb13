// dump() and parse(): the line form of a graph.
#include "graph/text.h"

#include <algorithm>
#include <queue>

#include "graph/endpoint.h"
#include "graph/op_schema.h"
#include "graph/signature.h"

namespace leat {
namespace {

// ---- dump

std::vector<const Node*> order_by_name(const Graph& graph) {
  const Consumers consumers(graph);
  std::vector<size_t> waits;
  const auto later = [](const Node* a, const Node* b) { return a->name > b->name; };
  std::priority_queue<const Node*, std::vector<const Node*>, decltype(later)> ready(later);
  for (const auto& node : graph.nodes()) {
    waits.push_back(node->inputs.size() + node->control_inputs.size());
    if (waits.back() == 0) ready.push(node.get());
  }
  std::vector<const Node*> out;
  while (!ready.empty()) {
    const Node* node = ready.top();
    ready.pop();
    out.push_back(node);
    for (const Consumers::Use& use : consumers.of(*node)) {
      if (--waits[use.node->id] == 0) ready.push(use.node);
    }
  }
  if (out.size() != graph.size()) topological_order(graph);  // throws: it names the cycle
  return out;
}

std::string print_device(DeviceName device) {
  if (device.replica == 0) device.replica.reset();
  const bool is_letter = device.job && device.job->size() == 1 && !device.replica;
  if (is_letter && device.task == 0 && device.type == "CPU" && device.id == 0) return *device.job;
  return device.to_string();
}

std::string print_node(const Node& node, const DumpOptions& options) {
  std::string arguments;
  const auto separate = [&] { arguments += arguments.empty() ? "" : ", "; };
  for (const Output& input : node.inputs) {
    separate();
    arguments += Endpoint::of(input).short_name();
  }
  for (const auto& [name, value] : node.attrs) {
    if (!options.attrs) break;
    const AttrDef* attr = node.op->schema.attr(name);
    if (attr != nullptr && attr->default_value && *attr->default_value == value &&
        !follows_from_inputs(node.op->schema, name)) {
      continue;
    }
    if (attr != nullptr && follows_from_inputs(node.op->schema, name)) continue;
    separate();
    arguments += name + "=" + print_attr_value(value, options.elements);
  }
  std::string out = concat(node.name, " = ", node.op->name, "(", arguments, ")");
  const DeviceName& device =
      node.assigned_device->is_empty() ? node.requested_device : node.assigned_device;
  if (options.devices && !device.is_empty()) out += " @" + print_device(device);
  std::vector<std::string> controls;
  for (const Node* control : node.control_inputs) controls.push_back(control->name);
  std::sort(controls.begin(), controls.end());
  for (const std::string& control : controls) out += ", ^" + control;
  if (options.shapes) {
    for (int i = 0; i < node.num_outputs(); ++i) {
      const OutputSpec& output = node.outputs[i];
      out += i == 0 ? " : " : ", ";
      out += output.is_ref ? concat("Ref(", output.dtype, ")", output.shape)
                           : concat(output.dtype, output.shape);
    }
  }
  return out;
}

// ---- parse

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text), rest_(text) {}

  Graph parse() {
    while (skip_to_statement()) statement();
    return std::move(graph_);
  }

 private:
  static bool is_name_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_./->").find(c) != std::string_view::npos;
  }

  Location location() const {
    const std::string_view done = text_.substr(0, text_.size() - rest_.size());
    return {"text", static_cast<int>(std::count(done.begin(), done.end(), '\n')) + 1};
  }

  [[noreturn]] void fail_here(std::string_view what) const {
    const size_t position = text_.size() - rest_.size();
    const size_t line_start =
        position == 0 ? 0 : text_.rfind('\n', position - 1) + 1;  // npos + 1 = 0
    fail(Code::invalid_argument, "graph text, line ", location().line, ", column ",
         position - line_start + 1, ": ", what);
  }

  [[noreturn]] void fail_expected(std::string_view what) const {
    const std::string_view got = rest_.substr(0, std::min(rest_.find('\n'), size_t{20}));
    fail_here(got.empty() ? concat("expected ", what)
                          : concat("expected ", what, ", got '", got, "'"));
  }

  void skip_space() {
    while (!rest_.empty() &&
           (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\r')) {
      rest_.remove_prefix(1);
    }
    if (!rest_.empty() && rest_.front() == '#')
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
  }

  bool skip_to_statement() {
    skip_space();
    while (!rest_.empty() && (rest_.front() == '\n' || rest_.front() == ';')) {
      rest_.remove_prefix(1);
      skip_space();
    }
    return !rest_.empty();
  }

  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c, std::string_view what) {
    if (!take(c)) fail_expected(what);
  }

  std::string_view name(std::string_view what) {
    skip_space();
    size_t size = 0;
    while (size < rest_.size() && is_name_char(rest_[size])) ++size;
    if (size == 0) fail_expected(what);
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

  // The rest of an input whose node name has been read.
  Output input(std::string_view node_name) {
    std::string text(node_name);
    if (!rest_.empty() && rest_.front() == ':') {
      rest_.remove_prefix(1);
      text += ":" + std::string(name("the number of an output"));
    }
    try {
      return graph_.output(text);
    } catch (const Error& error) {
      fail_here(error.message());
    }
  }

  AttrValue free_form_value() {
    skip_space();
    const std::string_view value = rest_.substr(0, rest_.find_first_of(",)\n"));
    std::string kind = "type";
    if (value.starts_with('"') || value.starts_with('\'')) {
      kind = "string";
    } else if (value.starts_with('{')) {
      kind = "list(string)";
    } else if (value.starts_with('[') || value.starts_with('<')) {
      kind = "shape";
    } else if (value == "true" || value == "false") {
      kind = "bool";
    } else if (!value.empty() &&
               (std::isdigit(static_cast<unsigned char>(value.front())) || value.front() == '-')) {
      kind = value.find_first_of(".e") == std::string_view::npos ? "int" : "float";
    }
    return parse_attr_value(kind, rest_);
  }

  AttrValue attr_value(const OpDef* op, std::string_view attr_name) {
    const AttrDef* attr = op == nullptr ? nullptr : op->schema.attr(attr_name);
    try {
      return attr == nullptr ? free_form_value() : parse_attr_value(attr->kind, rest_);
    } catch (const Error& error) {
      fail_here(concat("attribute '", attr_name, "': ", error.message()));
    }
  }

  void arguments(NodeSpec& spec) {
    expect('(', "'(' and the inputs");
    const OpDef* op = find_op(spec.op);
    if (take(')')) return;
    do {
      const std::string_view word = name("an input or an attribute");
      if (take('=')) {
        spec.attrs.insert_or_assign(std::string(word), attr_value(op, word));
      } else {
        if (!spec.attrs.empty())
          fail_here(concat("input '", word, "' must come before the attributes"));
        spec.inputs.push_back(input(word));
      }
    } while (take(','));
    expect(')', "',' or ')'");
  }

  DeviceName device() {
    skip_space();
    const std::string_view text = rest_.substr(0, rest_.find_first_of(" \t\r\n;,"));
    const bool is_letter =
        text.size() == 1 && std::isalpha(static_cast<unsigned char>(text.front()));
    DeviceName out;
    if (is_letter) {
      out = {.job = std::string(text), .replica = {}, .task = 0, .type = "CPU", .id = 0};
    } else {
      try {
        out = DeviceName::parse(text);
      } catch (const Error& error) {
        fail_here(error.message());
      }
    }
    rest_.remove_prefix(text.size());
    return out;
  }

  // "float[2,?]" or "Ref(float)[]", one per output.
  void output_shapes(Node& node) {
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (i > 0) expect(',', "',' and the next output");
      std::string_view dtype = name("a dtype");
      const bool is_ref = dtype == "Ref";
      if (is_ref) {
        expect('(', "'('");
        dtype = name("a dtype");
        expect(')', "')'");
      }
      const OutputSpec& output = node.outputs[i];
      if (dtype != dtype_name(output.dtype) || is_ref != output.is_ref) {
        fail_here(concat("output ", i, " is ", output.is_ref ? "Ref of " : "", output.dtype));
      }
      try {
        const Shape shape = parse_attr_value("shape", rest_).get<Shape>();
        node.outputs.write()[i].shape = output.shape.merged(shape);
      } catch (const Error& error) {
        fail_here(error.message());
      }
    }
  }

  void statement() {
    NodeSpec spec;
    spec.location = location();
    spec.name = name("the name of a node");
    expect('=', "'='");
    spec.op = name("the name of an op");
    arguments(spec);
    const DeviceName on = take('@') ? device() : DeviceName{};
    while (take(',')) {
      expect('^', "'^' and a node to wait for");
      const std::string_view control = name("the name of a node");
      Node* node = graph_.find(control);
      if (node == nullptr) fail_here(concat("the graph has no node '", control, "'"));
      spec.control_inputs.push_back(node);
    }
    Node& node = graph_.insert(std::move(spec), on.is_complete() ? on : DeviceName{});
    node.requested_device = on;
    if (take(':')) output_shapes(node);
    skip_space();
    if (!rest_.empty() && rest_.front() != '\n' && rest_.front() != ';')
      fail_expected("the end of the line or ';'");
  }

  std::string_view text_;
  std::string_view rest_;
  Graph graph_;
};

}  // namespace

std::string dump(const Graph& graph, const DumpOptions& options) {
  std::string out;
  for (const Node* node : order_by_name(graph)) out += print_node(*node, options) + "\n";
  return out;
}

Graph parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace leat
