// InvertPermutation: the inverse of a permutation of axes.
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

const Op invert_permutation_op{{
    .name = "InvertPermutation",
    .doc = "y[x[i]] = i.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = {"T: {int32, int64} = int32"},
    .shape = [](ShapeContext& c) { c.set_output(0, c.with_rank(0, 1)); },
    .kernels = {cpu_kernel("T", Types<int32_t, int64_t>{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return BoundKernel::of([n = r.inputs[0].shape[0]](const Arguments& a) {
                               T* y = a.output<T>();
                               std::fill_n(y, n, T(-1));
                               for (int64_t i = 0; i < n; ++i) {
                                 const int64_t x = a.input<T>(0)[i];
                                 check(x >= 0 && x < n && y[x] == -1, "x[", i, "] = ", x,
                                       " is out of range or appears twice in a permutation of ", n);
                                 y[x] = static_cast<T>(i);
                               }
                             });
                           })},
    .examples = {{.inputs = {ints({2, 0, 1})}, .outputs = {ints({1, 2, 0})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
