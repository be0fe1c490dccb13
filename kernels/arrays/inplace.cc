// InplaceUpdate, InplaceAdd and InplaceSub: change rows of a tensor, in its own memory if no other
// node needs it.
#include "graph/op_def.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/scatter_rules.h"

namespace leat {
namespace {

void infer(ShapeContext& c) {
  const Shape x = c.with_rank_at_least(0, 1), i = c.with_rank(1, 1), &v = c.input(2);
  c.set_output(0, x);
  if (!x.has_rank() || !v.has_rank()) return;
  Shape expected = i;
  for (int axis = 1; axis < x.rank(); ++axis) expected.push_back(x[axis]);
  check(expected.is_compatible(v), "v must hold a row of x for each number in i, ", expected,
        ", but has shape ", v);
}

// As in TensorFlow, a number that is out of range counts modulo the number of rows.
template <class Rule, class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  const Shape &x = r.inputs[0].shape, &v = r.inputs[2].shape;
  const int64_t rows = x[0], width = rows == 0 ? 0 : x.elements() / rows, count = v[0];
  check(rows > 0 || count == 0, "x has no rows to change, its shape is ", x);
  return BoundKernel::of([=](const Arguments& a) {
           T* to = a.output<T>();
           if (to != a.input<T>(0)) copy_elements(a.input<T>(0), rows * width, to);
           for (int64_t k = 0; k < count; ++k) {
             const int64_t row = (a.input<int32_t>(1)[k] % rows + rows) % rows;
             const T* from = a.input<T>(2) + k * width;
             for (int64_t j = 0; j < width; ++j) Rule{}(to[row * width + j], from[j]);
           }
         })
      .sharing(0, 0);
}

template <class Rule, class Supported>
OpDef inplace_op(std::string name, std::string change, Supported types, Tensor result) {
  return {
      .name = std::move(name),
      .doc = "y = x with y[i[k], j…] " + change + " v[k, j…] for each k.",
      .inputs = {"x: T", "i: int32", "v: T"},
      .outputs = {"y: T"},
      .attrs = {"T: type"},
      .shape = infer,
      .kernels = {cpu_kernel(
          "T", types,
          []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare<Rule>(t, r); })},
      .examples = {{.inputs = {floats({3, 1}, {1, 2, 3}), ints({2, 0}), floats({2, 1}, {10, 20})},
                    .outputs = {std::move(result)}}},
      .is_not_differentiable = true,
  };
}

const Op update_op{
    inplace_op<scatter::Replace>("InplaceUpdate", "=", AllTypes{}, floats({3, 1}, {20, 2, 10}))};
const Op add_op{inplace_op<scatter::Add>("InplaceAdd", "+=", NumberAndComplexTypes{},
                                         floats({3, 1}, {21, 2, 13}))};
const Op subtract_op{inplace_op<scatter::Subtract>("InplaceSub", "-=", NumberAndComplexTypes{},
                                                   floats({3, 1}, {-19, 2, -7}))};

}  // namespace
}  // namespace leat
