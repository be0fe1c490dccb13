// leat: cpu+cuda
// AddN: sums the gradients of several paths.
#include "kernels/control/variant_arithmetic.h"
#include "kernels/math/functors.h"

namespace leat {
namespace {

template <class Supported>
std::vector<Kernel> kernels() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"T", Supported::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    const int count = static_cast<int>(request.inputs.size());
    if (count == 1) return BoundKernel::view();
    BoundKernel bound = visit_type(Supported{}, request.inputs[0].dtype, [&](auto tag) {
      return bind_fold<Add, typename decltype(tag)::type>(count,
                                                          request.outputs[0].shape.elements());
    });
    bound.may_share = {{0, 0}, {0, 1}};  // the first two are read before the sum is written
    return bound;
  };
  return {kernel};
}

const Op add_n_op{{
    .name = "AddN",
    .doc = "sum = the sum of the inputs, all of one shape.",
    .inputs = {"inputs: N * T"},
    .outputs = {"sum: T"},
    .attrs = {"N: int >= 1", "T: {numbertype, variant}"},
    .shape = shapes::same_for_all(),
    .gradient =
        [](Gradient& g) {
          for (int i = 0; i < g.num_inputs(); ++i) g.dx(i) = g.dy();
        },
    .kernels =
        join(kernels<std::conditional_t<has_host_types, NumberAndComplexTypes, NumberTypes>>(),
             and_on_gpus(variant_kernels([](ExecuteContext& c) {
               Tensor sum = c.input(0);
               for (int i = 1; i < c.num_inputs(); ++i) sum = sum_of_variants(sum, c.input(i));
               c.set_output(0, std::move(sum));
             }))),
    .examples = {{.inputs = {floats({1, 2}), floats({3, 4}), floats({5, 6})},
                  .outputs = {floats({9, 12})}}},
    .is_commutative = true,
}};

}  // namespace
}  // namespace leat
