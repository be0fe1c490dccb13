// Where the generator of a random op starts on a GPU.
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

__global__ void count_kernel(uint64_t* taken, uint64_t more) { *taken += more; }

// What has been taken of a stream is counted on the device, so that a step that was recorded draws
// new numbers each time.
inline void count_taken(uint64_t* taken, uint64_t more, cudaStream_t stream) {
  cuda::launch(count_kernel, 1, 1, 0, stream, taken, more);
}

}  // namespace
}  // namespace leat
