// EditDistance: Levenshtein distance between the sequences along the last axes of two sparse
// tensors.
#include <algorithm>
#include <limits>
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

template <class T>
using Sequences = std::map<int64_t, std::vector<T>>;

// Inputs `first`, + 1 and + 2 are indices, values and shape: the sequences that are not empty, by
// their place in `groups`.
template <class T>
Sequences<T> sequences(const ExecuteContext& c, int first, const std::vector<int64_t>& groups) {
  const Tensor &indices = c.input(first), &values = c.input(first + 1);
  const auto rank = static_cast<int64_t>(groups.size()) + 1;
  check(indices.shape().rank() == 2 && indices.shape()[1] == rank &&
            values.shape() == Shape{indices.shape()[0]},
        "indices ", indices.shape(), " do not fit values ", values.shape(), " and a shape of ",
        rank, " extents");
  Sequences<T> out;
  for (int64_t i = 0; i < values.elements(); ++i) {
    const int64_t* index = indices.data<int64_t>() + i * rank;
    int64_t place = 0;
    for (int64_t axis = 0; axis + 1 < rank; ++axis) {
      check(index[axis] >= 0 && index[axis] < groups[axis], "indices[", i, ", ", axis,
            "] = ", index[axis], " is not in [0, ", groups[axis], ")");
      place = place * groups[axis] + index[axis];
    }
    out[place].push_back(values.data<T>()[i]);
  }
  return out;
}

template <class T>
int64_t distance(const std::vector<T>& a, const std::vector<T>& b) {
  std::vector<int64_t> row(b.size() + 1);  // the distances of a's first i from b's first 0, 1, …
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int64_t>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    StepEnd::pace(static_cast<int64_t>(b.size()));
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

template <class T>
void compare(ExecuteContext& c) {
  for (const int i : {2, 5})
    check(c.input(i).shape().rank() == 1,
          "hypothesis_shape and truth_shape must be vectors, got shape ", c.input(i).shape());
  const std::vector<int64_t> shapes[2] = {to_int64s(c.input(2)), to_int64s(c.input(5))};
  check(shapes[0].size() == shapes[1].size() && shapes[0].size() >= 2,
        "hypothesis_shape and truth_shape must have the same length, at least 2; got ",
        shapes[0].size(), " and ", shapes[1].size());
  for (const std::vector<int64_t>& shape : shapes)
    for (const int64_t extent : shape) check(extent >= 0, "Dimension ", extent, " must be >= 0");
  std::vector<int64_t> groups;
  int64_t count = 1;
  for (size_t axis = 0; axis + 1 < shapes[0].size(); ++axis) {
    groups.push_back(std::max(shapes[0][axis], shapes[1][axis]));
    count = product_of_extents(count, groups.back());
  }
  const Sequences<T> hypotheses = sequences<T>(c, 0, groups), truths = sequences<T>(c, 3, groups);
  const bool is_normalized = c.node().attr<bool>("normalize");
  Tensor out(DType::f32, Shape(std::span<const int64_t>(groups)));
  std::fill_n(out.data<float>(), count, 0.0F);
  const std::vector<T> none;
  for (const auto& [place, truth] : truths) {
    const auto found = hypotheses.find(place);
    const int64_t edits = distance(found == hypotheses.end() ? none : found->second, truth);
    out.data<float>()[place] =
        static_cast<float>(edits) / static_cast<float>(is_normalized ? truth.size() : 1);
  }
  for (const auto& [place, hypothesis] : hypotheses) {
    if (truths.contains(place)) continue;
    out.data<float>()[place] = is_normalized ? std::numeric_limits<float>::infinity()
                                             : static_cast<float>(hypothesis.size());
  }
  c.set_output(0, std::move(out));
}

void infer(ShapeContext& c) {
  for (const int i : {0, 3}) {
    c.with_rank(i, 2);
    c.with_rank(i + 1, 1);
    c.with_rank(i + 2, 1);
  }
  const Shape hypothesis = c.input(2), truth = c.input(5);
  check(hypothesis.is_compatible(truth),
        "Num elements of hypothesis_shape does not match truth_shape: ", hypothesis, " vs. ",
        truth);
  const int64_t rank = hypothesis.has_rank() && hypothesis[0] != any ? hypothesis[0]
                       : truth.has_rank()                            ? truth[0]
                                                                     : any;
  check(rank == any || rank >= 2, "the sparse tensors must have at least rank 2, got ", rank);
  c.set_output(0, rank == any || rank > Shape::max_rank
                      ? Shape::unknown()
                      : Shape::of_rank(static_cast<int>(rank) - 1));
}

const Op edit_distance_op{{
    .name = "EditDistance",
    .doc = "output[g…] = the least number of elements to insert, remove or replace so that the "
           "hypothesis at g… becomes the truth at g…; with normalize, over the truth's length. "
           "The sequences are the last axes of sparse tensors.",
    .inputs = {"hypothesis_indices: int64", "hypothesis_values: T", "hypothesis_shape: int64",
               "truth_indices: int64", "truth_values: T", "truth_shape: int64"},
    .outputs = {"output: float"},
    .attrs = {"normalize: bool = true", "T: type"},
    .shape = infer,
    .kernels = {execute_kernel("T", AllTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { compare<T>(c); })},
    .examples = {{.inputs = {longs({3, 2}, {0, 0, 0, 1, 1, 0}), texts({"a", "b", "c"}),
                             longs({2, 2}), longs({3, 2}, {0, 0, 0, 1, 0, 2}),
                             texts({"b", "b", "a"}), longs({2, 3})},
                  .outputs = {floats({2.0F / 3, std::numeric_limits<float>::infinity()})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
