// leat: cpu+cuda
// Prod.
#include "kernels/reduction.h"

#include "kernels/math/complex_math.h"
#include "kernels/wrapping.h"

namespace leat {
namespace {

struct ProdReducer : Reducer {
  template <class T>
  LEAT_DEVICE static T identity() {
    return T(1);
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    return static_cast<T>(product(Wrapping<T>(a), Wrapping<T>(b)));
  }
};

// dy times, for each element, the product of all others. One axis after the other: the others along
// an axis are those before and those after, so that zeros need no division.
void gradient(Gradient& g) {
  const Output dy = with_reduced_axes(g, g.dy());
  const Tensor indices = constant_value(g.x(1));
  const Output x = g.x(0);
  if (!indices.is_valid() ||
      !x.shape().has_rank()) {  // wrong next to a zero, but nothing else is known
    g.dx(0) = dy * (with_reduced_axes(g, g.y()) / x);
    return;
  }
  const std::vector<bool> reduced = reduced_axes(indices, x.shape().rank());
  Output product = x;
  Output dx = broadcast_to(dy, shape_of(x));
  for (int axis = 0; axis < static_cast<int>(reduced.size()); ++axis) {
    if (!reduced[axis]) continue;
    const auto along = [&](bool reverse) {
      return op("Cumprod", {product, constant(g.graph(), Tensor::scalar(axis))},
                {{"exclusive", true}, {"reverse", reverse}});
    };
    dx = dx * (along(false) * along(true));
    product = prod(product, axis, {.keep_dims = true});
  }
  g.dx(0) = dx;
}

const Op prod_op{{
    .name = "Prod",
    .doc = "output = the product of input over the axes reduction_indices, which keep_dims leaves "
           "with extent 1.",
    .inputs = {"input: T", "reduction_indices: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"keep_dims: bool = false", "T: numbertype", "Tidx: {int32, int64} = int32"},
    .shape = infer_reduction,
    .gradient = gradient,
    .kernels = reduction_with_complex<ProdReducer>(),
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({1})},
                  .outputs = {floats({6, 120})}},
                 {.inputs = {ints({}), ints({0})}, .outputs = {Tensor::scalar(1)}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
