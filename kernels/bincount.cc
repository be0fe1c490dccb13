// Bincount and DenseBincount: histograms of small integers.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using BinTypes = Types<float, double, int32_t, int64_t>;

int64_t checked_size(const Tensor& size) {
  check(size.shape().rank() == 0, "size must be a scalar, got shape ", size.shape());
  const int64_t n = to_int64s(size)[0];
  check(n >= 0, "size (", n, ") must be non-negative");
  return n;
}

// Rows of counts, or of sums of weights; numbers from `size` on are left out.
template <class T, class Index>
BoundKernel bind(const KernelRequest& r, bool binary) {
  const Shape &input = r.inputs[0].shape, &weights = r.inputs[2].shape;
  check(weights.elements() == 0 || weights == input,
        "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts "
        "as all weights equal to 1. Received ",
        weights, " for ", input);
  const int64_t size = to_int64s(*r.inputs[1].value)[0], n = input.elements();
  const int64_t rows = r.outputs[0].shape.rank() == 2 ? input[0] : 1;
  const bool is_weighted = weights.elements() > 0;
  return BoundKernel::of([=](const Arguments& a) {
    std::fill_n(a.output<T>(), rows * size, T(0));
    for (int64_t i = 0; i < n; ++i)
      check(a.input<Index>(0)[i] >= 0, "Input arr must be non-negative!");
    for (int64_t i = 0; i < n; ++i) {
      const int64_t bin = a.input<Index>(0)[i];
      if (bin >= size) continue;
      T& to = a.output<T>()[i / (n / rows) * size + bin];
      to = binary ? T(1) : T(to + (is_weighted ? a.input<T>(2)[i] : T(1)));
    }
  });
}

const Op bincount_op{{
    .name = "Bincount",
    .doc =
        "bins[k] = the sum of weights[i] over all i with arr[i] = k < size; empty weights are 1.",
    .inputs = {"arr: int32", "size: int32", "weights: T"},
    .outputs = {"bins: T"},
    .attrs = {"T: {int32, int64, float, double}"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          c.set_output(0, Shape{c.value(1) == nullptr ? any : checked_size(*c.value(1))});
        },
    .kernels = {cpu_kernel(
        "T", BinTypes{},
        []<class T>(TypeTag<T>, const KernelRequest& r) { return bind<T, int32_t>(r, false); })},
    .examples = {{.inputs = {ints({1, 3, 1, 9}), Tensor::scalar(4), ints({})},
                  .outputs = {ints({0, 2, 0, 1})}},
                 {.inputs = {ints({1, 0, 1}), Tensor::scalar(2), floats({1, 2, 0.5f})},
                  .outputs = {floats({2, 1.5f})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

const Op dense_bincount_op{{
    .name = "DenseBincount",
    .doc = "output[k] = the sum of weights[i] over all i with input[i] = k < size, in each row of "
           "a matrix on its own; empty weights are 1. With binary_output: 1 where there is any.",
    .inputs = {"input: Tidx", "size: Tidx", "weights: T"},
    .outputs = {"output: T"},
    .attrs = {"Tidx: {int32, int64}", "T: {int32, int64, float, double}",
              "binary_output: bool = false"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          const int64_t size = c.value(1) == nullptr ? any : checked_size(*c.value(1));
          const Shape& input = c.input(0);
          if (!input.has_rank()) return c.set_output(0, Shape::unknown());
          check(input.rank() <= 2, "Shape must be at most rank 2 but is rank ", input.rank());
          c.set_output(0, input.rank() == 2 ? Shape{input[0], size} : Shape{size});
        },
    .kernels = {cpu_kernel("T", BinTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             const bool binary = r.attr<bool>("binary_output");
                             return r.inputs[0].dtype == DType::i64 ? bind<T, int64_t>(r, binary)
                                                                    : bind<T, int32_t>(r, binary);
                           })},
    .examples = {{.inputs = {ints({2, 2}, {1, 1, 0, 2}), Tensor::scalar(3), ints({})},
                  .outputs = {ints({2, 3}, {0, 2, 0, 1, 0, 1})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
