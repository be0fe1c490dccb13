// Where the generator of a random op starts on a GPU: start(pointers).
#pragma once

#include <cstdint>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda_launch.cuh"
#include "kernels/random/random_stream.h"

namespace leat {
namespace {

// Behind what has been taken of a stream.
struct StreamStart {
  Philox start;
  const uint64_t* taken;
  LEAT_DEVICE Philox operator()(const Pointers&) const {
    Philox out = start;
    out.skip(*taken);
    return out;
  }
};

// Two numbers in an input.
template <class Int>
struct SeedStart {
  int input;
  LEAT_DEVICE Philox operator()(const Pointers& p) const {
    const Int* seed = p.input<Int>(input);
    return StatelessSeed(static_cast<uint64_t>(seed[0]), static_cast<uint64_t>(seed[1]))
        .generator();
  }
};

// A key in input 1, a counter in input 2. The algorithm in input 3 is not read: a kernel could not
// report that there is only one.
struct KeyStart {
  LEAT_DEVICE Philox operator()(const Pointers& p) const {
    const uint64_t* counter = p.input<uint64_t>(2);
    Philox out(p.input<uint64_t>(1)[0], counter[1]);
    out.skip(counter[0]);
    return out;
  }
};

// with(start) for the start of a stateless op: a seed in input 1, or a key and a counter.
template <class F>
BoundKernel bind_stateless_start(const KernelRequest& r, F with) {
  if (!r.node.has("Tseed")) return with(KeyStart{});
  const DType seed = r.inputs[1].dtype;
  check(seed == DType::i32 || seed == DType::i64, "Invalid seed type: ", seed);
  return seed == DType::i64 ? with(SeedStart<int64_t>{1}) : with(SeedStart<int32_t>{1});
}

__global__ void count_kernel(uint64_t* taken, uint64_t more) { *taken += more; }

// What has been taken of a stream is counted on the device, so that a step that was recorded draws
// new numbers each time.
inline void count_taken(uint64_t* taken, uint64_t more, cudaStream_t stream) {
  cuda::launch(count_kernel, 1, 1, 0, stream, taken, more);
}

}  // namespace
}  // namespace leat
