// Optimizer updates as rules for one element: a rule gets an element of the variable and of each
// of its slots, and the gradient's. The loops over all elements (ApplyX) and over the rows that
// indices name (SparseApplyX) are here.
//
//   template <class C>
//   struct Rule {
//     static constexpr int variables = 2;         // var and its slots: the first inputs
//     Rule(const C* scalars, bool option);        // the scalar inputs in their order, the flag
//     void operator()(C* values, C gradient) const;  // values[0] is var's element
//     void check_rates() const;                   // optional: throws before an update
//   };
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/op_def.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/resource_form.h"

namespace leat {

// Which inputs of an update are what. Those that are not named here are scalars.
struct UpdateInputs {
  int variables = 0;  // the first ones
  int gradient = 0;
  int indices = -1;  // of a sparse update
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

// Elements [begin, end) of var and its slots, with the gradient's from `from` on.
template <class Rule, class T, size_t... slot>
void update_elements(const Rule& rule, const Arguments& a, int gradient, int64_t begin,
                     int64_t from, int64_t n, std::index_sequence<slot...>) {
  using C = ComputeType<T>;
  const std::array<T*, sizeof...(slot)> to{a.ref<T>(slot) + begin...};
  const T* grad = a.input<T>(gradient) + from;
  const auto loop = [=, &rule]() LEAT_INLINE {
    for (int64_t i = 0; i < n; ++i) {
      C values[] = {C(to[slot][i])...};
      rule(values, C(grad[i]));
      ((to[slot][i] = T(values[slot])), ...);
    }
  };
  if constexpr (std::is_same_v<T, float>) {
    vectorized(loop);
  } else {
    loop();
  }
}

template <template <class> class Rule, class T>
BoundKernel prepare_update(const KernelRequest& request, const UpdateInputs& inputs, bool option) {
  using C = ComputeType<T>;
  constexpr auto slots = std::make_index_sequence<Rule<C>::variables>{};
  const Shape& var = request.inputs[0].shape;
  const auto expect = [&](int i, const Shape& shape) {
    check(request.inputs[i].shape == shape, request.node.op, ": input ", i, " has shape ",
          request.inputs[i].shape, ", expected ", shape);
  };
  for (int i = 1; i < inputs.variables; ++i) expect(i, var);
  for (const int i : inputs.scalars) expect(i, {});
  const auto rule_of = [inputs, option,
                        global_step = request.inputs[inputs.scalars.back()].dtype ==
                                      DType::i64](const Arguments& a) {
    std::array<C, 8> scalars{};
    for (size_t i = 0; i < inputs.scalars.size(); ++i) {
      const int at = inputs.scalars[i];
      const bool is_step = global_step && i + 1 == inputs.scalars.size();
      scalars[i] = is_step ? static_cast<C>(*a.input<int64_t>(at)) : C(*a.input<T>(at));
    }
    return Rule<C>(scalars.data(), option);
  };
  if (inputs.indices < 0) {
    expect(inputs.gradient, var);
    return BoundKernel::of([=, n = var.elements(), gradient = inputs.gradient](const Arguments& a) {
      const Rule<C> rule = rule_of(a);
      if constexpr (requires { rule.check_rates(); }) rule.check_rates();
      a.stream->parallel_for(n, 8192, [&](int64_t begin, int64_t end) {
        update_elements<Rule<C>, T>(rule, a, gradient, begin, begin, end - begin, slots);
      });
    });
  }
  const int64_t rows = var[0], count = request.inputs[inputs.indices].shape.elements();
  const int64_t row = rows == 0 ? 0 : var.elements() / rows;
  const bool wide = request.inputs[inputs.indices].dtype == DType::i64;
  // One index after the other: where one comes twice, both updates count.
  return BoundKernel::of([=, gradient = inputs.gradient, at = inputs.indices](const Arguments& a) {
    const Rule<C> rule = rule_of(a);
    if constexpr (requires { rule.check_rates(); }) rule.check_rates();
    const auto index = [&](int64_t i) {
      return wide ? a.input<int64_t>(at)[i] : int64_t{a.input<int32_t>(at)[i]};
    };
    for (int64_t i = 0; i < count; ++i) {  // all are checked before any row changes
      check(index(i) >= 0 && index(i) < rows, "Index ", index(i), " at offset ", i,
            " in indices is out of range [0, ", rows, ")");
    }
    for (int64_t i = 0; i < count; ++i) {
      update_elements<Rule<C>, T>(rule, a, gradient, index(i) * row, i * row, row, slots);
    }
  });
}

// The op of a rule, on references. `option`: the flag that the rule gets, "" if it takes none.
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
      .kernels = {cpu_kernel("T", FloatTypes{},
                             [kinds, flag]<class T>(TypeTag<T>, const KernelRequest& r) {
                               const bool value = !flag.empty() && r.attr<bool>(flag);
                               return prepare_update<Rule, T>(r, kinds, value);
                             })},
      .examples = std::move(examples),
      .is_not_differentiable = true,
  };
}

// The sparse form of a dense update: "SparseApplyX", with indices behind the gradient. One row of
// the variables is updated in the example, which is the dense one's.
inline std::vector<std::string> with_indices(std::vector<std::string> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == "grad: T" || inputs[i] == "delta: T") {
      inputs[i] = "grad: T";
      inputs.insert(inputs.begin() + static_cast<int64_t>(i) + 1, "indices: Tindices");
      break;
    }
  }
  return inputs;
}

template <template <class> class Rule>
OpDef sparse_update_op(const OpDef& dense, const std::string& option) {
  const UpdateInputs kinds(dense.inputs);
  std::vector<Example> examples = dense.examples;
  for (Example& example : examples) {
    for (Tensor& input : example.inputs) {  // [n] becomes one row of n
      if (input.shape().rank() == 1) input = input.reshaped({1, input.elements()});
    }
    for (Tensor& output : example.outputs) output = output.reshaped({1, output.elements()});
    example.inputs.insert(example.inputs.begin() + kinds.gradient + 1, ints({0}));
  }
  return update_op<Rule>("Sparse" + dense.name,
                         dense.name +
                             " on the rows that indices names, with a row of grad for "
                             "each.",
                         with_indices(dense.inputs), option, std::move(examples));
}

}  // namespace leat
