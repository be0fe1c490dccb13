// GRUBlockCell and its gradient on the GPU: two products, and a launch before and after each.
#include "kernels/sequences/gru_cell.h"

#include <algorithm>

#include "kernels/cuda/sequences/layer.cuh"
#include "kernels/cuda/zeros.cuh"
#include "kernels/extents.h"

namespace leat::gru {
namespace {

using cuda::threads_per_block;
using layer::product_of;

LEAT_DEVICE int64_t thread_number() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

template <class Kernel, class... Given>
void launch_for(int64_t threads, const Arguments& a, Kernel kernel, const Given&... arguments) {
  if (threads == 0) return;
  cuda::launch(kernel, cuda::blocks_for(threads), threads_per_block, 0, cuda_stream(a),
               arguments...);
}

// ---- Forward

struct Forward {
  const float *x, *h_prev, *b_ru, *b_c;
  float *r, *u, *c, *h;
  float *joined, *gates;  // workspace: [x, h_prev] or [x, r h_prev]; [batch, 2 cells]
};

__global__ void __launch_bounds__(threads_per_block) join_kernel(Extents n, Forward f) {
  const int64_t at = thread_number();
  if (at >= n.batch * n.width()) return;
  const int64_t row = at / n.width(), column = at % n.width();
  f.joined[at] = column < n.inputs ? f.x[row * n.inputs + column]
                                   : f.h_prev[row * n.cells + column - n.inputs];
}

__global__ void __launch_bounds__(threads_per_block) gates_kernel(Extents n, Forward f) {
  const int64_t at = thread_number();
  if (at >= n.states()) return;
  const int64_t row = at / n.cells, j = at % n.cells;
  const float* const gates = f.gates + row * 2 * n.cells;
  const float r = Sigmoid{}(gates[j] + f.b_ru[j]);
  f.r[at] = r;
  f.u[at] = Sigmoid{}(gates[n.cells + j] + f.b_ru[n.cells + j]);
  f.joined[row * n.width() + n.inputs + j] = f.h_prev[at] * r;
}

__global__ void __launch_bounds__(threads_per_block) state_kernel(Extents n, Forward f) {
  const int64_t at = thread_number();
  if (at >= n.states()) return;
  const float c = std::tanh(f.c[at] + f.b_c[at % n.cells]);  // f.c: the product
  f.c[at] = c;
  f.h[at] = state_after(f.u[at], f.h_prev[at], c);
}

BoundKernel prepare_cell(const KernelRequest& request) {
  if (are_empty(request.outputs)) return {};
  const Extents n(request);
  const auto of_gates = product_of(request, {.m = n.batch, .n = 2 * n.cells, .k = n.width()}),
             of_candidate = product_of(request, {.m = n.batch, .n = n.cells, .k = n.width()});
  const int64_t joined = n.batch * n.width(), fixed = cuda::aligned_floats(joined + 2 * n.states());
  return BoundKernel::of([=](const Arguments& a) {
           float* const workspace = static_cast<float*>(a.workspace);
           void* const rest = workspace + fixed;
           const Forward f{.x = a.input<float>(0),
                           .h_prev = a.input<float>(1),
                           .b_ru = a.input<float>(4),
                           .b_c = a.input<float>(5),
                           .r = a.output<float>(0),
                           .u = a.output<float>(1),
                           .c = a.output<float>(2),
                           .h = a.output<float>(3),
                           .joined = workspace,
                           .gates = workspace + joined};
           launch_for(joined, a, join_kernel, n, f);
           of_gates->run(ProductOperands{f.joined, a.inputs[2], f.gates}, rest, *a.stream);
           launch_for(n.states(), a, gates_kernel, n, f);
           of_candidate->run(ProductOperands{f.joined, a.inputs[3], f.c}, rest, *a.stream);
           launch_for(n.states(), a, state_kernel, n, f);
         })
      .with_workspace(static_cast<size_t>(fixed) * sizeof(float) +
                      std::max(of_gates->workspace_bytes(), of_candidate->workspace_bytes()));
}

// ---- Backward

struct Backward {
  const float *h_prev, *r, *u, *c, *d_h;
  float *d_x, *d_h_prev, *d_c, *d_gates;
  float *by_candidate, *by_gates;  // workspace: gradients of [x, r h_prev] and of [x, h_prev]
};

__global__ void __launch_bounds__(threads_per_block) candidate_kernel(Extents n, Backward b) {
  const int64_t at = thread_number();
  if (at < n.states()) b.d_c[at] = gradient_of_candidate(b.u[at], b.c[at], b.d_h[at]);
}

__global__ void __launch_bounds__(threads_per_block) gate_gradients_kernel(Extents n, Backward b) {
  const int64_t at = thread_number();
  if (at >= n.states()) return;
  const int64_t row = at / n.cells, j = at % n.cells;
  float* const d_gates = b.d_gates + row * 2 * n.cells;
  d_gates[j] =
      gradient_of_reset(b.r[at], b.h_prev[at], b.by_candidate[row * n.width() + n.inputs + j]);
  d_gates[n.cells + j] = gradient_of_update(b.u[at], b.h_prev[at], b.c[at], b.d_h[at]);
}

__global__ void __launch_bounds__(threads_per_block) inputs_kernel(Extents n, Backward b) {
  const int64_t at = thread_number();
  if (at >= n.batch * n.width()) return;
  const int64_t row = at / n.width(), column = at % n.width(), j = column - n.inputs;
  if (j < 0) {
    b.d_x[row * n.inputs + column] = b.by_candidate[at] + b.by_gates[at];
    return;
  }
  const int64_t state = row * n.cells + j;
  b.d_h_prev[state] =
      gradient_of_state(b.r[state], b.u[state], b.by_gates[at], b.by_candidate[at], b.d_h[state]);
}

BoundKernel prepare_gradient(const KernelRequest& request) {
  if (are_empty(request.outputs)) return {};
  const Extents n(request);
  if (n.states() == 0) return cuda::bind_zeros(request);
  const auto by_candidate = product_of(
                 request, {.m = n.batch, .n = n.width(), .k = n.cells, .transpose_b = true}),
             by_gates = product_of(
                 request, {.m = n.batch, .n = n.width(), .k = 2 * n.cells, .transpose_b = true});
  const int64_t joined = n.batch * n.width(), fixed = cuda::aligned_floats(2 * joined);
  return BoundKernel::of([=](const Arguments& a) {
           float* const workspace = static_cast<float*>(a.workspace);
           void* const rest = workspace + fixed;
           const Backward b{.h_prev = a.input<float>(1),
                            .r = a.input<float>(6),
                            .u = a.input<float>(7),
                            .c = a.input<float>(8),
                            .d_h = a.input<float>(9),
                            .d_x = a.output<float>(0),
                            .d_h_prev = a.output<float>(1),
                            .d_c = a.output<float>(2),
                            .d_gates = a.output<float>(3),
                            .by_candidate = workspace,
                            .by_gates = workspace + joined};
           launch_for(n.states(), a, candidate_kernel, n, b);
           by_candidate->run(ProductOperands{b.d_c, a.inputs[3], b.by_candidate}, rest, *a.stream);
           launch_for(n.states(), a, gate_gradients_kernel, n, b);
           by_gates->run(ProductOperands{b.d_gates, a.inputs[2], b.by_gates}, rest, *a.stream);
           launch_for(joined, a, inputs_kernel, n, b);
         })
      .with_workspace(static_cast<size_t>(fixed) * sizeof(float) +
                      std::max(by_candidate->workspace_bytes(), by_gates->workspace_bytes()));
}

std::vector<Kernel> kernels(Prepare prepare) {
  return {
      {.device = DeviceType::gpu, .types = {{"T", {DType::f32}}}, .prepare = std::move(prepare)}};
}

const OpKernels cell{"GRUBlockCell", kernels(prepare_cell)};
const OpKernels cell_gradient{"GRUBlockCellGrad", kernels(prepare_gradient)};

}  // namespace
}  // namespace leat::gru
