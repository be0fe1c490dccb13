// NthElement on the GPU, by digits: a block per row counts the entries by their highest digit,
// which tells the digit of the wanted one; then those that have it by the next digit, and so on.
#include <bit>
#include <limits>
#include <type_traits>

#include "graph/op_def.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda_launch.cuh"
#include "kernels/types.h"

namespace leat {
namespace {

constexpr int bits = 8, digits = 1 << bits;

// An unsigned number for each value, in the order of the values; NaN is the largest.
template <class T>
struct Keys {
  using Value = ComputeType<T>;
  using Key = std::conditional_t<
      sizeof(Value) == 8, uint64_t,
      std::conditional_t<sizeof(Value) == 4, uint32_t,
                         std::conditional_t<sizeof(Value) == 2, uint16_t, uint8_t>>>;
  static constexpr int size = 8 * static_cast<int>(sizeof(Key));
  static constexpr Key sign = static_cast<Key>(Key(1) << (size - 1));
  static constexpr Key largest = static_cast<Key>(~Key(0));

  static constexpr Key of(Value value) {
    if constexpr (std::is_unsigned_v<Value>) {
      return value;
    } else if constexpr (std::is_integral_v<Value>) {
      return static_cast<Key>(static_cast<Key>(value) ^ sign);
    } else {
      if (value != value) return largest;
      const Key own = std::bit_cast<Key>(value);
      return (own & sign) != 0 ? static_cast<Key>(~own) : static_cast<Key>(own | sign);
    }
  }
  static constexpr Value value_of(Key key) {
    if constexpr (std::is_unsigned_v<Value>) {
      return key;
    } else if constexpr (std::is_integral_v<Value>) {
      return static_cast<Value>(key ^ sign);
    } else {
      if (key == largest) return std::numeric_limits<Value>::quiet_NaN();
      return std::bit_cast<Value>((key & sign) != 0 ? static_cast<Key>(key ^ sign)
                                                    : static_cast<Key>(~key));
    }
  }
};

// The counts are integers, so their atomics give the same sums in any order.
template <class T>
__global__ void __launch_bounds__(digits)
    select_kernel(int64_t columns, int64_t place, const T* in, T* out) {
  using Key = typename Keys<T>::Key;
  __shared__ unsigned counts[digits];
  const T* const row = in + blockIdx.x * columns;
  Key known = 0, mask = 0;  // the digits so far
  for (int shift = Keys<T>::size - bits; shift >= 0; shift -= bits) {
    counts[threadIdx.x] = 0;
    __syncthreads();
    for (int64_t c = threadIdx.x; c < columns; c += digits) {
      const Key key = Keys<T>::of(cuda::widened(row[c]));
      if ((key & mask) == known) atomicAdd(&counts[key >> shift & (digits - 1)], 1u);
    }
    __syncthreads();
    int digit = 0;
    for (; place >= counts[digit]; ++digit) place -= counts[digit];
    known = static_cast<Key>(known | static_cast<Key>(digit) << shift);
    mask = static_cast<Key>(mask | static_cast<Key>(digits - 1) << shift);
    __syncthreads();  // all have read the counts
  }
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<T>(Keys<T>::value_of(known));
}

BoundKernel prepare(const KernelRequest& r) {
  const Shape& input = r.inputs[0].shape;
  const int64_t columns = input[input.rank() - 1], rows = r.outputs[0].shape.elements(),
                n = to_int64s(*r.inputs[1].value)[0];
  if (rows == 0) return {};
  check(columns <= UINT32_MAX, "NthElement of rows of ", columns,
        " entries is too large for a GPU");
  const int64_t place = r.attr<bool>("reverse") ? columns - 1 - n : n;
  return visit_type(NumberTypes{}, r.inputs[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return BoundKernel::of([=](const Arguments& a) {
      cuda::launch(select_kernel<T>, cuda::as_blocks(rows), digits, 0, cuda_stream(a), columns,
                   place, a.input<T>(0), a.output<T>());
    });
  });
}

const OpKernels kernels{
    "NthElement",
    {{.device = DeviceType::gpu, .types = {{"T", NumberTypes::list()}}, .prepare = prepare}}};

}  // namespace
}  // namespace leat
