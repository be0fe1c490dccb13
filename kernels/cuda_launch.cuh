// The GPU's side of elementwise.h: runs a functor over tensors in one launch. Nothing here
// synchronises, allocates or reads back, so a tape of such kernels can be captured.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/error.h"
#include "core/kernel.h"
#include "kernels/broadcast.h"
#include "kernels/cuda/device/cuda_device.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/types.h"

#define LEAT_DEVICE __device__ __forceinline__

#pragma nv_diag_suppress 186  // "x < 0 is pointless" where a functor meets an unsigned type
#pragma nv_diag_suppress 177  // members that only the CPU's loops use

namespace leat {

inline constexpr DeviceType kernel_device = DeviceType::gpu;
inline constexpr bool has_host_types = false;  // strings, variants, std::complex

// A kernel cannot report an error: the functor continues and returns some value.
LEAT_DEVICE void report_invalid(const char* /*message*/) {}

namespace cuda {

inline constexpr int threads_per_block = 256;

inline unsigned blocks_for(int64_t threads) {
  return as_blocks((threads + threads_per_block - 1) / threads_per_block);
}

template <class T>
LEAT_DEVICE ComputeType<T> widened(const T& value) {
  return static_cast<ComputeType<T>>(value);
}

// As many elements as one 16-byte load takes.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];
};

template <class... T>
inline constexpr int pack_width = 16 / std::max({sizeof(T)...}) > 8
                                      ? 8
                                      : 16 / static_cast<int>(std::max({sizeof(T)...}));

template <int N, class T>
LEAT_DEVICE Pack<T, N> load(const T* in, int64_t at, bool repeats) {
  Pack<T, N> pack;
  if (repeats) {
    for (int k = 0; k < N; ++k) pack.values[k] = in[0];
  } else {
    pack = *reinterpret_cast<const Pack<T, N>*>(in + at);
  }
  return pack;
}

// Inputs have the shape of the output, or (bit i of `repeated`) one element. All pointers are
// aligned to their packs.
template <class F, class Out, class... In, size_t... Index>
LEAT_DEVICE void run_flat(const F& f, int64_t n, unsigned repeated, std::index_sequence<Index...>,
                          Out* out, const In*... in) {
  constexpr int width = pack_width<Out, In...>;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * width;
  if (at + width <= n) {
    Pack<Out, width> result;
    const auto compute = [&](const auto&... packs) {
      for (int k = 0; k < width; ++k)
        result.values[k] = static_cast<Out>(f(widened(packs.values[k])...));
    };
    compute(load<width>(in, at, (repeated >> Index & 1) != 0)...);
    *reinterpret_cast<Pack<Out, width>*>(out + at) = result;
  } else {
    for (int64_t i = at; i < n; ++i) {
      out[i] = static_cast<Out>(f(widened(in[(repeated >> Index & 1) != 0 ? 0 : i])...));
    }
  }
}

template <class F, class Out, class... In>
__global__ void __launch_bounds__(threads_per_block)
    flat_kernel(F f, int64_t n, unsigned repeated, Out* out, const In*... in) {
  run_flat(f, n, repeated, std::index_sequence_for<In...>{}, out, in...);
}

// The element of each input that element `at` of the output reads.
template <class Unsigned>
LEAT_DEVICE void offsets_at(const BroadcastPlan& plan, int inputs, Unsigned at, int64_t* offsets) {
  for (int axis = plan.rank - 1; axis >= 0; --axis) {
    const Unsigned extent = static_cast<Unsigned>(plan.extents[axis]);
    const Unsigned index = at % extent;
    at /= extent;
    for (int i = 0; i < inputs; ++i) offsets[i] += index * plan.strides[i][axis];
  }
}

template <class F, class Out, class... In, size_t... Index>
LEAT_DEVICE void run_strided(const F& f, const BroadcastPlan& plan, std::index_sequence<Index...>,
                             Out* out, const In*... in) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= plan.elements) return;
  int64_t offsets[sizeof...(In)] = {};
  if (plan.elements <= UINT32_MAX) {
    offsets_at<uint32_t>(plan, sizeof...(In), static_cast<uint32_t>(at), offsets);
  } else {
    offsets_at<uint64_t>(plan, sizeof...(In), static_cast<uint64_t>(at), offsets);
  }
  out[at] = static_cast<Out>(f(widened(in[offsets[Index]])...));
}

template <class F, class Out, class... In>
__global__ void __launch_bounds__(threads_per_block)
    strided_kernel(F f, BroadcastPlan plan, Out* out, const In*... in) {
  run_strided(f, plan, std::index_sequence_for<In...>{}, out, in...);
}

template <class T, int N>
bool is_aligned(const T* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % (sizeof(T) * N) == 0;
}

template <class F, class Out, class... In>
struct ElementwiseLaunch {
  F f;
  BroadcastPlan plan;

  void operator()(const Arguments& arguments) const {
    run(arguments, std::index_sequence_for<In...>{});
  }

 private:
  template <size_t... Index>
  void run(const Arguments& arguments, std::index_sequence<Index...>) const {
    constexpr int width = pack_width<Out, In...>;
    Out* out = arguments.output<Out>();
    const cudaStream_t stream = cuda_stream(arguments);
    const bool aligned =
        is_aligned<Out, width>(out) && (is_aligned<In, width>(arguments.input<In>(Index)) && ...);
    if (plan.rank == 1 && aligned) {
      const unsigned repeated = (0u | ... | (plan.strides[Index][0] == 0 ? 1u << Index : 0u));
      const int64_t threads = (plan.elements + width - 1) / width;
      launch(flat_kernel<F, Out, In...>, blocks_for(threads), threads_per_block, 0, stream, f,
             plan.elements, repeated, out, arguments.input<In>(Index)...);
    } else {
      launch(strided_kernel<F, Out, In...>, blocks_for(plan.elements), threads_per_block, 0, stream,
             f, plan, out, arguments.input<In>(Index)...);
    }
  }
};

}  // namespace cuda

// out = f(in…), elementwise with broadcasting.
template <class F, class Out, class... In>
BoundKernel bind_elementwise(F f, const BroadcastPlan& plan) {
  if (plan.elements == 0) return {};
  return BoundKernel::of(cuda::ElementwiseLaunch<F, Out, In...>{std::move(f), plan});
}

// The memory that an indexed loop reads and writes, by value: a launch copies it.
struct Pointers {
  static constexpr int max_inputs = 12;
  static constexpr int max_outputs = 4;
  const void* inputs[max_inputs];
  void* outputs[max_outputs];

  template <class T>
  LEAT_DEVICE const T* input(int i) const {
    return static_cast<const T*>(inputs[i]);
  }
  template <class T>
  LEAT_DEVICE T* ref(int i) const {
    return static_cast<T*>(const_cast<void*>(inputs[i]));
  }
  template <class T>
  LEAT_DEVICE T* output(int i = 0) const {
    return static_cast<T*>(outputs[i]);
  }
};

namespace cuda {

inline Pointers copy_pointers(const Arguments& arguments, int num_inputs, int num_outputs) {
  Pointers pointers{};
  std::copy_n(arguments.inputs, num_inputs, pointers.inputs);
  std::copy_n(arguments.outputs, num_outputs, pointers.outputs);
  return pointers;
}

template <class F>
__global__ void __launch_bounds__(threads_per_block)
    indexed_kernel(int64_t n, F f, Pointers pointers) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) f(i, pointers);
}

// out = in0 + in1 + … of up to `max_terms` inputs, with F for +.
inline constexpr int max_terms = 16;
template <class T>
struct Terms {
  const T* in[max_terms];
};

template <class F, class T>
__global__ void __launch_bounds__(threads_per_block)
    fold_kernel(int count, int64_t n, Terms<T> terms, T* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  ComputeType<T> total = widened(terms.in[0][i]);
  for (int k = 1; k < count; ++k) total = F{}(total, widened(terms.in[k][i]));
  out[i] = static_cast<T>(total);
}

}  // namespace cuda

// f(i, pointers) for i in [0, n), in any order. `cost` is for CPUs.
template <class F>
BoundKernel bind_indexed(const KernelRequest& request, int64_t n, int64_t /*cost*/, F f) {
  if (n == 0) return {};
  const int num_inputs = static_cast<int>(request.inputs.size());
  const int num_outputs = static_cast<int>(request.outputs.size());
  check_internal(num_inputs <= Pointers::max_inputs && num_outputs <= Pointers::max_outputs,
                 request.node.op, " has too many inputs or outputs for an indexed kernel");
  return BoundKernel::of([n, f, num_inputs, num_outputs](const Arguments& arguments) {
    cuda::launch(cuda::indexed_kernel<F>, cuda::blocks_for(n), cuda::threads_per_block, 0,
                 cuda_stream(arguments), n, f,
                 cuda::copy_pointers(arguments, num_inputs, num_outputs));
  });
}

// out = f(… f(f(in0, in1), in2) …) for `count` inputs of one shape. The output may share the memory
// of input 0.
template <class F, class T>
BoundKernel bind_fold(int count, int64_t elements) {
  if (elements == 0) return {};
  return BoundKernel::of([count, elements](const Arguments& arguments) {
    T* out = arguments.output<T>();
    for (int first = 0; first < count;) {
      cuda::Terms<T> terms{};
      int n = 0;
      if (first > 0)
        terms.in[n++] = out;  // more than one launch takes: continue from the previous result
      while (n < cuda::max_terms && first < count) terms.in[n++] = arguments.input<T>(first++);
      cuda::launch(cuda::fold_kernel<F, T>, cuda::blocks_for(elements), cuda::threads_per_block, 0,
                   cuda_stream(arguments), n, elements, terms, out);
    }
  });
}

}  // namespace leat
