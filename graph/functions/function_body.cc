#include "graph/functions/function_body.h"

#include <algorithm>
#include <charconv>

#include "core/device_name.h"
#include "core/error.h"
#include "graph/endpoint.h"
#include "graph/op_def.h"
#include "graph/proto/graph.pb.h"

namespace leat {
namespace {

using tensorflow::AttrValue;
using tensorflow::FunctionDef;
using tensorflow::NodeDef;
using Attrs = google::protobuf::Map<std::string, AttrValue>;

// How many values an argument stands for.
int length_of(const Attrs& attrs, const std::string& number_attr, const std::string& type_list) {
  const auto found = attrs.find(number_attr.empty() ? type_list : number_attr);
  if (number_attr.empty() && type_list.empty()) return 1;
  if (found == attrs.end()) return 0;
  return number_attr.empty() ? found->second.list().type_size()
                             : static_cast<int>(std::clamp<int64_t>(found->second.i(), 0, 1 << 16));
}

// "then/mul:z:1" in its parts: the form within functions, which names an output of the op before
// the number. An Endpoint ("node:1") has no such part.
struct InnerName {
  std::string_view node;    // or an argument of the function
  std::string_view output;  // an output argument of the node's op; may be empty
  int index = 0;
};

InnerName parse_inner(std::string_view text) {
  InnerName out{node_of(text), {}, 0};
  std::string_view rest = text.substr(out.node.size());
  if (rest.empty()) return out;
  rest.remove_prefix(1);
  const size_t last = rest.rfind(':');
  const std::string_view number = last == std::string_view::npos ? rest : rest.substr(last + 1);
  const auto [end, problem] =
      std::from_chars(number.data(), number.data() + number.size(), out.index);
  const bool is_number = problem == std::errc() && end == number.data() + number.size();
  if (!is_number) out.index = 0;
  if (is_number && last == std::string_view::npos) return out;  // "argument:1"
  out.output = is_number ? rest.substr(0, last) : rest;
  return out;
}

// Of something that it is given: a variable, a queue, a table.
bool changes_state(const NodeDef& node) {
  const OpDef* op = find_op(node.op());
  if (op == nullptr || !op->is_stateful || op->only_reads_state) return false;
  return std::ranges::any_of(op->schema.inputs, [](const ArgDef& input) {
    return input.is_ref || input.dtype == DType::resource;
  });
}

class Body {
 public:
  Body(const FunctionLibrary& library, const FunctionCall& call)
      : library_(library), call_(call), function_(*library.find(call.function.name())) {
    read_arguments();
    for (const NodeDef& node : function_.node_def()) {
      if (!nodes_.emplace(node.name(), &node).second)
        refuse("it has two nodes '", node.name(), "'");
    }
  }

  FunctionBody make() {
    FunctionBody out;
    for (const NodeDef& node : function_.node_def()) out.nodes.push_back(instance(node));
    for (const auto& result : function_.signature().output_arg()) {
      const auto found = function_.ret().find(result.name());
      if (found == function_.ret().end()) refuse("its result '", result.name(), "' has no value");
      out.results.push_back(translated(found->second));
    }
    for (const auto& [name, node] : function_.control_ret())
      out.effects.push_back(translated("^" + node));
    if (out.effects.empty()) {
      for (const NodeDef& node : function_.node_def()) {
        if (changes_state(node)) out.effects.push_back(translated("^" + node.name()));
      }
    }
    std::sort(out.effects.begin(), out.effects.end());
    return out;
  }

 private:
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail_at(call_.caller.name(), Code::invalid_argument, "function '", call_.function.name(),
            "', which node '", call_.caller.name(), "' (", call_.caller.op(),
            ") calls: ", parts...);
  }

  void read_arguments() {
    int count = 0;
    for (const auto& arg : function_.signature().input_arg()) {
      const int length = length_of(call_.function.attr(), arg.number_attr(), arg.type_list_attr());
      arguments_.emplace(arg.name(),
                         Argument{count, length, arg.type() == tensorflow::DT_RESOURCE});
      count += length;
    }
    if (count != static_cast<int>(call_.arguments.size())) {
      refuse("it has ", count, count == 1 ? " argument" : " arguments", ", but the call passes ",
             call_.arguments.size());
    }
  }

  NodeDef instance(const NodeDef& node) const {
    NodeDef out;
    out.set_name(concat(call_.scope, "/", node.name()));
    out.set_op(node.op());
    for (const auto& [name, value] : node.attr()) {
      if (value.placeholder().empty()) {
        (*out.mutable_attr())[name] = value;
        continue;
      }
      const auto given = call_.function.attr().find(value.placeholder());
      if (given == call_.function.attr().end())
        refuse("attribute '", value.placeholder(), "' is not given");
      (*out.mutable_attr())[name] = given->second;
    }
    set_inputs(node, out);
    out.set_device(device_for(node));
    rename_attrs(out);
    return out;
  }

  void set_inputs(const NodeDef& node, NodeDef& out) const {
    bool waits = false;
    for (const std::string& input : node.input()) {
      waits = waits || !is_there_before(std::string_view(input).substr(input.starts_with('^')));
      out.add_input(translated(input));
    }
    if (waits) return;
    for (const std::string& signal : call_.after) out.add_input(signal);
  }

  bool is_there_before(std::string_view text) const {
    const InnerName name = parse_inner(text);
    const auto argument = arguments_.find(name.node);
    if (argument == arguments_.end()) return false;
    const auto number = static_cast<size_t>(argument->second.first + name.index);
    return number < call_.is_there_before.size() && call_.is_there_before[number];
  }

  std::string translated(std::string_view text) const {
    const bool is_control = text.starts_with('^');
    const InnerName name = parse_inner(text.substr(is_control ? 1 : 0));
    const auto argument = arguments_.find(name.node);
    if (argument != arguments_.end()) {
      if (name.index < 0 || name.index >= argument->second.length)
        refuse("'", text, "' is not one of its arguments");
      const std::string& given = call_.arguments[argument->second.first + name.index];
      return is_control ? concat("^", node_of(given)) : given;
    }
    const auto node = nodes_.find(name.node);
    if (node == nodes_.end()) refuse("it has no node for '", text, "'");
    const std::string called = concat(call_.scope, "/", name.node);
    if (is_control) return "^" + called;
    const int first = library_.first_output(*node->second, name.output);
    return Endpoint{called, first + name.index}.short_name();
  }

  // A node that uses a variable from outside goes where that is.
  std::string device_for(const NodeDef& node) const {
    const bool takes_resource =
        std::any_of(node.input().begin(), node.input().end(), [&](const std::string& input) {
          const auto argument = arguments_.find(node_of(input));
          return argument != arguments_.end() && argument->second.is_resource;
        });
    if (takes_resource || call_.caller.device().empty()) return node.device();
    if (node.device().empty()) return call_.caller.device();
    try {
      return DeviceName::parse(node.device())
          .with_defaults(DeviceName::parse(call_.caller.device()))
          .to_string();
    } catch (const Error&) {  // whoever reads the node says so
      return node.device();
    }
  }

  void rename_attrs(NodeDef& node) const {
    if (const auto found = node.mutable_attr()->find("_class");
        found != node.mutable_attr()->end()) {
      for (std::string& entry : *found->second.mutable_list()->mutable_s()) {
        constexpr std::string_view prefix = "loc:@";
        if (!entry.starts_with(prefix)) continue;
        const std::string_view name = std::string_view(entry).substr(prefix.size());
        const auto argument = arguments_.find(name);
        if (argument != arguments_.end() && argument->second.length > 0) {
          entry = concat(prefix, node_of(call_.arguments[argument->second.first]));
        } else if (nodes_.contains(name)) {
          entry = concat(prefix, call_.scope, "/", name);
        }
      }
    }
    if (node.op() != "Enter" && node.op() != "RefEnter") return;
    std::string& frame = *(*node.mutable_attr())["frame_name"].mutable_s();
    frame = concat(call_.scope, "/", frame);
  }

  struct Argument {
    int first;
    int length;
    bool is_resource;
  };

  const FunctionLibrary& library_;
  const FunctionCall& call_;
  const FunctionDef& function_;
  std::unordered_map<std::string_view, Argument> arguments_;
  std::unordered_map<std::string_view, const NodeDef*> nodes_;
};

}  // namespace

FunctionLibrary::FunctionLibrary(const tensorflow::FunctionDefLibrary& library) {
  for (const FunctionDef& function : library.function())
    functions_.emplace(function.signature().name(), &function);
  for (const auto& gradient : library.gradient())
    gradients_.emplace(gradient.function_name(), gradient.gradient_func());
}

std::string_view FunctionLibrary::gradient_of(std::string_view name) const {
  const auto found = gradients_.find(name);
  return found == gradients_.end() ? std::string_view() : found->second;
}

const FunctionDef* FunctionLibrary::find(std::string_view name) const {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : found->second;
}

int FunctionLibrary::first_output(const NodeDef& node, std::string_view name) const {
  int out = 0;
  if (const FunctionDef* function = find(node.op())) {
    for (const auto& arg : function->signature().output_arg()) {
      if (arg.name() == name) return out;
      out += length_of(node.attr(), arg.number_attr(), arg.type_list_attr());
    }
  } else if (const OpDef* op = find_op(node.op())) {
    for (const ArgDef& arg : op->schema.outputs) {
      if (arg.name == name) return out;
      out += length_of(node.attr(), arg.number_attr, arg.type_list_attr);
    }
  }
  return 0;
}

FunctionBody instantiate(const FunctionLibrary& library, const FunctionCall& call) {
  if (library.find(call.function.name()) == nullptr) {
    fail_at(call.caller.name(), Code::invalid_argument, "node '", call.caller.name(), "' (",
            call.caller.op(), ") calls the function '", call.function.name(),
            "', which is not in the graph's library");
  }
  return Body(library, call).make();
}

std::vector<int> passed_arguments(const FunctionDef& function) {
  constexpr int most_identities = 16;  // one behind the other; TensorFlow's client makes two
  std::unordered_map<std::string_view, int> arguments;
  for (const auto& arg : function.signature().input_arg())
    arguments.emplace(arg.name(), static_cast<int>(arguments.size()));
  std::unordered_map<std::string_view, std::string_view> passed;  // by name of an Identity
  for (const NodeDef& node : function.node_def()) {
    if (node.op() == "Identity" && node.input_size() == 1)
      passed.emplace(node.name(), node_of(node.input(0)));
  }
  std::vector<int> out;
  for (const auto& result : function.signature().output_arg()) {
    const auto source = function.ret().find(result.name());
    std::string_view name;
    if (source != function.ret().end()) name = node_of(source->second);
    for (int i = 0; i < most_identities; ++i) {
      const auto before = passed.find(name);
      if (before == passed.end()) break;
      name = before->second;
    }
    const auto argument = arguments.find(name);
    out.push_back(argument == arguments.end() ? -1 : argument->second);
  }
  return out;
}

}  // namespace leat
