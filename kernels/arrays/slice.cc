// leat: cpu+cuda
// Slice: a box of a tensor.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/moves/moves.h"

namespace leat {
namespace {

void infer(ShapeContext& c) {
  const Shape in = c.input(0);
  const int64_t indices = std::max(c.with_rank(1, 1)[0], c.with_rank(2, 1)[0]);
  const Tensor *begin = c.value(1), *size = c.value(2);
  const int rank = in.has_rank() ? in.rank() : static_cast<int>(indices);
  if (rank < 0) return c.set_output(0, Shape::unknown());
  for (int i : {1, 2}) {
    const int64_t entries = c.with_rank(i, 1)[0];
    check(entries == any || entries == rank,
          "begin and size must have one entry per axis of the input ", in, ", got ", entries);
  }
  Shape out = Shape::of_rank(rank);
  for (int i = 0; size != nullptr && i < rank; ++i) {
    const int64_t extent = in.has_rank() ? in[i] : any;
    const int64_t first = begin != nullptr ? to_int64s(*begin)[i] : any,
                  count = to_int64s(*size)[i];
    check(count >= -1, "size[", i, "] = ", count, " is negative");
    check(begin == nullptr || first >= 0, "begin[", i, "] = ", first, " is negative");
    if (extent != any && begin != nullptr) {
      check(first <= extent, "Expected begin[", i, "] in [0, ", extent, "], but got ", first);
      const int64_t wanted = count == -1 ? extent - first : count;
      check(wanted >= 0 && wanted <= extent - first, "Expected size[", i, "] in [0, ",
            extent - first, "], but got ", count, " (begin ", first, ", extent ", extent, ")");
      out.set(i, wanted);
    } else {
      out.set(i, count);
    }
  }
  c.set_output(0, out);
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  const Shape &in = request.inputs[0].shape, &out = request.outputs[0].shape;
  if (in == out) return BoundKernel::view();
  const std::vector<int64_t> begin = to_int64s(*request.inputs[1].value), from = strides_of(in),
                             to = strides_of(out);
  std::vector<StridedCopy::Axis> axes;
  int64_t offset = 0;
  for (int i = 0; i < in.rank(); ++i) {
    axes.push_back({out[i], from[i], to[i]});
    offset += begin[i] * from[i];
  }
  return BoundKernel::of([copy = StridedCopy(std::move(axes)), offset](const Arguments& a) {
    copy_strided(copy, a, a.input<T>(0) + offset, a.output<T>());
  });
}

// Zeros around dy: the gradient of the same box taken by StridedSlice.
void gradient(Gradient& g) {
  const Output begin = g.x(1), shape = shape_of(g.x(0), begin.dtype()),
               size = shape_of(g.y(), begin.dtype());
  g.dx(0) = strided_slice_grad(shape, begin, begin + size, ones_like(begin), g.dy());
}

const Op slice_op{{
    .name = "Slice",
    .doc = "output = input[begin[0] : begin[0] + size[0], …]; a size of -1 means up to the end.",
    .inputs = {"input: T", "begin: Index", "size: Index"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Index: {int32, int64}"},
    .shape = infer,
    .gradient = gradient,
    .kernels = moving_kernels_and_for_variants(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); }),
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({0, 1}), ints({-1, 2})},
                  .outputs = {floats({2, 2}, {2, 3, 5, 6})}}},
    .value_inputs = {1, 2},
}};

}  // namespace
}  // namespace leat
