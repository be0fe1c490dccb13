// Optimizer updates of single rows: gradients of gathers touch few rows of a large table.
#include <cmath>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/resource_form.h"

namespace leat {
namespace {

constexpr int grad_input = 3, indices_input = 4;

// Inputs: var, accum, lr, grad, indices, and perhaps another scalar.
void infer(ShapeContext& c) {
  const Shape var = c.with_rank_at_least(0, 1), grad = c.with_rank_at_least(grad_input, 1);
  const Shape indices = c.with_rank(indices_input, 1);
  c.with_rank(2, 0);
  if (c.num_inputs() > 5) c.with_rank(5, 0);
  check(var.is_compatible(c.input(1)), "var has shape ", var, ", accum ", c.input(1));
  if (var.has_rank() && grad.has_rank()) {
    Shape expected{indices[0]};
    for (int i = 1; i < var.rank(); ++i) expected.push_back(var[i]);
    check(expected.is_compatible(grad), "grad must hold a row of var for each index, ", expected,
          ", but has shape ", grad);
  }
  if (c.num_outputs() > 0) c.set_output(0, var.merged(c.input(1)));
}

// Calls loop(arguments, first element of the row in var, first element of it in grad, row length)
// for one index after the other: where one comes twice, both updates count.
template <class T, class Index, class Loop>
BoundKernel update_rows(const KernelRequest& request, Loop loop) {
  const Shape& var = request.inputs[0].shape;
  const int64_t rows = var[0], count = request.inputs[indices_input].shape.elements(),
                row = rows == 0 ? 0 : var.elements() / rows;
  check(var == request.inputs[1].shape, request.node.op, ": var has shape ", var, ", accum ",
        request.inputs[1].shape);
  return BoundKernel::of([=](const Arguments& a) {
    const Index* indices = a.input<Index>(indices_input);
    for (int64_t i = 0; i < count; ++i) {  // all are checked before any row changes
      check(indices[i] >= 0 && indices[i] < rows, "Index ", indices[i], " at offset ", i,
            " in indices is out of range [0, ", rows, ")");
    }
    for (int64_t i = 0; i < count; ++i)
      loop(a, static_cast<int64_t>(indices[i]) * row, i * row, row);
  });
}

template <class T, class Loop>
BoundKernel update_rows(const KernelRequest& request, Loop loop) {
  return request.inputs[indices_input].dtype == DType::i64 ? update_rows<T, int64_t>(request, loop)
                                                           : update_rows<T, int32_t>(request, loop);
}

template <class T, bool nesterov>
BoundKernel prepare_momentum(const KernelRequest& request) {
  return update_rows<T>(request, [](const Arguments& a, int64_t at, int64_t from, int64_t n) {
    using C = ComputeType<T>;
    const C rate = *a.input<T>(2), momentum = *a.input<T>(5);
    T *var = a.ref<T>(0) + at, *accum = a.ref<T>(1) + at;
    const T* grad = a.input<T>(grad_input) + from;
    for (int64_t i = 0; i < n; ++i) {
      const C g = grad[i], velocity = C(accum[i]) * momentum + g;
      accum[i] = T(velocity);
      var[i] = T(C(var[i]) - (nesterov ? g * rate + velocity * momentum * rate : velocity * rate));
    }
  });
}

template <class T, bool update_slots>
BoundKernel prepare_adagrad(const KernelRequest& request) {
  return update_rows<T>(request, [](const Arguments& a, int64_t at, int64_t from, int64_t n) {
    using C = ComputeType<T>;
    const C rate = *a.input<T>(2);
    T *var = a.ref<T>(0) + at, *accum = a.ref<T>(1) + at;
    const T* grad = a.input<T>(grad_input) + from;
    for (int64_t i = 0; i < n; ++i) {
      const C g = grad[i], sum = update_slots ? C(accum[i]) + g * g : C(accum[i]);
      if (update_slots) accum[i] = T(sum);
      var[i] = T(C(var[i]) - g * rate / std::sqrt(sum));
    }
  });
}

const OpDef apply_momentum{
    .name = "SparseApplyMomentum",
    .doc =
        "ApplyMomentum on the rows of var and accum that indices names, with a row of grad for "
        "each.",
    .inputs = {"var: Ref(T)", "accum: Ref(T)", "lr: T", "grad: T", "indices: Tindices",
               "momentum: T"},
    .outputs = {"out: Ref(T)"},
    .attrs = {"T: numbertype", "Tindices: {int32, int64}", "use_locking: bool = false",
              "use_nesterov: bool = false"},
    .shape = infer,
    .kernels = {cpu_kernel("T", FloatTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return r.attr<bool>("use_nesterov") ? prepare_momentum<T, true>(r)
                                                                 : prepare_momentum<T, false>(r);
                           })},
    .examples = {{.inputs = {floats({3, 1}, {1, 2, 3}), floats({3, 1}, {2, 0, 4}),
                             Tensor::scalar(0.5f), floats({2, 1}, {1, 4}), ints({0, 1}),
                             Tensor::scalar(0.5f)},
                  .outputs = {floats({3, 1}, {0, 0, 3})}}},
    .is_not_differentiable = true,
};
const Op momentum_op(apply_momentum), resource_momentum_op(resource_form(apply_momentum));

const OpDef apply_adagrad{
    .name = "SparseApplyAdagrad",
    .doc =
        "ApplyAdagrad on the rows of var and accum that indices names, with a row of grad for "
        "each.",
    .inputs = {"var: Ref(T)", "accum: Ref(T)", "lr: T", "grad: T", "indices: Tindices"},
    .outputs = {"out: Ref(T)"},
    .attrs = {"T: numbertype", "Tindices: {int32, int64}", "use_locking: bool = false",
              "update_slots: bool = true"},
    .shape = infer,
    .kernels = {cpu_kernel("T", FloatTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return r.attr<bool>("update_slots") ? prepare_adagrad<T, true>(r)
                                                                 : prepare_adagrad<T, false>(r);
                           })},
    .examples = {{.inputs = {floats({3, 1}, {1, 2, 3}), floats({3, 1}, {0, 9, 1}),
                             Tensor::scalar(0.5f), floats({2, 1}, {2, 4}), ints({0, 1})},
                  .outputs = {floats({3, 1}, {0.5f, 1.6f, 3})}}},
    .is_not_differentiable = true,
};
const Op adagrad_op(apply_adagrad), resource_adagrad_op(resource_form(apply_adagrad));

}  // namespace
}  // namespace leat
