// Launches of kernels as calls of a function: `<<<>>>` is no C++, and the tests compile kernels
// with a C++ compiler, too (tests/support/cuda/README.md).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

#include "core/error.h"
#include "kernels/cuda/device/cuda_device.cuh"

namespace leat::cuda {

// As the x extent of a grid. Those of y and z end at 65535.
inline unsigned as_blocks(int64_t blocks) {
  constexpr int64_t most = 2147483647;
  check(blocks <= most, "a GPU kernel would need ", blocks,
        " blocks of threads, and CUDA launches at most ", most, ": use smaller tensors");
  return static_cast<unsigned>(blocks);
}

// kernel<<<grid, block, shared_bytes, stream>>>(arguments…), checked.
template <class... Parameters, class... Given>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
            cudaStream_t stream, Given&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check_cuda(cudaLaunchKernelEx(&config, kernel, std::forward<Given>(arguments)...),
             "kernel launch");
}

}  // namespace leat::cuda
