// Where: the positions of true elements. Their number depends on the data, so it runs between
// segments.
#include <algorithm>
#include <span>
#include <vector>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// The index of a row in all axes but the last.
class RowIndex {
 public:
  explicit RowIndex(const Shape& shape) : shape_(shape), at_(shape.rank() - 1) {}

  std::span<const int64_t> at() const { return at_; }
  void advance() {
    for (size_t axis = at_.size(); axis-- > 0;) {
      if (++at_[axis] < shape_[static_cast<int>(axis)]) return;
      at_[axis] = 0;
    }
  }

 private:
  const Shape shape_;
  std::vector<int64_t> at_;
};

// to[…] = the numbers of the elements of holds[0, n) that are not 0, counted from `first`; returns
// how many they are. Without branches, which a processor cannot foresee.
template <class T>
int64_t find_true(const T* holds, int64_t n, int64_t first, int64_t* to) {
  using C = ComputeType<T>;
  int64_t found = 0;
  for (int64_t i = 0; i < n; ++i) {
    to[found] = first + i;
    found += static_cast<int64_t>(C(holds[i]) != C(0));
  }
  return found;
}

template <class T>
int64_t count_true(const T* holds, int64_t n) {
  using C = ComputeType<T>;
  int64_t count = 0;
  vectorized([&]() LEAT_INLINE {
    for (int64_t i = 0; i < n; ++i) count += static_cast<int64_t>(C(holds[i]) != C(0));
  });
  return count;
}

template <class T>
Tensor places(const Tensor& condition) {
  const Shape& shape = condition.shape();
  const int rank = shape.rank();
  check(rank >= 1, "Where needs an input of rank 1 or more, got a scalar");
  Tensor out(i64, {count_true(condition.data<T>(), condition.elements()), rank});
  if (out.elements() == 0) return out;
  constexpr int64_t block = 512;
  int64_t found[block];
  const int64_t columns = shape[rank - 1];
  const T* const end = condition.data<T>() + condition.elements();
  int64_t* to = out.data<int64_t>();
  RowIndex row(shape);
  for (const T* holds = condition.data<T>(); holds != end; holds += columns, row.advance()) {
    for (int64_t begin = 0; begin < columns; begin += block) {
      const int64_t n = std::min(block, columns - begin);
      StepEnd::pace(4 * n);
      const int64_t count = find_true(holds + begin, n, begin, found);
      for (int64_t i = 0; i < count; ++i) {
        to = std::ranges::copy(row.at(), to).out;
        *to++ = found[i];
      }
    }
  }
  return out;
}

const Op where_op{{
    .name = "Where",
    .doc = "index = the positions of all elements of input that are not 0 (true), one row each, in "
           "row-major order.",
    .inputs = {"input: T"},
    .outputs = {"index: int64"},
    .attrs = {"T: {float, double, int32, uint8, int16, int8, complex64, int64, bfloat16, uint16, "
              "complex128, half, uint32, uint64, bool} = bool"},
    .shape =
        [](ShapeContext& c) {
          c.set_output(0, Shape{any, c.input(0).has_rank() ? c.input(0).rank() : any});
        },
    .kernels = {{.types = {{"T", NumberComplexAndBoolTypes::list()}},
                 .execute =
                     [](ExecuteContext& c) {
                       c.set_output(0, visit_type(NumberComplexAndBoolTypes{}, c.input(0).dtype(),
                                                  [&]<class T>(TypeTag<T>) {
                                                    return places<T>(c.input(0));
                                                  }));
                     }}},
    .examples = {{.inputs = {bools({2, 2}, {true, false, false, true})},
                  .outputs = {longs({2, 2}, {0, 0, 1, 1})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
