// Cross: products of vectors in three dimensions.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

const Op cross_op{{
    .name = "Cross",
    .doc = "product[i…, :] = a[i…, :] × b[i…, :]; the last axis has extent 3.",
    .inputs = {"a: T", "b: T"},
    .outputs = {"product: T"},
    .attrs = {"T: realnumbertype"},
    .shape =
        [](ShapeContext& c) {
          const Shape a = c.with_rank_at_least(0, 1), b = c.with_rank_at_least(1, 1);
          check(a.is_compatible(b), "both inputs must be of same shape: ", a, " and ", b);
          const Shape both = a.merged(b);
          if (both.has_rank()) {
            const int64_t last = both[both.rank() - 1];
            if (last != 3 && last != any) {  // with TensorFlow's code
              fail(Code::failed_precondition,
                   "Cross-products are only defined for 3-element vectors, got ", both);
            }
          }
          c.set_output(0, both);
        },
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("Cross", {g.x(1), g.dy()});
          g.dx(1) = op("Cross", {g.dy(), g.x(0)});
        },
    .kernels = {cpu_kernel("T", NumberTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             using C = ComputeType<T>;
                             return BoundKernel::of([n = r.outputs[0].shape.elements()](
                                                        const Arguments& a) {
                               for (int64_t i = 0; i < n; i += 3) {
                                 const T *x = a.input<T>(0) + i, *y = a.input<T>(1) + i;
                                 for (int j = 0; j < 3; ++j) {
                                   const int k = (j + 1) % 3, l = (j + 2) % 3;
                                   a.output<T>()[i + j] = T(C(x[k]) * C(y[l]) - C(x[l]) * C(y[k]));
                                 }
                               }
                             });
                           })},
    .examples = {{.inputs = {floats({1, 0, 0}), floats({0, 1, 0})}, .outputs = {floats({0, 0, 1})}},
                 {.inputs = {ints({1, 2, 3}), ints({4, 5, 6})}, .outputs = {ints({-3, 6, -3})}}},
}};

}  // namespace
}  // namespace leat
