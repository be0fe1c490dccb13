// Copies between strided views, and fills: what ConcatV2, Slice, Transpose, Pad and similar ops
// come down to (kernels/moves/moves.h). Neighbouring threads write neighbouring elements.
#include <algorithm>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda_launch.cuh"
#include "kernels/moves/moves.h"

namespace leat {
namespace cuda {
namespace {

struct CopyPlan {
  static constexpr int max_rank = StridedCopy::AxisList::max_count;
  int rank = 0;
  int64_t elements = 1;
  int64_t extents[max_rank], from[max_rank], to[max_rank];  // innermost first
};

template <class T, class Index>
__global__ void __launch_bounds__(threads_per_block)
    copy_kernel(CopyPlan plan, const T* from, T* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= plan.elements) return;
  Index rest = static_cast<Index>(i);
  int64_t source = 0, target = 0;
  for (int axis = 0; axis < plan.rank; ++axis) {
    const Index extent = static_cast<Index>(plan.extents[axis]), quotient = rest / extent;
    const int64_t index = static_cast<int64_t>(rest - quotient * extent);
    source += index * plan.from[axis];
    target += index * plan.to[axis];
    rest = quotient;
  }
  to[target] = from[source];
}

template <class T>
__global__ void __launch_bounds__(threads_per_block) fill_kernel(int64_t n, const T* value, T* to) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) to[i] = *value;
}

struct alignas(16) Bytes16 {
  uint64_t halves[2];
};

// Calls f with a value of an unsigned type of `size` bytes.
template <class F>
void visit_bytes(size_t size, F f) {
  switch (size) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    case 16:
      return f(Bytes16{});
    default:
      fail(Code::internal, "elements of ", size, " bytes cannot be copied on a GPU");
  }
}

bool is_multiple(const void* pointer, size_t of) {
  return reinterpret_cast<uintptr_t>(pointer) % of == 0;
}

// How many elements one thread may move as a single wider one.
int64_t width_of(const StridedCopy::AxisList& list, size_t size, const void* from, const void* to) {
  if (list.count == 0) return 1;
  const StridedCopy::Axis& row = list.axes[list.count - 1];
  if (row.from != 1 || row.to != 1) return 1;
  for (int64_t width = 16 / static_cast<int64_t>(size); width > 1; width /= 2) {
    bool fits =
        row.extent % width == 0 && is_multiple(from, width * size) && is_multiple(to, width * size);
    for (int i = 0; i + 1 < list.count; ++i)
      fits = fits && list.axes[i].from % width == 0 && list.axes[i].to % width == 0;
    if (fits) return width;
  }
  return 1;
}

}  // namespace

void enqueue_copy(const StridedCopy& copy, const Arguments& a, size_t size, const void* from,
                  void* to) {
  if (copy.elements() == 0) return;
  const StridedCopy::AxisList list = copy.ordered_axes();
  const int64_t width = width_of(list, size, from, to);
  CopyPlan plan;
  for (int i = list.count - 1; i >= 0; --i, ++plan.rank) {
    const StridedCopy::Axis& axis = list.axes[i];
    const bool is_row = width > 1 && plan.rank == 0;
    plan.extents[plan.rank] = is_row ? axis.extent / width : axis.extent;
    plan.from[plan.rank] = is_row ? 1 : axis.from / width;
    plan.to[plan.rank] = is_row ? 1 : axis.to / width;
    plan.elements *= plan.extents[plan.rank];
  }
  const cudaStream_t stream = cuda_stream(a);
  visit_bytes(size * width, [&]<class T>(T) {
    const auto kernel =
        plan.elements <= UINT32_MAX ? copy_kernel<T, uint32_t> : copy_kernel<T, uint64_t>;
    launch(kernel, blocks_for(plan.elements), threads_per_block, 0, stream, plan,
           static_cast<const T*>(from), static_cast<T*>(to));
  });
}

void enqueue_fill(const Arguments& a, size_t size, const void* value, int64_t n, void* to) {
  if (n == 0) return;
  const cudaStream_t stream = cuda_stream(a);
  if (value == nullptr)
    return check_cuda(cudaMemsetAsync(to, 0, static_cast<size_t>(n) * size, stream), "memset");
  visit_bytes(size, [&]<class T>(T) {
    launch(fill_kernel<T>, blocks_for(n), threads_per_block, 0, stream, n,
           static_cast<const T*>(value), static_cast<T*>(to));
  });
}

}  // namespace cuda
}  // namespace leat
