// SparseSegmentSum, Mean and SqrtN: segment sums of rows selected by indices, as for embeddings of
// sparse features; with the ops of their gradients.
#include <cmath>
#include <map>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"
#include "kernels/pieces.h"
#include "kernels/wrapping.h"

namespace leat {
namespace {

enum class Combiner { sum, mean, sqrt_n };

Combiner combiner_of(std::string_view op) {
  return op.find("Mean") != op.npos    ? Combiner::mean
         : op.find("SqrtN") != op.npos ? Combiner::sqrt_n
                                       : Combiner::sum;
}

// The factor for each row of a segment of `count` rows.
double weight_of(Combiner combiner, int64_t count) {
  const double n = static_cast<double>(count);
  return combiner == Combiner::mean ? 1 / n : combiner == Combiner::sqrt_n ? 1 / std::sqrt(n) : 1;
}

// Checks indices and segment_ids against each other.
void check_vectors(const Shape& indices, const Shape& ids) {
  check(!indices.has_rank() || indices.rank() == 1, "indices should be a vector, got ", indices);
  check(!ids.has_rank() || ids.rank() == 1, "segment_ids should be a vector, got ", ids);
  check(indices.is_compatible(ids), "segment_ids and indices should have same size: ", ids, " and ",
        indices);
}

// ---- Forward

template <class T>
void combine(ExecuteContext& c) {
  using C = ComputeType<T>;
  const Tensor& data = c.input(0);
  const std::vector<int64_t> indices = to_int64s(c.input(1)), ids = to_int64s(c.input(2));
  check(data.shape().rank() >= 1, "data must be at least rank 1");
  check_vectors(c.input(1).shape(), c.input(2).shape());
  int64_t segments = ids.empty() ? 0 : sum_of_extents(ids.back(), 1);
  if (c.num_inputs() > 3) {
    check(c.input(3).shape().rank() == 0, "num_segments should be a scalar, not shape ",
          c.input(3).shape());
    const int64_t asked = to_int64s(c.input(3))[0];
    check(asked >= segments, "segment ids must be < num_segments: ", segments - 1, " and ", asked);
    segments = asked;
  }
  check(segments >= 0, "segment ids must be >= 0");
  const int64_t rows = data.shape()[0], row = rows == 0 ? 0 : data.elements() / rows;
  for (size_t i = 0; i < ids.size(); ++i) {
    check(ids[i] >= 0, "segment ids must be >= 0");
    check(i == 0 || ids[i - 1] <= ids[i], "segment ids are not increasing");
    check(indices[i] >= 0 && indices[i] < rows, "Bad: indices[", i, "] == ", indices[i],
          " out of range [0, ", rows, ")");
  }
  const Combiner combiner = combiner_of(c.node().op);
  Tensor out(data.dtype(), rows_of(segments, data.shape()));
  fill_in_pieces(out.data<T>(), out.elements(), T(0));
  std::vector<C> sum(row);
  for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
    while (end < ids.size() && ids[end] == ids[begin]) ++end;
    std::fill(sum.begin(), sum.end(), C(0));
    for (size_t i = begin; i < end; ++i) {
      StepEnd::pace(4 + row);
      const T* from = data.data<T>() + indices[i] * row;
      for (int64_t j = 0; j < row; ++j)
        sum[j] = static_cast<C>(Wrapping<C>(sum[j]) + Wrapping<C>(C(from[j])));
    }
    const double weight = weight_of(combiner, static_cast<int64_t>(end - begin));
    T* to = out.data<T>() + ids[begin] * row;
    for (int64_t j = 0; j < row; ++j)
      to[j] = combiner == Combiner::sum ? T(sum[j]) : T(sum[j] * static_cast<C>(weight));
  }
  c.set_output(0, std::move(out));
}

void infer(ShapeContext& c) {
  const Shape data = c.with_rank_at_least(0, 1);
  check_vectors(c.input(1), c.input(2));
  int64_t segments = any;
  if (c.num_inputs() > 3) {
    c.with_rank(3, 0);
    if (c.value(3) != nullptr) segments = to_int64s(*c.value(3)).at(0);
    check(segments >= any, "Cannot specify a negative value for num_segments");
  }
  c.set_output(0, data.has_rank() ? rows_of(segments, data) : Shape::unknown());
}

void gradient(Gradient& g) {
  const Output rows = op("StridedSlice",
                         {shape_of(g.x(0)), constant(g.graph(), ints({0})),
                          constant(g.graph(), ints({1})), constant(g.graph(), ints({1}))},
                         {{"shrink_axis_mask", 1}});
  const char* const name[] = {"SparseSegmentSumGrad", "SparseSegmentMeanGrad",
                              "SparseSegmentSqrtNGrad"};
  const int kind = static_cast<int>(combiner_of(g.node().op->name));
  g.dx(0) = op(name[kind], {g.dy(), g.x(1), g.x(2), rows});
}

template <class Supported>
OpDef forward(const std::string& kind, bool has_count, const std::string& types, Supported list,
              const std::string& formula, Tensor expected) {
  OpDef op{
      .name = "SparseSegment" + kind + (has_count ? "WithNumSegments" : ""),
      .doc = "output[s, j…] = the sum of data[indices[i], j…] over all i with segment_ids[i] = s" +
             formula + "; 0 for empty segments. The ids are sorted.",
      .inputs = {"data: T", "indices: Tidx", "segment_ids: Tsegmentids"},
      .outputs = {"output: T"},
      .attrs = {"T: " + types, "Tidx: {int32, int64} = int32",
                "Tsegmentids: {int32, int64} = int32", "sparse_gradient: bool = false"},
      .shape = infer,
      .gradient = gradient,
      .kernels = {execute_kernel("T", list,
                                 []<class T>(TypeTag<T>, ExecuteContext& c) { combine<T>(c); })},
      .examples = {{.inputs = {floats({3, 1}, {1, 2, 5}), ints({0, 2, 1, 2}), ints({0, 0, 0, 0})},
                    .outputs = {std::move(expected)}}},
      .has_data_dependent_shape = true,
  };
  if (has_count) {
    op.doc += " There are num_segments.";
    op.inputs.push_back("num_segments: Tnumsegments");
    op.attrs.push_back("Tnumsegments: {int32, int64} = int32");
    op.examples[0].inputs.push_back(Tensor::scalar<int32_t>(1));
  }
  return op;
}

const char* const floating = "{bfloat16, half, float, double}";

OpDef sum(bool has_count) {
  return forward("Sum", has_count, "realnumbertype", NumberTypes{}, "", floats({1, 1}, {13}));
}
OpDef mean(bool has_count) {
  return forward("Mean", has_count, floating, FloatTypes{}, ", divided by their number",
                 floats({1, 1}, {3.25f}));
}
OpDef sqrt_n(bool has_count) {
  return forward("SqrtN", has_count, floating, FloatTypes{},
                 ", divided by the root of their number", floats({1, 1}, {6.5f}));
}

const Op sum_op{sum(false)}, sum_with_count_op{sum(true)};
const Op mean_op{mean(false)}, mean_with_count_op{mean(true)};
const Op sqrt_n_op{sqrt_n(false)}, sqrt_n_with_count_op{sqrt_n(true)};

// ---- The gradients' ops

// V2 has rows only for the indices that occur, and returns these indices.
template <class T>
void spread(ExecuteContext& c) {
  using C = ComputeType<T>;
  const bool is_compact = c.node().op.ends_with("V2");
  const Tensor& grad = c.input(0);
  const std::vector<int64_t> indices = to_int64s(c.input(1)), ids = to_int64s(c.input(2));
  check(grad.shape().rank() >= 1, "grad must be at least rank 1");
  check_vectors(c.input(1).shape(), c.input(2).shape());
  check(c.input(3).shape().rank() == 0, "output_dim0 should be a scalar");
  const int64_t rows = to_int64s(c.input(3))[0];
  check(rows >= 0, "output_dim0 must not be negative, got ", rows);
  const int64_t segments = grad.shape()[0], row = segments == 0 ? 0 : grad.elements() / segments;
  // Without elements the grad may have any number of rows.
  std::vector<int64_t> count(row == 0 ? 0 : segments, 0);
  std::map<int64_t, int64_t> place;  // place of an index in the output
  for (size_t i = 0; i < ids.size(); ++i) {
    check(ids[i] >= 0 && ids[i] < segments, "Segment id ", ids[i], " out of range [0, ", segments,
          ")");
    check(indices[i] >= 0 && indices[i] < rows, "Index ", indices[i], " out of range [0, ", rows,
          ")");
    if (row > 0) ++count[ids[i]];
    if (is_compact) place[indices[i]];
  }
  int64_t next = 0;
  for (auto& [index, at] : place) at = next++;
  const Combiner combiner = combiner_of(c.node().op);
  Tensor out(grad.dtype(), rows_of(is_compact ? next : rows, grad.shape()));
  std::vector<C> sum(out.elements(), C(0));
  for (size_t i = 0; i < ids.size(); ++i) {
    StepEnd::pace(16 + row);
    if (row == 0) break;
    const C weight = static_cast<C>(weight_of(combiner, count[ids[i]]));
    const T* from = grad.data<T>() + ids[i] * row;
    C* to = sum.data() + (is_compact ? place[indices[i]] : indices[i]) * row;
    for (int64_t j = 0; j < row; ++j) to[j] += C(from[j]) * weight;
  }
  for (int64_t i = 0; i < out.elements(); ++i) out.data<T>()[i] = T(sum[i]);
  c.set_output(0, std::move(out));
  if (!is_compact) return;
  Tensor found(c.input(1).dtype(), {next});
  for (const auto& [index, at] : place) {
    if (found.dtype() == DType::i64) {
      found.data<int64_t>()[at] = index;
    } else {
      found.data<int32_t>()[at] = static_cast<int32_t>(index);
    }
  }
  c.set_output(1, std::move(found));
}

void infer_spread(ShapeContext& c) {
  const Shape grad = c.with_rank_at_least(0, 1);
  check_vectors(c.input(1), c.input(2));
  c.with_rank(3, 0);
  int64_t rows = any;
  if (c.num_outputs() > 1) {
    c.set_output(1, Shape{any});
  } else if (c.value(3) != nullptr) {
    rows = to_int64s(*c.value(3)).at(0);
    check(rows >= 0, "Cannot specify a negative value for output_dim0");
  }
  c.set_output(0, grad.has_rank() ? rows_of(rows, grad) : Shape::unknown());
}

OpDef backward(const std::string& kind, bool is_compact, Tensor expected) {
  OpDef op{
      .name = "SparseSegment" + kind + "Grad" + (is_compact ? "V2" : ""),
      .doc = "The gradient of SparseSegment" + kind +
             " with respect to data. It has output_dim0 rows.",
      .inputs = {"grad: T", "indices: Tidx", "segment_ids: Tsegmentids",
                 is_compact ? "dense_output_dim0: int32" : "output_dim0: int32"},
      .outputs = {"output: T"},
      .attrs = {std::string("T: ") + floating, "Tidx: {int32, int64} = int32",
                "Tsegmentids: {int32, int64} = int32"},
      .shape = infer_spread,
      .kernels = {execute_kernel("T", FloatTypes{},
                                 []<class T>(TypeTag<T>, ExecuteContext& c) { spread<T>(c); })},
      .examples = {{.inputs = {floats({1, 1}, {4}), ints({0, 2, 0, 2}), ints({0, 0, 0, 0}),
                               Tensor::scalar<int32_t>(3)},
                    .outputs = {std::move(expected)}}},
      .has_data_dependent_shape = true,
  };
  if (is_compact) {
    op.doc = "The gradient of SparseSegment" + kind +
             " with respect to data, only in the rows that indices names, and these in order.";
    op.outputs.push_back("sorted_unique_indices: Tidx");
    op.examples[0].outputs.push_back(ints({0, 2}));
  }
  return op;
}

const Op sum_grad_op{backward("Sum", false, floats({3, 1}, {8, 0, 8}))},
    sum_grad_v2_op{backward("Sum", true, floats({2, 1}, {8, 8}))};
const Op mean_grad_op{backward("Mean", false, floats({3, 1}, {2, 0, 2}))},
    mean_grad_v2_op{backward("Mean", true, floats({2, 1}, {2, 2}))};
const Op sqrt_n_grad_op{backward("SqrtN", false, floats({3, 1}, {4, 0, 4}))},
    sqrt_n_grad_v2_op{backward("SqrtN", true, floats({2, 1}, {4, 4}))};

}  // namespace
}  // namespace leat
