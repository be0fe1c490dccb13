// ScatterNdUpdate, Add, Sub, Max and Min: change slices of a variable at the positions of index
// vectors; and the same on resources.
#include <array>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/bad_indices.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/moves/strided_copy.h"
#include "kernels/scatter_rules.h"
#include "kernels/state/resource_form.h"

namespace leat {
namespace {

// indices [places…, depth], updates [places…, slice…], ref [depth axes…, slice…].
void infer(ShapeContext& c) {
  const Shape &ref = c.input(0), indices = c.with_rank_at_least(1, 1), &updates = c.input(2);
  if (c.num_outputs() > 0) c.set_output(0, ref);
  if (!ref.has_rank() || !indices.has_rank()) return;
  const int places = indices.rank() - 1;
  const int64_t depth = indices[places];
  if (depth == any) return;
  check(depth <= ref.rank(), "indices of ", depth, " numbers do not index into shape ", ref);
  Shape expected;
  for (int i = 0; i < places; ++i) expected.push_back(indices[i]);
  for (int i = static_cast<int>(depth); i < ref.rank(); ++i) expected.push_back(ref[i]);
  check(expected.is_compatible(updates), "updates must have shape ", expected, " (indices ",
        indices, ", ref ", ref, "), got ", updates);
  if (!ref.is_complete() || !indices.is_complete() || !updates.is_complete()) return;
  const bool both_empty = indices.elements() == 0 && updates.elements() == 0;
  const bool none_empty = indices.elements() != 0 && updates.elements() != 0 && ref.elements() != 0;
  check(both_empty || none_empty,
        "Indices and updates specified for empty output. indices shape: ", indices);
}

// The places that index vectors point to.
struct Places {
  Shape shape;
  std::vector<int64_t> strides;
  int64_t count, depth;

  // The offset of the first element, -1 if there is no such place.
  template <class Index>
  int64_t offset(const Index* index) const {
    int64_t at = 0;
    for (int64_t d = 0; d < depth; ++d) {
      if (index[d] < 0 || index[d] >= shape[static_cast<int>(d)]) return -1;
      at += index[d] * strides[d];
    }
    return at;
  }

  template <class Index>
  void check_all(const Index* indices) const {
    for (int64_t p = 0; p < count; ++p) {
      const Index* index = indices + p * depth;
      if (offset(index) >= 0) continue;
      std::string numbers;
      for (int64_t d = 0; d < depth; ++d) numbers += concat(d == 0 ? "" : ", ", index[d]);
      fail(Code::invalid_argument, "indices[", p, "] = [", numbers, "] does not index into shape ",
           shape);
    }
  }
};

// Updates in the order of the indices: if a place appears twice, both updates count (for
// replacements, the last).
template <class Rule, class T, class Index>
BoundKernel bind(const KernelRequest& request) {
  check_variable_dtype(request, "T");
  const bool ignores = ignores_bad_indices(request);
  const Shape &ref = request.inputs[0].shape, &indices = request.inputs[1].shape,
              &updates = request.inputs[2].shape;
  check(ref.rank() > 0, "Output must be at least 1-D, got shape: ", ref);
  if (updates.elements() == 0) return {};
  const int64_t depth = indices[indices.rank() - 1];
  const Places places{ref, strides_of(ref), indices.elements() / depth, depth};
  const int64_t slice = updates.elements() / places.count;
  return BoundKernel::of([=](const Arguments& a) {
    const Index* at = a.input<Index>(1);
    if (!ignores) places.check_all(at);  // before anything changes
    for (int64_t p = 0; p < places.count; ++p) {
      const int64_t offset = places.offset(at + p * depth);
      if (offset < 0) continue;
      T* to = a.ref<T>(0) + offset;
      const T* from = a.input<T>(2) + p * slice;
      for (int64_t i = 0; i < slice; ++i) Rule{}(to[i], from[i]);
    }
  });
}

template <class Rule>
Kernel kernel() {
  const auto prepare = []<class T>(TypeTag<T>, const KernelRequest& r) {
    return r.inputs[1].dtype == DType::i64 ? bind<Rule, T, int64_t>(r) : bind<Rule, T, int32_t>(r);
  };
  if constexpr (std::is_same_v<Rule, scatter::Replace>) {
    return cpu_moving_kernel("T", prepare);
  } else {
    constexpr bool takes_bool =
        std::is_same_v<Rule, scatter::Add> || std::is_same_v<Rule, scatter::Subtract>;
    return cpu_kernel(
        "T", std::conditional_t<takes_bool, NumberComplexAndBoolTypes, scatter::TypesOf<Rule>>{},
        prepare);
  }
}

// ScatterNdAdd on a reference, ResourceScatterNdAdd on a resource.
template <class Rule>
std::array<Op, 2> scatter_ops(std::string name, std::string doc, Tensor result) {
  const bool replaces = std::is_same_v<Rule, scatter::Replace>;
  OpDef def{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {"ref: Ref(T)", "indices: Tindices", "updates: T"},
      .outputs = {"output_ref: Ref(T)"},
      .attrs = {replaces ? "T: type" : "T: numbertype", "Tindices: {int32, int64}",
                concat("use_locking: bool = ", replaces ? "true" : "false"),
                "bad_indices_policy: string = ''"},
      .shape = infer,
      .kernels = {kernel<Rule>()},
      .examples = {{.inputs = {floats({3, 2}, {1, 2, 3, 4, 5, 6}), ints({2, 1}, {2, 0}),
                               floats({2, 2}, {7, 2, 0, 8})},
                    .outputs = {std::move(result)}}},
      .is_not_differentiable = true,
  };
  OpDef on_resource = resource_form(def);
  on_resource.attrs[0] = "T: type";
  on_resource.attrs[2] = "use_locking: bool = true";
  return {Op(std::move(def)), Op(std::move(on_resource))};
}

const auto update_ops =
    scatter_ops<scatter::Replace>("ScatterNdUpdate", "ref[indices[i…, :], j…] = updates[i…, j…].",
                                  floats({3, 2}, {0, 8, 3, 4, 7, 2}));
const auto add_ops =
    scatter_ops<scatter::Add>("ScatterNdAdd", "ref[indices[i…, :], j…] += updates[i…, j…].",
                              floats({3, 2}, {1, 10, 3, 4, 12, 8}));
const auto subtract_ops =
    scatter_ops<scatter::Subtract>("ScatterNdSub", "ref[indices[i…, :], j…] -= updates[i…, j…].",
                                   floats({3, 2}, {1, -6, 3, 4, -2, 4}));
const auto max_ops = scatter_ops<scatter::Greatest>(
    "ScatterNdMax", "ref[indices[i…, :], j…] = its maximum with updates[i…, j…].",
    floats({3, 2}, {1, 8, 3, 4, 7, 6}));
const auto min_ops = scatter_ops<scatter::Least>(
    "ScatterNdMin", "ref[indices[i…, :], j…] = its minimum with updates[i…, j…].",
    floats({3, 2}, {0, 2, 3, 4, 5, 2}));

}  // namespace
}  // namespace leat
