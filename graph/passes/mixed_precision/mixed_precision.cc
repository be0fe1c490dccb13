// mixed_precision: products and convolutions, and what stands between them, compute in 16 bits.
// A value is rounded where it is made, so that fewer bytes travel to other devices; it becomes
// float32 again where it is used.
#include "graph/passes/mixed_precision/mixed_precision.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "graph/endpoint.h"
#include "graph/import/graph_def.h"
#include "graph/loops/loops.h"
#include "graph/passes/device_kernels.h"
#include "graph/passes/mixed_precision/sixteen_bits.h"
#include "graph/rebuild.h"

namespace leat {
namespace {

template <class T>
Tensor rounded(const Tensor& value) {
  Tensor out(dtype_of<T>, value.shape());
  std::copy_n(value.data<float>(), value.elements(), out.data<T>());
  return out;
}

Tensor in_16_bits(const Tensor& value, DType low) {
  return low == bf16 ? rounded<bfloat16>(value) : rounded<half>(value);
}

// The new graph: low nodes change their type, and casts stand where the precision changes.
class Conversion {
 public:
  Conversion(Graph& graph, const KeptNames& kept, const std::vector<Precision>& precisions,
             DType low)
      : graph_(graph), kept_(kept), precisions_(precisions), low_(low), rebuild_(graph) {}

  void run() {
    for (const auto& node : graph_.nodes()) {
      if (precisions_[node->id] == Precision::low || reads_low_shapes(*node)) {
        add_low(*node);
      } else {
        rebuild_.copy(*node, inputs_of(*node, {}));
      }
    }
    graph_ = std::move(rebuild_).finish();
  }

 private:
  bool reads_low_shapes(const Node& node) const {
    if (precision_rule(node) != PrecisionRule::shape || node.attr<DType>("T") != f32) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Output& input) {
      return precision_of(input, precisions_) == Precision::low;
    });
  }

  void add_low(const Node& old) {
    const std::vector<bool> is_low_result = typed_outputs(old);
    const bool is_endpoint = kept_.endpoints.contains(old.name) && is_low_result[0];
    Node changed = old;
    if (is_endpoint) changed.name = free_name(concat(old.name, "/", dtype_name(low_)));
    changed.attrs.insert_or_assign("T", low_);
    std::vector<OutputSpec>& outputs = changed.outputs.write();
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (is_low_result[o]) outputs[o].dtype = low_;
    }
    Node& node = rebuild_.graph().copy(changed, inputs_of(old, typed_inputs(old)),
                                       rebuild_.control_inputs_of(old));
    std::vector<Output> values;
    for (int o = 0; o < node.num_outputs(); ++o) values.push_back(node.output(o));
    std::vector<Node*> signals = {&node};
    // Whoever asks for the endpoint gets float32.
    if (is_endpoint) signals.push_back(cast(node.output(), f32, old.name, node, {}).node);
    rebuild_.replace(old, std::move(values), std::move(signals));
  }

  // `is_low` by input; empty: the node computes in the dtypes of the graph.
  std::vector<Output> inputs_of(const Node& old, const std::vector<bool>& is_low) {
    std::vector<Output> out;
    for (size_t i = 0; i < old.inputs.size(); ++i) {
      const Output& input = old.inputs[i];
      out.push_back(value_for(old, input, !is_low.empty() && is_low[i] ? low_ : input.dtype()));
    }
    return out;
  }

  // The value of `input` for its user, in this dtype.
  Output value_for(const Node& user, const Output& input, DType dtype) {
    const Output value = rebuild_.map(input);
    if (value.dtype() == dtype) return value;
    // A reference is read when its user may run.
    if (value.is_ref())
      return cast(value, dtype, cast_name(value, dtype), *value.node,
                  rebuild_.control_inputs_of(user));
    const Node& beside = dtype == f32 ? user : *value.node;
    Output& known =
        casts_[{input.node->id, input.index, dtype, beside.assigned_device->to_string()}];
    if (known) return known;
    if (value.node->is("Const")) return known = rounded_constant(*value.node);
    return known = cast(value, dtype, cast_name(value, dtype), beside, {});
  }

  // Runs where `beside` does.
  Output cast(Output value, DType dtype, std::string name, const Node& beside,
              std::vector<Node*> control_inputs) {
    return insert({.op = "Cast",
                   .name = std::move(name),
                   .inputs = {value},
                   .attrs = {{"DstT", dtype}},
                   .control_inputs = std::move(control_inputs),
                   .location = value.node->location},
                  value.shape(), beside);
  }

  Output rounded_constant(const Node& constant) {
    return insert(
        {.op = "Const",
         .name = free_name(concat(constant.name, "/", dtype_name(low_))),
         .attrs = {{"dtype", low_}, {"value", in_16_bits(constant.attr<Tensor>("value"), low_)}},
         .control_inputs = constant.control_inputs,
         .location = constant.location},
        constant.outputs[0].shape, constant);
  }

  Output insert(NodeSpec spec, const Shape& shape, const Node& beside) {
    Node& node = rebuild_.graph().insert(std::move(spec), beside.assigned_device);
    node.requested_device = beside.requested_device;
    node.placement_reason = beside.placement_reason;
    node.outputs.write()[0].shape = shape;
    return node.output();
  }

  std::string cast_name(const Output& value, DType dtype) const {
    return free_name(value.index == 0
                         ? concat(value.node->name, "/", dtype_name(dtype))
                         : concat(value.node->name, "/", dtype_name(dtype), "_of_", value.index));
  }

  std::string free_name(const std::string& wanted) const {
    std::string out = wanted;
    for (int i = 1; graph_.find(out) != nullptr || rebuild_.graph().find(out) != nullptr; ++i)
      out = concat(wanted, "_", i);
    return out;
  }

  Graph& graph_;
  const KeptNames& kept_;
  const std::vector<Precision>& precisions_;
  const DType low_;
  Rebuild rebuild_;
  // By old node and output, dtype, and device.
  std::map<std::tuple<int, int, DType, std::string>, Output> casts_;
};

class MixedPrecisionPass {
 public:
  MixedPrecisionPass(MixedPrecision format, const std::vector<DeviceSpec>& devices)
      : format_(format), low_(format == MixedPrecision::bfloat16 ? bf16 : f16) {
    for (const DeviceSpec& device : devices) devices_[device.name.to_string()] = &device;
  }

  bool run(Graph& graph, const StepSignature& signature) {
    bool has_changed_loops = false;
    const bool has_changed = convert(
        graph, signature, {}, [&](const Node& node) { return node.assigned_device; },
        has_changed_loops);
    // Weights that a loop multiplies by are rounded once, before it.
    if (has_changed_loops) hoist_loop_invariants(graph);
    return has_changed || has_changed_loops;
  }

 private:
  using DeviceOf = std::function<Shared<DeviceName>(const Node&)>;

  bool convert(Graph& graph, const StepSignature& signature, std::vector<Precision> captured,
               const DeviceOf& device_of, bool& has_changed_loops) {
    const KeptNames kept(graph, signature);
    const std::vector<Precision> precisions = find_precisions(
        graph, kept,
        {.low = low_,
         .has_kernel = [&](const Node& node) { return has_kernel(node, *device_of(node)); },
         .captured = std::move(captured)});
    for (const auto& node : graph.nodes()) {
      if (!node->is("_Loop")) continue;
      const Shared<DeviceName> device = device_of(*node);
      if (convert_loop(*node, precisions, [&](const Node&) { return device; }))
        has_changed_loops = true;
    }
    const bool has_low =
        std::find(precisions.begin(), precisions.end(), Precision::low) != precisions.end();
    if (has_low) Conversion(graph, kept, precisions, low_).run();
    return has_low;
  }

  // The condition counts; the body has the products.
  bool convert_loop(Node& loop, const std::vector<Precision>& precisions,
                    const DeviceOf& device_of) {
    LoopParts parts(loop);
    const auto first = static_cast<size_t>(loop.num_outputs());
    std::vector<Precision> captured;
    for (size_t i = first; i < loop.inputs.size(); ++i) {
      const bool is_exact = precision_of(loop.inputs[i], precisions) == Precision::exact;
      captured.push_back(is_exact ? Precision::exact : Precision::free);
    }
    bool has_changed_inner = false;
    const bool has_changed = convert(parts.body, {.fetches = parts.next}, std::move(captured),
                                     device_of, has_changed_inner);
    if (has_changed_inner) hoist_loop_invariants(parts.body);
    if (!has_changed && !has_changed_inner) return false;
    loop.attrs.insert_or_assign("body", to_graph_def(parts.body));
    return true;
  }

  bool has_kernel(const Node& node, const DeviceName& device) {
    const DeviceType type = device.type ? device_type_from_name(*device.type) : DeviceType::cpu;
    if (format_ == MixedPrecision::float16_on_gpus && type != DeviceType::gpu) return false;
    Node changed = node;
    changed.attrs.insert_or_assign("T", low_);
    const auto known = devices_.find(device.to_string());
    const DeviceSpec own{.name = device, .type = type};
    return leat::has_kernel(known != devices_.end() ? *known->second : own, changed);
  }

  const MixedPrecision format_;
  const DType low_;
  std::map<std::string, const DeviceSpec*> devices_;
};

// Products and convolutions of float32 on GPUs get the attribute.
class TensorFloat32 {
 public:
  bool run(Graph& graph, const DeviceName& device) {
    bool has_changed = false;
    for (const auto& node : graph.nodes()) {
      const DeviceName& own = node->assigned_device->type ? *node->assigned_device : device;
      if (own.type != "GPU") continue;
      if (node->is("_Loop")) {
        LoopParts parts(*node);
        if (!run(parts.body, own)) continue;
        node->attrs.insert_or_assign("body", to_graph_def(parts.body));
      } else if (multiplies(*node) && node->outputs[0].dtype == f32) {
        node->attrs.insert_or_assign(std::string(tensor_float_32_attr), true);
      } else {
        continue;
      }
      has_changed = true;
    }
    return has_changed;
  }

 private:
  static bool multiplies(const Node& node) {
    const std::string_view op = node.op->name;
    return op == "MatMul" || op == "Einsum" || op.starts_with("BatchMatMul") ||
           op.starts_with("Conv2D") || op.starts_with("Conv3D") ||
           op.starts_with("DepthwiseConv2dNative") || op.starts_with("LstmLayer") ||
           op.starts_with("GruLayer");
  }
};

}  // namespace

MixedPrecision mixed_precision_from_text(std::string_view text) {
  if (text == "none") return MixedPrecision::nothing;
  if (text == "bf16") return MixedPrecision::bfloat16;
  if (text == "f16") return MixedPrecision::float16;
  if (text == "gpu_f16") return MixedPrecision::float16_on_gpus;
  if (text == "tf32") return MixedPrecision::tensor_float_32;
  fail(
      Code::invalid_argument, "mixed_precision = '", text,
      "': it is none, bf16, f16, gpu_f16 (float16 on GPUs alone) or tf32 (TensorFloat-32 on GPUs)");
}

bool mixed_precision(Graph& graph, const StepSignature& signature, MixedPrecision format,
                     const std::vector<DeviceSpec>& devices) {
  if (format == MixedPrecision::nothing) return false;
  if (format == MixedPrecision::tensor_float_32) return TensorFloat32().run(graph, {});
  return MixedPrecisionPass(format, devices).run(graph, signature);
}

}  // namespace leat
