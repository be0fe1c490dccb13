// ConcatOffset: where each tensor of a concatenation begins.
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

template <class T>
BoundKernel prepare_concat_offset(TypeTag<T>, const KernelRequest& request) {
  const int n = static_cast<int>(request.outputs.size());
  const int rank = static_cast<int>(request.inputs[1].shape[0]);
  for (int i = 1; i < n; ++i) {
    check(request.inputs[1 + i].shape[0] == rank, "shape ", i, " should contain ", rank,
          " elements, but has ", request.inputs[1 + i].shape[0]);
  }
  return BoundKernel::of([n, rank](const Arguments& a) {
    const int axis = normalized_axis(*a.input<int32_t>(0), rank);
    T at = 0;
    for (int i = 0; i < n; ++i) {
      for (int d = 0; d < rank; ++d) {
        check(d == axis || a.input<T>(1 + i)[d] == a.input<T>(1)[d], "shape ", i, " has extent ",
              a.input<T>(1 + i)[d], " in axis ", d, ", shape 0 has ", a.input<T>(1)[d]);
      }
      std::fill_n(a.output<T>(i), rank, T(0));
      a.output<T>(i)[axis] = at;
      check(!__builtin_add_overflow(at, a.input<T>(1 + i)[axis], &at),
            "the sum of the extents along axis ", axis, " overflows");
    }
  });
}

const Op concat_offset_op{{
    .name = "ConcatOffset",
    .doc = "offset[i] = where a tensor of shape[i] begins in the concatenation along concat_dim.",
    .inputs = {"concat_dim: int32", "shape: N * shape_type"},
    .outputs = {"offset: N * shape_type"},
    .attrs = {"N: int >= 2", "shape_type: {int32, int64} = int32"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.with_rank(i + 1, 1));
        },
    .kernels = {cpu_kernel(
        "shape_type", Types<int32_t, int64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_concat_offset(t, r); })},
    .examples = {{.inputs = {Tensor::scalar<int32_t>(1), ints({2, 3}), ints({2, 5})},
                  .outputs = {ints({0, 0}), ints({0, 3})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
