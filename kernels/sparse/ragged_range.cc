// RaggedRange: one range per row.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/execution/step_end.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"

namespace leat {
namespace {

// The number of rows of the three inputs: all vectors among them have the same length.
Shape rows_of_inputs(const Shape& starts, const Shape& limits, const Shape& deltas) {
  Shape rows;  // a scalar while all inputs are
  bool is_known = true;
  for (const Shape* shape : {&starts, &limits, &deltas}) {
    if (!shape->has_rank()) {
      is_known = false;
      continue;
    }
    check(shape->rank() <= 1, "starts, limits and deltas must be scalars or vectors, not ", *shape);
    if (shape->rank() == 0) continue;
    check(rows.rank() == 0 || rows.is_compatible(*shape),
          "starts, limits, and deltas must have the same shape, got ", starts, ", ", limits,
          " and ", deltas);
    rows = rows.rank() == 0 ? *shape : rows.merged(*shape);
  }
  return rows.rank() == 0 && !is_known ? Shape{any} : rows;
}

// The number of steps from start to limit. INVALID_ARGUMENT if it is above `most`.
template <class T>
int64_t steps(T start, T limit, T delta, int64_t most) {
  check(delta != T(0), "Requires delta != 0");
  if ((delta > T(0) && limit < start) || (delta < T(0) && limit > start)) return 0;
  if constexpr (std::is_integral_v<T>) {
    const auto low = static_cast<uint64_t>(static_cast<int64_t>(std::min(start, limit))),
               high = static_cast<uint64_t>(static_cast<int64_t>(std::max(start, limit))),
               step = static_cast<uint64_t>(static_cast<int64_t>(delta));
    const uint64_t distance = high - low, stride = delta > T(0) ? step : uint64_t{0} - step;
    const uint64_t count = distance / stride + (distance % stride != 0 ? 1 : 0);
    check(count <= static_cast<uint64_t>(most), "Requires ((limit - start) / delta) <= ", most);
    return static_cast<int64_t>(count);
  } else {
    const auto count = static_cast<double>(std::ceil(std::abs((limit - start) / delta)));
    check(count < 0x1p63 && static_cast<int64_t>(count) <= most,
          "Requires ((limit - start) / delta) <= ", most);
    return static_cast<int64_t>(count);
  }
}

// The next value of a range; after the last one an integer may wrap around.
template <class T>
T next_of(T value, T delta) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(value) + static_cast<U>(delta));
  } else {
    return value + delta;
  }
}

template <class T, class Split>
void make_ranges(ExecuteContext& c) {
  const Shape shape = rows_of_inputs(c.input(0).shape(), c.input(1).shape(), c.input(2).shape());
  const int64_t rows = shape.rank() == 0 ? 1 : shape[0];
  const auto at = [&](int input, int64_t row) {
    return c.input(input).data<T>()[c.input(input).shape().rank() == 0 ? 0 : row];
  };
  constexpr int64_t most = std::numeric_limits<Split>::max();
  Tensor splits(dtype_of<Split>, {rows + 1});
  int64_t total = 0;
  splits.data<Split>()[0] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    total = sum_of_extents(total, steps(at(0, row), at(1, row), at(2, row), most));
    check(total <= most, "the ranges have ", total, " values, too many for ", splits.dtype(),
          " splits");
    splits.data<Split>()[row + 1] = static_cast<Split>(total);
  }
  Tensor values(dtype_of<T>, {total});
  T* out = values.data<T>();
  for (int64_t row = 0; row < rows; ++row) {
    StepEnd::pace(64);
    T value = at(0, row);
    const T delta = at(2, row);
    const T* end = values.data<T>() + splits.data<Split>()[row + 1];
    for (; out != end; value = next_of(value, delta)) {
      StepEnd::pace();
      *out++ = value;
    }
  }
  c.set_output(0, std::move(splits));
  c.set_output(1, std::move(values));
}

// The number of values if the inputs are constants: nothing else bounds the result. `any` if there
// are many rows, or if the op will fail.
int64_t number_of_values(const ShapeContext& c) {
  constexpr int64_t most_rows = 4096;
  int64_t rows = 1, total = any;
  for (int i = 0; i < 3; ++i) {
    if (c.value(i) == nullptr || c.value(i)->elements() > most_rows) return any;
    if (c.value(i)->shape().rank() > 0) rows = c.value(i)->elements();
  }
  const auto count = [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                  std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>) {
      const auto at = [&](int input, int64_t row) {
        return c.value(input)->data<T>()[c.value(input)->shape().rank() == 0 ? 0 : row];
      };
      total = 0;
      for (int64_t row = 0; row < rows; ++row) {
        total = sum_of_extents(
            total, steps(at(0, row), at(1, row), at(2, row), std::numeric_limits<int64_t>::max()));
      }
    }
  };
  try {
    visit_dtype(c.input_dtype(0), count);
  } catch (const Error&) {
    return any;
  }
  return total;
}

const Op range_op{{
    .name = "RaggedRange",
    .doc = "Row i has starts[i], starts[i] + deltas[i], … up to but without limits[i]; a scalar "
           "applies to every row. The outputs are where the rows begin and end, and the values.",
    .inputs = {"starts: T", "limits: T", "deltas: T"},
    .outputs = {"rt_nested_splits: Tsplits", "rt_dense_values: T"},
    .attrs = {"T: {bfloat16, float, double, int32, int64} = int32",
              "Tsplits: {int32, int64} = int64"},
    .shape =
        [](ShapeContext& c) {
          const Shape rows = rows_of_inputs(c.input(0), c.input(1), c.input(2));
          const int64_t n = rows.rank() == 0 ? 1 : rows[0];
          c.set_output(0, {n == any ? any : sum_of_extents(n, 1)});
          c.set_output(1, {number_of_values(c)});
        },
    .kernels = {execute_kernel("T", Types<float, double, int32_t, int64_t>{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) {
                                 return c.node().attr<DType>("Tsplits") == DType::i64
                                            ? make_ranges<T, int64_t>(c)
                                            : make_ranges<T, int32_t>(c);
                               })},
    .examples = {{.inputs = {ints({0, 5, 8}), ints({3, 5, 4}), ints({1, 1, -2})},
                  .outputs = {longs({0, 3, 3, 5}), ints({0, 1, 2, 8, 6})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
