// Optimizer updates as rules for one element: a rule gets an element of the variable and of each of
// its slots, and of the gradient. This header makes the ops, over all elements (ApplyX) and over
// the rows that indices name (SparseApplyX); the loops are chosen by compiler as in elementwise.h.
//
//   template <class C>
//   struct Rule {
//     static constexpr int variables = 2;  // var and its slots: the first inputs
//     LEAT_DEVICE Rule(const C* scalars, bool option);  // the scalar inputs in order, the flag
//     LEAT_DEVICE void operator()(C* values, C gradient) const;  // values[0] is var's element
//     void check_rates() const;  // optional: throws before an update, where it can (CPU)
//   };
#pragma once

#ifdef __CUDACC__
#include "kernels/state/cuda_update.cuh"
#else
#include "kernels/state/cpu_update.h"
#endif

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/op_def.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/state/resource_form.h"
#include "kernels/types.h"

namespace leat {

// The roles of an update's inputs. All others are scalars.
struct UpdateInputs {
  int variables = 0;  // the first ones
  int gradient = 0;
  int indices = -1;  // for a sparse update
  std::vector<int> scalars;

  explicit UpdateInputs(const std::vector<std::string>& inputs) {
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
      const std::string_view name = std::string_view(inputs[i]).substr(0, inputs[i].find(':'));
      if (inputs[i].find(": Ref(") != std::string::npos) {
        ++variables;
      } else if (name == "grad" || name == "delta") {
        gradient = i;
      } else if (name == "indices") {
        indices = i;
      } else {
        scalars.push_back(i);
      }
    }
  }
};

inline void infer_update(ShapeContext& c, const UpdateInputs& inputs) {
  Shape var = c.input(0);
  for (int i = 1; i < inputs.variables; ++i) var = var.merged(c.input(i));
  for (const int i : inputs.scalars) c.with_rank(i, 0);
  if (inputs.indices < 0) {
    var = var.merged(c.input(inputs.gradient));
  } else {
    const Shape indices = c.with_rank(inputs.indices, 1);
    const Shape grad = c.with_rank_at_least(inputs.gradient, 1);
    c.with_rank_at_least(0, 1);
    if (var.has_rank() && grad.has_rank()) {
      Shape expected{indices[0]};
      for (int i = 1; i < var.rank(); ++i) expected.push_back(var[i]);
      check(expected.is_compatible(grad), "grad must hold a row of var for each index, ", expected,
            ", but has shape ", grad);
    }
  }
  if (c.num_outputs() > 0) c.set_output(0, var);
}

template <template <class> class Rule, class T>
BoundKernel prepare_update(const KernelRequest& request, const UpdateInputs& inputs, bool option) {
  const Shape& var = request.inputs[0].shape;
  const auto expect = [&](int i, const Shape& shape) {
    check(request.inputs[i].shape == shape, request.node.op, ": input ", i, " has shape ",
          request.inputs[i].shape, ", expected ", shape);
  };
  for (int i = 0; i < inputs.variables; ++i) {
    expect(i, var);
    check(request.inputs[i].dtype == dtype_of<T>, request.node.op, ": the variable of input ", i,
          " holds ", request.inputs[i].dtype, ", not ", dtype_of<T>);
  }
  for (const int i : inputs.scalars) expect(i, {});
  check_internal(inputs.scalars.size() <= UpdatePlan::max_scalars, "too many scalars");

  UpdatePlan plan{.num_scalars = static_cast<int>(inputs.scalars.size()),
                  .ends_with_step = request.inputs[inputs.scalars.back()].dtype == DType::i64,
                  .option = option,
                  .gradient = inputs.gradient,
                  .indices = inputs.indices,
                  .rows = 1,
                  .row_elements = var.elements()};
  std::copy(inputs.scalars.begin(), inputs.scalars.end(), plan.scalars);
  if (inputs.indices < 0) {
    expect(inputs.gradient, var);
  } else {
    plan.wide_indices = request.inputs[inputs.indices].dtype == DType::i64;
    plan.count = request.inputs[inputs.indices].shape.elements();
    plan.rows = var[0];
    plan.row_elements = plan.rows == 0 ? 0 : var.elements() / plan.rows;
  }
  return bind_update<Rule<ComputeType<T>>, T>(request, plan);
}

// The op of a rule, on references. `option`: the flag passed to the rule, "" if it takes none.
template <template <class> class Rule>
OpDef update_op(std::string name, std::string doc, std::vector<std::string> inputs,
                std::string option, std::vector<Example> examples) {
  const UpdateInputs kinds(inputs);
  std::vector<std::string> attrs = {"T: numbertype"};
  if (kinds.indices >= 0) attrs.push_back("Tindices: {int32, int64}");
  attrs.push_back("use_locking: bool = false");
  if (!option.empty()) attrs.push_back(option);
  const std::string flag = option.substr(0, option.find(':'));
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = std::move(inputs),
      .outputs = {"out: Ref(T)"},
      .attrs = std::move(attrs),
      .shape = [kinds](ShapeContext& c) { infer_update(c, kinds); },
      .kernels = {{.device = kernel_device,
                   .types = {{"T", FloatTypes::list()}},
                   .prepare =
                       [kinds, flag](const KernelRequest& r) {
                         const bool value = !flag.empty() && r.attr<bool>(flag);
                         return visit_type(FloatTypes{}, r.attr<DType>("T"), [&](auto tag) {
                           using T = typename decltype(tag)::type;
                           return prepare_update<Rule, T>(r, kinds, value);
                         });
                       }}},
      .examples = std::move(examples),
      .is_not_differentiable = true,
  };
}

// The sparse form's inputs: indices after the gradient.
inline std::vector<std::string> with_indices(std::vector<std::string> inputs) {
  const UpdateInputs kinds(inputs);
  inputs[kinds.gradient] = "grad: T";
  inputs.insert(inputs.begin() + kinds.gradient + 1, "indices: Tindices");
  return inputs;
}

// [n] twice, as two rows: an update of the second must leave the first unchanged.
inline Tensor two_rows(const Tensor& first, const Tensor& second) {
  const int64_t n = first.elements();
  Tensor out(f32, {2, n});
  std::copy_n(first.data<float>(), n, out.data<float>());
  std::copy_n(second.data<float>(), n, out.data<float>() + n);
  return out;
}

// The sparse form of a dense update, "SparseApplyX". Its examples are the dense one's, for the
// second of two rows.
template <template <class> class Rule>
OpDef sparse_update_op(const OpDef& dense, const std::string& option) {
  const UpdateInputs kinds(dense.inputs);
  std::vector<Example> examples = dense.examples;
  for (Example& example : examples) {
    example.outputs = {two_rows(example.inputs[0], example.outputs[0])};
    for (int i = 0; i < kinds.variables; ++i)
      example.inputs[i] = two_rows(example.inputs[i], example.inputs[i]);
    Tensor& gradient = example.inputs[kinds.gradient];
    gradient = gradient.reshaped({1, gradient.elements()});
    example.inputs.insert(example.inputs.begin() + kinds.gradient + 1, ints({1}));
  }
  return update_op<Rule>("Sparse" + dense.name,
                         dense.name +
                             " on the rows that indices names, with a row of grad for "
                             "each.",
                         with_indices(dense.inputs), option, std::move(examples));
}

}  // namespace leat
