// AssignAdd and AssignSub on the GPU, on references and resources; assign.cc has the CPU kernels.
#include "graph/op_def.h"
#include "kernels/cuda_launch.cuh"
#include "kernels/wrapping.h"

namespace leat {
namespace {

template <class T, bool subtract>
struct AddInPlace {
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    using W = Wrapping<ComputeType<T>>;
    const W held = static_cast<W>(cuda::widened(p.ref<T>(0)[i]));
    const W value = static_cast<W>(cuda::widened(p.input<T>(1)[i]));
    p.ref<T>(0)[i] = static_cast<T>(subtract ? held - value : held + value);
  }
};

template <bool subtract>
std::vector<Kernel> kernels(const char* type_attr) {
  return {{.device = DeviceType::gpu,
           .types = {{type_attr, NumberTypes::list()}},
           .prepare = [](const KernelRequest& request) {
             const TensorSpec &variable = request.inputs[0], &value = request.inputs[1];
             check(variable.shape == value.shape, request.node.op,
                   " requires shapes of both tensors to match. lhs shape= ", variable.shape,
                   " rhs shape= ", value.shape);
             return visit_type(NumberTypes{}, value.dtype, [&](auto tag) {
               using T = typename decltype(tag)::type;
               return bind_indexed(request, value.shape.elements(), 0, AddInPlace<T, subtract>{});
             });
           }}};
}

const OpKernels add{"AssignAdd", kernels<false>("T")};
const OpKernels subtract{"AssignSub", kernels<true>("T")};
const OpKernels add_variable{"AssignAddVariableOp", kernels<false>("dtype")};
const OpKernels subtract_variable{"AssignSubVariableOp", kernels<true>("dtype")};

}  // namespace
}  // namespace leat
