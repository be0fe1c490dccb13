// Combine rows with equal ids: SegmentSum, Mean, Prod, Min and Max, whose sorted ids determine the
// number of output rows, and UnsortedSegmentSum, Prod, Min and Max, which take it as an input.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"
#include "kernels/half_rows.h"
#include "kernels/math/segment_combiners.h"
#include "kernels/pieces.h"

namespace leat {
namespace {

using namespace segment;

template <class Combiner, class T>
void combine_row(const T* from, int64_t n, T* to) {
  using C = ComputeType<T>;
  for_row_tiles(n, [=](int64_t first, int64_t count) LEAT_INLINE {
    float sums[row_tile], terms[row_tile];
    const auto* const sum = loaded(to + first, count, sums);
    const auto* const term = loaded(from + first, count, terms);
    store_row(to + first, count, sums, [=](auto* result) LEAT_INLINE {
      using To = std::remove_pointer_t<decltype(result)>;
      LEAT_INDEPENDENT_ITERATIONS
      for (int64_t j = 0; j < count; ++j) result[j] = To(Combiner::combine(C(sum[j]), C(term[j])));
    });
  });
}

// ---- Sorted ids

void divide_row(auto* row, int64_t n, int64_t count) {
  using T = std::remove_pointer_t<decltype(row)>;
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    for (int64_t j = 0; j < n; ++j)
      row[j] = static_cast<T>(static_cast<Wide>(row[j]) / static_cast<Wide>(count));
  } else {
    using C = ComputeType<T>;
    for (int64_t j = 0; j < n; ++j) row[j] = T(C(row[j]) / static_cast<C>(count));
  }
}

template <class Combiner, class T, class Index>
void combine_sorted(ExecuteContext& c) {
  const Tensor &data = c.input(0), &ids = c.input(1);
  const int64_t n = ids.elements();
  check(data.shape().rank() >= 1, "input must be at least rank 1");
  check(ids.shape().rank() == 1, "segment_ids should be a vector, got shape ", ids.shape());
  check(data.shape()[0] == n, "segment_ids should be the same size as dimension 0 of input: ", n,
        " and ", data.shape());
  const Index* id = ids.data<Index>();
  for (int64_t i = 0; i < n; ++i) {
    check(id[i] >= 0, "Segment id ", id[i], " out of range: it must not be negative");
    check(i == 0 || id[i - 1] <= id[i], "segment ids are not increasing: segment_ids[", i - 1,
          "] = ", id[i - 1], ", segment_ids[", i, "] = ", id[i]);
  }
  Tensor out(data.dtype(), rows_of(n == 0 ? 0 : sum_of_extents(id[n - 1], 1), data.shape()));
  const int64_t row = n == 0 ? 0 : data.elements() / n;
  fill_in_pieces(out.data<T>(), out.elements(), T(Combiner::gap));
  for (int64_t begin = 0, end = 0; begin < n; begin = end) {
    const T* from = data.data<T>() + begin * row;
    T* to = out.data<T>() + id[begin] * row;
    std::copy_n(from, row, to);
    for (end = begin + 1; end < n && id[end] == id[begin]; ++end) {
      StepEnd::pace(row);
      combine_row<Combiner>(from += row, row, to);
    }
    if constexpr (std::is_same_v<Combiner, Mean>) divide_row(to, row, end - begin);
  }
  c.set_output(0, std::move(out));
}

void infer_sorted(ShapeContext& c) {
  const Shape data = c.with_rank_at_least(0, 1), ids = c.with_rank(1, 1);
  if (!data.has_rank()) return c.set_output(0, Shape::unknown());
  check(data[0] == any || ids[0] == any || data[0] == ids[0],
        "segment_ids should be the same size as dimension 0 of input: ", ids, " and ", data);
  c.set_output(0, rows_of(any, data));
}

// ---- Unsorted ids

template <class Combiner, class T, class Index>
BoundKernel bind_unsorted(const KernelRequest& request) {
  // Without data, the ids are not read: they may be out of range.
  const bool is_empty = request.inputs[0].shape.elements() == 0;
  const int64_t rows = request.outputs[0].shape[0],
                count = is_empty ? 0 : request.inputs[1].shape.elements();
  const int64_t inner = rows == 0 ? 0 : request.outputs[0].shape.elements() / rows;
  return BoundKernel::of([rows, count, inner](const Arguments& a) {
    T* out = a.output<T>();
    fill_in_pieces(out, rows * inner, Combiner::template empty<T>());
    for (int64_t i = 0; i < count; ++i) {
      StepEnd::pace(4 + inner);
      const int64_t row = a.input<Index>(1)[i];
      if (row < 0) continue;
      check(row < rows, "segment_ids[", i, "] = ", row, " is out of range [0, ", rows, ")");
      combine_row<Combiner>(a.input<T>(0) + i * inner, inner, out + row * inner);
    }
  });
}

void infer_unsorted(ShapeContext& c) {
  const Shape data = c.input(0), ids = c.input(1);
  c.with_rank(2, 0);
  if (!data.has_rank() || !ids.has_rank()) return c.set_output(0, Shape::unknown());
  const Tensor* rows = c.value(2);
  check(rows == nullptr || to_int64s(*rows)[0] >= 0,
        "Input num_segments == ", rows == nullptr ? any : to_int64s(*rows)[0],
        " must not be negative.");
  check(data.rank() >= ids.rank(), "data ", data, " must begin with the shape of segment_ids ",
        ids);
  Shape out{rows == nullptr ? any : to_int64s(*rows)[0]};
  for (int i = 0; i < data.rank(); ++i) {
    if (i >= ids.rank()) {
      out.push_back(data[i]);
    } else {
      check(data[i] == any || ids[i] == any || data[i] == ids[i], "data ", data,
            " must begin with the shape of segment_ids ", ids);
    }
  }
  c.set_output(0, out);
}

// ---- Gradients, of both kinds

// The segments of an op, for the ops of its gradient.
struct Segments {
  Output data, ids, count;  // count only if the ids are unsorted

  explicit Segments(Gradient& g) : data(g.x(0)), ids(g.x(1)) {
    if (!g.node().op->name.starts_with("Unsorted")) return;
    count = g.x(2);
    check(data.shape().has_rank() && ids.shape().has_rank(), "the gradient of ", g.node().op->name,
          " needs known ranks");
  }

  Output combine(const std::string& how, Output rows) const {
    return count ? op("UnsortedSegment" + how, {rows, ids, count})
                 : op("Segment" + how, {rows, ids});
  }
  // For every row of data, the row of its segment; any row where the id is negative.
  Output spread(Output of_segments) const {
    return take(of_segments, count ? maximum(ids, 0) : ids);
  }
  // `value`, and 0 in rows that were dropped because their id is negative.
  Output or_zero(Output value) const {
    if (!count) return value;
    Output is_kept = greater_equal(ids, 0);
    for (int i = ids.shape().rank(); i < data.shape().rank(); ++i)
      is_kept = expand_dims(is_kept, -1);
    return where(is_kept, value, zeros_like(value));
  }
};

void sum_gradient(Gradient& g) {
  const Segments segments(g);
  g.dx(0) = segments.or_zero(segments.spread(g.dy()));
}

void mean_gradient(Gradient& g) {
  const Segments segments(g);
  const Output counts = segments.combine("Sum", ones_like(segments.data));
  g.dx(0) = segments.spread(div_no_nan(g.dy(), counts));
}

// Rows that are equally small, or large, share the gradient.
void extremum_gradient(Gradient& g) {
  const Segments segments(g);
  const Output is_extremum = equal(segments.data, segments.spread(g.y()));
  const Output count = segments.combine("Sum", cast(is_extremum, g.dy().dtype()));
  const Output share = segments.spread(div_no_nan(g.dy(), count));
  g.dx(0) = segments.or_zero(where(is_extremum, share, zeros_like(share)));
}

// The product of the others: the quotient if the segment has no zero; a zero gets the product of
// the rest, unless there are two zeros.
void prod_gradient(Gradient& g) {
  const Segments segments(g);
  const Output data = segments.data, is_zero = equal(data, zeros_like(data));
  const Output zeros = segments.combine("Sum", cast(is_zero, i32));
  const Output dy = where(greater(zeros, 1), zeros_like(g.dy()), g.dy());
  const Output nonzero = where(is_zero, ones_like(data), data);
  const Output rest = segments.spread(segments.combine("Prod", nonzero));
  const Output others = where(is_zero, rest, segments.spread(g.y()) / nonzero);
  g.dx(0) = segments.or_zero(segments.spread(dy) * others);
}

// ---- The ops

// Complex numbers have no order.
template <class Combiner>
using CombinedTypes =
    std::conditional_t<std::is_base_of_v<Min, Combiner> || std::is_base_of_v<Max, Combiner>,
                       NumberTypes, NumberAndComplexTypes>;

struct Kind {
  std::string name, formula, types;
  GradientFunction gradient;
};

const Kind sum_kind{"Sum", "the sum", "numbertype", sum_gradient},
    mean_kind{"Mean", "the mean", "numbertype", mean_gradient},
    prod_kind{"Prod", "the product", "numbertype", prod_gradient},
    min_kind{"Min", "the smallest", "realnumbertype", extremum_gradient},
    max_kind{"Max", "the largest", "realnumbertype", extremum_gradient};

template <class Combiner>
OpDef sorted(const Kind& kind, Tensor expected) {
  return {
      .name = "Segment" + kind.name,
      .doc = "output[s, j…] = " + kind.formula +
             " of data[i, j…] over all i with segment_ids[i] = s; " +
             std::to_string(Combiner::gap) + " where there is none. The ids are sorted.",
      .inputs = {"data: T", "segment_ids: Tindices"},
      .outputs = {"output: T"},
      .attrs = {"T: " + kind.types, "Tindices: {int32, int64}"},
      .shape = infer_sorted,
      .gradient = kind.gradient,
      .kernels = {execute_kernel("T", CombinedTypes<Combiner>{},
                                 []<class T>(TypeTag<T>, ExecuteContext& c) {
                                   c.input(1).dtype() == DType::i64
                                       ? combine_sorted<Combiner, T, int64_t>(c)
                                       : combine_sorted<Combiner, T, int32_t>(c);
                                 })},
      .examples = {{.inputs = {floats({3, 2}, {1, 4, 3, 2, 5, 6}), ints({0, 0, 2})},
                    .outputs = {std::move(expected)}}},
      .has_data_dependent_shape = true,
  };
}

template <class Combiner>
OpDef unsorted(const Kind& kind, const std::string& of_none, Tensor expected) {
  return {
      .name = "UnsortedSegment" + kind.name,
      .doc = "output[s, j…] = " + kind.formula +
             " of data[i…, j…] over all i with segment_ids[i…] = s, of num_segments; " + of_none +
             " where there is none. Rows of negative id are dropped.",
      .inputs = {"data: T", "segment_ids: Tindices", "num_segments: Tnumsegments"},
      .outputs = {"output: T"},
      .attrs = {"T: " + kind.types,
                kind.name == "Sum" ? "Tindices: {int16, int32, int64}" : "Tindices: {int32, int64}",
                "Tnumsegments: {int32, int64} = int32"},
      .shape = infer_unsorted,
      .gradient = kind.gradient,
      .kernels = {cpu_kernel("T", CombinedTypes<Combiner>{},
                             []<class T>(TypeTag<T>, const KernelRequest& r) {
                               const DType index = r.attr<DType>("Tindices");
                               if (index == DType::i16)
                                 return bind_unsorted<Combiner, T, int16_t>(r);
                               return index == DType::i64 ? bind_unsorted<Combiner, T, int64_t>(r)
                                                          : bind_unsorted<Combiner, T, int32_t>(r);
                             })},
      .examples = {{.inputs = {floats({3, 2}, {1, 4, 5, 6, 3, 2}), ints({0, 1, 0}),
                               Tensor::scalar<int32_t>(2)},
                    .outputs = {std::move(expected)}}},
      .value_inputs = {2},
  };
}

const Op segment_sum_op{sorted<Sum>(sum_kind, floats({3, 2}, {4, 6, 0, 0, 5, 6}))};
const Op segment_mean_op{sorted<Mean>(mean_kind, floats({3, 2}, {2, 3, 0, 0, 5, 6}))};
const Op segment_prod_op{sorted<Prod>(prod_kind, floats({3, 2}, {3, 8, 1, 1, 5, 6}))};
const Op segment_min_op{sorted<Min>(min_kind, floats({3, 2}, {1, 2, 0, 0, 5, 6}))};
const Op segment_max_op{sorted<Max>(max_kind, floats({3, 2}, {3, 4, 0, 0, 5, 6}))};

const Op unsorted_sum_op{unsorted<Sum>(sum_kind, "0", floats({2, 2}, {4, 6, 5, 6}))};
const Op unsorted_prod_op{unsorted<Prod>(prod_kind, "1", floats({2, 2}, {3, 8, 5, 6}))};
const Op unsorted_min_op{
    unsorted<UnsortedMin>(min_kind, "the type's largest value", floats({2, 2}, {1, 2, 5, 6}))};
const Op unsorted_max_op{
    unsorted<UnsortedMax>(max_kind, "the type's smallest value", floats({2, 2}, {3, 4, 5, 6}))};

}  // namespace
}  // namespace leat
