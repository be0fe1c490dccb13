// Runs single ops and small graphs kernel by kernel, without a session: tests the kernel contract
// itself (core/kernel.h), on any device, with outputs in place of inputs where a kernel allows
// that.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/execution/thread_pool.h"
#include "graph/graph.h"

namespace leat {

// The CPU, with `threads` threads. Created on first use, one per number.
Device& test_cpu(int threads = 1);
// All devices that can run kernels: the CPU, then the GPUs of this machine.
std::vector<Device*> test_devices();

// A node of `op` whose inputs are constants (variables, where the op requires a ref) with these
// values.
Node& add_call(Graph& graph, std::string_view op, const std::vector<Tensor>& inputs,
               const AttrMap& attrs = {});
// The same, but neither value nor shape of the inputs is known before the run.
Node& add_call_of_unknown_shapes(Graph& graph, std::string_view op,
                                 const std::vector<Tensor>& inputs, const AttrMap& attrs = {});

struct RunChoices {
  bool in_place = false;  // every `may_share` of the kernel is taken
  // Memory of a device that is not the host; by default device.allocate(bytes).
  std::function<std::shared_ptr<Buffer>(Device& device, size_t bytes)> allocate = {};
};
// Runs a node with these inputs; returns all outputs as host tensors. For a ref output, the
// variable after the run.
std::vector<Tensor> run_node(const Node& node, const std::vector<Tensor>& inputs, Device& device,
                             const RunChoices& choices = {});
// add_call() and run_node() in one.
std::vector<Tensor> run_op(std::string_view op, const std::vector<Tensor>& inputs,
                           const AttrMap& attrs = {}, Device& device = test_cpu(),
                           const RunChoices& choices = {});

// Whether run_node() can run it there: it has a kernel for the node's types.
bool has_kernel(const Node& node, DeviceType device);

// Values of outputs of a graph; `feeds` are keyed by node. Runs on the CPU.
std::vector<Tensor> evaluate(const std::vector<Output>& fetches,
                             const std::map<const Node*, Tensor>& feeds = {});

// Elements as double, whatever the dtype; INVALID_ARGUMENT for strings.
std::vector<double> to_doubles(const Tensor& tensor);
// The inverse. Converts values like static_cast.
Tensor from_doubles(DType dtype, const Shape& shape, const std::vector<double>& values);

}  // namespace leat
