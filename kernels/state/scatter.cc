// Updates of single rows of a variable: ScatterUpdate, Add, Sub, Mul, Div, Min and Max, and the
// same on resources.
#include <array>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/scatter_rules.h"
#include "kernels/state/resource_form.h"

namespace leat {
namespace {

template <class Rule, class T>
void update_row(T* row, const T* with, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; ++i) Rule{}(row[i], with[i * step]);
}

// Integer division by 0 is undefined. ResourceScatterDiv rejects 0 for all types, as in TensorFlow.
template <class T>
void check_divisors(const T* values, int64_t n) {
  for (int64_t i = 0; i < n; ++i) check(!(values[i] == T(0)), "updates must not contain 0");
}

// Updates in the order of the indices: if an index appears twice, both updates count (for
// replacements, the last).
template <class Rule, class T, class Index>
BoundKernel bind(const KernelRequest& request) {
  const bool on_resource = request.outputs.empty();
  check_variable_dtype(request, on_resource ? "dtype" : "T");
  const Shape &ref = request.inputs[0].shape, &indices = request.inputs[1].shape,
              &updates = request.inputs[2].shape;
  const int64_t rows = ref[0], count = indices.elements(),
                row = rows == 0 ? 0 : ref.elements() / rows;
  const bool one_for_all = updates.rank() == 0;
  return BoundKernel::of([=, n = updates.elements()](const Arguments& a) {
    const Index* at = a.input<Index>(1);
    for (int64_t i = 0; i < count; ++i) {  // all are checked before any row changes
      check(at[i] >= 0 && at[i] < rows, "indices[", i, "] = ", at[i], " is not in [0, ", rows, ")");
    }
    const T* with = a.input<T>(2);
    if constexpr (std::is_same_v<Rule, scatter::Divide>) {
      if (std::is_integral_v<T> || on_resource) check_divisors(with, n);
    }
    for (int64_t i = 0; i < count; ++i) {
      update_row<Rule>(a.ref<T>(0) + at[i] * row, with + (one_for_all ? 0 : i * row), row,
                       one_for_all ? 0 : 1);
    }
  });
}

template <class Rule, class T>
BoundKernel bind(const KernelRequest& request) {
  return request.inputs[1].dtype == DType::i64 ? bind<Rule, T, int64_t>(request)
                                               : bind<Rule, T, int32_t>(request);
}

void infer(ShapeContext& c) {
  const Shape ref = c.with_rank_at_least(0, 1), &indices = c.input(1), &updates = c.input(2);
  if (c.num_outputs() > 0) c.set_output(0, ref);
  if (!ref.has_rank() || !indices.has_rank() || !updates.has_rank() || updates.rank() == 0) return;
  if (c.num_outputs() == 0 && indices.is_complete() && indices.elements() == 0) {
    // On a resource, as in TensorFlow, any extents are accepted if nothing is updated.
    return check(updates.rank() == indices.rank() + ref.rank() - 1, "updates must have rank ",
                 indices.rank() + ref.rank() - 1, " or 0, got ", updates);
  }
  Shape expected = indices;
  for (int i = 1; i < ref.rank(); ++i) expected.push_back(ref[i]);
  check(expected.is_compatible(updates),
        "updates must have the shape of indices and of a row of ref, ", expected,
        ", or be a scalar; got ", updates);
}

template <class Rule>
Kernel kernel(std::string type_attr) {
  const auto prepare = []<class T>(TypeTag<T>, const KernelRequest& r) { return bind<Rule, T>(r); };
  if constexpr (std::is_same_v<Rule, scatter::Replace>) {
    return cpu_moving_kernel(std::move(type_attr), prepare);
  } else {
    return cpu_kernel(std::move(type_attr), scatter::TypesOf<Rule>{}, prepare);
  }
}

// ScatterAdd on a reference, ResourceScatterAdd on a resource.
template <class Rule>
OpDef scatter_op(std::string name, std::string change, std::string types, bool on_resource,
                 Tensor result) {
  const std::string type = on_resource ? "dtype" : "T";
  constexpr bool replaces = std::is_same_v<Rule, scatter::Replace>;
  std::vector<std::string> attrs = {type + ": " + types, "Tindices: {int32, int64}"};
  if (!on_resource) attrs.push_back(concat("use_locking: bool = ", replaces ? "true" : "false"));
  return {
      .name = std::move(name),
      .doc = concat("ref[indices[i…], j…] ", change, " updates[i…, j…]."),
      .inputs = {on_resource ? "resource: resource" : "ref: Ref(T)", "indices: Tindices",
                 "updates: " + type},
      .outputs =
          on_resource ? std::vector<std::string>{} : std::vector<std::string>{"output_ref: Ref(T)"},
      .attrs = std::move(attrs),
      .shape = infer,
      .kernels = {kernel<Rule>(type)},
      .examples = {{.inputs = {floats({3, 1}, {1, 2, 3}), ints({2, 0}), floats({2, 1}, {10, -20})},
                    .outputs = {std::move(result)}}},
      .is_stateful = on_resource,
      .is_not_differentiable = true,
  };
}

template <class Rule>
std::array<Op, 2> scatter_ops(const std::string& name, const std::string& change,
                              const Tensor& result, const std::string& types = "numbertype",
                              const std::string& types_on_resource = "") {
  return {
      Op(scatter_op<Rule>(name, change, types, false, result)),
      Op(scatter_op<Rule>("Resource" + name, change,
                          types_on_resource.empty() ? types : types_on_resource, true, result))};
}

const char* const ordered = "{half, bfloat16, float, double, int32, int64}";

const auto update_ops =
    scatter_ops<scatter::Replace>("ScatterUpdate", "=", floats({3, 1}, {-20, 2, 10}), "type");
const auto add_ops = scatter_ops<scatter::Add>("ScatterAdd", "+=", floats({3, 1}, {-19, 2, 13}));
const auto subtract_ops =
    scatter_ops<scatter::Subtract>("ScatterSub", "-=", floats({3, 1}, {21, 2, -7}));
const auto multiply_ops =
    scatter_ops<scatter::Multiply>("ScatterMul", "*=", floats({3, 1}, {-20, 2, 30}));
const auto divide_ops =
    scatter_ops<scatter::Divide>("ScatterDiv", "/=", floats({3, 1}, {-0.05f, 2, 0.3f}));
const auto min_ops = scatter_ops<scatter::Least>(
    "ScatterMin", "= its minimum with", floats({3, 1}, {-20, 2, 3}), ordered, "numbertype");
const auto max_ops = scatter_ops<scatter::Greatest>(
    "ScatterMax", "= its maximum with", floats({3, 1}, {1, 2, 10}), ordered, "numbertype");

}  // namespace
}  // namespace leat
