// TensorFlow's GraphDef, binary and text: the contract with every other tool.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace leat {

// `assigned_devices`: write the device after placement instead of the requested one. The same graph
// gives the same bytes. RESOURCE_EXHAUSTED, naming the largest constant, for more than the 2 GiB of
// a protobuf message.
std::string to_graph_def(const Graph& graph, bool assigned_devices = false);  // binary
// Only the nodes from that one on, in the order they were added: a session sends them when its
// graph has grown.
std::string to_graph_def_from(const Graph& graph, size_t first_node);
std::string to_graph_def_text(const Graph& graph, bool assigned_devices = false);  // .pbtxt

struct ImportOptions {
  bool allow_internal = true;  // names and ops that start with '_': from a master, never a client
};

// Adds the nodes of a GraphDef to `graph` (empty, or the session's so far: ExtendSession). Nodes
// may come in any order.
//
// Returns warnings for the log, a line each: attributes that the op does not know (dropped; those
// starting with _ are kept), and nodes that have no kernel or whose inputs do not fit. Such a node
// fails only the steps that need it.
//
// Throws with *all* problems in one message, and leaves the graph as it was: NOT_FOUND "Op type not
// registered 'X' …" if ops are unknown (each with one node), else INVALID_ARGUMENT: bad names,
// missing inputs, attributes that are missing or of the wrong kind, cycles. The graph's versions
// are checked first (graph_versions.h): INVALID_ARGUMENT, or UNIMPLEMENTED for a removed op.
// Functions of the library are inlined where they are called (functions.h).
std::vector<std::string> from_graph_def(std::string_view bytes, Graph& graph,
                                        const ImportOptions& options = {});
std::vector<std::string> from_graph_def_text(std::string_view text, Graph& graph,
                                             const ImportOptions& options = {});

// A node as it is written, without any lookup: for tools that show graphs, also with unknown ops.
struct WrittenNode {
  std::string name, op, device;
  std::vector<std::string> inputs;  // "node", "node:1", "^node"
  AttrMap attrs;                    // without tensors and functions
  // dtype and shape of tensor attributes; their elements are not read
  std::map<std::string, OutputSpec> tensors;
};
// Reads binary or text. Dtypes and shapes that Leat does not have become `invalid` and unknown.
// INVALID_ARGUMENT if it is neither, with `origin` (a path) and, for text, the line.
std::vector<WrittenNode> read_graph_def(std::string_view bytes, std::string_view origin);

// TensorProto of a tensor, and back: for feeds and fetches. Parsing never allocates memory for
// elements that are claimed but missing.
std::string to_tensor_proto(const Tensor& tensor);
Tensor from_tensor_proto(std::string_view bytes);
// The same, with strings packed into tensor_content too, as SerializeSparse does.
std::string to_tensor_content_proto(const Tensor& tensor);

}  // namespace leat
