// Ops whose output is a copy of all bytes: Bitcast and DeepCopy.
#include "graph/op_def.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/types.h"

namespace leat {
namespace {

BoundKernel prepare(const KernelRequest& r) {
  const TensorSpec& input = r.inputs[0];
  const size_t bytes = static_cast<size_t>(input.shape.elements()) * dtype_size(input.dtype);
  if (bytes == 0) return {};
  return BoundKernel::of([bytes](const Arguments& a) {
    cuda::check_cuda(
        cudaMemcpyAsync(a.outputs[0], a.inputs[0], bytes, cudaMemcpyDeviceToDevice, cuda_stream(a)),
        "cudaMemcpyAsync");
  });
}

// For all types of fixed size; strings and variants live on the CPU.
std::vector<Kernel> kernels() {
  return {{.device = DeviceType::gpu,
           .types = {{"T", NumberComplexAndBoolTypes::list()}},
           .prepare = prepare}};
}

const OpKernels bitcast{"Bitcast", kernels()};
const OpKernels deep_copy{"DeepCopy", kernels()};

}  // namespace
}  // namespace leat
