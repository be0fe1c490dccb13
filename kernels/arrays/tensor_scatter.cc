// TensorScatterUpdate, Add, Sub, Min and Max: a tensor with slices changed at the positions of
// index vectors.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/bad_indices.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/moves/strided_copy.h"
#include "kernels/scatter_rules.h"

namespace leat {
namespace {

// indices [places…, depth], updates [places…, slice…], tensor [depth axes…, slice…].
void infer(ShapeContext& c) {
  const Shape &tensor = c.input(0), indices = c.with_rank_at_least(1, 1), &updates = c.input(2);
  c.set_output(0, tensor);
  if (!tensor.has_rank() || !indices.has_rank()) return;
  const int places = indices.rank() - 1;
  const int64_t depth = indices[places];
  if (depth == any) return;
  check(depth <= tensor.rank(), "indices of ", depth, " numbers do not index into shape ", tensor);
  Shape expected;
  for (int i = 0; i < places; ++i) expected.push_back(indices[i]);
  for (int i = static_cast<int>(depth); i < tensor.rank(); ++i) expected.push_back(tensor[i]);
  check(expected.is_compatible(updates), "updates must have shape ", expected, " (indices ",
        indices, ", tensor ", tensor, "), got ", updates);
  check(!tensor.is_complete() || tensor.elements() != 0 || indices.elements() == 0 ||
            updates.elements() == 0,
        "Indices and updates specified for empty output shape ", tensor);
}

template <class F, class T, class Index>
BoundKernel bind(const KernelRequest& request) {
  const Shape &tensor = request.inputs[0].shape, &indices = request.inputs[1].shape;
  const int64_t depth = indices[indices.rank() - 1];
  int64_t places = 1, slice = 1;
  for (int i = 0; i + 1 < indices.rank(); ++i) places *= indices[i];
  for (int i = static_cast<int>(depth); i < tensor.rank(); ++i) slice *= tensor[i];
  if (indices.elements() == 0 && slice == 0) places = 0;  // without numbers, any number of places
  return BoundKernel::of([=, strides = strides_of(tensor), n = tensor.elements(),
                          ignores_bad = ignores_bad_indices(request)](const Arguments& a) {
           T* to = a.output<T>();
           if (to != a.input<T>(0)) copy_elements(a.input<T>(0), n, to);
           for (int64_t p = 0; p < places; ++p) {
             StepEnd::pace(8 + slice);
             int64_t at = 0;
             bool is_good = true;
             for (int64_t d = 0; d < depth; ++d) {
               const int64_t index = a.input<Index>(1)[p * depth + d];
               is_good = is_good && index >= 0 && index < tensor[static_cast<int>(d)];
               check(is_good || ignores_bad, "indices[", p, "] holds ", index, " for axis ", d,
                     ": does not index into shape ", tensor);
               if (is_good) at += index * strides[d];
             }
             if (!is_good) continue;
             const T* from = a.input<T>(2) + p * slice;
             for (int64_t i = 0; i < slice; ++i) F{}(to[at + i], from[i]);
           }
         })
      .sharing(0, 0);
}

template <class F, class Supported>
OpDef scatter_op(std::string name, std::string doc, std::string index_types, Supported types,
                 GradientFunction gradient, Tensor expected) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {"tensor: T", "indices: Tindices", "updates: T"},
      .outputs = {"output: T"},
      .attrs = {"T: type", "Tindices: {" + index_types + "}", "bad_indices_policy: string = ''"},
      .shape = infer,
      .gradient = std::move(gradient),
      .kernels = {cpu_kernel("T", types,
                             []<class T>(TypeTag<T>, const KernelRequest& r) {
                               switch (r.inputs[1].dtype) {
                                 case DType::i16:
                                   return bind<F, T, int16_t>(r);
                                 case DType::u16:
                                   return bind<F, T, uint16_t>(r);
                                 case DType::i64:
                                   return bind<F, T, int64_t>(r);
                                 default:
                                   return bind<F, T, int32_t>(r);
                               }
                             })},
      .examples = {{.inputs = {floats({3, 2}, {1, 2, 3, 4, 5, 6}), ints({2, 1}, {2, 0}),
                               floats({2, 2}, {7, 2, 0, 8})},
                    .outputs = {std::move(expected)}}},
  };
}

Output at_places(Gradient& g) { return op("GatherNd", {g.dy(), g.x(1)}); }

const Op update_op{scatter_op<scatter::Replace>(
    "TensorScatterUpdate", "output = tensor with output[indices[i…, :], j…] = updates[i…, j…].",
    "int16, int32, int64, uint16", AllTypes{},
    [](Gradient& g) {
      g.dx(0) = op("TensorScatterUpdate", {g.dy(), g.x(1), zeros_like(g.x(2))});
      g.dx(2) = at_places(g);
    },
    floats({3, 2}, {0, 8, 3, 4, 7, 2}))};
const Op add_op{scatter_op<scatter::Add>(
    "TensorScatterAdd", "output = tensor with updates[i…, j…] added at [indices[i…, :], j…].",
    "int32, int64", NumberAndComplexTypes{},
    [](Gradient& g) {
      g.dx(0) = g.dy();
      g.dx(2) = at_places(g);
    },
    floats({3, 2}, {1, 10, 3, 4, 12, 8}))};
// TensorScatterAdd under its older name.
const Op non_aliasing_add_op{[] {
  OpDef op = scatter_op<scatter::Add>(
      "ScatterNdNonAliasingAdd",
      "output = input with updates[i…, j…] added at [indices[i…, :], j…]; + of bool is or.",
      "int32, int64", NumberComplexAndBoolTypes{},
      [](Gradient& g) {
        g.dx(0) = g.dy();
        g.dx(2) = at_places(g);
      },
      floats({3, 2}, {1, 10, 3, 4, 12, 8}));
  op.inputs[0] = "input: T";
  op.attrs[0] = "T: {numbertype, bool}";
  return op;
}()};

const Op sub_op{scatter_op<scatter::Subtract>(
    "TensorScatterSub", "output = tensor with updates[i…, j…] subtracted at [indices[i…, :], j…].",
    "int32, int64", NumberAndComplexTypes{},
    [](Gradient& g) {
      g.dx(0) = g.dy();
      g.dx(2) = -at_places(g);
    },
    floats({3, 2}, {1, -6, 3, 4, -2, 4}))};

// The gradient is shared among those that have the value: the tensor, and every update of that
// place.
void gradient_of_extremum(Gradient& g) {
  const Output &x = g.x(0), &indices = g.x(1), &updates = g.x(2);
  const DType dtype = x.dtype();
  const Output x_has = cast(equal(x, g.y()), dtype);
  const Output update_has = cast(equal(updates, op("GatherNd", {g.y(), indices})), dtype);
  const Output count = x_has + op("ScatterNd", {indices, update_has, shape_of(x, indices.dtype())});
  g.dx(0) = g.dy() * x_has / count;
  g.dx(2) = op("GatherNd", {g.dy() / count, indices}) * update_has;
}

const Op min_op{scatter_op<scatter::Least>(
    "TensorScatterMin",
    "output = tensor with min(tensor, updates[i…, j…]) at [indices[i…, :], j…].", "int32, int64",
    NumberTypes{}, gradient_of_extremum, floats({3, 2}, {0, 2, 3, 4, 5, 2}))};
const Op max_op{scatter_op<scatter::Greatest>(
    "TensorScatterMax",
    "output = tensor with max(tensor, updates[i…, j…]) at [indices[i…, :], j…].", "int32, int64",
    NumberTypes{}, gradient_of_extremum, floats({3, 2}, {1, 8, 3, 4, 7, 6}))};

}  // namespace
}  // namespace leat
