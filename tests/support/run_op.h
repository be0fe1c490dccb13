// Runs single ops and small graphs kernel by kernel, without a session: what is under test is the
// kernel contract itself (core/kernel.h), on any device, with the output in the input's place where
// a kernel allows that.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/thread_pool.h"
#include "graph/graph.h"

namespace leat {

// The CPU, with `threads` threads. Made on first use, one per number.
Device& test_cpu(int threads = 1);
// All devices that can run kernels: the CPU, then the GPUs of this machine.
std::vector<Device*> test_devices();

// A node of `op` whose inputs are constants (variables, where the op wants a ref) with these
// values.
Node& add_call(Graph& graph, std::string_view op, const std::vector<Tensor>& inputs,
               const AttrMap& attrs = {});
// The same, but nothing is known of the inputs before the run: no value, no shape.
Node& add_call_of_unknown_shapes(Graph& graph, std::string_view op,
                                 const std::vector<Tensor>& inputs, const AttrMap& attrs = {});

struct RunChoices {
  bool in_place = false;  // every `may_share` of the kernel is taken
};
// The outputs of a node for these inputs, all as host tensors. A ref output is the variable after
// the run.
std::vector<Tensor> run_node(const Node& node, const std::vector<Tensor>& inputs, Device& device,
                             const RunChoices& choices = {});
// Both at once.
std::vector<Tensor> run_op(std::string_view op, const std::vector<Tensor>& inputs,
                           const AttrMap& attrs = {}, Device& device = test_cpu());

// Whether run_node() can run it there: it has a kernel for its types.
bool has_kernel(const Node& node, DeviceType device);

// Values of outputs of a graph; `feeds` by node. Runs on the CPU.
std::vector<Tensor> evaluate(const std::vector<Output>& fetches,
                             const std::map<const Node*, Tensor>& feeds = {});

// Elements as double, whatever the dtype; strings are not numbers (INVALID_ARGUMENT).
std::vector<double> to_doubles(const Tensor& tensor);
// The inverse. Values are converted as static_cast does.
Tensor from_doubles(DType dtype, const Shape& shape, const std::vector<double>& values);

}  // namespace leat
