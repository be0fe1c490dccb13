// Writing GraphDefs. Reading is import_graph_def.cc.
#include "graph/import/graph_def.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <limits>

#include "graph/endpoint.h"
#include "graph/functions/function_library.h"
#include "graph/import/graph_versions.h"
#include "graph/import/proto_codec.h"
#include "graph/loops/loops.h"
#include "graph/proto/graph.pb.h"

namespace leat {
namespace {

constexpr size_t largest_message = std::numeric_limits<int>::max();

void write_inputs(const Node& node, tensorflow::NodeDef& def) {
  for (const Output& input : node.inputs) def.add_input(Endpoint::of(input).short_name());
  for (const Node* control : node.control_inputs) def.add_input("^" + control->name);
}

tensorflow::GraphDef write_graph(const Graph& graph, bool assigned_devices) {
  tensorflow::GraphDef out;
  for (const auto& node : graph.nodes()) {
    write_node(*node, assigned_devices, *out.add_node());
    if (!assigned_devices && has_functions(*node)) write_functions(*node, *out.mutable_library());
  }
  out.mutable_versions()->set_producer(producer_of(graph, 0));
  return out;
}

[[noreturn]] void fail_too_large(const Graph& graph, size_t bytes) {
  const Node* largest = nullptr;
  for (const auto& node : graph.nodes()) {
    if (!node->is("Const")) continue;
    const size_t size = node->attr<Tensor>("value").bytes();
    if (largest == nullptr || size > largest->attr<Tensor>("value").bytes()) largest = node.get();
  }
  fail(Code::resource_exhausted, "the graph has ", bytes, " bytes as a GraphDef, whose limit is ",
       largest_message, "; its largest constant is '", largest == nullptr ? "" : largest->name,
       "' with ", largest == nullptr ? 0 : largest->attr<Tensor>("value").bytes(),
       " bytes: keep large values in variables and feed them");
}

// Node by node: a message of all of them would need ten times the memory of the bytes. Messages
// behind each other are one with the nodes of all.
std::string to_bytes(const Graph& graph, bool assigned_devices, size_t first = 0) {
  std::string out;
  size_t total = 0;
  {
    google::protobuf::io::StringOutputStream stream(&out);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // attributes by name
    tensorflow::GraphDef part;
    const auto write = [&] {
      total += part.ByteSizeLong();
      if (total <= largest_message) part.SerializeWithCachedSizes(&coded);
      part.Clear();
    };
    for (size_t i = first; i < graph.size(); ++i) {
      const Node& node = *graph.nodes()[i];
      write_node(node, assigned_devices, *part.add_node());
      if (!assigned_devices && has_functions(node)) write_functions(node, *part.mutable_library());
      write();
    }
    part.mutable_versions()->set_producer(producer_of(graph, first));
    write();
  }
  if (total > largest_message) fail_too_large(graph, total);
  return out;
}

}  // namespace

void write_node(const Node& node, bool assigned_device, tensorflow::NodeDef& def) {
  def.set_name(node.name);
  def.set_op(node.op->name);
  def.set_device((assigned_device ? node.assigned_device : node.requested_device)->to_string());
  write_inputs(node, def);
  for (const auto& [name, value] : node.attrs) {
    if (name == back_edge_attr) {
      def.set_input(static_cast<int>(node.inputs.size()) - 1, value.get<std::string>());
    } else {
      write_attr(value, (*def.mutable_attr())[name]);
    }
  }
}

std::string to_graph_def(const Graph& graph, bool assigned_devices) {
  return to_bytes(graph, assigned_devices);
}

std::string to_graph_def_from(const Graph& graph, size_t first_node) {
  return to_bytes(graph, /*assigned_devices=*/false, first_node);
}

std::string to_graph_def_text(const Graph& graph, bool assigned_devices) {
  std::string out;
  google::protobuf::TextFormat::PrintToString(write_graph(graph, assigned_devices), &out);
  return out;
}

}  // namespace leat
