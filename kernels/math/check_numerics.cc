// CheckNumerics: passes a tensor on unless it holds NaN or an infinity.
#include "kernels/math/check_numerics.h"

#include <cmath>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  using C = ComputeType<T>;
  return BoundKernel::of([n = request.inputs[0].shape.elements(),
                          message = request.attr<std::string>("message")](const Arguments& a) {
           const T* x = a.input<T>(0);
           bool finite = true;
           vectorized([=, &finite]() LEAT_INLINE {
             C zero = 0;  // a finite number times 0 is 0, anything else NaN
             for (int64_t i = 0; i < n; ++i) zero = C(x[i]) * C(0) == C(0) ? zero : C(1);
             finite = zero == C(0);
           });
           if (!finite) {
             const auto holds = [&](auto what) {
               return std::any_of(x, x + n, [&](T value) { return what(C(value)); });
             };
             const bool nan = holds([](C value) { return std::isnan(value); });
             const bool infinite = holds([](C value) { return std::isinf(value); });
             throw_if_error(status_of_numbers(message, nan, infinite));
           }
           if (a.output<T>() != x) std::copy_n(x, n, a.output<T>());
         })
      .sharing(0, 0);
}

const Op check_numerics_op{{
    .name = "CheckNumerics",
    .doc = "output = tensor; INVALID_ARGUMENT with `message` if it holds NaN or an infinity.",
    .inputs = {"tensor: T"},
    .outputs = {"output: T"},
    .attrs = {"T: {bfloat16, half, float, double}", "message: string"},
    .shape = shapes::same_as(0),
    .gradient =
        [](Gradient& g) {
          g.dx() =
              op("CheckNumerics", {g.dy()},
                 {{"message", "Not a number (NaN) or infinity (Inf) values detected in gradient. " +
                                  g.attr<std::string>("message")}});
        },
    .kernels = {cpu_kernel(
        "T", FloatTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({1, 2})},
                  .attrs = {{"message", "loss"}},
                  .outputs = {floats({1, 2})}}},
    .is_stateful = true,
}};

}  // namespace
}  // namespace leat
