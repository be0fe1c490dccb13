// LstmLayer and its gradient on the GPU: of each step a product and a launch, all enqueued by one
// op, so that a step of training can be recorded whatever its length; one product of all steps for
// the gradient of the recurrent kernel.
#include "kernels/sequences/lstm_layer.h"

#include <algorithm>

#include "kernels/cuda/sequences/layer.cuh"

namespace leat::layer {
namespace {

using cuda::threads_per_block;

// ---- Forward

template <class T>
struct ForwardStep {
  Extents n;
  int64_t step;
  const T *x, *products, *c_before;  // of this step; the products: h[t-1] recurrent_kernel
  const int32_t* lengths;            // null: all rows take part
  T *gates, *c, *y;
};

// A thread per unit of a row.
template <class T>
__global__ void __launch_bounds__(threads_per_block) forward_kernel(ForwardStep<T> s) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= s.n.states()) return;
  const int64_t units = s.n.units, row = i / units, first = 4 * row * units + i % units;
  using C = ComputeType<T>;
  const auto sum = [&](int gate) {
    const int64_t at = first + gate * units;
    return static_cast<C>(s.x[at]) + static_cast<C>(s.products[at]);
  };
  LstmUnit<C> unit{};
  if (s.step < s.n.length(s.lengths, row))
    unit = LstmUnit<C>::step(sum(0), sum(1), sum(2), sum(3), static_cast<C>(s.c_before[i]));
  const C values[4] = {unit.i, unit.f, unit.g, unit.o};
  for (int gate = 0; gate < 4; ++gate) s.gates[first + gate * units] = static_cast<T>(values[gate]);
  s.c[i] = static_cast<T>(unit.c);
  s.y[i] = static_cast<T>(unit.y);
}

template <class T>
BoundKernel prepare_forward(TypeTag<T>, const KernelRequest& r) {
  const Extents n(r, r.outputs[0].shape);
  if (n.states() == 0) return {};
  const bool has_lengths = r.inputs.size() > 4;
  const auto product = product_of(r, {.m = n.batch, .n = 4 * n.units, .k = n.units});
  const size_t products_bytes = cuda::aligned(static_cast<size_t>(4 * n.states()) * sizeof(T));
  return BoundKernel::of([=](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           const unsigned blocks = cuda::blocks_for(n.states());
           const auto* const lengths = has_lengths ? a.input<int32_t>(4) : nullptr;
           T *const y = a.output<T>(0), *const gates = a.output<T>(3),
                    *const cells = a.output<T>(4), *const products = static_cast<T*>(a.workspace);
           const T *h = a.input<T>(1), *c = a.input<T>(2);
           for (int64_t step = 0; step < n.time; ++step) {
             const int64_t at = n.at(step);
             product->run(ProductOperands{h, a.inputs[3], products},
                          static_cast<char*>(a.workspace) + products_bytes, *a.stream);
             const ForwardStep<T> of{n,
                                     step,
                                     a.input<T>(0) + at * 4 * n.states(),
                                     products,
                                     c,
                                     lengths,
                                     gates + at * 4 * n.states(),
                                     cells + at * n.states(),
                                     y + at * n.states()};
             cuda::launch(forward_kernel<T>, blocks, threads_per_block, 0, stream, of);
             h = of.y;
             c = of.c;
           }
           copy_last(n, lengths, a.input<T>(1), y, a.output<T>(1), stream);
           copy_last(n, lengths, a.input<T>(2), cells, a.output<T>(2), stream);
         })
      .sharing(3, 0)
      .with_workspace(products_bytes + product->workspace_bytes());
}

// ---- Backward

template <class T>
struct BackwardStep {
  Extents n;
  int64_t step;
  const T *gates, *cells, *c_before, *dy, *dlast_h, *dlast_c;
  const int32_t* lengths;
  T *dgates, *dh, *dc;  // dh: of h after the step, read; dc: of c after the step, then before it
};

template <class T>
__global__ void __launch_bounds__(threads_per_block) backward_kernel(BackwardStep<T> s) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= s.n.states()) return;
  const int64_t units = s.n.units, row = i / units, first = 4 * row * units + i % units;
  const int64_t steps = s.n.length(s.lengths, row);
  using C = ComputeType<T>;
  LstmGradient<C> d{};
  if (s.step < steps) {
    const bool is_last = s.step + 1 == steps;
    const auto gate = [&](int which) { return static_cast<C>(s.gates[first + which * units]); };
    d = LstmGradient<C>::of(
        gate(0), gate(1), gate(2), gate(3), static_cast<C>(s.c_before[i]),
        static_cast<C>(s.cells[i]),
        static_cast<C>(s.dy[i]) + static_cast<C>((is_last ? s.dlast_h : s.dh)[i]),
        static_cast<C>((is_last ? s.dlast_c : s.dc)[i]));
    s.dc[i] = static_cast<T>(d.c_before);
  }
  const C values[4] = {d.i, d.f, d.g, d.o};
  for (int which = 0; which < 4; ++which)
    s.dgates[first + which * units] = static_cast<T>(values[which]);
}

// The state's gradient of rows that took part in no step.
template <class T>
__global__ void __launch_bounds__(threads_per_block)
    idle_rows_kernel(Extents n, const int32_t* lengths, const T* dlast_h, const T* dlast_c, T* dh,
                     T* dc) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n.states() || n.length(lengths, i / n.units) > 0) return;
  dh[i] = dlast_h[i];
  dc[i] = dlast_c[i];
}

template <class T>
BoundKernel prepare_backward(TypeTag<T>, const KernelRequest& r) {
  const Extents n(r, r.inputs[3].shape);
  if (n.units == 0) return {};
  if (n.batch == 0 || n.time == 0) return bind_nothing_done(r, n, sizeof(T), {{1, 7}, {2, 8}}, {3});
  const bool has_lengths = r.inputs.size() > 9;
  const auto of_state =
      product_of(r, {.m = n.batch, .n = n.units, .k = 4 * n.units, .transpose_b = true});
  const auto of_weights =
      product_of(r, {.m = n.units, .n = 4 * n.units, .k = n.time * n.batch, .transpose_a = true});
  const size_t states_bytes = cuda::aligned(static_cast<size_t>(n.time * n.states()) * sizeof(T));
  return BoundKernel::of([=](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           const unsigned blocks = cuda::blocks_for(n.states());
           const auto* const lengths = has_lengths ? a.input<int32_t>(9) : nullptr;
           const T *h0 = a.input<T>(0), *c0 = a.input<T>(1), *y = a.input<T>(3),
                   *cells = a.input<T>(5);
           T *const dx = a.output<T>(0), *const dh = a.output<T>(1), *const dc = a.output<T>(2),
                    *const states = static_cast<T*>(a.workspace);
           char* const rest = static_cast<char*>(a.workspace) + states_bytes;
           for (int64_t step = n.time; step-- > 0;) {
             const int64_t at = n.at(step);
             const BackwardStep<T> of{n,
                                      step,
                                      a.input<T>(4) + at * 4 * n.states(),
                                      cells + at * n.states(),
                                      step == 0 ? c0 : cells + n.at(step - 1) * n.states(),
                                      a.input<T>(6) + at * n.states(),
                                      a.input<T>(7),
                                      a.input<T>(8),
                                      lengths,
                                      dx + at * 4 * n.states(),
                                      dh,
                                      dc};
             cuda::launch(backward_kernel<T>, blocks, threads_per_block, 0, stream, of);
             of_state->run(ProductOperands{of.dgates, a.inputs[2], dh}, rest, *a.stream);
           }
           if (lengths != nullptr) {
             cuda::launch(idle_rows_kernel<T>, blocks, threads_per_block, 0, stream, n, lengths,
                          a.input<T>(7), a.input<T>(8), dh, dc);
           }
           gather_states(n, h0, y, states, stream);
           of_weights->run(ProductOperands{states, dx, a.outputs[3]}, rest, *a.stream);
         })
      .with_workspace(states_bytes +
                      std::max(of_state->workspace_bytes(), of_weights->workspace_bytes()));
}

const OpKernels layer{"LstmLayer",
                      kernels([](auto tag, const auto& r) { return prepare_forward(tag, r); })};
const OpKernels layer_gradient{
    "LstmLayerGrad", kernels([](auto tag, const auto& r) { return prepare_backward(tag, r); })};

}  // namespace
}  // namespace leat::layer
