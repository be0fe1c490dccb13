// leat: cpu+cuda
// Tile: a tensor repeated along its axes.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/moves/moves.h"

namespace leat {
namespace {

void infer_tile(ShapeContext& c) {
  const Shape in = c.input(0), repeats_shape = c.with_rank(1, 1);
  if (!in.has_rank()) {
    return c.set_output(0, repeats_shape[0] == any
                               ? Shape::unknown()
                               : Shape::of_rank(static_cast<int>(repeats_shape[0])));
  }
  check(repeats_shape[0] == any || repeats_shape[0] == in.rank(),
        "multiples must have one entry per axis: input ", in, ", multiples of shape ",
        repeats_shape);
  Shape out = Shape::of_rank(in.rank());
  if (const Tensor* value = c.value(1)) {
    const std::vector<int64_t> multiples = to_int64s(*value);
    for (int i = 0; i < in.rank(); ++i) {
      check(multiples[i] >= 0, "multiples[", i, "] = ", multiples[i], " is negative");
      if (in[i] != any) out.set(i, product_of_extents(in[i], multiples[i]));
    }
  }
  c.set_output(0, out);
}

// Each axis of the output is a pair: which copy, and where in it.
template <class T>
BoundKernel prepare_tile(TypeTag<T>, const KernelRequest& request) {
  const Shape &in = request.inputs[0].shape, &out = request.outputs[0].shape;
  if (in == out) return BoundKernel::view();
  const std::vector<int64_t> from = strides_of(in), to = strides_of(out);
  std::vector<StridedCopy::Axis> axes;
  for (int i = 0; i < in.rank(); ++i) {
    axes.push_back({in[i] == 0 ? 0 : out[i] / in[i], 0, in[i] * to[i]});
    axes.push_back({in[i], from[i], to[i]});
  }
  return BoundKernel::of([copy = StridedCopy(std::move(axes))](const Arguments& a) {
    copy_strided(copy, a, a.input<T>(0), a.output<T>());
  });
}

// The output as [multiples[0], extent 0, multiples[1], extent 1, …], summed over the multiples.
void tile_gradient(Gradient& g) {
  const Output shape = shape_of(g.x(0), g.x(1).dtype());
  const Output pairs = reshape(transpose(stack({g.x(1), shape})), {-1});
  const Output axes = arange(g.graph(), 0, size_of(pairs), 2);
  g.dx(0) = reshape(sum(reshape(g.dy(), pairs), axes), shape);
}

const Op tile_op{{
    .name = "Tile",
    .doc = "output = input repeated multiples[i] times along axis i: output[k] = input[k mod "
           "extents].",
    .inputs = {"input: T", "multiples: Tmultiples"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Tmultiples: {int32, int64} = int32"},
    .shape = infer_tile,
    .gradient = tile_gradient,
    .kernels = moving_kernels_and_for_variants(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_tile(t, r); }),
    .examples = {{.inputs = {floats({1, 2}, {1, 2}), ints({2, 2})},
                  .outputs = {floats({2, 4}, {1, 2, 1, 2, 1, 2, 1, 2})}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
