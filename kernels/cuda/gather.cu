// Gather, GatherV2 and ResourceGather on the GPU. As in TensorFlow, an index out of range gives
// zeros: a kernel cannot report it.
#include "kernels/arrays/gather.h"

#include "graph/op_def.h"
#include "kernels/cuda_launch.cuh"

namespace leat {
namespace {

// One element of the output. T is as large as an element.
template <class T, class Index>
struct MoveElement {
  GatherExtents e;

  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const int64_t row_of_output = i / e.inner;
    const int64_t block = row_of_output / e.count;  // batch and outer
    const int64_t at = block / e.outer * e.count + row_of_output % e.count;
    const int64_t row = p.input<Index>(1)[at];
    const bool is_there = row >= 0 && row < e.rows;
    p.output<T>()[i] =
        is_there ? p.input<T>(0)[(block * e.rows + row) * e.inner + i % e.inner] : T{};
  }
};

template <class T>
BoundKernel bind(const KernelRequest& request, const GatherExtents& e) {
  const int64_t n = request.outputs[0].shape.elements();
  switch (request.inputs[1].dtype) {
    case DType::i64:
      return bind_indexed(request, n, 0, MoveElement<T, int64_t>{e});
    case DType::i16:
      return bind_indexed(request, n, 0, MoveElement<T, int16_t>{e});
    default:
      return bind_indexed(request, n, 0, MoveElement<T, int32_t>{e});
  }
}

BoundKernel prepare(const KernelRequest& request, const GatherExtents& e) {
  switch (dtype_size(request.outputs[0].dtype)) {
    case 1:
      return bind<uint8_t>(request, e);
    case 2:
      return bind<uint16_t>(request, e);
    case 4:
      return bind<uint32_t>(request, e);
    default:
      return bind<uint64_t>(request, e);
  }
}

std::vector<Kernel> kernels(const char* type_attr, GatherExtents (*extents)(const KernelRequest&),
                            std::vector<int> host_inputs = {}) {
  Kernel kernel;
  kernel.device = DeviceType::gpu;
  kernel.types = {{type_attr, NumberAndBoolTypes::list()}};
  kernel.host_inputs = std::move(host_inputs);
  kernel.prepare = [extents](const KernelRequest& request) {
    return prepare(request, extents(request));
  };
  return {kernel};
}

const OpKernels gather{"Gather", kernels("Tparams", gather_extents)};
const OpKernels gather_v2{"GatherV2", kernels("Tparams", gather_v2_extents, {2})};
const OpKernels resource_gather{"ResourceGather", kernels("dtype", resource_gather_extents)};

}  // namespace
}  // namespace leat
