// leat: cpu+cuda
// Cross: products of vectors in three dimensions.
#include "kernels/elementwise.h"

namespace leat {
namespace {

template <class T>
struct CrossProduct {
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    using C = ComputeType<T>;
    const T *const x = p.input<T>(0) + 3 * i, *const y = p.input<T>(1) + 3 * i;
    for (int j = 0; j < 3; ++j) {
      const int k = (j + 1) % 3, l = (j + 2) % 3;
      p.output<T>()[3 * i + j] = static_cast<T>(C(x[k]) * C(y[l]) - C(x[l]) * C(y[k]));
    }
  }
};

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
    .kernels = typed_kernels("T", NumberTypes{},
                             []<class T>(TypeTag<T>, const KernelRequest& r) {
                               return bind_indexed(r, r.outputs[0].shape.elements() / 3, 30,
                                                   CrossProduct<T>{});
                             }),
    .examples = {{.inputs = {floats({1, 0, 0}), floats({0, 1, 0})}, .outputs = {floats({0, 0, 1})}},
                 {.inputs = {ints({1, 2, 3}), ints({4, 5, 6})}, .outputs = {ints({-3, 6, -3})}}},
}};

}  // namespace
}  // namespace leat
