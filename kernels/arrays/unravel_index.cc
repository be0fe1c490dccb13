// UnravelIndex: converts indices in row-major order to coordinates.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  check(r.inputs[0].shape.rank() <= 1, "The indices can only be scalar or vector, got ",
        r.inputs[0].shape);
  check(r.inputs[0].shape.elements() > 0, "received empty tensor indices");
  return BoundKernel::of(
      [n = r.inputs[0].shape.elements(), rank = r.inputs[1].shape[0]](const Arguments& a) {
        const T *indices = a.input<T>(0), *dims = a.input<T>(1);
        T count = 1;
        for (int64_t axis = 0; axis < rank; ++axis) {
          check(dims[axis] > 0, "Input dims cannot contain a dim of zero, but dims[", axis, "] is ",
                dims[axis]);
          check(!__builtin_mul_overflow(count, dims[axis], &count),
                "Input dims product is causing integer overflow: it does not fit ", dtype_of<T>);
        }
        for (int64_t i = 0; i < n; ++i) {
          StepEnd::pace(32);
          int64_t rest = indices[i];
          check(rank == 0 || rest < count, "index is out of bound as with dims: ", rest,
                " is not below ", count);
          for (int64_t axis = rank; axis-- > 0; rest /= dims[axis])
            a.output<T>()[axis * n + i] = static_cast<T>(rest % dims[axis]);
        }
      });
}

const Op unravel_op{{
    .name = "UnravelIndex",
    .doc = "output[:, i] = the index in a tensor of shape dims of its element indices[i].",
    .inputs = {"indices: Tidx", "dims: Tidx"},
    .outputs = {"output: Tidx"},
    .attrs = {"Tidx: {int32, int64} = int32"},
    .shape =
        [](ShapeContext& c) {
          const Shape indices = c.input(0), dims = c.with_rank(1, 1);
          if (!indices.has_rank()) return c.set_output(0, Shape::unknown());
          c.set_output(0, indices.rank() == 0 ? dims : Shape{dims[0], indices.elements()});
        },
    .kernels = {cpu_kernel(
        "Tidx", Types<int32_t, int64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {ints({22, 41, 37}), ints({7, 6})},
                  .outputs = {ints({2, 3}, {3, 6, 6, 4, 5, 1})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
