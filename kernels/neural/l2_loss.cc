// leat: cpu+cuda
// L2Loss, for weight decay.
#include "kernels/reduction.h"

namespace leat {
namespace {

struct HalfOfSquares : Reducer {
  template <class T>
  LEAT_DEVICE static T identity() {
    return T(0);
  }
  template <class T>
  LEAT_DEVICE static T map(T x) {
    return x * x;
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    return a + b;
  }
  template <class T>
  LEAT_DEVICE static T finish(T total, int64_t) {
    return total / T(2);
  }
};

std::vector<Kernel> kernels() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"T", FloatTypes::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    const Shape& shape = request.inputs[0].shape;
    const ReductionPlan plan = plan_reduction(shape, std::vector<bool>(shape.rank(), true));
    return visit_type(FloatTypes{}, request.inputs[0].dtype, [&](auto tag) {
      return bind_reduction<HalfOfSquares, typename decltype(tag)::type>(plan);
    });
  };
  return {kernel};
}

const Op l2_loss_op{{
    .name = "L2Loss",
    .doc = "output = Σ t² / 2, a scalar.",
    .inputs = {"t: T"},
    .outputs = {"output: T"},
    .attrs = {"T: {half, bfloat16, float, double}"},
    .shape = shapes::scalar(),
    .gradient = [](Gradient& g) { g.dx() = g.x() * g.dy(); },
    .kernels = kernels(),
    .examples = {{.inputs = {floats({1, 2, 3})}, .outputs = {Tensor::scalar(7.0f)}}},
}};

}  // namespace
}  // namespace leat
