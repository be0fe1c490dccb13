// UnsortedSegmentJoin: strings joined by segments.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"

namespace leat {
namespace {

void infer(ShapeContext& c) {
  const Shape &inputs = c.input(0), &ids = c.input(1);
  c.with_rank(2, 0);
  check(ids.rank() != 0, "segment_ids cannot have rank 0");
  if (!inputs.has_rank() || !ids.has_rank()) return c.set_output(0, Shape::unknown());
  if (ids.rank() > inputs.rank()) {
    fail(Code::out_of_range, "Invalid segment_ids rank ", ids.rank(), " for input with ",
         inputs.rank(), " dimension(s)");
  }
  for (int axis = 0; axis < ids.rank(); ++axis) {
    check(ids[axis] == any || inputs[axis] == any || ids[axis] == inputs[axis],
          "Segment dimension is ", ids[axis], " while input dimension is ", inputs[axis],
          " in rank ", axis);
  }
  int64_t segments = any;
  if (const Tensor* value = c.value(2)) {
    segments = to_int64s(*value)[0];
    check(segments >= 0, "num_segments ", segments, " is negative");
  }
  c.set_output(0, rows_of(segments, inputs, ids.rank()));
}

template <class Index>
BoundKernel prepare(TypeTag<Index>, const KernelRequest& r) {
  const int64_t segments = to_int64s(*r.inputs[2].value)[0], n = r.inputs[1].shape.elements(),
                total = r.outputs[0].shape.elements();
  const int64_t width = n == 0 ? 0 : r.inputs[0].shape.elements() / n;
  return BoundKernel::of([=, separator = r.attr<std::string>("separator")](const Arguments& a) {
    std::string* to = a.output<std::string>();
    for (int64_t i = 0; i < total; ++i) to[i].clear();
    for (int64_t i = 0; i < n; ++i) {
      StepEnd::pace(32 * width);
      const int64_t id = a.input<Index>(1)[i];
      check(id >= 0 && id < segments, "segment_ids[", i, "] = ", id, " is not in [0, ", segments,
            ")");
      for (int64_t k = 0; k < width; ++k) {
        std::string& joined = to[id * width + k];
        if (!joined.empty()) joined += separator;
        joined += a.input<std::string>(0)[i * width + k];
      }
    }
  });
}

const Op join_op{{
    .name = "UnsortedSegmentJoin",
    .doc = "output[k] = the strings inputs[i] with segment_ids[i] = k, joined by separator (left "
           "out as long as the result is empty).",
    .inputs = {"inputs: string", "segment_ids: Tindices", "num_segments: Tnumsegments"},
    .outputs = {"output: string"},
    .attrs = {"separator: string = ''", "Tindices: {int32, int64}",
              "Tnumsegments: {int32, int64} = int32"},
    .shape = infer,
    .kernels = {cpu_kernel(
        "Tindices", Types<int32_t, int64_t>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {texts({"a", "b", "c"}), ints({0, 2, 0}), Tensor::scalar(3)},
                  .attrs = {{"separator", ","}},
                  .outputs = {texts({"a,c", "", "b"})}}},
    .value_inputs = {2},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
