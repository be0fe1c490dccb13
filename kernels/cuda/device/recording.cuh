// Work that is recorded as a CUDA graph, and launched as one.
#pragma once

#include <cuda_runtime.h>

#include <memory>

#include "core/execution/work_recorder.h"
#include "kernels/cuda/device/cuda_device.cuh"

namespace leat::cuda {

// Where this thread enqueues what is for `stream`: on it, or on the stream of a recording.
cudaStream_t present_stream(const CudaStream& stream);

// One per thread at a time. The stream must outlive what is recorded.
std::unique_ptr<WorkRecording> start_recording(const CudaStream& stream);

}  // namespace leat::cuda
