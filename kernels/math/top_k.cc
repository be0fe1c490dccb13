// TopKV2 and ApproxTopK: the largest entries of each row.
#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// Numbers of up to 32 bits are sorted as integers of 64: the upper half is the smaller the larger
// the number, the lower half is its index.
template <class T>
constexpr bool has_key = sizeof(T) <= 4;

template <class T>
LEAT_INLINE inline uint64_t key_of(const T& value, uint64_t index) {
  const ComputeType<T> x(value);
  uint32_t rising;
  if constexpr (std::is_floating_point_v<ComputeType<T>>) {
    const auto bits = std::bit_cast<uint32_t>(x + 0.0F);  // -0 is equal to 0
    const uint32_t sign = bits >> 31, is_nan = x != x;    // NaN is the largest
    rising = (bits ^ (-sign | 1U << 31)) | -is_nan;
  } else {
    rising = static_cast<uint32_t>(x) ^ (std::is_signed_v<T> ? 1U << 31 : 0U);
  }
  return uint64_t{~rising} << 32 | index;
}

template <class T>
void write_keys(const T* values, int64_t n, int64_t first, uint64_t* keys) {
  vectorized([=]() LEAT_INLINE {
    LEAT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i) keys[i] = key_of(values[i], static_cast<uint64_t>(first + i));
  });
}

// The first k of n in order, which compares few or many of them.
template <class At, class Less>
void sort_first(At begin, int64_t k, int64_t n, Less less) {
  if (k < n / 8) {
    std::partial_sort(begin, begin + k, begin + n, less);
  } else {
    std::sort(begin, begin + n, less);
  }
}

// Of equal entries the first wins. `sorted = false` promises no order, so there is one order only.
template <class T, class Index>
BoundKernel bind(int64_t rows, int64_t columns, int64_t k) {
  using C = ComputeType<T>;
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    a.stream->parallel_for(rows, 1 + 20'000 / columns, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* row = a.input<T>(0) + r * columns;
        const auto give = [&](int64_t i, int64_t from) {
          a.output<T>(0)[r * k + i] = row[from];
          a.output<Index>(1)[r * k + i] = static_cast<Index>(from);
        };
        if constexpr (has_key<T>) {
          if (columns <= std::numeric_limits<uint32_t>::max()) {
            uint64_t* keys = static_cast<uint64_t*>(a.workspace) + r * columns;
            constexpr int64_t short_row = 1 << 16;
            for (int64_t from = 0; from < columns; from += short_row) {
              const int64_t n = std::min(short_row, columns - from);
              StepEnd::pace(n);
              write_keys(row + from, n, from, keys + from);
            }
            if (columns <= short_row) {
              StepEnd::pace(16 * columns);
              sort_first(keys, k, columns, std::less<>());
            } else {
              sort_first(keys, k, columns, StepEnd::pacing(std::less<>()));
            }
            for (int64_t i = 0; i < k; ++i) give(i, static_cast<int64_t>(keys[i] & ~0U));
            continue;
          }
        }
        int64_t* order = static_cast<int64_t*>(a.workspace) + r * columns;
        std::iota(order, order + columns, int64_t{0});
        const auto comes_first = [row](int64_t i, int64_t j) {
          const C x = row[i], y = row[j];
          const bool x_is_nan = x != x, y_is_nan = y != y;  // NaN is larger than any number
          if (x_is_nan != y_is_nan) return x_is_nan;
          return x_is_nan || x == y ? i < j : y < x;
        };
        sort_first(order, k, columns, StepEnd::pacing(comes_first));
        for (int64_t i = 0; i < k; ++i) give(i, order[i]);
      }
    });
  });
  kernel.workspace_bytes = static_cast<size_t>(rows * columns) * sizeof(int64_t);
  kernel.cost_ns = 5.0 * static_cast<double>(rows * columns);
  return kernel;
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  const Shape &shape = request.inputs[0].shape, &out = request.outputs[0].shape;
  const int64_t columns = shape[shape.rank() - 1], k = out[out.rank() - 1];
  if (out.elements() == 0) return {};
  const int64_t rows = shape.elements() / columns;
  const DType index = request.outputs[1].dtype;
  if (index == DType::i64) return bind<T, int64_t>(rows, columns, k);
  if (index == DType::i16) return bind<T, int16_t>(rows, columns, k);
  return bind<T, int32_t>(rows, columns, k);
}

void infer(ShapeContext& c) {
  Shape out = c.with_rank_at_least(0, 1);
  c.with_rank(1, 0);
  if (!out.has_rank()) {
    for (int i : {0, 1}) c.set_output(i, Shape::unknown());
    return;
  }
  const int last = out.rank() - 1;
  int64_t k = any;
  if (const Tensor* value = c.value(1)) {
    k = to_int64s(*value)[0];
    check(k >= 0, "Need k >= 0, got ", k);
    check(out[last] == any || out[last] >= k, "input must have at least k columns. Had ", out[last],
          ", needed ", k);
  }
  out.set(last, k);
  for (int i : {0, 1}) c.set_output(i, out);
}

// The gradient of a value goes to where it was taken from.
void gradient(Gradient& g) {
  const Output x = g.x(0), indices = cast(g.y(1), i32);
  check(x.shape().has_rank(), "the gradient of ", g.node().op->name, " needs a known rank");
  const auto number = [&](int32_t value) { return constant(g.graph(), Tensor::scalar(value)); };
  const auto vector = [&](int32_t value) { return constant(g.graph(), ints({value})); };
  // As matrices of [rows, columns] and [rows, k]; row r begins at element r * columns.
  const int last = x.shape().rank() - 1;
  const Output columns = take(shape_of(x), number(last)), k = take(shape_of(indices), number(last));
  const Output flat = reshape(indices, stack({number(-1), k}));
  const Output rows = take(shape_of(flat), number(0));
  const Output starts = expand_dims(arange(g.graph(), 0, rows * columns, columns), -1);
  const Output at = reshape(flat + starts, vector(-1));
  const Output dx = segment_sum(reshape(g.dy(0), vector(-1)), at, size_of(x));
  g.dx(0) = reshape(dx, shape_of(x));
}

const Op top_k_op{{
    .name = "TopKV2",
    .doc = "values[…, i], indices[…, i] = the i-th largest of the entries input[…, :] and where it "
           "is, for i < k; of equal entries the first. NaN counts as the largest.",
    .inputs = {"input: T", "k: Tk"},
    .outputs = {"values: T", "indices: index_type"},
    .attrs = {"sorted: bool = true", "T: realnumbertype", "Tk: {int16, int32, int64} = int32",
              "index_type: {int16, int32, int64} = int32"},
    .shape = infer,
    .gradient = gradient,
    .kernels = {cpu_kernel(
        "T", NumberTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({2, 3}, {1, 3, 2, 5, 5, 4}), Tensor::scalar<int32_t>(2)},
                  .outputs = {floats({2, 2}, {3, 2, 5, 5}), ints({2, 2}, {1, 2, 0, 1})}}},
    .value_inputs = {1},
}};

// ---- ApproxTopK

// As TensorFlow's kernel for CPUs: whatever recall_target says, the result is exact, and it has k
// entries even without aggregate_to_topk, where other devices give more candidates.
void infer_approximate(ShapeContext& c) {
  check(c.attr<int64_t>("reduction_dimension") == -1 && c.attr<bool>("is_max_k"),
        "ApproxTopK on a CPU takes the largest entries along the last dimension: "
        "reduction_dimension must be -1, is_max_k true");
  const float recall = c.attr<float>("recall_target");
  check(recall > 0 && recall <= 1, "Invalid recall target: ", recall,
        ". Valid value range in : [0, 1.0].");
  const int64_t k = c.attr<int64_t>("k");
  Shape out = c.with_rank_at_least(0, 1);
  if (out.has_rank()) {
    const int last = out.rank() - 1;
    check(out[last] == any || out[last] >= k, "input must have last dimension >= k = ", k,
          " but was ", out[last]);
    out.set(last, k);
  }
  for (int i : {0, 1}) c.set_output(i, out);
}

const Op approximate_op{{
    .name = "ApproxTopK",
    .doc = "values[…, i], indices[…, i] = the i-th largest of the entries input[…, :] and where it "
           "is, for i < k. Here it is exact: TopKV2 with k as an attribute.",
    .inputs = {"input: T"},
    .outputs = {"values: T", "indices: int32"},
    .attrs = {"k: int >= 0", "reduction_dimension: int = -1", "recall_target: float = 0.95",
              "is_max_k: bool = true", "reduction_input_size_override: int = -1",
              "aggregate_to_topk: bool = true", "T: {half, bfloat16, float}"},
    .shape = infer_approximate,
    .gradient = gradient,
    .kernels = {cpu_kernel(
        "T", Types<half, bfloat16, float>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({2, 3}, {1, 3, 2, 5, 5, 4})},
                  .attrs = {{"k", int64_t{2}}},
                  .outputs = {floats({2, 2}, {3, 2, 5, 5}), ints({2, 2}, {1, 2, 0, 1})}}},
}};

}  // namespace
}  // namespace leat
