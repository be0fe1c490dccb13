// leat: cpu+cuda
// Max and Min over axes. NaN wins; over no elements the result is the lowest or the highest value.
#include "kernels/reduction.h"

namespace leat {
namespace {

struct MaxReducer : Reducer {
  template <class T>
  LEAT_DEVICE static T identity() {
    if constexpr (std::numeric_limits<T>::has_infinity) return -std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::lowest();
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    // Not a >= b || a != a: this is a max instruction, and b != b waits for nothing.
    const T larger = b > a ? b : a;
    return b != b ? b : larger;
  }
};

struct MinReducer : Reducer {
  template <class T>
  LEAT_DEVICE static T identity() {
    if constexpr (std::numeric_limits<T>::has_infinity) return std::numeric_limits<T>::infinity();
    return std::numeric_limits<T>::max();
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    const T smaller = b < a ? b : a;
    return b != b ? b : smaller;
  }
};

// The gradient is divided among the elements that are equal to the result.
void gradient(Gradient& g) {
  const Output chosen = cast(equal(with_reduced_axes(g, g.y()), g.x(0)), g.dy().dtype());
  const Output count = sum(chosen, g.x(1), {.keep_dims = g.attr<bool>("keep_dims")});
  g.dx(0) = chosen * with_reduced_axes(g, g.dy() / count);
}

const Op max_op{{
    .name = "Max",
    .doc = "output = the largest element of input over the axes reduction_indices, which keep_dims "
           "leaves with extent 1.",
    .inputs = {"input: T", "reduction_indices: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"keep_dims: bool = false", "T: realnumbertype", "Tidx: {int32, int64} = int32"},
    .shape = infer_reduction,
    .gradient = gradient,
    .kernels = reduction<MaxReducer>(),
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 4, 3}), ints({1})},
                  .outputs = {floats({2, 4})}}},
    .value_inputs = {1},
}};

const Op min_op{{
    .name = "Min",
    .doc = "output = the smallest element of input over the axes reduction_indices, which "
           "keep_dims leaves with extent 1.",
    .inputs = {"input: T", "reduction_indices: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"keep_dims: bool = false", "T: realnumbertype", "Tidx: {int32, int64} = int32"},
    .shape = infer_reduction,
    .gradient = gradient,
    .kernels = reduction<MinReducer>(),
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 4, 3}), ints({0})},
                  .outputs = {floats({1, 2})}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
