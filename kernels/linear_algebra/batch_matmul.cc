// BatchMatMul, V2 and V3: a product of matrices for every index of the leading axes.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/broadcast_gradient.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/linear_algebra/matmul.h"
#include "kernels/linear_algebra/matrix_batch.h"
#include "kernels/one_thread.h"

namespace leat {
namespace {

BoundKernel prepare(const KernelRequest& request) {
  const Shape &x = request.inputs[0].shape, &y = request.inputs[1].shape,
              &out = request.outputs[0].shape;
  const bool tx = request.attr<bool>("adj_x"), ty = request.attr<bool>("adj_y");
  const int64_t m = out[out.rank() - 2], n = out[out.rank() - 1], k = x[x.rank() - (tx ? 2 : 1)];
  BoundKernel one = bind_matmul(request.inputs[0].dtype, {m, n, k, tx, ty, true});
  if (one.function == nullptr) return {};
  const Shape batch = batch_of(out);
  const Tensor of_x = matrices_of(batch_of(x), batch), of_y = matrices_of(batch_of(y), batch);
  const int64_t size = static_cast<int64_t>(dtype_size(request.inputs[0].dtype));
  const int64_t work = 2 * m * n * std::max<int64_t>(1, k);
  // Then matrices share a chunk, each computed by one thread.
  const bool is_small = one.workspace_bytes == 0 && work < matmul_flops_per_chunk;
  const size_t workspace = one.workspace_bytes;
  BoundKernel kernel = BoundKernel::of([=, one = std::move(one)](const Arguments& a) {
    const int64_t *numbers_of_x = of_x.data<int64_t>(), *numbers_of_y = of_y.data<int64_t>();
    const auto multiply = [&](int64_t b, Stream& stream) {
      void* inputs[] = {a.ref<char>(0) + numbers_of_x[b] * m * k * size,
                        a.ref<char>(1) + numbers_of_y[b] * k * n * size};
      void* outputs[] = {a.output<char>() + b * m * n * size};
      one.function(one.bound.get(), {inputs, outputs, a.workspace, &stream});
    };
    const int64_t count = of_x.elements();
    if (!is_small) {
      for (int64_t b = 0; b < count; ++b) {
        StepEnd::ask();
        multiply(b, *a.stream);
      }
      return;
    }
    a.stream->parallel_for(count, matmul_flops_per_chunk / work, [&](int64_t begin, int64_t end) {
      OneThread stream;
      for (int64_t b = begin; b < end; ++b) multiply(b, stream);
    });
  });
  kernel.workspace_bytes = workspace;
  return kernel;
}

// Bytes are multiplied as int32, the type of the product.
BoundKernel prepare_bytes(const KernelRequest& request) {
  std::vector<TensorSpec> wide(request.inputs.begin(), request.inputs.end());
  size_t bytes[2];
  bool is_signed[2];
  for (int i : {0, 1}) {
    is_signed[i] = wide[i].dtype == DType::i8;
    wide[i].dtype = i32;
    bytes[i] = static_cast<size_t>(wide[i].shape.elements()) * sizeof(int32_t);
  }
  BoundKernel product =
      prepare({request.node, wide, request.outputs, request.device, request.node_state});
  if (product.function == nullptr) return product;
  const size_t workspace = product.workspace_bytes;
  return BoundKernel::of([=](const Arguments& a) {
           int32_t* at = static_cast<int32_t*>(a.workspace);
           void* inputs[2];
           for (int i : {0, 1}) {
             inputs[i] = at;
             const int64_t n = static_cast<int64_t>(bytes[i] / sizeof(int32_t));
             is_signed[i] ? std::copy_n(a.input<int8_t>(i), n, at)
                          : std::copy_n(a.input<uint8_t>(i), n, at);
             at += n;
           }
           product.function(product.bound.get(), {inputs, a.outputs, at, a.stream});
         })
      .with_workspace(bytes[0] + bytes[1] + workspace);
}

void infer(ShapeContext& c) {
  const Shape x = c.with_rank_at_least(0, 2), y = c.with_rank_at_least(1, 2);
  if (!x.has_rank() || !y.has_rank()) return c.set_output(0, Shape::unknown());
  const bool tx = c.attr<bool>("adj_x"), ty = c.attr<bool>("adj_y");
  const int64_t k_of_x = x[x.rank() - (tx ? 2 : 1)], k_of_y = y[y.rank() - (ty ? 1 : 2)];
  check(k_of_x == any || k_of_y == any || k_of_x == k_of_y, "Matrix size-incompatible: In[0]: ", x,
        ", In[1]: ", y, tx ? ", adj_x" : "", ty ? ", adj_y" : "");
  Shape out = broadcast(batch_of(x), batch_of(y));
  out.push_back(x[x.rank() - (tx ? 1 : 2)]);
  out.push_back(y[y.rank() - (ty ? 2 : 1)]);
  c.set_output(0, out);
}

// Without broadcasting.
void infer_v1(ShapeContext& c) {
  const Shape &x = c.input(0), &y = c.input(1);
  if (x.has_rank() && y.has_rank()) {
    check(x.rank() == y.rank(), "In[0] and In[1] has different ndims: ", x, " vs. ", y);
    for (int i = 0; i + 2 < x.rank(); ++i) {
      check(x[i] == any || y[i] == any || x[i] == y[i], "In[0].dim(", i, ") and In[1].dim(", i,
            ") must be the same: ", x, " vs ", y);
    }
  }
  infer(c);
}

void gradient(Gradient& g) {
  const bool tx = g.attr<bool>("adj_x"), ty = g.attr<bool>("adj_y");
  const Output x = g.x(0), y = g.x(1), dy = g.dy();
  const Output dx0 =
      tx ? matmul(y, dy, {.adjoint_a = ty, .adjoint_b = true}) : matmul(dy, y, {.adjoint_b = !ty});
  const Output dx1 =
      ty ? matmul(dy, x, {.adjoint_a = true, .adjoint_b = tx}) : matmul(x, dy, {.adjoint_a = !tx});
  g.dx(0) = sum_to_shape_of(x, dx0, dx0);
  g.dx(1) = sum_to_shape_of(y, dx1, dx1);
}

const Op batch_matmul_op{{
    .name = "BatchMatMulV2",
    .doc = "output[…] = op(x[…]) op(y[…]), products of matrices; op transposes (and conjugates) if "
           "asked to. Leading axes are broadcast.",
    .inputs = {"x: T", "y: T"},
    .outputs = {"output: T"},
    .attrs = {"T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, "
              "uint64, complex64, "
              "complex128}",
              "adj_x: bool = false", "adj_y: bool = false", "grad_x: bool = false",
              "grad_y: bool = false"},
    .shape = infer,
    .gradient = gradient,
    .kernels = {{.types = {{"T", MatMulTypes::list()}}, .prepare = prepare}},
    .examples = {{.inputs = {floats({2, 1, 2}, {1, 2, 3, 4}), floats({2, 1}, {10, 1})},
                  .outputs = {floats({2, 1, 1}, {12, 34})}},
                 {.inputs = {floats({2, 1, 2}, {1, 2, 3, 4}), floats({1, 1, 2}, {10, 1})},
                  .attrs = {{"adj_y", true}},
                  .outputs = {floats({2, 1, 1}, {12, 34})}}},
    .has_complex_gradient = true,
}};

const Op batch_matmul_v1_op{{
    .name = "BatchMatMul",
    .doc = "output[…] = op(x[…]) op(y[…]), as BatchMatMulV2, but leading axes must be the same.",
    .inputs = {"x: T", "y: T"},
    .outputs = {"output: T"},
    .attrs = {"T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
              "adj_x: bool = false", "adj_y: bool = false", "grad_x: bool = false",
              "grad_y: bool = false"},
    .shape = infer_v1,
    .gradient = gradient,
    .kernels = {{.types = {{"T", MatMulTypes::list()}}, .prepare = prepare}},
    .examples = {{.inputs = {floats({2, 1, 2}, {1, 2, 3, 4}), floats({2, 2, 1}, {10, 1, 1, 10})},
                  .outputs = {floats({2, 1, 1}, {12, 43})}}},
    .has_complex_gradient = true,
}};

// For two equal types with a product of the same type, and for bytes.
std::vector<Kernel> kernels_v3() {
  std::vector<Kernel> out;
  for (const DType dtype : MatMulTypes::list()) {
    out.push_back(
        {.types = {{"Ta", {dtype}}, {"Tb", {dtype}}, {"Tout", {dtype}}}, .prepare = prepare});
  }
  const std::vector<DType> bytes = {DType::i8, DType::u8};
  out.push_back(
      {.types = {{"Ta", bytes}, {"Tb", bytes}, {"Tout", {i32}}}, .prepare = prepare_bytes});
  return out;
}

const Op batch_matmul_v3_op{{
    .name = "BatchMatMulV3",
    .doc = "output[…] = op(x[…]) op(y[…]), as BatchMatMulV2, with a type for each.",
    .inputs = {"x: Ta", "y: Tb"},
    .outputs = {"output: Tout"},
    .attrs = {"Ta: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
              "complex128}",
              "Tb: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
              "complex128}",
              "Tout: {bfloat16, half, float, double, int16, int32, int64, complex64, complex128}",
              "adj_x: bool = false", "adj_y: bool = false", "grad_x: bool = false",
              "grad_y: bool = false"},
    .shape = infer,
    .gradient = gradient,
    .kernels = kernels_v3(),
    .examples = {{.inputs = {floats({2, 1, 2}, {1, 2, 3, 4}), floats({2, 1}, {10, 1})},
                  .attrs = {{"Tout", f32}},
                  .outputs = {floats({2, 1, 1}, {12, 34})}}},
    .has_complex_gradient = true,
}};

}  // namespace
}  // namespace leat
