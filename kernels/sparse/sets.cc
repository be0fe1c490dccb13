// Sets, each formed by the elements along the last axis of a tensor: DenseToDenseSetOperation,
// DenseToSparseSetOperation, SparseToSparseSetOperation, SetSize. Results are sorted.
#include <algorithm>
#include <map>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"

namespace leat {
namespace {

using SetTypes = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, std::string>;
const char* const types = "T: {int8, int16, int32, int64, uint8, uint16, string}";
const char* const validate = "validate_indices: bool = true";

// Sets, each under the number of its place in a tensor of shape `groups`. Empty sets may be left
// out.
template <class T>
struct Sets {
  std::vector<int64_t> groups;
  std::map<int64_t, std::vector<T>> elements;

  void sort() {
    for (auto& [group, set] : elements) {
      std::sort(set.begin(), set.end(), StepEnd::pacing(std::less<>()));
      set.erase(std::unique(set.begin(), set.end()), set.end());
    }
  }
};

template <class T>
Sets<T> dense_sets(const Tensor& values) {
  const Shape& shape = values.shape();
  check(shape.rank() >= 2, "a tensor of sets must have at least rank 2, got shape ", shape);
  Sets<T> out;
  out.groups.assign(shape.dims().begin(), shape.dims().end() - 1);
  const int64_t n = shape[shape.rank() - 1];
  for (int64_t first = 0; n > 0 && first < values.elements(); first += n) {
    const T* from = values.data<T>() + first;
    out.elements[first / n].assign(from, from + n);
  }
  out.sort();
  return out;
}

std::string text_of(const int64_t* index, int64_t rank) {
  std::string out = "[";
  for (int64_t i = 0; i < rank; ++i) out += concat(i == 0 ? "" : ",", index[i]);
  return out + "]";
}

// Inputs `first`, + 1 and + 2 are indices, values and shape. With `validate_indices` the indices
// must be within the shape, in order and distinct; else entries outside of the groups are dropped.
template <class T>
Sets<T> sparse_sets(const ExecuteContext& c, int first) {
  const Tensor &indices = c.input(first), &values = c.input(first + 1), &shape = c.input(first + 2);
  check(indices.shape().rank() == 2, "indices should be a matrix, got shape ", indices.shape());
  check(values.shape().rank() == 1 && shape.shape().rank() == 1,
        "values and shape should be vectors, got shapes ", values.shape(), " and ", shape.shape());
  const int64_t n = indices.shape()[0], rank = shape.elements();
  check(values.elements() == n && indices.shape()[1] == rank, "indices ", indices.shape(),
        " do not fit ", values.elements(), " values and a shape of ", rank, " extents");
  check(rank >= 2, "Invalid rank ", rank, ": a tensor of sets must have at least 2 dimensions");
  const bool is_strict = c.node().attr<bool>("validate_indices");
  const auto *index = indices.data<int64_t>(), *extents = shape.data<int64_t>();
  Sets<T> out;
  out.groups.assign(extents, extents + rank - 1);
  int64_t groups = 1;
  for (const int64_t extent : out.groups) {
    check(extent >= 0, "an extent of the shape is negative: ", extent);
    groups = product_of_extents(groups, extent);
  }
  for (int64_t i = 0; i < n; ++i, index += rank) {
    StepEnd::pace(64);
    bool is_inside = true;
    int64_t group = 0;
    for (int64_t axis = 0; axis < rank; ++axis) {
      const bool fits = index[axis] >= 0 && index[axis] < extents[axis];
      if (!fits && is_strict) {
        fail(Code::invalid_argument, "indices[", i, "] = ", text_of(index, rank),
             " is out of bounds: need 0 <= index < ", text_of(extents, rank));
      }
      if (axis + 1 == rank) break;
      is_inside = is_inside && fits;
      if (is_inside) group = group * extents[axis] + index[axis];
    }
    if (is_strict && i > 0) {
      if (std::equal(index - rank, index, index)) {
        fail(Code::invalid_argument, "indices[", i, "] = ", text_of(index, rank), " is repeated");
      }
      if (!std::lexicographical_compare(index - rank, index, index, index + rank)) {
        fail(Code::invalid_argument, "indices[", i, "] = ", text_of(index, rank),
             " is out of order. Many sparse ops require sorted indices.");
      }
    }
    if (is_inside) out.elements[group].push_back(values.data<T>()[i]);
  }
  out.sort();
  return out;
}

// ---- Operations

enum class Operation { a_minus_b, b_minus_a, both, either };

Operation operation_of(const NodeView& node) {
  std::string name = node.attr<std::string>("set_operation");
  for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
  if (name == "a-b") return Operation::a_minus_b;
  if (name == "b-a") return Operation::b_minus_a;
  if (name == "intersection") return Operation::both;
  check(name == "union", "Invalid set_operation ", name, ": use a-b, b-a, intersection or union.");
  return Operation::either;
}

template <class T>
std::vector<T> combined(Operation operation, const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<T> out;
  const auto to = std::back_inserter(out);
  switch (operation) {
    case Operation::a_minus_b:
      std::set_difference(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case Operation::b_minus_a:
      std::set_difference(b.begin(), b.end(), a.begin(), a.end(), to);
      break;
    case Operation::both:
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case Operation::either:
      std::set_union(a.begin(), a.end(), b.begin(), b.end(), to);
  }
  return out;
}

template <class T>
void combine(ExecuteContext& c, const Sets<T>& a, const Sets<T>& b) {
  check(a.groups == b.groups, "Mismatched shapes ", text_of(a.groups.data(), a.groups.size()),
        " vs ", text_of(b.groups.data(), b.groups.size()));
  const Operation operation = operation_of(c.node());
  const auto groups = static_cast<int64_t>(a.groups.size());
  const std::vector<T> none;
  const auto of = [&](const Sets<T>& sets, int64_t group) -> const std::vector<T>& {
    const auto found = sets.elements.find(group);
    return found == sets.elements.end() ? none : found->second;
  };
  std::map<int64_t, std::vector<T>> result;
  for (const Sets<T>* sets : {&a, &b}) {
    for (const auto& [group, set] : sets->elements) {
      StepEnd::pace(64 + 8 * static_cast<int64_t>(set.size()));
      if (!result.contains(group)) result[group] = combined(operation, of(a, group), of(b, group));
    }
  }
  int64_t count = 0, largest = 0;
  for (const auto& [group, set] : result) {
    count += static_cast<int64_t>(set.size());
    largest = std::max(largest, static_cast<int64_t>(set.size()));
  }
  Tensor indices(DType::i64, {count, groups + 1}), values(dtype_of<T>, {count}),
      shape(DType::i64, {groups + 1});
  int64_t row = 0;
  for (const auto& [group, set] : result) {
    for (size_t place = 0; place < set.size(); ++place, ++row) {
      int64_t* index = indices.data<int64_t>() + row * (groups + 1);
      int64_t rest = group;
      for (int64_t axis = groups; axis-- > 0; rest /= a.groups[axis])
        index[axis] = rest % a.groups[axis];
      index[groups] = static_cast<int64_t>(place);
      values.data<T>()[row] = set[place];
    }
  }
  std::copy(a.groups.begin(), a.groups.end(), shape.data<int64_t>());
  shape.data<int64_t>()[groups] = largest;
  c.set_output(0, std::move(indices));
  c.set_output(1, std::move(values));
  c.set_output(2, std::move(shape));
}

// The known ranks of the inputs and, for dense ones, their groups.
void infer(ShapeContext& c, bool first_is_dense, bool second_is_dense) {
  Shape groups = Shape::unknown();
  const auto add = [&](Shape of_operand) {
    check(!of_operand.has_rank() || of_operand.rank() >= 1,
          "a tensor of sets must have at least rank 2");
    groups = groups.merged(of_operand);
  };
  int at = 0;
  for (const bool is_dense : {first_is_dense, second_is_dense}) {
    if (is_dense) {
      const Shape sets = c.with_rank_at_least(at, 2);
      if (sets.has_rank()) add(Shape(sets.dims().first(sets.rank() - 1)));
      ++at;
      continue;
    }
    const Shape indices = c.with_rank(at, 2), values = c.with_rank(at + 1, 1),
                shape = c.with_rank(at + 2, 1);
    check(indices[0] == any || values[0] == any || indices[0] == values[0], "indices ", indices,
          " and values ", values, " must have the same number of entries");
    const int64_t rank = indices[1] == any ? shape[0] : indices[1];
    check(shape[0] == any || shape[0] == rank, "indices ", indices,
          " must have one column per element of the shape ", shape);
    if (rank != any) {
      check(rank >= 2, "Input ", at, ", expected rank >= 2, got ", rank, ".");
      if (rank <= Shape::max_rank) add(Shape::of_rank(static_cast<int>(rank) - 1));
    }
    at += 3;
  }
  const int64_t rank = groups.has_rank() ? groups.rank() + 1 : any;
  c.set_output(0, {any, rank});
  c.set_output(1, {any});
  c.set_output(2, {rank});
}

template <bool first_is_dense, bool second_is_dense>
OpDef operation(std::string name, std::string doc, std::vector<std::string> inputs,
                std::vector<Tensor> example) {
  return {
      .name = std::move(name),
      .doc = std::move(doc) + ": set_operation is a-b, b-a, intersection or union.",
      .inputs = std::move(inputs),
      .outputs = {"result_indices: int64", "result_values: T", "result_shape: int64"},
      .attrs = {"set_operation: string", validate, types},
      .shape = [](ShapeContext& c) { infer(c, first_is_dense, second_is_dense); },
      .kernels = {execute_kernel("T", SetTypes{},
                                 []<class T>(TypeTag<T>, ExecuteContext& c) {
                                   const auto sets = [&](bool is_dense, int at) {
                                     return is_dense ? dense_sets<T>(c.input(at))
                                                     : sparse_sets<T>(c, at);
                                   };
                                   combine<T>(c, sets(first_is_dense, 0),
                                              sets(second_is_dense, first_is_dense ? 1 : 3));
                                 })},
      .examples = {{.inputs = std::move(example),
                    .attrs = {{"set_operation", "a-b"}},
                    .outputs = {longs({2, 2}, {0, 0, 0, 1}), ints({3, 8}), longs({2, 2})}}},
      .has_data_dependent_shape = true,
      .is_not_differentiable = true,
  };
}

// {3, 8, 5} and {1}; {5, 7} and {1}.
const Tensor dense_a = ints({2, 3}, {8, 3, 5, 1, 1, 1}), dense_b = ints({2, 2}, {7, 5, 1, 1});
const std::vector<Tensor> sparse_a = {longs({4, 2}, {0, 0, 0, 1, 0, 2, 1, 0}), ints({8, 3, 5, 1}),
                                      longs({2, 3})},
                          sparse_b = {longs({3, 2}, {0, 0, 0, 1, 1, 0}), ints({7, 5, 1}),
                                      longs({2, 2})};

const Op dense_op{operation<true, true>("DenseToDenseSetOperation",
                                        "An operation on sets, the last axes of two tensors",
                                        {"set1: T", "set2: T"}, {dense_a, dense_b})};
const Op mixed_op{operation<true, false>(
    "DenseToSparseSetOperation", "An operation on sets, the last axes of a tensor and a sparse one",
    {"set1: T", "set2_indices: int64", "set2_values: T", "set2_shape: int64"},
    {dense_a, sparse_b[0], sparse_b[1], sparse_b[2]})};
const Op sparse_op{operation<false, false>(
    "SparseToSparseSetOperation", "An operation on sets, the last axes of two sparse tensors",
    {"set1_indices: int64", "set1_values: T", "set1_shape: int64", "set2_indices: int64",
     "set2_values: T", "set2_shape: int64"},
    {sparse_a[0], sparse_a[1], sparse_a[2], sparse_b[0], sparse_b[1], sparse_b[2]})};

// ---- SetSize

template <class T>
void count(ExecuteContext& c) {
  const Sets<T> sets = sparse_sets<T>(c, 0);
  Tensor out(DType::i32, Shape(std::span<const int64_t>(sets.groups)));
  std::fill_n(out.data<int32_t>(), out.elements(), 0);
  for (const auto& [group, set] : sets.elements)
    out.data<int32_t>()[group] = static_cast<int32_t>(set.size());
  c.set_output(0, std::move(out));
}

const Op size_op{{
    .name = "SetSize",
    .doc = "size = how many different elements each set has; sets are the last axis of the sparse "
           "tensor.",
    .inputs = {"set_indices: int64", "set_values: T", "set_shape: int64"},
    .outputs = {"size: int32"},
    .attrs = {validate, types},
    .kernels = {execute_kernel("T", SetTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { count<T>(c); })},
    .examples = {{.inputs = {longs({3, 2}, {0, 0, 0, 1, 1, 0}), ints({7, 7, 1}), longs({3, 2})},
                  .outputs = {ints({1, 1, 0})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
