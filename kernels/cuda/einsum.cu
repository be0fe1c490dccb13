// Einsum on the GPU: copies and one batch of products (kernels/linear_algebra/einsum_plan.h).
#include <memory>
#include <utility>
#include <vector>

#include "core/memory/memory_owner.h"
#include "graph/op_def.h"
#include "graph/passes/mixed_precision/mixed_precision.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/zeros.cuh"
#include "kernels/linear_algebra/einsum_plan.h"
#include "kernels/moves/cuda_moves.cuh"
#include "kernels/types.h"

namespace leat {
namespace {

// One 1 in the GPU's memory.
Tensor one_there(Device& device, DType dtype) {
  const MemoryOwner owner(MemoryUse::constant);
  const Tensor host = Tensor::ones({}, dtype);
  Tensor out(dtype, {}, device.allocate(host.bytes()));
  device.copy_from_host(host.raw(), out.raw(), host.bytes(), [host, out](const Status&) {});
  return out;
}

BoundKernel prepare(const KernelRequest& request) {
  EinsumPlan plan = plan_einsum(request);
  const TensorSpec& out = request.outputs[0];
  const DType dtype = out.dtype;
  if (out.shape.elements() == 0) return {};
  if (plan.k == 0) return cuda::bind_zeros(out);
  const bool is_single = plan.operands.size() == 1;
  const int64_t m = plan.m, n = plan.n, k = plan.k;
  const std::shared_ptr<const Product> product =
      make_product(request.device, {.dtype = dtype,
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .takes_tf32 = request.node.has(tensor_float_32_attr),
                                    .batch = plan.batches,
                                    .stride_a = plan.batches > 1 ? m * k : 0,
                                    .stride_b = plan.batches > 1 && !is_single ? k * n : 0,
                                    .stride_out = plan.batches > 1 ? m * n : 0});
  const size_t size = dtype_size(dtype);
  constexpr size_t unit = 256;
  size_t workspace = (product->workspace_bytes() + unit - 1) / unit * unit;
  const auto place = [&](size_t bytes) {
    return std::exchange(workspace, workspace + (bytes + unit - 1) / unit * unit);
  };
  std::vector<size_t> packed;
  for (const EinsumPlan::Packing& operand : plan.operands)
    packed.push_back(place(operand.is_identity ? 0 : operand.bytes));
  if (is_single) packed.push_back(place(static_cast<size_t>(k) * size));
  const size_t unpacked = place(plan.result.is_identity ? 0 : plan.result.bytes);
  const Tensor one = is_single ? one_there(request.device, dtype) : Tensor();
  return BoundKernel::of([=, plan = std::move(plan),
                          elements = out.shape.elements()](const Arguments& a) {
           char* const space = static_cast<char*>(a.workspace);
           const void* sides[2] = {space + packed[0], space + packed[1]};
           for (size_t i = 0; i < plan.operands.size(); ++i) {
             if (plan.operands[i].is_identity)
               sides[i] = a.inputs[i];
             else
               cuda::enqueue_copy(plan.operands[i].copy, a, size, a.inputs[i], space + packed[i]);
           }
           if (is_single) cuda::enqueue_fill(a, size, one.raw(), k, space + packed[1]);
           void* const to = plan.result.is_identity ? a.outputs[0] : space + unpacked;
           product->run({sides[0], sides[1], to}, space, *a.stream);
           if (plan.result.is_identity) return;
           if (plan.clears_output) cuda::enqueue_fill(a, size, nullptr, elements, a.outputs[0]);
           cuda::enqueue_copy(plan.result.copy, a, size, to, a.outputs[0]);
         })
      .with_workspace(workspace);
}

const OpKernels einsum{
    "Einsum",
    {{.device = DeviceType::gpu, .types = {{"T", FloatTypes::list()}}, .prepare = prepare}}};

}  // namespace
}  // namespace leat
