// The builder functions as a program writes them; the values are NumPy's.
#include "graph/ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "frontends/cpp/session.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class Ops : public ::testing::Test {
 protected:
  // arange(1, 13).reshape(3, 4) / 4
  Ops() {
    std::vector<float> numbers;
    for (int i = 1; i <= 12; ++i) numbers.push_back(static_cast<float>(i) / 4);
    x = constant(g, Tensor::of<float>({3, 4}, std::span<const float>(numbers)));
  }

  Tensor value(Output y) { return Session(g).run({}, fetch(y))[0]; }
  std::vector<double> numbers(Output y) { return to_doubles(value(y)); }
  void expect(Output y, const Shape& shape, const std::vector<double>& wanted) {
    const Tensor got = value(y);
    EXPECT_EQ(got.shape(), shape);
    const std::vector<double> all = to_doubles(got);
    ASSERT_EQ(all.size(), wanted.size());
    for (size_t i = 0; i < all.size(); ++i) EXPECT_NEAR(all[i], wanted[i], 1e-5) << i;
  }

  Graph g;
  Output x;
};

TEST_F(Ops, Reductions) {
  expect(mean(x, 1), {3}, {0.625, 1.625, 2.625});
  expect(mean(x, {0, 1}, {.keep_dims = true}), {1, 1}, {1.625});
  expect(sum(x), {}, {19.5});
  expect(max(x, -1), {3}, {1, 2, 3});
  expect(min(x, {0}), {4}, {0.25, 0.5, 0.75, 1});
  expect(prod(x, 1), {3}, {0.09375, 6.5625, 46.40625});
  expect(sum(x, constant(g, {0, 1})), {}, {19.5});
  expect(logsumexp(x, 1), {3}, {2.050016, 3.050016, 4.050016});
  expect(logsumexp(x * 1000, {0, 1}, {.keep_dims = true}), {1, 1}, {3000});
  expect(all(x > 0.5, 0), {4}, {0, 0, 1, 1});
  expect(any(x > 2.9, 1), {3}, {0, 0, 1});
  expect(any(x > 2.9), {}, {1});
  expect(any(x > 2.9, {0, 1}, {.keep_dims = true}), {1, 1}, {1});
  expect(argmax(x, 1), {3}, {3, 3, 3});
  expect(argmin(x, 0, {.dtype = i32}), {4}, {0, 0, 0, 0});
  expect(top_k(x, 2).values, {3, 2}, {1, 0.75, 2, 1.75, 3, 2.75});
  expect(cumsum(x, 1), {3, 4}, {0.25, 0.75, 1.5, 2.5, 1.25, 2.75, 4.5, 6.5, 2.25, 4.75, 7.5, 10.5});
}

TEST_F(Ops, ReductionsOfAnUnknownRank) {
  const Output p = placeholder(g, "p", f32);
  EXPECT_EQ(to_doubles(Session(g).run({{p, value(x)}}, fetch(sum(p)))[0]),
            std::vector<double>{19.5});
}

TEST_F(Ops, Indices) {
  expect(x[0], {4}, {0.25, 0.5, 0.75, 1});
  expect(x[-1], {4}, {2.25, 2.5, 2.75, 3});
  expect(x[{all, slice(0, 2)}], {3, 2}, {0.25, 0.5, 1.25, 1.5, 2.25, 2.5});
  expect(x[{slice(1, {}), slice({}, {}, -1)}], {2, 4}, {2, 1.75, 1.5, 1.25, 3, 2.75, 2.5, 2.25});
  expect(x[{slice(-2, {}), -1}], {2}, {2, 3});
  expect(x[{1, 2}], {}, {1.75});
  expect(x[{ellipsis, 0}], {3}, {0.25, 1.25, 2.25});
  EXPECT_EQ(value(x[{ellipsis, newaxis}]).shape(), Shape({3, 4, 1}));
  EXPECT_EQ(value(x[{newaxis, 0}]).shape(), Shape({1, 4}));
  const Output i = constant(g, -1);
  expect(x[i], {4}, {2.25, 2.5, 2.75, 3});
  expect(x[{cast(i, i64), slice(2, {})}], {2}, {2.75, 3});
  expect_error_with(Code::invalid_argument, "has step 0", [&] { x[slice(0, 1, 0)]; });
  expect_error_with(Code::invalid_argument, "ops_test.cc", [&] { x[{0, 0, 0}]; });
}

TEST_F(Ops, Operators) {
  expect(x[0] * 2 - 1, {4}, {-0.5, 0, 0.5, 1});
  expect(1 / x[0], {4}, {4, 2, 1.3333333, 1});
  expect(-x[0], {4}, {-0.25, -0.5, -0.75, -1});
  const Output n = constant(g, {5, -5, 7});
  expect(n % 3, {3}, {2, 1, 1});
  expect(floor_div(n, 3), {3}, {1, -2, 2});
  expect(n & 3, {3}, {1, 3, 3});
  expect(n | 8, {3}, {13, -5, 15});
  expect(constant(g, {6, 5}) ^ 3, {2}, {5, 6});
  expect(~constant(g, {1, 2}), {2}, {-2, -3});
  expect((x[0] > 0.3) & (x[0] < 0.8), {4}, {0, 1, 1, 0});
  expect((x[0] == 0.5) | ~(x[0] != 1), {4}, {0, 1, 0, 1});
  expect((x[0] <= 0.5) ^ (x[0] >= 0.5), {4}, {1, 0, 1, 1});
  Output y = x[0];
  const Output before = y;
  y += 1;
  y *= 2;
  y -= 0.5;
  y /= 2;
  expect(y, {4}, {1, 1.25, 1.5, 1.75});
  EXPECT_TRUE(same(before, before));
  EXPECT_FALSE(same(before, y));
  // The user's line, and the suggested replacement.
  try {
    n / 2;
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("ops_test.cc"));
    EXPECT_THAT(error.message(), HasSubstr("floor_div(x, y), or cast(x, f32) / y"));
  }
}

TEST_F(Ops, Arrays) {
  expect(reshape(x, {-1, 2, 2})[{2, 1, 1}], {}, {3});
  expect(transpose(x)[0], {3}, {0.25, 1.25, 2.25});
  EXPECT_EQ(value(transpose(x, {1, 0})).shape(), Shape({4, 3}));
  const Output p = placeholder(g, "p", f32);
  EXPECT_EQ(Session(g).run({{p, Tensor(f32, {2, 3, 4})}}, fetch(transpose(p)))[0].shape(),
            Shape({4, 3, 2}));
  expect(where(x[0] > 0.5, x[0], 0), {4}, {0, 0, 0.75, 1});
  expect(where(x[0] > 0.5, 1, 0), {4}, {0, 0, 1, 1});
  EXPECT_EQ(where(x[0] > 0.5, 1, 0.5).dtype(), f32);
  expect(clip(x[0], 0.5, 0.75), {4}, {0.5, 0.5, 0.75, 0.75});
  const Output ids = constant(g, {2, 0, -1});
  expect(one_hot(ids, 3), {3, 3}, {0, 0, 1, 1, 0, 0, 0, 0, 0});
  expect(one_hot(ids, 2, {.on_value = 7, .off_value = -1, .axis = 0, .dtype = i64}), {2, 3},
         {-1, 7, -1, -1, -1, -1});
  expect(concatenate({x[0], x[1]}), {8}, {0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2});
  EXPECT_EQ(concatenate({x, x}, 1).shape(), Shape({3, 8}));
  EXPECT_EQ(stack({x, x}).shape(), Shape({2, 3, 4}));
  EXPECT_EQ(stack({x, x}, -1).shape(), Shape({3, 4, 2}));
  expect(unstack(x)[1], {4}, {1.25, 1.5, 1.75, 2});
  expect(split(x, 4, 1)[3], {3, 1}, {1, 2, 3});
  expect(split(x, {1, -1}, 1)[1][0], {3}, {0.5, 0.75, 1});
  expect(zeros(g, {2, 3}), {2, 3}, {0, 0, 0, 0, 0, 0});
  expect(ones(g, shape_of(x)[slice(0, 1)], i64), {3}, {1, 1, 1});
  expect(full(g, {2}, 7), {2}, {7, 7});
  EXPECT_EQ(full(g, {2}, 7).dtype(), i32);
  EXPECT_EQ(full(g, {2}, 7.5).dtype(), f32);
  // Nothing else in the expression says int32.
  expect_error([&] { one_hot(ids, 2, {.on_value = 0.5, .dtype = i32}); }, Code::invalid_argument,
               concat("the number 0.5 (", __FILE__, ":", __LINE__ - 1,
                      ") cannot be a constant of dtype int32"));
  expect(arange(g, 4), {4}, {0, 1, 2, 3});
  expect(arange(g, 2, 11, 3), {3}, {2, 5, 8});
  expect(arange(g, 0, 1, 0.25), {4}, {0, 0.25, 0.5, 0.75});
  expect(arange(g, constant(g, Tensor::scalar<int64_t>(3))), {3}, {0, 1, 2});
  expect(linspace(g, 0, 1, 5), {5}, {0, 0.25, 0.5, 0.75, 1});
  expect(eye(g, 2, 3), {2, 3}, {1, 0, 0, 0, 1, 0});
  expect(tile(x[0], {2}), {8}, {0.25, 0.5, 0.75, 1, 0.25, 0.5, 0.75, 1});
  expect(flip(x[0], 0), {4}, {1, 0.75, 0.5, 0.25});
  expect(roll(x, 1, 1)[0], {4}, {1, 0.25, 0.5, 0.75});
  expect(pad(x[{slice(0, 2), slice(0, 2)}], {{1, 0}, {0, 1}}, {.value = 9}), {3, 3},
         {9, 9, 9, 0.25, 0.5, 9, 1.25, 1.5, 9});
  expect(pad(x[0], {{2, 0}}, {.mode = PadMode::reflect}), {6}, {0.75, 0.5, 0.25, 0.5, 0.75, 1});
  expect(take(x, constant(g, {1, 1}), 1), {3, 2}, {0.5, 0.5, 1.5, 1.5, 2.5, 2.5});
  expect(argwhere(x > 2.6), {2, 2}, {2, 2, 2, 3});
  expect(boolean_mask(x, x[{all, 0}] > 1)[{all, 0}], {2}, {1.25, 2.25});
  expect(squeeze(expand_dims(x, 1)), {3, 4}, numbers(x));
  expect(broadcast_to(x[0], {2, 4}), {2, 4}, {0.25, 0.5, 0.75, 1, 0.25, 0.5, 0.75, 1});
  expect(segment_sum(x[0], constant(g, {1, 0, 1, 1}), 2), {2}, {0.5, 2});
}

TEST_F(Ops, Constants) {
  expect(constant(g, 1.0f), {}, {1});
  expect(constant(g, {{1, 2}, {3, 4}}), {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(constant(g, {{1, 2}, {3, 4}}).dtype(), i32);
  EXPECT_EQ(constant(g, {{1, 2}}).shape(), Shape({1, 2}));
  EXPECT_EQ(constant(g, {1, 2.5}).dtype(), f32);
  EXPECT_EQ(constant(g, {int64_t{1}, int64_t{2}}).dtype(), i64);
  EXPECT_EQ(constant(g, {1.5, 2.5}).dtype(), f32);
  EXPECT_EQ(constant(g, {true, false}).dtype(), DType::boolean);
  EXPECT_EQ(value(constant(g, {"a", "b"})).span<std::string>()[1], "b");
  EXPECT_EQ(constant(g, Tensor::scalar(1.5)).dtype(), f64);
  expect_error_with(Code::invalid_argument, "rows of different lengths", [&] {
    constant(g, {{1, 2}, {3}});
  });
  expect_error_with(Code::invalid_argument, "a list mixes a int32 and a string", [&] {
    constant(g, {1, "a"});
  });
}

TEST_F(Ops, Products) {
  expect(matmul(x, x, {.transpose_b = true}), {3, 3},
         {1.875, 4.375, 6.875, 4.375, 10.875, 17.375, 6.875, 17.375, 27.875});
  expect(einsum("ij,kj->ik", x, x), {3, 3},
         {1.875, 4.375, 6.875, 4.375, 10.875, 17.375, 6.875, 17.375, 27.875});
  const Output batch = stack({x, x});
  EXPECT_EQ(matmul(batch, batch, {.transpose_a = true}).shape(), Shape({2, 4, 4}));
  const Output i = complex(zeros(g, {1, 1}), ones(g, {1, 1}));  // i · i = -1, i · conj(i) = 1
  const auto product = [&](MatmulOptions options) {
    return numbers(real(matmul(i, i, options)))[0];
  };
  EXPECT_EQ(product({}), -1);
  EXPECT_EQ(product({.transpose_b = true}), -1);
  EXPECT_EQ(product({.adjoint_b = true}), 1);
}

TEST_F(Ops, Images) {
  const Output image = reshape(arange(g, 0.0, 16.0, 1.0), {1, 4, 4, 1});
  expect(reshape(max_pool(image), {-1}), {4}, {5, 7, 13, 15});
  expect(reshape(avg_pool(image, {.size = {4, 2}}), {-1}), {2}, {6.5, 8.5});
  const Output filter = ones(g, {3, 3, 1, 1});
  expect(reshape(conv2d(image, filter, {.padding = valid}), {-1}), {4}, {45, 54, 81, 90});
  EXPECT_EQ(conv2d(image, filter, {.strides = 2, .padding = same}).shape(), Shape({1, 2, 2, 1}));
  EXPECT_EQ(conv2d(image, filter, {.strides = {2, 1}}).shape(), Shape({1, 2, 4, 1}));
  EXPECT_EQ(conv2d(image, filter, {.padding = {1, 1, 0, 0}}).shape(), Shape({1, 4, 2, 1}));
  const Output small = conv2d(image, filter, {.padding = valid});
  EXPECT_EQ(conv2d_transpose(small, filter, {1, 4, 4, 1}, {.padding = valid}).shape(),
            Shape({1, 4, 4, 1}));
}

TEST_F(Ops, ActivationsAndLosses) {
  const Output v = constant(g, {-1.0, 0.0, 2.0});
  expect(gelu(v), {3}, {-0.158655, 0, 1.9545});
  expect(silu(v), {3}, {-0.268941, 0, 1.761594});
  expect(sigmoid_cross_entropy(v, constant(g, {0.0, 1.0, 1.0})), {3},
         {0.313262, 0.693147, 0.126928});
  const Output logits = constant(g, {{1.0, 2.0}, {3.0, 1.0}});
  expect(softmax_cross_entropy(logits, constant(g, {1, 0})), {2}, {0.313262, 0.126928});
  expect(softmax_cross_entropy(logits, constant(g, {{0.0, 1.0}, {1.0, 0.0}})), {2},
         {0.313262, 0.126928});
}

TEST_F(Ops, ReportEmptyOutputsAtTheUsersLine) {
  const Output never;
  const std::function<void()> uses[] = {[&] { mean(never); },
                                        [&] { mean(never, 0); },
                                        [&] { any(never); },
                                        [&] { argmax(never, 0); },
                                        [&] { top_k(never, 1); },
                                        [&] { never[0]; },
                                        [&] {
                                          never[{all, 0}];
                                        },
                                        [&] { reshape(never, {1}); },
                                        [&] { transpose(never); },
                                        [&] { unstack(never); },
                                        [&] { concatenate({never}); },
                                        [&] { stack({never}); },
                                        [&] { split(never, 2); },
                                        [&] {
                                          split(never, {1, 1});
                                        },
                                        [&] {
                                          pad(never, {{0, 1}});
                                        },
                                        [&] { take(never, x); },
                                        [&] { one_hot(never, 2); },
                                        [&] { where(never, 1, 0); },
                                        [&] { clip(never, 0, 1); },
                                        [&] { abs(never); },
                                        [&] { conj(never); },
                                        [&] { real(never); },
                                        [&] { complex(never, x); },
                                        [&] { cast(never, i32); },
                                        [&] { matmul(never, x); },
                                        [&] { relu(never); },
                                        [&] { never + 1; },
                                        [&] { never < 1; },
                                        [&] { conv2d(never, never); },
                                        [&] { softmax_cross_entropy(x, never); },
                                        [&] { random::shuffle(never); }};
  for (const auto& use : uses) {
    const int64_t number = &use - uses;
    SCOPED_TRACE(number);
    expect_error_with(Code::invalid_argument, "ops_test.cc:", use);
    expect_error_with(Code::invalid_argument, "an empty Output", use);
  }
}

TEST_F(Ops, RandomNumbersFollowTheirSeed) {
  const Output y = random::normal(g, {2, 3}, {.seed = 1});
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  EXPECT_EQ(numbers(y), numbers(y)) << "another session, the same stream";
  EXPECT_NE(numbers(random::uniform(g, {100})), numbers(random::uniform(g, {100})));
  EXPECT_EQ(random::integers(g, {100}, 5, 8, {.seed = 3}).dtype(), i32);
  for (const double n : numbers(random::integers(g, {100}, 5, 8, {.dtype = i64}))) {
    EXPECT_GE(n, 5);
    EXPECT_LT(n, 8);
  }
  EXPECT_THAT(numbers(sum(random::shuffle(arange(g, 10)))), ElementsAre(45));
}

}  // namespace
}  // namespace leat

// As in a program, the C library's functions are in the global namespace, too.
namespace {

using namespace leat;  // NOLINT
using namespace std;   // NOLINT

TEST(OpsNames, OfTheCLibraryRemainUsable) {
  Graph g;
  const Output x = constant(g, {0.0, 0.5});
  EXPECT_EQ(abs(-3), 3);
  EXPECT_EQ(pow(2.0, 3.0), 8);
  const auto values = Session(g).run({}, {tanh(x), pow(x, 2), abs(-x), max(x), floor(x)});
  EXPECT_FLOAT_EQ(values[0].data<float>()[1], 0.46211716F);
  EXPECT_EQ(values[1].data<float>()[1], 0.25F);
  EXPECT_EQ(values[2].data<float>()[1], 0.5F);
}

}  // namespace
