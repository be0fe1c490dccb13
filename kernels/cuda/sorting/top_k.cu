// TopKV2, ApproxTopK, InTopK and InTopKV2 on the GPU.
#include "graph/op_def.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/row_reduce.cuh"
#include "kernels/cuda_launch.cuh"

namespace leat {
namespace {

constexpr int threads = 256;

// ---- TopKV2: a block per row. It picks the largest entry after the one that it picked last, k
// times; of equal entries the first, and NaN is larger than any number.

template <class C>
struct Entry {
  C value;
  int64_t index;  // -1: none
};

template <class C>
LEAT_DEVICE bool comes_first(const Entry<C>& a, const Entry<C>& b) {
  const bool a_is_nan = a.value != a.value, b_is_nan = b.value != b.value;
  if (a_is_nan != b_is_nan) return a_is_nan;
  return a_is_nan || a.value == b.value ? a.index < b.index : b.value < a.value;
}

// One kernel for all types of indices.
struct Indices {
  void* to;
  DType dtype;
  LEAT_DEVICE void set(int64_t at, int64_t index) const {
    if (dtype == DType::i64) {
      static_cast<int64_t*>(to)[at] = index;
    } else if (dtype == DType::i16) {
      static_cast<int16_t*>(to)[at] = static_cast<int16_t>(index);
    } else {
      static_cast<int32_t*>(to)[at] = static_cast<int32_t>(index);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(threads)
    top_k_kernel(int64_t columns, int64_t k, const T* in, T* values, Indices indices) {
  using C = ComputeType<T>;
  __shared__ Entry<C> shared[threads];
  const T* row = in + blockIdx.x * columns;
  Entry<C> last{C(0), -1};
  for (int64_t i = 0; i < k; ++i) {
    Entry<C> best{C(0), -1};
    for (int64_t c = threadIdx.x; c < columns; c += threads) {
      const Entry<C> entry{cuda::widened(row[c]), c};
      const bool is_left = last.index < 0 || comes_first(last, entry);
      if (is_left && (best.index < 0 || comes_first(entry, best))) best = entry;
    }
    last = cuda::reduce_block(best, shared, [](const Entry<C>& a, const Entry<C>& b) {
      return b.index < 0 || (a.index >= 0 && comes_first(a, b)) ? a : b;
    });
    if (threadIdx.x == 0) {
      values[blockIdx.x * k + i] = row[last.index];
      indices.set(blockIdx.x * k + i, last.index);
    }
  }
}

template <class Supported>
std::vector<Kernel> top_k_kernels() {
  return {{.device = DeviceType::gpu,
           .types = {{"T", Supported::list()}},
           .prepare = [](const KernelRequest& r) {
             const Shape &shape = r.inputs[0].shape, &out = r.outputs[0].shape;
             if (out.elements() == 0) return BoundKernel{};
             const int64_t columns = shape[shape.rank() - 1], k = out[out.rank() - 1];
             const int64_t rows = shape.elements() / columns;
             return visit_type(Supported{}, r.inputs[0].dtype, [&](auto tag) {
               using T = typename decltype(tag)::type;
               return BoundKernel::of([=, index = r.outputs[1].dtype](const Arguments& a) {
                 cuda::launch(top_k_kernel<T>, cuda::as_blocks(rows), threads, 0, cuda_stream(a),
                              columns, k, a.input<T>(0), a.output<T>(0),
                              Indices{a.outputs[1], index});
               });
             });
           }}};
}

const OpKernels top_k{"TopKV2", top_k_kernels<NumberTypes>()};
const OpKernels approximate{"ApproxTopK", top_k_kernels<Types<half, bfloat16, float>>()};

// ---- InTopK: a thread per row

template <class T>
struct IsInTopK {
  int64_t columns;
  int64_t given;  // k; if it is negative, input 2 has it
  LEAT_DEVICE void operator()(int64_t r, const Pointers& p) const {
    const int64_t k = given < 0 ? static_cast<int64_t>(p.input<T>(2)[0]) : given;
    const float* row = p.input<float>(0) + r * columns;
    const int64_t target = p.input<T>(1)[r];
    bool possible = target >= 0 && target < columns && std::isfinite(row[target]);
    int64_t better = 0;
    for (int64_t c = 0; possible && c < columns; ++c) {
      possible = std::isfinite(row[c]);
      better += row[c] > row[target] ? 1 : 0;
    }
    p.output<bool>()[r] = possible && better < k;
  }
};

std::vector<Kernel> in_top_k_kernels() {
  return {{.device = DeviceType::gpu, .prepare = [](const KernelRequest& r) {
             const int64_t rows = r.inputs[0].shape[0], columns = r.inputs[0].shape[1];
             // A negative attribute means the same as 0: no class is among the first.
             const int64_t given =
                 r.inputs.size() > 2 ? -1 : std::max<int64_t>(0, r.attr<int64_t>("k"));
             return r.inputs[1].dtype == DType::i64
                        ? bind_indexed(r, rows, 0, IsInTopK<int64_t>{columns, given})
                        : bind_indexed(r, rows, 0, IsInTopK<int32_t>{columns, given});
           }}};
}

const OpKernels in_top_k_v1{"InTopK", in_top_k_kernels()};
const OpKernels in_top_k{"InTopKV2", in_top_k_kernels()};

}  // namespace
}  // namespace leat
