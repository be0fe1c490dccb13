// NthElement: the n-th smallest (or largest) entry of each row.
#include <algorithm>

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
  using C = ComputeType<T>;
  const Shape& input = r.inputs[0].shape;
  const int64_t columns = input[input.rank() - 1], rows = r.outputs[0].shape.elements(),
                n = to_int64s(*r.inputs[1].value)[0];
  if (rows == 0) return {};
  const int64_t place = r.attr<bool>("reverse") ? columns - 1 - n : n;
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    T* row = static_cast<T*>(a.workspace);
    for (int64_t i = 0; i < rows; ++i) {
      std::copy_n(a.input<T>(0) + i * columns, columns, row);
      // NaN is the largest; any other rule would not be an order.
      const auto is_less = [](T x, T y) { return C(x) < C(y) || (C(x) == C(x) && C(y) != C(y)); };
      std::nth_element(row, row + place, row + columns, StepEnd::pacing(is_less));
      a.output<T>()[i] = row[place];
    }
  });
  kernel.workspace_bytes = static_cast<size_t>(columns) * sizeof(T);
  kernel.cost_ns = 5.0 * static_cast<double>(rows * columns);
  return kernel;
}

void infer(ShapeContext& c) {
  const Shape input = c.with_rank_at_least(0, 1);
  c.with_rank(1, 0);
  if (!input.has_rank()) return c.set_output(0, input);
  const int64_t columns = input[input.rank() - 1];
  if (const Tensor* value = c.value(1)) {
    const int64_t n = to_int64s(*value)[0];
    check(n >= 0, "n must be non-negative, got ", n);
    check(columns == any || columns > n, "Input must have last dimension > n = ", n, " but is ",
          columns);
  }
  c.set_output(0, Shape(input.dims().first(input.rank() - 1)));
}

// The entries equal to the result share the gradient.
void gradient(Gradient& g) {
  const Output is_it = cast(equal(expand_dims(g.y(), -1), g.x(0)), g.dy().dtype());
  g.dx(0) = (is_it / sum(is_it, -1, {.keep_dims = true})) * expand_dims(g.dy(), -1);
}

const Op nth_element_op{{
    .name = "NthElement",
    .doc = "values[…] = the entry n of input[…, :] if that were sorted; from the largest down with "
           "`reverse`.",
    .inputs = {"input: T", "n: int32"},
    .outputs = {"values: T"},
    .attrs = {"reverse: bool = false", "T: realnumbertype"},
    .shape = infer,
    .gradient = gradient,
    .kernels = {cpu_kernel(
        "T", NumberTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({2, 3}, {3, 1, 2, 5, 5, 4}), Tensor::scalar(1)},
                  .outputs = {floats({2, 5})}}},
    .value_inputs = {1},
}};

}  // namespace
}  // namespace leat
