// Assert: ends the step if a condition does not hold.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/control/summarize.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

BoundKernel prepare(const KernelRequest& request) {
  const std::vector<TensorSpec> data(request.inputs.begin() + 1, request.inputs.end());
  return BoundKernel::of([data, limit = request.attr<int64_t>("summarize")](const Arguments& a) {
    if (*a.input<bool>(0)) return;
    std::string message = "assertion failed:";
    for (size_t i = 0; i < data.size(); ++i)
      message += " [" + summarize(data[i], a.inputs[i + 1], limit) + "]";
    fail(Code::invalid_argument, message);
  });
}

const Op assert_op{{
    .name = "Assert",
    .doc = "Fails with INVALID_ARGUMENT and the first `summarize` elements of each of data unless "
           "condition is true.",
    .inputs = {"condition: bool", "data: T"},
    .attrs = {"T: list(type) >= 1", "summarize: int = 3"},
    .shape = [](ShapeContext& c) { c.with_rank(0, 0); },
    .kernels = {cpu_kernel(prepare)},
    .examples = {{.inputs = {Tensor::scalar(true), Tensor::scalar("n must be positive, n ="),
                             Tensor::scalar(3)}}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
