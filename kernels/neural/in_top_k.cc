// InTopKV2: is the true class among the k most probable ones?
#include <cmath>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// A class is in the top k if fewer than k classes are more probable. A row with a prediction that
// is not finite, or with a target that is not a class, is not in the top k.
template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  const int64_t rows = request.inputs[0].shape[0], columns = request.inputs[0].shape[1];
  // In InTopK, the predecessor of InTopKV2, k is an attribute.
  const bool is_input = request.inputs.size() > 2;
  const int64_t given = is_input ? 0 : request.attr<int64_t>("k");
  return BoundKernel::of([rows, columns, is_input, given](const Arguments& a) {
    const int64_t k = is_input ? int64_t{*a.input<T>(2)} : given;
    for (int64_t r = 0; r < rows; ++r) {
      StepEnd::pace(columns);
      const float* row = a.input<float>(0) + r * columns;
      const int64_t target = a.input<T>(1)[r];
      bool possible = target >= 0 && target < columns && std::isfinite(row[target]);
      int64_t better = 0;
      for (int64_t c = 0; possible && c < columns; ++c) {
        possible = std::isfinite(row[c]);
        better += row[c] > row[target];
      }
      a.output<bool>()[r] = possible && better < k;
    }
  });
}

void infer(ShapeContext& c) {
  const Shape predictions = c.with_rank(0, 2), targets = c.with_rank(1, 1);
  if (c.num_inputs() > 2) c.with_rank(2, 0);
  c.set_output(0, Shape{predictions[0]}.merged(targets));
}

const Op in_top_k_v1_op{{
    .name = "InTopK",
    .doc = "InTopKV2 with k as an attribute.",
    .inputs = {"predictions: float", "targets: T"},
    .outputs = {"precision: bool"},
    .attrs = {"k: int", "T: {int32, int64} = int32"},
    .shape = infer,
    .kernels = {cpu_kernel(
        "T", Types<int32_t, int64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({2, 3}, {0.1f, 0.3f, 0.6f, 0.1f, 0.3f, 0.6f}), ints({1, 0})},
                  .attrs = {{"k", int64_t{2}}},
                  .outputs = {bools({true, false})}}},
    .is_not_differentiable = true,
}};

const Op in_top_k_op{{
    .name = "InTopKV2",
    .doc = "precision[i] = whether fewer than k entries of predictions[i] are larger than "
           "predictions[i, targets[i]].",
    .inputs = {"predictions: float", "targets: T", "k: T"},
    .outputs = {"precision: bool"},
    .attrs = {"T: {int32, int64} = int32"},
    .shape = infer,
    .kernels = {cpu_kernel(
        "T", Types<int32_t, int64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({2, 3}, {0.1f, 0.3f, 0.6f, 0.1f, 0.3f, 0.6f}), ints({1, 0}),
                             Tensor::scalar<int32_t>(2)},
                  .outputs = {bools({true, false})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
