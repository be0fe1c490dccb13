// leat: cpu+cuda
// BroadcastTo: the gradient of sums, also sent by 2.x clients.
#include "kernels/elementwise.h"

namespace leat {
namespace {

struct Repeat {
  static constexpr bool repeats_its_only_operand = true;
  template <class T>
  LEAT_DEVICE T operator()(const T& x) const {
    return x;
  }
};

void infer_broadcast_to(ShapeContext& c) {
  const Shape shape = c.shape_from_value(1);
  if (shape.has_rank()) {
    const Shape in = c.input(0);
    check(!in.has_rank() || in.rank() <= shape.rank(), "input ", in,
          " has more axes than the shape ", shape);
    for (int i = 1; in.has_rank() && i <= in.rank(); ++i) {
      const int64_t mine = in[in.rank() - i], wanted = shape[shape.rank() - i];
      check(mine == any || wanted == any || mine == 1 || mine == wanted,
            "Incompatible shapes: ", in, " vs. ", shape);
    }
  }
  c.set_output(0, shape);
}

template <class Supported>
Kernel broadcast_to_kernel() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"T", Supported::list()}};
  kernel.host_inputs = {1};
  kernel.prepare = [](const KernelRequest& request) {
    if (request.inputs[0].shape == request.outputs[0].shape) return BoundKernel::view();
    const BroadcastPlan plan =
        plan_broadcast(request.outputs[0].shape, {&request.inputs[0].shape, 1});
    return visit_type(Supported{}, request.inputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return bind_elementwise<Repeat, T, T>({}, plan);
    });
  };
  return kernel;
}

std::vector<Kernel> kernels() {
  std::vector<Kernel> out = {broadcast_to_kernel<NumberAndBoolTypes>()};
  if constexpr (has_host_types)
    out.push_back(broadcast_to_kernel<Types<complex64, complex128, std::string>>());
  return out;
}

const Op broadcast_to_op{{
    .name = "BroadcastTo",
    .doc = "output = input, repeated along axes of extent 1 and along new leading axes until it "
           "has `shape`.",
    .inputs = {"input: T", "shape: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Tidx: {int32, int64} = int32"},
    .shape = infer_broadcast_to,
    .gradient = [](Gradient& g) { g.dx(0) = sum_to_shape_of(g.x(0), g.y(), g.dy()); },
    .kernels = kernels(),
    .examples = {{.inputs = {floats({2, 1}, {1, 2}), ints({2, 2})},
                  .outputs = {floats({2, 2}, {1, 1, 2, 2})}},
                 {.inputs = {Tensor::scalar(3), ints({2})}, .outputs = {ints({3, 3})}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
