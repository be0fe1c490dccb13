// Unique, UniqueWithCounts and their V2 forms: the distinct elements of a vector, or distinct
// slices along an axis, in order of first occurrence.
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"

namespace leat {
namespace {

// Puts things with equal keys into one group: group[i] is the number of the group of thing i, of n
// things. Returns the first thing of each group.
template <class Key, class Index, class KeyOf>
std::vector<int64_t> find_groups(int64_t n, KeyOf key_of, Index* group) {
  absl::flat_hash_map<Key, Index> found;
  std::vector<int64_t> first;
  for (int64_t i = 0; i < n; ++i) {
    StepEnd::pace(32);
    const auto [at, is_new] = found.try_emplace(key_of(i), static_cast<Index>(first.size()));
    if (is_new) first.push_back(i);
    group[i] = at->second;
  }
  return first;
}

template <class Index>
Tensor sizes_of_groups(int64_t n, const Index* group, int64_t groups) {
  Tensor sizes = Tensor::full<Index>({groups}, 0);
  auto* const size = sizes.data<Index>();
  for (int64_t i = 0; i < n; ++i) {
    StepEnd::pace(4);
    ++size[group[i]];
  }
  return sizes;
}

// A slice's elements as bytes, equal where the elements are: -0 is 0.
template <class T>
std::string bytes_of(const T* data, int64_t outer, int64_t stride, int64_t inner) {
  std::string bytes;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const T& element = data[o * stride + i];
      if constexpr (std::is_same_v<T, std::string>) {
        bytes += std::to_string(element.size()) + ":" + element;
      } else {
        const ComputeType<T> value =
            ComputeType<T>(element) == 0 ? ComputeType<T>(0) : ComputeType<T>(element);
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
      }
    }
  }
  return bytes;
}

// Without elements all slices are alike, and there may be any number of them.
template <class Index>
void unique_of_nothing(ExecuteContext& c, int axis) {
  const Tensor& x = c.input(0);
  const int64_t n = x.shape()[axis];
  Shape shape = x.shape();
  shape.set(axis, std::min<int64_t>(n, 1));
  c.set_output(0, Tensor(x.dtype(), shape));
  c.set_output(1, Tensor::full<Index>({n}, 0));
  if (c.node().op.starts_with("UniqueWithCounts"))
    c.set_output(2, Tensor::full<Index>({shape[axis]}, static_cast<Index>(n)));
}

template <class T, class Index>
void unique(ExecuteContext& c) {
  const Tensor& x = c.input(0);
  const bool has_axis = c.num_inputs() > 1 && c.input(1).elements() > 0;
  if (c.num_inputs() > 1) {
    check(c.input(1).shape().rank() == 1, "axis expects a 1D vector.");
    check(c.input(1).elements() <= 1,
          "axis does not support input tensors larger than 1 elements: ", c.input(1));
  }
  int axis = 0;
  if (has_axis) {
    axis = normalized_axis(to_int64s(c.input(1))[0], x.shape().rank());
  } else {
    check(x.shape().rank() == 1, "unique expects a 1D vector, got shape ", x.shape());
  }
  const int64_t n = x.shape()[axis];
  check(n <= std::numeric_limits<Index>::max(), "unique of ", n, " elements needs out_idx = int64");
  if (x.elements() == 0) return unique_of_nothing<Index>(c, axis);
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.shape()[i];
  for (int i = axis + 1; i < x.shape().rank(); ++i) inner *= x.shape()[i];
  const T* data = x.data<T>();
  // 0 and -0 are equal; every NaN of a vector is a value of its own, as it is for ==.
  Tensor idx(dtype_of<Index>, {n});
  auto* const group = idx.data<Index>();
  const std::vector<int64_t> first =
      x.shape().rank() == 1
          ? find_groups<ComputeType<T>>(
                n, [&](int64_t i) { return ComputeType<T>(data[i]); }, group)
          : find_groups<std::string>(
                n, [&](int64_t i) { return bytes_of(data + i * inner, outer, n * inner, inner); },
                group);
  Shape shape = x.shape();
  const auto count = static_cast<int64_t>(first.size());
  shape.set(axis, count);
  Tensor y(x.dtype(), shape);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t g = 0; g < count; ++g) {
      copy_elements(data + (o * n + first[g]) * inner, inner,
                    y.data<T>() + (o * count + g) * inner);
    }
  }
  c.set_output(0, std::move(y));
  c.set_output(1, std::move(idx));
  if (c.node().op.starts_with("UniqueWithCounts"))
    c.set_output(2, sizes_of_groups(n, group, count));
}

void infer(ShapeContext& c) {
  const bool has_axis = c.num_inputs() > 1 && (c.value(1) == nullptr || c.value(1)->elements() > 0);
  if (c.num_inputs() > 1) c.with_rank(1, 1);
  if (!has_axis) {
    c.set_output(0, Shape{any});
    c.set_output(1, c.with_rank(0, 1));
  } else {
    Shape y = c.input(0).has_rank() ? Shape::of_rank(c.input(0).rank()) : Shape::unknown();
    Shape idx{any};
    if (y.has_rank() && c.value(1) != nullptr && c.value(1)->elements() == 1) {
      const int axis = normalized_axis(to_int64s(*c.value(1))[0], y.rank());
      idx = Shape{c.input(0)[axis]};
      y = c.input(0);
      y.set(axis, any);
    }
    c.set_output(0, y);
    c.set_output(1, idx);
  }
  if (c.num_outputs() > 2) c.set_output(2, Shape{any});
}

OpDef unique_op(std::string name, bool has_axis, bool has_counts) {
  OpDef op{
      .name = std::move(name),
      .doc =
          "y = the different elements of x in the order of their first occurrence; x[i] = "
          "y[idx[i]].",
      .inputs = {"x: T"},
      .outputs = {"y: T", "idx: out_idx"},
      .attrs = {"T: type", "out_idx: {int32, int64} = int32"},
      .shape = infer,
      .kernels = {execute_kernel("T", AllButComplexTypes{},
                                 []<class T>(TypeTag<T>, ExecuteContext& c) {
                                   c.node().attr<DType>("out_idx") == DType::i64
                                       ? unique<T, int64_t>(c)
                                       : unique<T, int32_t>(c);
                                 })},
      .examples = {{.inputs = {floats({3, 1, 3})}, .outputs = {floats({3, 1}), ints({0, 1, 0})}}},
      .has_data_dependent_shape = true,
      .is_not_differentiable = true,
  };
  if (has_axis) {
    op.doc += " With an axis, the different slices along it.";
    op.inputs.push_back("axis: Taxis");
    op.attrs.push_back("Taxis: {int32, int64} = int64");
    op.examples = {{.inputs = {floats({2, 3}, {3, 1, 3, 4, 1, 4}), longs({1})},
                    .outputs = {floats({2, 2}, {3, 1, 4, 1}), ints({0, 1, 0})}}};
  }
  if (has_counts) {
    op.doc += " count[i] = how often y[i] occurs.";
    op.outputs.push_back("count: out_idx");
    op.examples[0].outputs.push_back(ints({2, 1}));
  }
  return op;
}

const Op plain_op{unique_op("Unique", false, false)},
    with_counts_op{unique_op("UniqueWithCounts", false, true)},
    v2_op{unique_op("UniqueV2", true, false)},
    with_counts_v2_op{unique_op("UniqueWithCountsV2", true, true)};

}  // namespace
}  // namespace leat
