#include "graph/functions/function_library.h"

#include <algorithm>
#include <unordered_map>

#include "core/function.h"
#include "graph/import/graph_def.h"
#include "graph/import/proto_codec.h"
#include "graph/proto/graph.pb.h"
#include "graph/signature.h"

namespace leat {
namespace {

class Writer {
 public:
  Writer(const WrittenFunction& function, const std::string& name, tensorflow::FunctionDef& out)
      : function_(function), out_(out) {
    from_graph_def(function.graph, graph_);
    out.mutable_signature()->set_name(name);
  }

  void write(tensorflow::FunctionDefLibrary& library) {
    for (int64_t i = 0; i < function_.arguments; ++i) write_argument(i);
    for (const auto& node : graph_.nodes()) {
      if (!is_argument(*node) && !node->is("_Result")) write_node(*node, library);
    }
    for (size_t i = 0; i < function_.results.size(); ++i) write_result(i);
  }

 private:
  static bool is_argument(const Node& node) { return node.is("_Feed"); }

  void write_argument(int64_t number) {
    const Node* const found = [&]() -> const Node* {
      for (const auto& node : graph_.nodes()) {
        if (is_argument(*node) && node->attr<std::string>("name") == concat("argument:", number))
          return node.get();
      }
      return nullptr;
    }();
    check(found != nullptr, "function '", function_.name, "' has no argument ", number);
    auto& argument = *out_.mutable_signature()->add_input_arg();
    argument.set_name(concat("argument_", number));
    argument.set_type(static_cast<tensorflow::DataType>(found->outputs[0].dtype));
    arguments_.emplace(found, argument.name());
  }

  void write_node(const Node& node, tensorflow::FunctionDefLibrary& library) {
    tensorflow::NodeDef& def = *out_.add_node_def();
    leat::write_node(node, /*assigned_device=*/false, def);
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i)
      def.set_input(i, inner_name(node.inputs[static_cast<size_t>(i)]));
    write_functions(node, library);
  }

  void write_result(size_t number) {
    Output value = graph_.output(function_.results[number]);
    if (value.node->is("_Result")) value = value.node->inputs[0];
    auto& result = *out_.mutable_signature()->add_output_arg();
    result.set_name(concat("result_", number));
    result.set_type(static_cast<tensorflow::DataType>(value.dtype()));
    (*out_.mutable_ret())[result.name()] = inner_name(value);
  }

  // "node:output:1", as the bodies of functions name what nodes give.
  std::string inner_name(const Output& value) const {
    const auto argument = arguments_.find(value.node);
    if (argument != arguments_.end()) return argument->second;
    for (const ArgRange& range : arg_ranges(value.node->op->schema.outputs, value.node->attrs)) {
      if (value.index < range.end)
        return concat(value.node->name, ":", range.arg->name, ":", value.index - range.begin);
    }
    fail(Code::internal, describe(*value.node), " has no output ", value.index);
  }

  const WrittenFunction& function_;
  tensorflow::FunctionDef& out_;
  Graph graph_;
  std::unordered_map<const Node*, std::string> arguments_;
};

}  // namespace

bool has_functions(const Node& node) {
  return std::any_of(node.attrs.begin(), node.attrs.end(),
                     [](const auto& attr) { return attr.second.template is<FunctionRef>(); });
}

void write_functions(const Node& node, tensorflow::FunctionDefLibrary& library) {
  for (const auto& [name, value] : node.attrs) {
    if (!value.is<FunctionRef>() || !node.attrs.contains(concat("_leat_", name))) continue;
    const WrittenFunction function = WrittenFunction::of(node.view(), name);
    if (function.captured > 0 || !function.effects.empty() || !function.handles.empty()) continue;
    Writer(function, value.get<FunctionRef>().name, *library.add_function()).write(library);
  }
}

}  // namespace leat
