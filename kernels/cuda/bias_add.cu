// BiasAdd and BiasAddGrad on the GPU: the tensor as [outer, channels, inner], broadcast and
// reduced.
#include "kernels/elementwise.h"
#include "kernels/reduction.h"
#include "kernels/wrapping.h"

namespace leat {
namespace {

struct Add {
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return static_cast<T>(Wrapping<T>(x) + Wrapping<T>(y));
  }
};

struct SumReducer : Reducer {
  template <class T>
  LEAT_DEVICE static T identity() {
    return T(0);
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};

Shape by_channel(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const int channel_axis =
      request.attr<std::string>("data_format") == "NCHW" ? 1 : shape.rank() - 1;
  Shape out = {1, shape[channel_axis], 1};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis == channel_axis) continue;
    const int to = axis < channel_axis ? 0 : 2;
    out.set(to, out[to] * shape[axis]);
  }
  return out;
}

std::vector<Kernel> add_kernels() {
  Kernel kernel;
  kernel.device = DeviceType::gpu;
  kernel.types = {{"T", NumberTypes::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    const Shape shape = by_channel(request);
    const Shape inputs[] = {shape, {shape[1], 1}};
    const BroadcastPlan plan = plan_broadcast(shape, inputs);
    BoundKernel bound = visit_type(NumberTypes{}, request.inputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return bind_elementwise<Add, T, T, T>({}, plan);
    });
    bound.may_share = {{0, 0}};
    return bound;
  };
  return {kernel};
}

std::vector<Kernel> grad_kernels() {
  Kernel kernel;
  kernel.device = DeviceType::gpu;
  kernel.types = {{"T", NumberTypes::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    const ReductionPlan plan = plan_reduction(by_channel(request), {true, false, true});
    return visit_type(NumberTypes{}, request.inputs[0].dtype, [&](auto tag) {
      return bind_reduction<SumReducer, typename decltype(tag)::type>(plan);
    });
  };
  return {kernel};
}

const OpKernels bias_add{"BiasAdd", add_kernels()};
const OpKernels bias_add_grad{"BiasAddGrad", grad_kernels()};

}  // namespace
}  // namespace leat
