// Where: the positions of true elements. Their number depends on the data, so it runs between
// segments.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/moves/strided_copy.h"

namespace leat {
namespace {

template <class T>
Tensor places(const Tensor& condition) {
  using C = ComputeType<T>;
  const T* holds = condition.data<T>();
  const int64_t n = condition.elements();
  const int rank = condition.shape().rank();
  check(rank >= 1, "Where needs an input of rank 1 or more, got a scalar");
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += C(holds[i]) != C(0);
  Tensor out(i64, {count, rank});
  const std::vector<int64_t> strides = strides_of(condition.shape());
  int64_t* row = out.data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    StepEnd::pace(4);
    if (C(holds[i]) == C(0)) continue;
    int64_t rest = i;
    for (int axis = 0; axis < rank; ++axis) {
      *row++ = rest / strides[axis];
      rest %= strides[axis];
    }
  }
  return out;
}

const Op where_op{{
    .name = "Where",
    .doc = "index = the positions of all elements of input that are not 0 (true), one row each, in "
           "row-major order.",
    .inputs = {"input: T"},
    .outputs = {"index: int64"},
    .attrs = {"T: {float, double, int32, uint8, int16, int8, complex64, int64, bfloat16, uint16, "
              "complex128, half, uint32, uint64, bool} = bool"},
    .shape =
        [](ShapeContext& c) {
          c.set_output(0, Shape{any, c.input(0).has_rank() ? c.input(0).rank() : any});
        },
    .kernels = {{.types = {{"T", NumberComplexAndBoolTypes::list()}},
                 .execute =
                     [](ExecuteContext& c) {
                       c.set_output(0, visit_type(NumberComplexAndBoolTypes{}, c.input(0).dtype(),
                                                  [&]<class T>(TypeTag<T>) {
                                                    return places<T>(c.input(0));
                                                  }));
                     }}},
    .examples = {{.inputs = {bools({2, 2}, {true, false, false, true})},
                  .outputs = {longs({2, 2}, {0, 0, 1, 1})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
