// Transpose, ConjugateTranspose, and the inverse of their permutation.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/moved_variants.h"
#include "kernels/strided_copy.h"

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

struct Plan {
  StridedCopy copy;
  bool keeps_order = true;  // only axes of extent 1 move
};

Plan plan_of(const KernelRequest& request) {
  const Shape &x = request.inputs[0].shape, &y = request.outputs[0].shape;
  const std::vector<int> perm = permutation_of(*request.inputs[1].value, x.rank());
  const std::vector<int64_t> from = strides_of(x), to = strides_of(y);
  std::vector<StridedCopy::Axis> axes;
  Plan plan;
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

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  Plan plan = plan_of(request);
  if (plan.keeps_order) return BoundKernel::view();
  return BoundKernel::of([copy = std::move(plan.copy)](const Arguments& a) {
    copy.run(*a.stream, a.input<T>(0), a.output<T>());
  });
}

// Copies, then conjugates the copy in place.
template <class T>
BoundKernel prepare_conjugate(TypeTag<T>, const KernelRequest& request) {
  using Element = std::conditional_t<sizeof(T) == 8, uint64_t, complex128>;
  return BoundKernel::of([copy = plan_of(request).copy](const Arguments& a) {
    copy.run(*a.stream, a.input<Element>(0), a.output<Element>());
    T* const y = a.output<T>();
    std::transform(y, y + copy.elements(), y, [](const T& x) { return std::conj(x); });
  });
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

Kernel plain_kernel() {
  return cpu_moving_kernel(
      "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); });
}
Kernel conjugating_kernel() {
  return cpu_kernel("T", ComplexTypes{}, []<class T>(TypeTag<T> t, const KernelRequest& r) {
    return prepare_conjugate(t, r);
  });
}

const Op transpose_op{transposition(
    "Transpose",
    "y[i_0, …, i_n] = x[j_0, …, j_n] with j_perm[k] = i_k: axis k of y is axis perm[k] of x.",
    and_for_variants(plain_kernel()))};
const Op conjugate_transpose_op{
    transposition("ConjugateTranspose", "y = Transpose of x, with conjugated complex numbers.",
                  {conjugating_kernel(), plain_kernel()})};

const Op invert_permutation_op{{
    .name = "InvertPermutation",
    .doc = "y[x[i]] = i.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = {"T: {int32, int64} = int32"},
    .shape = [](ShapeContext& c) { c.set_output(0, c.with_rank(0, 1)); },
    .kernels = {cpu_kernel("T", Types<int32_t, int64_t>{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return BoundKernel::of([n = r.inputs[0].shape[0]](const Arguments& a) {
                               T* y = a.output<T>();
                               std::fill_n(y, n, T(-1));
                               for (int64_t i = 0; i < n; ++i) {
                                 const int64_t x = a.input<T>(0)[i];
                                 check(x >= 0 && x < n && y[x] == -1, "x[", i, "] = ", x,
                                       " is out of range or appears twice in a permutation of ", n);
                                 y[x] = static_cast<T>(i);
                               }
                             });
                           })},
    .examples = {{.inputs = {ints({2, 0, 1})}, .outputs = {ints({1, 2, 0})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
