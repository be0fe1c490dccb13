// MatMul, BatchMatMul and BatchMatMulV2 on the GPU: shapes here, the products by whoever makes them
// (product.h).
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "graph/op_def.h"
#include "graph/passes/mixed_precision/mixed_precision.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/zeros.cuh"
#include "kernels/linear_algebra/matrix_batch.h"
#include "kernels/types.h"

namespace leat {
namespace {

BoundKernel prepare(const KernelRequest& request) {
  const Shape &a = request.inputs[0].shape, &out = request.outputs[0].shape;
  if (out.elements() == 0) return {};
  if (a.elements() == 0) return cuda::bind_zeros(request.outputs[0]);
  const bool transpose_a = request.attr<bool>("transpose_a");
  const std::shared_ptr<const Product> product =
      make_product(request.device, {.dtype = request.inputs[0].dtype,
                                    .m = out[0],
                                    .n = out[1],
                                    .k = a[transpose_a ? 0 : 1],
                                    .transpose_a = transpose_a,
                                    .transpose_b = request.attr<bool>("transpose_b"),
                                    .takes_tf32 = request.node.has(tensor_float_32_attr)});
  return BoundKernel::of([product](const Arguments& arguments) {
           product->run({arguments.inputs[0], arguments.inputs[1], arguments.outputs[0]},
                        arguments.workspace, *arguments.stream);
         })
      .with_workspace(product->workspace_bytes());
}

// Products whose operands are equally far apart: one call.
struct Run {
  std::shared_ptr<const Product> product;
  int64_t a, b, out;  // bytes to the first matrices
};

// All in one if leading axes are equal or one operand has none; else as many as the broadcast
// needs.
std::vector<Run> plan_runs(Device& device, const ProductShape& one, const Tensor& of_a,
                           const Tensor& of_b) {
  const int64_t *a = of_a.data<int64_t>(), *b = of_b.data<int64_t>(), count = of_a.elements();
  const auto size = static_cast<int64_t>(dtype_size(one.dtype));
  std::vector<std::pair<ProductShape, std::shared_ptr<const Product>>> made;
  std::vector<Run> runs;
  for (int64_t first = 0, end; first < count; first = end) {
    end = first + 1;
    const int64_t step_a = end < count ? a[end] - a[first] : 0,
                  step_b = end < count ? b[end] - b[first] : 0;
    const bool is_forward = step_a >= 0 && step_b >= 0;
    while (is_forward && end < count && a[end] - a[end - 1] == step_a &&
           b[end] - b[end - 1] == step_b) {
      ++end;
    }
    ProductShape shape = one;
    shape.batch = end - first;
    if (shape.batch > 1) {
      shape.stride_a = step_a * one.m * one.k;
      shape.stride_b = step_b * one.k * one.n;
      shape.stride_out = one.m * one.n;
    }
    std::shared_ptr<const Product> product;
    for (const auto& [known, it] : made) {
      if (known == shape) product = it;
    }
    if (product == nullptr) {
      product = make_product(device, shape);
      made.emplace_back(shape, product);
    }
    runs.push_back({product, a[first] * one.m * one.k * size, b[first] * one.k * one.n * size,
                    first * one.m * one.n * size});
  }
  return runs;
}

BoundKernel prepare_batch(const KernelRequest& request) {
  const Shape &x = request.inputs[0].shape, &y = request.inputs[1].shape,
              &out = request.outputs[0].shape;
  if (out.elements() == 0) return {};
  const bool transpose_x = request.attr<bool>("adj_x");
  const ProductShape one{.dtype = request.inputs[0].dtype,
                         .m = out[out.rank() - 2],
                         .n = out[out.rank() - 1],
                         .k = x[x.rank() - (transpose_x ? 2 : 1)],
                         .transpose_a = transpose_x,
                         .transpose_b = request.attr<bool>("adj_y"),
                         .takes_tf32 = request.node.has(tensor_float_32_attr)};
  if (one.k == 0) return cuda::bind_zeros(request.outputs[0]);
  const Shape batch = batch_of(out);
  const std::vector<Run> runs = plan_runs(request.device, one, matrices_of(batch_of(x), batch),
                                          matrices_of(batch_of(y), batch));
  size_t workspace = 0;
  for (const Run& run : runs) workspace = std::max(workspace, run.product->workspace_bytes());
  return BoundKernel::of([runs](const Arguments& arguments) {
           for (const Run& run : runs) {
             run.product->run({arguments.input<char>(0) + run.a, arguments.input<char>(1) + run.b,
                               arguments.output<char>() + run.out},
                              arguments.workspace, *arguments.stream);
           }
         })
      .with_workspace(workspace);
}

std::vector<Kernel> kernels(Prepare prepare) {
  Kernel kernel;
  kernel.device = DeviceType::gpu;
  kernel.types = {{"T", FloatTypes::list()}};
  kernel.prepare = std::move(prepare);
  return {kernel};
}

const OpKernels matmul{"MatMul", kernels(prepare)};
const OpKernels batch_matmul{"BatchMatMul", kernels(prepare_batch)};
const OpKernels batch_matmul_v2{"BatchMatMulV2", kernels(prepare_batch)};

// Of one type for all three.
std::vector<Kernel> kernels_v3() {
  std::vector<Kernel> out;
  for (const DType dtype : FloatTypes::list()) {
    out.push_back({.device = DeviceType::gpu,
                   .types = {{"Ta", {dtype}}, {"Tb", {dtype}}, {"Tout", {dtype}}},
                   .prepare = prepare_batch});
  }
  return out;
}

const OpKernels batch_matmul_v3{"BatchMatMulV3", kernels_v3()};

}  // namespace
}  // namespace leat
