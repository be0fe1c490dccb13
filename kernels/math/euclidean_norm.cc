// leat: cpu+cuda
// EuclideanNorm: the Euclidean length over the reduced axes.
#include "kernels/reduction.h"
#include "kernels/wrapping.h"

namespace leat {
namespace {

struct NormReducer : Reducer {
  template <class T>
  LEAT_DEVICE static T map(T x) {
    return static_cast<T>(Wrapping<T>(x) * Wrapping<T>(conjugate(x)));
  }
  template <class T>
  LEAT_DEVICE static T identity() {
    return T(0);
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
  template <class T>
  LEAT_DEVICE static T finish(T total, int64_t /*n*/) {
    return static_cast<T>(std::sqrt(total));  // for integers, the fraction is lost
  }
};

const Op norm_op{{
    .name = "EuclideanNorm",
    .doc = "output = the square root of the sum of the squares of input over the axes "
           "reduction_indices, which keep_dims leaves with extent 1.",
    .inputs = {"input: T", "reduction_indices: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"keep_dims: bool = false", "T: numbertype", "Tidx: {int32, int64} = int32"},
    .shape = infer_reduction,
    .gradient =
        [](Gradient& g) {
          const Output share = with_reduced_axes(g, g.dy()) / with_reduced_axes(g, g.y());
          g.dx(0) = g.x(0) * share;
        },
    .kernels = reduction_with_complex<NormReducer>(),
    .examples = {{.inputs = {floats({2, 2}, {3, 4, 5, 12}), ints({1})},
                  .outputs = {floats({5, 13})}}},
    .value_inputs = {1},
    .has_complex_gradient = true,
}};

}  // namespace
}  // namespace leat
