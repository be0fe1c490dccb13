// The role of each node of a partition: an available value or state, a part of a segment, or a
// boundary node.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/kernel.h"
#include "graph/graph.h"

namespace leat {

enum class Role : uint8_t { constant, state, feed, boundary, segment };

// What the runtime does with an item of a program (program_plan.h). Copies are between host and
// device.
enum class ItemKind : uint8_t {
  segment,
  send,
  receive,
  switch_,
  merge,
  loop,
  execute,
  execute_async,
  to_device,
  to_host
};

// A copy, since a plug-in may add kernels meanwhile. All nodes of a program with this kernel share
// it.
using KernelCopy = std::shared_ptr<const Kernel>;
KernelCopy no_kernel();

struct NodeRole {
  Role role = Role::segment;
  ItemKind kind = ItemKind::segment;
  KernelCopy kernel = no_kernel();  // for this device
};

// By node id. UNIMPLEMENTED lists all nodes without a kernel in one message.
std::vector<NodeRole> find_roles(const Graph& partition, const Device& device);

// For a GPU: the CPU's kernel for a node that is for the host (host_values.h), with all inputs and
// outputs in host memory. Null if the node is not, or if there is no such kernel.
KernelCopy host_kernel(const Node& node);

// The source of a fetch. `name` is "node:index" as requested.
struct FetchedOutput {
  std::string name;
  Output source;
  const Node* node;
};

// Gives each boundary node, and each fetch, that takes the value behind a reference an Identity in
// a segment that does the read. The read runs after everything else that its reader waits for; for
// a fetch, after all writes to the variable. Adds nodes and their roles. NOT_FOUND if a fetch does
// not exist.
std::vector<FetchedOutput> make_reads_explicit(Graph& partition, std::vector<NodeRole>& roles,
                                               const std::vector<std::string>& fetches,
                                               const Device& device);

// The input is a handle on state: declared as a reference, or a resource. (A reference that flows
// into another kind of input is read there.)
bool is_handle_input(const Node& node, int input);
// The input is a handle through which the node may change the variable.
bool is_written(const Node& node, int input);
// The handle that a node's handle outputs pass on, if any.
Output passed_handle(const Node& node);
// The node only renames a handle: Identity of a resource.
bool only_passes_handle(const Node& node);
// A kernel needs the elements of this input in `prepare`.
bool is_value_input(const Node& node, int input);

}  // namespace leat
