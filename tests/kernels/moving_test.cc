// Ops that only move elements, against loops over indices: every permutation, cuts on every axis,
// also of strings.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "kernels/examples.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

Tensor counting(DType dtype, const Shape& shape) {
  std::vector<double> values(shape.elements());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 251);
  return from_doubles(dtype, shape, values);
}

Tensor vector_of_ints(const std::vector<int32_t>& values) {
  return Tensor::of<int32_t>({static_cast<int64_t>(values.size())},
                             std::span<const int32_t>(values));
}

Tensor words(std::initializer_list<std::string> values) {
  return Tensor::of<std::string>({static_cast<int64_t>(values.size())}, values);
}

std::vector<std::string> words_of(const Tensor& tensor) {
  const auto span = tensor.span<std::string>();
  return {span.begin(), span.end()};
}

// All indices of a shape, in order.
template <class F>
void for_each_index(const Shape& shape, F f) {
  std::vector<int64_t> index(shape.rank());
  for (int64_t n = 0; n < shape.elements(); ++n) {
    int64_t rest = n;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      index[axis] = rest % shape[axis];
      rest /= shape[axis];
    }
    f(n, index);
  }
}

int64_t offset(const Shape& shape, const std::vector<int64_t>& index) {
  int64_t out = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) out = out * shape[axis] + index[axis];
  return out;
}

void expect_transposed(DType dtype, const Shape& shape, const std::vector<int32_t>& perm,
                       int threads = 1) {
  const Tensor x = counting(dtype, shape);
  const Tensor y = run_op("Transpose", {x, vector_of_ints(perm)}, {}, test_cpu(threads)).at(0);
  const std::vector<double> from = to_doubles(x), to = to_doubles(y);
  for_each_index(y.shape(), [&](int64_t n, const std::vector<int64_t>& index) {
    std::vector<int64_t> source(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) source[perm[i]] = index[i];
    ASSERT_EQ(to[n], from[offset(shape, source)]) << "element " << n << " of " << y.shape();
  });
}

TEST(Transpose, MatchesIndexLoopsForEveryPermutation) {
  std::vector<int32_t> perm = {0, 1, 2, 3};
  do {
    expect_transposed(f32, {3, 1, 4, 5}, perm);
    expect_transposed(i8, {2, 37, 3, 35}, perm);  // more than one tile of the transposed plane
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Transpose, TransposesManyTilesOnSeveralThreads) {
  expect_transposed(f64, {700, 501}, {1, 0}, 3);
  expect_transposed(i16, {5, 200, 301}, {2, 0, 1}, 3);
  expect_transposed(f32, {300, 517}, {1, 0}, 3);
  expect_transposed(i8, {3, 129, 70}, {0, 2, 1}, 3);
}

TEST(Transpose, RejectsInvalidPermutations) {
  expect_error_with(Code::invalid_argument, "perm names axis 1 twice", [] {
    run_op("Transpose", {Tensor(f32, {2, 3}), ints({1, 1})});
  });
  expect_error_with(Code::invalid_argument, "axis 2 is out of range [-2, 2)", [] {
    run_op("Transpose", {Tensor(f32, {2, 3}), ints({0, 2})});
  });
}

TEST(Where, ListsThePlacesInOrder) {
  for (const Shape& shape :
       {Shape{700}, Shape{3, 1100}, Shape{2, 3, 1, 5}, Shape{40, 1}, Shape{0, 3}, Shape{3, 0}}) {
    Tensor x(f32, shape);
    std::vector<double> expected;
    for_each_index(shape, [&](int64_t n, const std::vector<int64_t>& index) {
      x.data<float>()[n] = n * n % 7 < 3 ? 0.0f : -0.5f;
      if (x.data<float>()[n] != 0) expected.insert(expected.end(), index.begin(), index.end());
    });
    const Tensor places = run_op("Where", {x}).at(0);
    EXPECT_EQ(places.shape(), (Shape{std::ssize(expected) / shape.rank(), shape.rank()}));
    EXPECT_EQ(to_doubles(places), expected) << shape;
  }
}

TEST(Concatenation, InvertsSplit) {
  const Shape whole = {4, 6, 2};
  const Tensor x = counting(i32, whole);
  for (int axis = -3; axis < 3; ++axis) {
    const std::vector<Tensor> parts =
        run_op("Split", {Tensor::scalar(axis), x}, {{"num_split", 2}});
    ASSERT_EQ(parts.size(), 2u);
    const Tensor back = run_op("ConcatV2", {parts[0], parts[1], Tensor::scalar(axis)}).at(0);
    EXPECT_EQ(back.shape(), whole);
    EXPECT_EQ(to_doubles(back), to_doubles(x)) << "axis " << axis;
  }
  const std::vector<Tensor> rows = run_op("Unpack", {x}, {{"num", 6}, {"axis", 1}});
  EXPECT_EQ(to_doubles(run_op("Pack", rows, {{"axis", -2}}).at(0)), to_doubles(x));
}

// The threads share long rows in parts; the last part is shorter.
TEST(Concatenation, JoinsLongRows) {
  const int64_t long_row = 200'001, short_row = 5, rows = 3;
  const Tensor x = counting(i32, {rows, long_row}), y = counting(i32, {rows, short_row});
  const Tensor joined = run_op("ConcatV2", {x, y, Tensor::scalar(1)}, {}, test_cpu(3)).at(0);
  ASSERT_EQ(joined.shape(), Shape({rows, long_row + short_row}));
  for (int64_t row = 0; row < rows; ++row) {
    const int32_t* at = joined.data<int32_t>() + row * (long_row + short_row);
    ASSERT_TRUE(std::equal(at, at + long_row, x.data<int32_t>() + row * long_row)) << row;
    ASSERT_TRUE(
        std::equal(at + long_row, at + long_row + short_row, y.data<int32_t>() + row * short_row));
  }
  const Tensor backwards = run_op("ReverseV2", {x, ints({1})}, {}, test_cpu(3)).at(0);
  const Tensor repeated =
      run_op("BroadcastTo", {Tensor::scalar(7), ints({200'001})}, {}, test_cpu(3)).at(0);
  for (int64_t i = 0; i < long_row; ++i) {
    ASSERT_EQ(backwards.data<int32_t>()[i], x.data<int32_t>()[long_row - 1 - i]);
    ASSERT_EQ(repeated.data<int32_t>()[i], 7);
  }
}

TEST(Concatenation, JoinsStrings) {
  const Tensor joined =
      run_op("ConcatV2", {words({"a", "b"}), words({}),
                          words({"a longer string than fits in place"}), Tensor::scalar(0)})
          .at(0);
  EXPECT_EQ(words_of(joined),
            (std::vector<std::string>{"a", "b", "a longer string than fits in place"}));
  EXPECT_EQ(words_of(run_op("Pack", {Tensor::scalar("x"), Tensor::scalar("y")}).at(0)),
            (std::vector<std::string>{"x", "y"}));
}

TEST(Concatenation, ReportsMismatches) {
  expect_error_with(
      Code::invalid_argument, "should match except along axis 1, but input 1 is [3,2]", [] {
        run_op("ConcatV2", {Tensor(f32, {2, 2}), Tensor(f32, {3, 2}), Tensor::scalar(1)});
      });
}

struct Cut {
  std::vector<int32_t> begin, end, strides;
  AttrMap masks;
  Shape shape;
  std::vector<double> elements;
};

// x = [[0, 1, 2], [3, 4, 5]]; every case as in NumPy.
TEST(StridedSlice, SlicesAsPythonDoes) {
  const Tensor x = counting(i32, {2, 3});
  const std::vector<Cut> cuts = {
      {{0}, {1}, {1}, {}, {1, 3}, {0, 1, 2}},                       // x[0:1]
      {{1}, {2}, {1}, {{"shrink_axis_mask", 1}}, {3}, {3, 4, 5}},   // x[1]
      {{-1}, {0}, {1}, {{"shrink_axis_mask", 1}}, {3}, {3, 4, 5}},  // x[-1]
      {{0, -1},
       {0, 0},
       {1, 1},
       {{"shrink_axis_mask", 2}, {"begin_mask", 1}, {"end_mask", 1}},
       {2},
       {2, 5}},                                                    // x[:, -1]
      {{0, 2}, {9, -9}, {1, -1}, {}, {2, 3}, {2, 1, 0, 5, 4, 3}},  // x[0:9, 2:-9:-1]
      {{0, 0},
       {0, 0},
       {-1, -2},
       {{"begin_mask", 3}, {"end_mask", 3}},
       {2, 2},
       {5, 3, 2, 0}},                                                    // x[::-1, ::-2]
      {{0, 1}, {0, 2}, {1, 1}, {{"ellipsis_mask", 1}}, {2, 1}, {1, 4}},  // x[..., 1:2]
      {{0, 0, 0},
       {0, 0, 1},
       {1, 1, 1},
       {{"new_axis_mask", 1}, {"ellipsis_mask", 2}},
       {1, 2, 1},
       {0, 3}},                                  // x[None, ..., 0:1]
      {{1}, {1}, {1}, {}, {0, 3}, {}},           // x[1:1]
      {{2, 0}, {0, 3}, {1, 1}, {}, {0, 3}, {}},  // x[2:0, 0:3]
  };
  for (const Cut& cut : cuts) {
    const std::vector<Tensor> spec = {vector_of_ints(cut.begin), vector_of_ints(cut.end),
                                      vector_of_ints(cut.strides)};
    const Tensor y = run_op("StridedSlice", {x, spec[0], spec[1], spec[2]}, cut.masks).at(0);
    EXPECT_EQ(y.shape(), cut.shape);
    EXPECT_EQ(to_doubles(y), cut.elements);
    // The gradient puts every element back, among zeros.
    const Tensor back =
        run_op("StridedSliceGrad", {ints({2, 3}), spec[0], spec[1], spec[2], y}, cut.masks).at(0);
    std::vector<double> expected(6, 0.0);
    for (const double element : cut.elements) expected[static_cast<size_t>(element)] = element;
    EXPECT_EQ(to_doubles(back), expected);
  }
}

TEST(StridedSlice, ReportsMistakes) {
  const Tensor x = counting(i32, {2, 3});
  const auto cut = [&](int begin, int stride, AttrMap masks) {
    return [=] {
      run_op("StridedSlice", {x, ints({begin}), ints({begin + 1}), ints({stride})}, masks);
    };
  };
  expect_error_with(Code::invalid_argument, "strides[0] must be non-zero", cut(0, 0, {}));
  expect_error_with(Code::invalid_argument, "slice index 2 of dimension 0 out of bounds",
                    cut(2, 1, {{"shrink_axis_mask", 1}}));
  expect_error_with(Code::invalid_argument, "only stride 1 allowed on non-range indexing",
                    cut(0, -1, {{"shrink_axis_mask", 1}}));
}

TEST(Slice, RejectsSlicesOutOfBounds) {
  expect_error_with(Code::invalid_argument, "Expected size[1] in [0, 1], but got 2", [] {
    run_op("Slice", {Tensor(f32, {2, 3}), ints({0, 2}), ints({1, 2})});
  });
}

TEST(Gather, GathersOnAnyAxisWithAndWithoutBatches) {
  const Tensor params = counting(i32, {2, 3, 4});
  const Tensor inner = run_op("GatherV2", {params, ints({2, 1}, {3, 0}), Tensor::scalar(2)}).at(0);
  EXPECT_EQ(inner.shape(), Shape({2, 3, 2, 1}));
  EXPECT_EQ(to_doubles(inner), (std::vector<double>{3, 0, 7, 4, 11, 8, 15, 12, 19, 16, 23, 20}));
  const Tensor batched =
      run_op("GatherV2", {params, ints({2, 1}, {2, 0}), Tensor::scalar(1)}, {{"batch_dims", 1}})
          .at(0);
  EXPECT_EQ(batched.shape(), Shape({2, 1, 4}));
  EXPECT_EQ(to_doubles(batched), (std::vector<double>{8, 9, 10, 11, 12, 13, 14, 15}));
  EXPECT_EQ(
      words_of(run_op("GatherV2", {words({"a", "b"}), ints({1, 1, 0}), Tensor::scalar(0)}).at(0)),
      (std::vector<std::string>{"b", "b", "a"}));
  expect_error_with(Code::invalid_argument, "indices[1] = 3 is not in [0, 3)", [&] {
    run_op("GatherV2", {params, ints({0, 3}), Tensor::scalar(1)});
  });
}

TEST(Tile, RepeatsEveryAxis) {
  EXPECT_EQ(to_doubles(run_op("Tile", {ints({2, 2}, {1, 2, 3, 4}), ints({2, 3})}).at(0)),
            (std::vector<double>{1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4,
                                 1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4}));
  EXPECT_EQ(words_of(run_op("Tile", {words({"a", "b"}), ints({2})}).at(0)),
            (std::vector<std::string>{"a", "b", "a", "b"}));
  EXPECT_EQ(run_op("Tile", {Tensor(f32, {2, 2}), ints({0, 3})}).at(0).shape(), Shape({0, 6}));
}

TEST(Reshape, InfersTheOpenExtent) {
  const auto shape = [](const Shape& from, std::initializer_list<int32_t> to) {
    return run_op("Reshape", {Tensor(f32, from), ints(to)}).at(0).shape();
  };
  EXPECT_EQ(shape({4, 3}, {-1, 6}), Shape({2, 6}));
  EXPECT_EQ(shape({0, 3}, {0, -1}),
            Shape({0, 3}));  // ignores the zeros of both, as TensorFlow does
  EXPECT_EQ(shape({0, 3}, {-1, 3}), Shape({0, 3}));
  expect_error_with(Code::invalid_argument, "requires a multiple of 5", [&] {
    shape({4, 3}, {-1, 5});
  });
  expect_error_with(Code::invalid_argument, "12 values, but the requested shape [5,2] has 10", [&] {
    shape({4, 3}, {5, 2});
  });
  expect_error_with(Code::invalid_argument, "only one extent may be -1", [&] {
    shape({4, 3}, {-1, -1});
  });
}

TEST(OneHot, InsertsTheNewAxisAnywhere) {
  const auto one_hot = [](int axis) {
    return run_op("OneHot",
                  {ints({2, 2}, {0, 1, 2, -1}), Tensor::scalar(3), Tensor::scalar(7),
                   Tensor::scalar(0)},
                  {{"axis", axis}})
        .at(0);
  };
  EXPECT_EQ(one_hot(-1).shape(), Shape({2, 2, 3}));
  EXPECT_EQ(to_doubles(one_hot(-1)), (std::vector<double>{7, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0}));
  EXPECT_EQ(one_hot(0).shape(), Shape({3, 2, 2}));
  EXPECT_EQ(to_doubles(one_hot(0)), (std::vector<double>{7, 0, 0, 0, 0, 7, 0, 0, 0, 0, 7, 0}));
  EXPECT_EQ(to_doubles(one_hot(1)), (std::vector<double>{7, 0, 0, 7, 0, 0, 0, 0, 0, 0, 7, 0}));
}

TEST(Range, CountsDownAndInFractions) {
  EXPECT_EQ(to_doubles(
                run_op("Range", {Tensor::scalar(5), Tensor::scalar(-2), Tensor::scalar(-3)}).at(0)),
            (std::vector<double>{5, 2, -1}));
  EXPECT_EQ(to_doubles(
                run_op("Range", {Tensor::scalar(0.0f), Tensor::scalar(1.0f), Tensor::scalar(0.25f)})
                    .at(0)),
            (std::vector<double>{0, 0.25, 0.5, 0.75}));
  expect_error_with(Code::invalid_argument, "Requires start <= limit when delta > 0: 3/1", [] {
    run_op("Range", {Tensor::scalar(3), Tensor::scalar(1), Tensor::scalar(1)});
  });
  expect_error_with(Code::invalid_argument, "Requires delta != 0: 0", [] {
    run_op("Range", {Tensor::scalar(3), Tensor::scalar(1), Tensor::scalar(0)});
  });
}

}  // namespace
}  // namespace leat
