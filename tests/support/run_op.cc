#include "tests/support/run_op.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "core/kernel.h"
#include "core/visit_dtype.h"
#include "graph/evaluate.h"
#include "graph/shape_inference.h"
#include "graph/signature.h"

namespace leat {
namespace {

// Waits for a copy, with a deadline.
class Completion {
 public:
  Device::Done callback() {
    return [this](const Status& status) {
      const std::lock_guard lock(mutex_);
      status_ = status;
      finished_ = true;
      changed_.notify_all();
    };
  }
  void wait() {
    std::unique_lock lock(mutex_);
    const bool in_time =
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return finished_; });
    check_internal(in_time, "a device did not finish within 60 s");
    throw_if_error(status_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool finished_ = false;
  Status status_;
};

bool is_host(const Device& device) { return device.type() == DeviceType::cpu; }

std::shared_ptr<Buffer> allocate(Device& device, size_t bytes, const RunChoices& choices) {
  return choices.allocate ? choices.allocate(device, bytes) : device.allocate(bytes);
}

Tensor to_device(const Tensor& host, Device& device, const RunChoices& choices) {
  if (is_host(device)) return host.elements() > 0 ? host.clone() : host;
  Tensor out(host.dtype(), host.shape(), allocate(device, host.bytes(), choices));
  Completion copied;
  device.copy_from_host(host.raw(), out.raw(), host.bytes(), copied.callback());
  copied.wait();
  return out;
}

Tensor to_host(const Tensor& tensor, Device& device) {
  if (is_host(device) || tensor.device() == nullptr) return tensor;
  Tensor out(tensor.dtype(), tensor.shape());
  Completion copied;
  device.copy_to_host(tensor.raw(), out.raw(), tensor.bytes(), copied.callback());
  copied.wait();
  return out;
}

bool contains(const std::vector<int>& list, int i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

// The input whose variable a ref output is: the first ref input (Assign, Apply*).
int ref_input(const Node& node) {
  for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
    if (range.arg->is_ref) return range.begin;
  }
  fail(Code::internal, "op ", node.op->name, " has a ref output and no ref input");
}

}  // namespace

Device& test_cpu(int threads) {
  struct Cpu {
    explicit Cpu(int threads)
        : pool(threads),
          device(make_cpu_device(DeviceName::parse("/job:localhost/replica:0/task:0/device:CPU:0"),
                                 pool)) {}
    ThreadPool pool;
    std::unique_ptr<Device> device;
  };
  static std::mutex mutex;
  static std::map<int, std::unique_ptr<Cpu>> cpus;
  const std::lock_guard lock(mutex);
  std::unique_ptr<Cpu>& cpu = cpus[threads];
  if (!cpu) cpu = std::make_unique<Cpu>(threads);
  return *cpu->device;
}

std::vector<Device*> test_devices() {
  static const auto gpus = make_gpu_devices(DeviceName::parse("/job:localhost/replica:0/task:0"));
  std::vector<Device*> out = {&test_cpu()};
  for (const auto& gpu : gpus) out.push_back(gpu.get());
  return out;
}

namespace {

template <class AddInput>
Node& add_call(Graph& graph, std::string_view op, const std::vector<Tensor>& inputs,
               const AttrMap& attrs, AddInput add_input) {
  const OpDef& def = op_named(op);
  // Which inputs are variables: refs and resources are never in lists, and come first.
  std::vector<Output> outputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_ref = i < def.schema.inputs.size() && def.schema.inputs[i].is_ref;
    const bool is_resource =
        i < def.schema.inputs.size() && def.schema.inputs[i].dtype == DType::resource;
    if (is_ref || is_resource) {
      outputs.push_back(
          graph
              .add({.op = is_ref ? "VariableV2" : "VarHandleOp",
                    .attrs = {{"shape", inputs[i].shape()}, {"dtype", inputs[i].dtype()}}})
              .output());
    } else {
      outputs.push_back(add_input(inputs[i]).output());
    }
  }
  // No name begins with the _ of an internal op.
  const std::string_view name = op.substr(op.starts_with('_') ? 1 : 0);
  return graph.add({.op = std::string(op),
                    .name = graph.unique_name(std::string(name)),
                    .inputs = std::move(outputs),
                    .attrs = attrs});
}

}  // namespace

Node& add_call(Graph& graph, std::string_view op, const std::vector<Tensor>& inputs,
               const AttrMap& attrs) {
  return add_call(graph, op, inputs, attrs, [&](const Tensor& value) -> Node& {
    return graph.add({.op = "Const", .attrs = {{"value", value}, {"dtype", value.dtype()}}});
  });
}

Node& add_call_of_unknown_shapes(Graph& graph, std::string_view op,
                                 const std::vector<Tensor>& inputs, const AttrMap& attrs) {
  return add_call(graph, op, inputs, attrs, [&](const Tensor& value) -> Node& {
    return graph.add(
        {.op = "Placeholder", .attrs = {{"dtype", value.dtype()}, {"shape", Shape::unknown()}}});
  });
}

bool has_kernel(const Node& node, DeviceType device) {
  return find_kernel(*node.op, node.attrs, device) != nullptr;
}

std::vector<Tensor> run_node(const Node& node, const std::vector<Tensor>& inputs, Device& device,
                             const RunChoices& choices) {
  const OpDef& op = *node.op;
  const Kernel* kernel = find_kernel(op, node.attrs, device.type());
  check(kernel != nullptr, op.name, " has no kernel on ", device_type_name(device.type()), ": ",
        describe_kernels(op));
  if (!kernel->prepare) return evaluate(node, inputs);  // runs between segments: on the CPU

  // Specs show elements only for `value_inputs`, so a kernel that reads others is detected.
  const int num_inputs = static_cast<int>(inputs.size());
  const int num_outputs = static_cast<int>(node.outputs.size());
  std::vector<TensorSpec> input_specs, output_specs;
  for (int i = 0; i < num_inputs; ++i) {
    const bool shown = op.is_value_input(i, num_inputs);
    input_specs.push_back({inputs[i].dtype(), inputs[i].shape(), shown ? &inputs[i] : nullptr});
  }
  const std::vector<Shape> shapes = infer_shapes(node.view(), op, input_specs, num_outputs);
  for (int i = 0; i < num_outputs; ++i) {
    check(shapes[i].is_complete(), "the shape of output ", i, " is ", shapes[i]);  // as the runtime
    output_specs.push_back({node.outputs[i].dtype, shapes[i], nullptr});
  }

  std::shared_ptr<void> state;
  const BoundKernel bound = kernel->prepare({.node = node.view(),
                                             .inputs = input_specs,
                                             .outputs = output_specs,
                                             .device = device,
                                             .node_state = state});

  std::vector<Tensor> in, out(num_outputs);
  std::vector<void*> in_pointers, out_pointers;
  for (int i = 0; i < num_inputs; ++i) {
    in.push_back(contains(kernel->host_inputs, i) ? inputs[i]
                                                  : to_device(inputs[i], device, choices));
    in_pointers.push_back(in.back().elements() > 0 ? in.back().raw() : nullptr);
  }
  for (int i = 0; i < num_outputs; ++i) {
    const DType dtype = output_specs[i].dtype;
    const auto of_output = [i](const auto& each) { return each.output == i; };
    const auto view = std::find_if(bound.views.begin(), bound.views.end(), of_output);
    const auto share = std::find_if(bound.may_share.begin(), bound.may_share.end(), of_output);
    int source = node.outputs[i].is_ref ? ref_input(node) : -1;
    if (source < 0 && choices.in_place && share != bound.may_share.end()) source = share->input;
    if (view != bound.views.end()) {
      out[i] = in[view->input].part(shapes[i], view->offset);
    } else if (source >= 0) {
      out[i] = dtype == DType::string ? in[source].reshaped(shapes[i])
                                      : Tensor(dtype, shapes[i], in[source].buffer());
    } else if (is_host(device) || contains(kernel->host_outputs, i)) {
      out[i] = Tensor(dtype, shapes[i]);
      if (dtype != DType::string && out[i].elements() > 0)
        std::memset(out[i].raw(), 0xa5, out[i].bytes());
    } else {
      out[i] = Tensor(dtype, shapes[i],
                      allocate(device, shapes[i].elements() * dtype_size(dtype), choices));
    }
    out_pointers.push_back(out[i].elements() > 0 ? out[i].raw() : nullptr);
  }
  std::shared_ptr<Buffer> workspace;
  if (bound.workspace_bytes > 0 && !is_host(device))
    workspace = allocate(device, bound.workspace_bytes, choices);
  constexpr uintptr_t unit = 256;  // where workspaces start, whatever the tensors do
  const bool is_aligned =
      workspace != nullptr && reinterpret_cast<uintptr_t>(workspace->data()) % unit == 0;
  if (bound.workspace_bytes > 0 && !is_aligned) workspace = device.allocate(bound.workspace_bytes);
  if (bound.function != nullptr) {
    bound.function(bound.bound.get(), {.inputs = in_pointers.data(),
                                       .outputs = out_pointers.data(),
                                       .workspace = workspace ? workspace->data() : nullptr,
                                       .stream = &device.stream()});
  }
  // For an op without outputs: the variable that it has updated.
  const bool updates = num_outputs == 0 && num_inputs > 0 && node.inputs[0].is_handle();
  if (updates && !op.only_reads_state) out.push_back(in[0]);
  for (Tensor& tensor : out) tensor = to_host(tensor, device);
  return out;
}

std::vector<Tensor> run_op(std::string_view op, const std::vector<Tensor>& inputs,
                           const AttrMap& attrs, Device& device, const RunChoices& choices) {
  Graph graph;
  return run_node(add_call(graph, op, inputs, attrs), inputs, device, choices);
}

std::vector<Tensor> evaluate(const std::vector<Output>& fetches,
                             const std::map<const Node*, Tensor>& feeds) {
  if (fetches.empty()) return {};
  std::map<const Node*, std::vector<Tensor>> values;
  for (const auto& [node, value] : feeds) values[node] = {value};
  const auto value_of = [&](auto& self, const Output& output) -> const Tensor& {
    const auto known = values.find(output.node);
    if (known != values.end()) return known->second.at(output.index);
    std::vector<Tensor> inputs;
    for (const Output& input : output.node->inputs) inputs.push_back(self(self, input));
    return values.emplace(output.node, evaluate(*output.node, inputs))
        .first->second.at(output.index);
  };
  std::vector<Tensor> out;
  for (const Output& fetch : fetches) out.push_back(value_of(value_of, fetch));
  return out;
}

std::vector<double> to_doubles(const Tensor& tensor) {
  std::vector<double> out;
  const bool is_number =
      tensor.dtype() != DType::string && visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
        if constexpr (is_complex_type<T>) {  // both parts
          for (const T& value : tensor.span<T>()) {
            out.push_back(value.real());
            out.push_back(value.imag());
          }
        } else if constexpr (!std::is_same_v<T, std::string>) {
          for (const T& value : tensor.span<T>()) out.push_back(static_cast<double>(value));
        }
      });
  check(is_number, "not numbers: ", tensor);
  return out;
}

Tensor from_doubles(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor out(dtype, shape);
  check(out.elements() == static_cast<int64_t>(values.size()), values.size(), " values for ",
        shape);
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
      std::transform(values.begin(), values.end(), out.data<T>(),
                     [](double v) { return T(static_cast<float>(v)); });
    } else if constexpr (std::is_integral_v<T>) {  // large values wrap
      std::transform(values.begin(), values.end(), out.data<T>(),
                     [](double v) { return static_cast<T>(static_cast<int64_t>(v)); });
    } else if constexpr (!std::is_same_v<T, std::string>) {
      std::transform(values.begin(), values.end(), out.data<T>(),
                     [](double v) { return static_cast<T>(v); });
    }
  });
  return out;
}

}  // namespace leat
