// The schema of Transpose and ConjugateTranspose, and how their elements move.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/arrays/transpose.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// The permutation, checked.
std::vector<int> permutation_of(const Tensor& value, int rank) {
  const std::vector<int64_t> numbers = to_int64s(value);
  check(static_cast<int>(numbers.size()) == rank, "transpose expects a permutation of size ", rank,
        ", but perm has ", numbers.size(), " entries");
  std::vector<int> perm(rank);
  std::array<bool, Shape::max_rank> seen{};
  for (int i = 0; i < rank; ++i) {
    perm[i] = normalized_axis(numbers[i], rank);
    check(!seen[perm[i]], "perm names axis ", perm[i], " twice");
    seen[perm[i]] = true;
  }
  return perm;
}

void infer(ShapeContext& c) {
  Shape x = c.input(0);
  const Shape perm_shape = c.with_rank(1, 1);
  if (!x.has_rank() && perm_shape[0] == any) return c.set_output(0, Shape::unknown());
  if (!x.has_rank()) x = Shape::of_rank(static_cast<int>(perm_shape[0]));
  const Tensor* perm = c.value(1);
  if (perm == nullptr) {
    check(perm_shape[0] == any || perm_shape[0] == x.rank(),
          "transpose expects a permutation of size ", x.rank(), ", but perm has shape ",
          perm_shape);
    return c.set_output(0, Shape::of_rank(x.rank()));
  }
  Shape out = x;
  const std::vector<int> order = permutation_of(*perm, x.rank());
  for (int i = 0; i < x.rank(); ++i) out.set(i, x[order[i]]);
  c.set_output(0, out);
}

}  // namespace

Transposition transposition_of(const KernelRequest& request) {
  const Shape &x = request.inputs[0].shape, &y = request.outputs[0].shape;
  const std::vector<int> perm = permutation_of(*request.inputs[1].value, x.rank());
  const std::vector<int64_t> from = strides_of(x), to = strides_of(y);
  std::vector<StridedCopy::Axis> axes;
  Transposition plan;
  int last = -1;
  for (int i = 0; i < y.rank(); ++i) {
    axes.push_back({y[i], from[perm[i]], to[i]});
    if (y[i] == 1) continue;
    plan.keeps_order = plan.keeps_order && perm[i] > last;
    last = perm[i];
  }
  plan.copy = StridedCopy(std::move(axes));
  return plan;
}

OpDef transposition(std::string name, std::string doc, std::vector<Kernel> kernels) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {"x: T", "perm: Tperm"},
      .outputs = {"y: T"},
      .attrs = {"T: type", "Tperm: {int32, int64} = int32"},
      .shape = infer,
      .gradient =
          [](Gradient& g) {
            g.dx(0) = op(g.node().op->name, {g.dy(), invert_permutation(g.x(1))});
          },
      .kernels = std::move(kernels),
      .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({1, 0})},
                    .outputs = {floats({3, 2}, {1, 4, 2, 5, 3, 6})}}},
      .value_inputs = {1},
      .has_complex_gradient = true,
  };
}

}  // namespace leat
