// leat: cpu+cuda
// Sum and Mean.
#include "kernels/sum_reducer.h"

namespace leat {
namespace {

// Integers are added up in 64 bits: the mean of many bytes is a byte.
struct MeanReducer : SumReducer {
  template <class T>
  using Accumulator = std::conditional_t<std::is_integral_v<T>,
                                         std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                                         ComputeType<T>>;
  template <class T>
  LEAT_DEVICE static T finish(T total, int64_t n) {
    if constexpr (std::is_integral_v<T>) {
      return n == 0 ? T(0) : total / static_cast<T>(n);
    } else {
      if constexpr (is_complex_type<T>) {
        if (n == 0) return T(0);  // as in TensorFlow
      }
      return total / static_cast<T>(n);  // NaN for no elements
    }
  }
};

void sum_gradient(Gradient& g) {
  g.dx(0) = broadcast_to(with_reduced_axes(g, g.dy()), shape_of(g.x(0)));
}

void mean_gradient(Gradient& g) {
  const Shape& all = g.x(0).shape();
  const Shape& kept = g.y().shape();
  Output share;
  if (all.is_complete() && kept.is_complete()) {
    const double n =
        kept.elements() == 0 ? 1 : static_cast<double>(all.elements() / kept.elements());
    share = g.dy() * (1 / std::max(n, 1.0));
  } else {
    const auto size = [&](const Output& of) {
      return prod(shape_of(of), constant(g.graph(), ints({0})));
    };
    const Output n = floor_div(size(g.x(0)), maximum(size(g.y()), 1));
    share = g.dy() / cast(maximum(n, 1), g.dy().dtype());
  }
  g.dx(0) = broadcast_to(with_reduced_axes(g, share), shape_of(g.x(0)));
}

const Op sum_op{{
    .name = "Sum",
    .doc = "output = the sum of input over the axes reduction_indices, which keep_dims leaves with "
           "extent 1.",
    .inputs = {"input: T", "reduction_indices: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"keep_dims: bool = false", "T: numbertype", "Tidx: {int32, int64} = int32"},
    .shape = infer_reduction,
    .gradient = sum_gradient,
    .kernels = reduction_with_complex<SumReducer>(),
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({1})},
                  .outputs = {floats({6, 15})}},
                 {.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({-2})},
                  .outputs = {floats({5, 7, 9})}},
                 {.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({0, 1})},
                  .attrs = {{"keep_dims", true}},
                  .outputs = {floats({1, 1}, {21})}}},
    .value_inputs = {1},
}};

const Op mean_op{{
    .name = "Mean",
    .doc = "output = the mean of input over the axes reduction_indices, which keep_dims leaves "
           "with extent 1.",
    .inputs = {"input: T", "reduction_indices: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"keep_dims: bool = false", "T: numbertype", "Tidx: {int32, int64} = int32"},
    .shape = infer_reduction,
    .gradient = mean_gradient,
    .kernels = reduction_with_complex<MeanReducer>(),
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 6}), ints({0})}, .outputs = {floats({2, 4})}},
                 {.inputs = {floats({4}, {1, 2, 3, 6}), Tensor::scalar(0)},
                  .outputs = {Tensor::scalar(3.0f)}},
                 {.inputs = {ints({2147483647, 5}), ints({0})},
                  .outputs = {Tensor::scalar<int32_t>(1073741826)}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
