// For shapes unknown when the graph is built: BroadcastArgs, the common shape of two, and
// BroadcastGradientArgs, for the gradients of ops that broadcast.
#include <algorithm>

#include "graph/op_def.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

struct RepeatedAxes {
  std::vector<int64_t> of[2];
};

// TensorFlow's rule: an axis is listed for an operand that lacks it or has extent 1 there; where
// both have extent 1, for both. (To sum such an axis changes nothing.)
RepeatedAxes repeated_axes(const std::vector<int64_t>& s0, const std::vector<int64_t>& s1) {
  const int rank = static_cast<int>(std::max(s0.size(), s1.size()));
  RepeatedAxes out;
  if (s0 == s1) return out;
  for (int axis = 0; axis < rank; ++axis) {
    const int missing0 = rank - static_cast<int>(s0.size());
    const int missing1 = rank - static_cast<int>(s1.size());
    const int64_t extent0 = axis < missing0 ? 1 : s0[axis - missing0];
    const int64_t extent1 = axis < missing1 ? 1 : s1[axis - missing1];
    check(extent0 == extent1 || extent0 == 1 || extent1 == 1, "Incompatible shapes: ", Shape(s0),
          " vs. ", Shape(s1));
    if (extent0 == 1) out.of[0].push_back(axis);
    if (extent1 == 1) out.of[1].push_back(axis);
  }
  return out;
}

void infer(ShapeContext& c) {
  c.with_rank(0, 1);
  c.with_rank(1, 1);
  const Tensor* s0 = c.value(0);
  const Tensor* s1 = c.value(1);
  if (s0 == nullptr || s1 == nullptr) {
    c.set_output(0, {any});
    c.set_output(1, {any});
    return;
  }
  const RepeatedAxes axes = repeated_axes(to_int64s(*s0), to_int64s(*s1));
  for (int i = 0; i < 2; ++i) c.set_output(i, {static_cast<int64_t>(axes.of[i].size())});
}

BoundKernel prepare(const KernelRequest& request) {
  RepeatedAxes axes =
      repeated_axes(to_int64s(*request.inputs[0].value), to_int64s(*request.inputs[1].value));
  const bool wide = request.inputs[0].dtype == i64;
  return BoundKernel::of([axes = std::move(axes), wide](const Arguments& arguments) {
    for (int i = 0; i < 2; ++i) {
      if (wide) {
        std::copy(axes.of[i].begin(), axes.of[i].end(), arguments.output<int64_t>(i));
      } else {
        std::copy(axes.of[i].begin(), axes.of[i].end(), arguments.output<int32_t>(i));
      }
    }
  });
}

const Op broadcast_gradient_args_op{{
    .name = "BroadcastGradientArgs",
    .doc = "r0, r1 = the axes over which a gradient of shape broadcast(s0, s1) is summed to give "
           "one of shape s0, s1.",
    .inputs = {"s0: T", "s1: T"},
    .outputs = {"r0: T", "r1: T"},
    .attrs = {"T: {int32, int64} = int32"},
    .shape = infer,
    .kernels = {{.prepare = prepare},
                {.device = DeviceType::gpu, .prepare = prepare, .host_outputs = {0, 1}}},
    .examples = {{.inputs = {ints({2, 3, 1}), ints({3, 4})}, .outputs = {ints({2}), ints({0})}}},
    .value_inputs = {0, 1},
    .is_not_differentiable = true,
}};

// ---- BroadcastArgs

template <class T>
BoundKernel prepare_args(TypeTag<T>, const KernelRequest& r) {
  const int64_t n0 = r.inputs[0].shape[0], n1 = r.inputs[1].shape[0];
  return BoundKernel::of([n0, n1, rank = std::max(n0, n1)](const Arguments& a) {
    const T *s0 = a.input<T>(0), *s1 = a.input<T>(1);
    for (int64_t axis = 0; axis < rank; ++axis) {
      const T extent0 = axis < rank - n0 ? T(1) : s0[axis - (rank - n0)],
              extent1 = axis < rank - n1 ? T(1) : s1[axis - (rank - n1)];
      check(extent0 == extent1 || extent0 == 1 || extent1 == 1, "Incompatible shapes: axis ", axis,
            " has extents ", extent0, " and ", extent1);
      a.output<T>()[axis] = extent0 == 1 ? extent1 : extent0;
    }
  });
}

const Op broadcast_args_op{{
    .name = "BroadcastArgs",
    .doc = "r0 = the shape that tensors of shapes s0 and s1 are broadcast to.",
    .inputs = {"s0: T", "s1: T"},
    .outputs = {"r0: T"},
    .attrs = {"T: {int32, int64} = int32"},
    .shape =
        [](ShapeContext& c) {
          const Shape s0 = c.with_rank(0, 1), s1 = c.with_rank(1, 1);
          c.set_output(0, {s0[0] == any || s1[0] == any ? any : std::max(s0[0], s1[0])});
        },
    .kernels = {cpu_kernel(
        "T", Types<int32_t, int64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_args(t, r); })},
    .examples = {{.inputs = {ints({2, 1, 4}), ints({3, 1})}, .outputs = {ints({2, 3, 4})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
