// GruLayer and its gradient on the GPU: of each step a product and a launch, as in lstm_layer.cu.
#include "kernels/sequences/gru_layer.h"

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
  const T *x, *of_h, *bias, *h_before;  // of this step; of_h: h[t-1] recurrent_kernel
  const int32_t* lengths;               // null: all rows take part
  T *gates, *y;
};

// A thread per unit of a row.
template <class T>
__global__ void __launch_bounds__(threads_per_block) forward_kernel(ForwardStep<T> s) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= s.n.states()) return;
  const int64_t units = s.n.units, row = i / units, j = i % units, first = 3 * row * units + j;
  using C = ComputeType<T>;
  const auto of_x = [&](int gate) { return static_cast<C>(s.x[first + gate * units]); };
  const auto of_h = [&](int gate) {
    return static_cast<C>(s.of_h[first + gate * units]) + static_cast<C>(s.bias[j + gate * units]);
  };
  GruUnit<C> unit{};
  C hg = 0;
  if (s.step < s.n.length(s.lengths, row)) {
    hg = of_h(2);
    unit = GruUnit<C>::step(of_x(0), of_x(1), of_x(2), of_h(0), of_h(1), hg,
                            static_cast<C>(s.h_before[i]));
  }
  const C values[4] = {unit.u, unit.r, unit.n, hg};
  for (int gate = 0; gate < 4; ++gate)
    s.gates[4 * row * units + j + gate * units] = static_cast<T>(values[gate]);
  s.y[i] = static_cast<T>(unit.h);
}

template <class T>
BoundKernel prepare_forward(TypeTag<T>, const KernelRequest& r) {
  const Extents n(r, r.outputs[0].shape);
  if (n.states() == 0) return {};
  const bool has_lengths = r.inputs.size() > 4;
  const auto product = product_of(r, {.m = n.batch, .n = 3 * n.units, .k = n.units});
  const size_t bytes_of_h = cuda::aligned(static_cast<size_t>(3 * n.states()) * sizeof(T));
  return BoundKernel::of([=](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           const unsigned blocks = cuda::blocks_for(n.states());
           const auto* const lengths = has_lengths ? a.input<int32_t>(4) : nullptr;
           T *const y = a.output<T>(0), *const of_h = static_cast<T*>(a.workspace);
           const T* h = a.input<T>(1);
           for (int64_t step = 0; step < n.time; ++step) {
             const int64_t at = n.at(step) * n.states();
             product->run(ProductOperands{h, a.inputs[2], of_h},
                          static_cast<char*>(a.workspace) + bytes_of_h, *a.stream);
             const ForwardStep<T> of{n, step,    a.input<T>(0) + 3 * at,  of_h,  a.input<T>(3),
                                     h, lengths, a.output<T>(2) + 4 * at, y + at};
             cuda::launch(forward_kernel<T>, blocks, threads_per_block, 0, stream, of);
             h = of.y;
           }
           copy_last(n, lengths, a.input<T>(1), y, a.output<T>(1), stream);
         })
      .with_workspace(bytes_of_h + product->workspace_bytes());
}

// ---- Backward

template <class T>
struct BackwardStep {
  Extents n;
  int64_t step;
  const T *gates, *h_before, *dy, *through_gates;  // the last: a part of the state's gradient
  const int32_t* lengths;
  T *dx, *of_h, *dh;  // dh: the other part, then that of h before the step
};

template <class T>
__global__ void __launch_bounds__(threads_per_block) backward_kernel(BackwardStep<T> s) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= s.n.states()) return;
  const int64_t units = s.n.units, row = i / units, first = 3 * row * units + i % units;
  using C = ComputeType<T>;
  GruGradient<C> d{};
  if (s.step < s.n.length(s.lengths, row)) {
    const auto gate = [&](int which) {
      return static_cast<C>(s.gates[first + row * units + which * units]);
    };
    d = GruGradient<C>::of(
        gate(0), gate(1), gate(2), gate(3), static_cast<C>(s.h_before[i]),
        static_cast<C>(s.dy[i]) + static_cast<C>(s.dh[i]) + static_cast<C>(s.through_gates[i]));
    s.dh[i] = static_cast<T>(d.h_before);
  }
  const C of_x[3] = {d.z, d.r, d.g}, of_h[3] = {d.z, d.r, d.hg};
  for (int which = 0; which < 3; ++which) {
    s.dx[first + which * units] = static_cast<T>(of_x[which]);
    s.of_h[first + which * units] = static_cast<T>(of_h[which]);
  }
}

template <class T>
__global__ void __launch_bounds__(threads_per_block) add_kernel(int64_t n, const T* x, T* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  using C = ComputeType<T>;
  if (i < n) to[i] = static_cast<T>(static_cast<C>(to[i]) + static_cast<C>(x[i]));
}

template <class T>
BoundKernel prepare_backward(TypeTag<T>, const KernelRequest& r) {
  const Extents n(r, r.inputs[2].shape);
  if (n.units == 0) return {};
  if (n.batch == 0 || n.time == 0) return bind_nothing_done(r, n, sizeof(T), {{1, 5}}, {2, 3});
  const bool has_lengths = r.inputs.size() > 6;
  const auto of_state =
      product_of(r, {.m = n.batch, .n = n.units, .k = 3 * n.units, .transpose_b = true});
  const auto of_weights =
      product_of(r, {.m = n.units, .n = 3 * n.units, .k = n.time * n.batch, .transpose_a = true});
  const ColumnSums<T> sums{n.time * n.batch, 3 * n.units};
  const int64_t all = n.time * n.states();
  const size_t bytes_of_partials = cuda::aligned(sums.partial_bytes());
  const size_t fixed =
      bytes_of_partials + cuda::aligned(static_cast<size_t>(4 * all + n.states()) * sizeof(T));
  return BoundKernel::of([=](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           const unsigned blocks = cuda::blocks_for(n.states());
           const auto* const lengths = has_lengths ? a.input<int32_t>(6) : nullptr;
           const T *h0 = a.input<T>(0), *y = a.input<T>(2);
           T *const dx = a.output<T>(0), *const dh = a.output<T>(1);
           char* const workspace = static_cast<char*>(a.workspace);
           T *const of_h = reinterpret_cast<T*>(workspace + bytes_of_partials),
                    *const states = of_h + 3 * all, *const through_gates = states + all;
           void* const rest = workspace + fixed;
           copy(dh, a.input<T>(5), n.states(), stream);
           clear(through_gates, n.states(), stream);
           for (int64_t step = n.time; step-- > 0;) {
             const int64_t at = n.at(step) * n.states();
             const BackwardStep<T> of{n,
                                      step,
                                      a.input<T>(3) + 4 * at,
                                      step == 0 ? h0 : y + n.at(step - 1) * n.states(),
                                      a.input<T>(4) + at,
                                      through_gates,
                                      lengths,
                                      dx + 3 * at,
                                      of_h + 3 * at,
                                      dh};
             cuda::launch(backward_kernel<T>, blocks, threads_per_block, 0, stream, of);
             of_state->run(ProductOperands{of.of_h, a.inputs[1], through_gates}, rest, *a.stream);
           }
           cuda::launch(add_kernel<T>, blocks, threads_per_block, 0, stream, n.states(),
                        through_gates, dh);
           gather_states(n, h0, y, states, stream);
           of_weights->run(ProductOperands{states, of_h, a.outputs[2]}, rest, *a.stream);
           sums.run(of_h, workspace, a.output<T>(3), stream);
         })
      .with_workspace(fixed + std::max(of_state->workspace_bytes(), of_weights->workspace_bytes()));
}

const OpKernels layer{"GruLayer",
                      kernels([](auto tag, const auto& r) { return prepare_forward(tag, r); })};
const OpKernels layer_gradient{
    "GruLayerGrad", kernels([](auto tag, const auto& r) { return prepare_backward(tag, r); })};

}  // namespace
}  // namespace leat::layer
