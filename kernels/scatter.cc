// Updates of single rows of a variable: ScatterUpdate, ScatterAdd, ScatterSub, and the same on
// resources.
#include <array>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

enum class Update { replace, add, subtract };

template <Update update, class T>
void update_row(T* row, const T* with, int64_t n, int64_t step) {
  if constexpr (update == Update::replace) {
    for (int64_t i = 0; i < n; ++i) row[i] = with[i * step];
  } else {
    using C = ComputeType<T>;
    for (int64_t i = 0; i < n; ++i) {
      const C change = with[i * step];
      row[i] = T(update == Update::add ? C(row[i]) + change : C(row[i]) - change);
    }
  }
}

// In the order of the indices: where one comes twice, both updates count (of a replacement, the
// last).
template <Update update, class T, class Index>
BoundKernel bind(const KernelRequest& request) {
  const Shape &ref = request.inputs[0].shape, &indices = request.inputs[1].shape,
              &updates = request.inputs[2].shape;
  const int64_t rows = ref[0], count = indices.elements(),
                row = rows == 0 ? 0 : ref.elements() / rows;
  const bool one_for_all = updates.rank() == 0;
  return BoundKernel::of([=](const Arguments& a) {
    const Index* at = a.input<Index>(1);
    for (int64_t i = 0; i < count; ++i) {  // all are checked before any row changes
      check(at[i] >= 0 && at[i] < rows, "indices[", i, "] = ", at[i], " is not in [0, ", rows, ")");
    }
    const T* with = a.input<T>(2);
    for (int64_t i = 0; i < count; ++i) {
      update_row<update>(a.ref<T>(0) + at[i] * row, with + (one_for_all ? 0 : i * row), row,
                         one_for_all ? 0 : 1);
    }
  });
}

template <Update update, class T>
BoundKernel bind(const KernelRequest& request) {
  return request.inputs[1].dtype == DType::i64 ? bind<update, T, int64_t>(request)
                                               : bind<update, T, int32_t>(request);
}

void infer(ShapeContext& c) {
  const Shape ref = c.with_rank_at_least(0, 1), &indices = c.input(1), &updates = c.input(2);
  if (c.num_outputs() > 0) c.set_output(0, ref);
  if (!ref.has_rank() || !indices.has_rank() || !updates.has_rank() || updates.rank() == 0) return;
  Shape expected = indices;
  for (int i = 1; i < ref.rank(); ++i) expected.push_back(ref[i]);
  check(expected.is_compatible(updates),
        "updates must have the shape of indices and of a row of ref, ", expected,
        ", or be a scalar; got ", updates);
}

template <Update update>
Kernel kernel(std::string type_attr) {
  const auto prepare = []<class T>(TypeTag<T>, const KernelRequest& r) {
    return bind<update, T>(r);
  };
  if constexpr (update == Update::replace) {
    return cpu_moving_kernel(std::move(type_attr), prepare);
  } else {
    return cpu_kernel(std::move(type_attr), NumberTypes{}, prepare);
  }
}

// ScatterAdd on a reference, ResourceScatterAdd on a resource.
template <Update update>
OpDef scatter_op(std::string name, std::string sign, bool on_resource, Tensor result) {
  const std::string type = on_resource ? "dtype" : "T";
  std::vector<std::string> attrs = {type + (update == Update::replace ? ": type" : ": numbertype"),
                                    "Tindices: {int32, int64}"};
  if (!on_resource)
    attrs.push_back(concat("use_locking: bool = ", update == Update::replace ? "true" : "false"));
  return {
      .name = std::move(name),
      .doc = concat("ref[indices[i…], j…] ", sign, " updates[i…, j…]."),
      .inputs = {on_resource ? "resource: resource" : "ref: Ref(T)", "indices: Tindices",
                 "updates: " + type},
      .outputs =
          on_resource ? std::vector<std::string>{} : std::vector<std::string>{"output_ref: Ref(T)"},
      .attrs = std::move(attrs),
      .shape = infer,
      .kernels = {kernel<update>(type)},
      .examples = {{.inputs = {floats({3, 1}, {1, 2, 3}), ints({2, 0}), floats({2, 1}, {10, 20})},
                    .outputs = {std::move(result)}}},
      .is_stateful = on_resource,
      .is_not_differentiable = true,
  };
}

template <Update update>
std::array<Op, 2> scatter_ops(const std::string& name, const std::string& sign,
                              const Tensor& result) {
  return {Op(scatter_op<update>(name, sign, false, result)),
          Op(scatter_op<update>("Resource" + name, sign, true, result))};
}

const auto update_ops =
    scatter_ops<Update::replace>("ScatterUpdate", "=", floats({3, 1}, {20, 2, 10}));
const auto add_ops = scatter_ops<Update::add>("ScatterAdd", "+=", floats({3, 1}, {21, 2, 13}));
const auto subtract_ops =
    scatter_ops<Update::subtract>("ScatterSub", "-=", floats({3, 1}, {-19, 2, -7}));

}  // namespace
}  // namespace leat
