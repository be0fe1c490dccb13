// What somebody who knows NumPy or Keras types first, compared with NumPy's values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leat/leat.h>

#include <numeric>
#include <set>

namespace {

using namespace leat;
using testing::ElementsAre;

template <class T = float>
std::vector<T> values(Output y) {
  Session session(y.graph());
  session.run({initialize_variables(y.graph())});
  const Tensor t = session.run({y})[0];
  return {t.data<T>(), t.data<T>() + t.elements()};
}

Tensor session_value_of(Output y) { return Session(y.graph()).run(y); }

// Whether `f` fails with that code and that text.
void expect_error_with(Code code, std::string_view text, const std::function<void()>& call) {
  try {
    call();
    FAIL() << "no error that says '" << text << "'";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.message(), testing::HasSubstr(text));
  }
}

class Spelling : public testing::Test {
 protected:
  Graph g;
  Output x = constant(g, {{0.0, 1.0, 2.0}, {3.0, 4.0, 5.0}});
  Output v = constant(g, {1.0, -2.0, 3.0});
};

TEST_F(Spelling, ComparisonsCombine) {
  EXPECT_THAT(values(where(v > 0 && v < 2, v, 0)), ElementsAre(1, 0, 0));
  EXPECT_THAT(values(where(v < 0 || v > 2, v, 0)), ElementsAre(0, -2, 3));
  EXPECT_THAT(values(where(!(v > 0), v, 0)), ElementsAre(0, -2, 0));
  const Output mask = constant(g, {true, false, true});
  EXPECT_THAT(values(where(mask && v < 2, v, 0)), ElementsAre(1, 0, 0));
  EXPECT_THAT(values(where(v > 2 || mask, v, 0)), ElementsAre(1, 0, 3));
  EXPECT_FALSE((std::is_convertible_v<bool, Operand>));  // as !x of an Output is a bool
}

TEST_F(Spelling, ExtentsAreNumbersOutputsAndVectors) {
  EXPECT_EQ(reshape(x, -1).shape(), Shape({6}));
  EXPECT_EQ(zeros(g, 3).shape(), Shape({3}));
  const std::vector<int> dims = {3, 2};
  EXPECT_EQ(reshape(x, dims).shape(), Shape({3, 2}));
  const Output rows = shape_of(x)[1];
  EXPECT_THAT(values(reshape(x, {rows, -1})[0]), ElementsAre(0, 1));
  EXPECT_THAT(values(reshape(v, {shape_of(v)})), ElementsAre(1, -2, 3));
  EXPECT_THAT(values(tile(v, 2)), ElementsAre(1, -2, 3, 1, -2, 3));
}

TEST_F(Spelling, SlicesAcceptNoneAndOutputsAsBounds) {
  const Output n = constant(g, 2);
  EXPECT_THAT(values(v[slice(1)]), ElementsAre(1));
  EXPECT_THAT(values(v[slice(1, none)]), ElementsAre(-2, 3));
  EXPECT_THAT(values(v[slice(none, none, -1)]), ElementsAre(3, -2, 1));
  EXPECT_THAT(values(v[slice(0, n)]), ElementsAre(1, -2));
  EXPECT_THAT(values(x[{all, slice(n, none)}]), ElementsAre(2, 5));
  expect_error_with(Code::invalid_argument, "an index (", [&] { v[slice(0, v)]; });
}

TEST_F(Spelling, BracketsAcceptMasksAndIndices) {
  EXPECT_THAT(values(v[v > 0]), ElementsAre(1, 3));
  EXPECT_THAT(values(x[constant(g, {true, false})]), ElementsAre(0, 1, 2));
  EXPECT_THAT(values(v[constant(g, {2, 0, 0})]), ElementsAre(3, 1, 1));
  EXPECT_THAT(values(v[constant(g, 1)]), ElementsAre(-2));
}

TEST_F(Spelling, ResultsUnpackByName) {
  const auto [largest, where_they_are] = top_k(v, 2);
  EXPECT_THAT(values(largest), ElementsAre(3, 1));
  EXPECT_THAT(values<int>(where_they_are), ElementsAre(2, 0));
  const auto [different, numbers] = unique(constant(g, {7, 3, 7}));
  EXPECT_THAT(values<int>(different), ElementsAre(7, 3));
  EXPECT_THAT(values<int>(numbers), ElementsAre(0, 1, 0));
}

TEST_F(Spelling, CumulativeSums) {
  EXPECT_THAT(values(cumsum(v, 0)), ElementsAre(1, -1, 2));
  EXPECT_THAT(values(cumsum(v, 0, {.exclusive = true})), ElementsAre(0, 1, -1));
  EXPECT_THAT(values(cumsum(v, 0, {.reverse = true})), ElementsAre(2, 1, 3));
  EXPECT_THAT(values(cumprod(v, 0, {.exclusive = true})), ElementsAre(1, 1, -2));
  EXPECT_THAT(values(flip(v)), ElementsAre(3, -2, 1));
}

TEST_F(Spelling, VectorProducts) {
  EXPECT_THAT(values(matmul(x, v)), ElementsAre(4, 10));
  EXPECT_THAT(values(matmul(v, transpose(x))), ElementsAre(4, 10));
  EXPECT_THAT(values(matmul(v, v)), ElementsAre(14));
  EXPECT_EQ(matmul(v, v).shape(), Shape{});
  expect_error_with(Code::invalid_argument, "a vector has no transpose",
                    [&] { matmul(v, x, {.transpose_a = true}); });
}

TEST_F(Spelling, Triangles) {
  const Output m = constant(g, {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
  EXPECT_THAT(values<int>(tril(m)), ElementsAre(1, 0, 0, 4, 5, 0, 7, 8, 9));
  EXPECT_THAT(values<int>(tril(m, -1)), ElementsAre(0, 0, 0, 4, 0, 0, 7, 8, 0));
  EXPECT_THAT(values<int>(tril(m, 1)), ElementsAre(1, 2, 0, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(values<int>(triu(m)), ElementsAre(1, 2, 3, 0, 5, 6, 0, 0, 9));
  EXPECT_THAT(values<int>(triu(m, 1)), ElementsAre(0, 2, 3, 0, 0, 6, 0, 0, 0));
  EXPECT_THAT(values<int>(diag(m)), ElementsAre(1, 5, 9));
  EXPECT_THAT(values(diag(constant(g, {1.0, 2.0}))), ElementsAre(1, 0, 0, 2));
}

TEST_F(Spelling, TextsTensorsAndVectorsActAsOperands) {
  const Output hello = constant(g, "hello") + " world";
  Session session(g);
  EXPECT_EQ(session.run(hello).item<std::string>(), "hello world");
  EXPECT_THAT(values(v + Tensor::of<float>({3}, {1, 1, 1})), ElementsAre(2, -1, 4));
  const std::vector<float> numbers = {0.5F, 1.5F};
  EXPECT_THAT(values(constant(g, numbers)), ElementsAre(0.5, 1.5));
  const Output fed = placeholder(g, "fed", f32, {any});
  EXPECT_TRUE(session.run(constant(g, 2) > 1).item<bool>());
  const Tensor sum_of_fed = session.run({{fed, numbers}}, {sum(fed)})[0];
  EXPECT_EQ(sum_of_fed.item<float>(), 2);
  expect_error_with(Code::invalid_argument, "the text \"a\"", [&] { v + "a"; });
}

TEST_F(Spelling, ControlFlowAcceptsNumbers) {
  const auto [i, total] = while_loop([](Output i, Output) { return i < 4; },
                                     [](Output i, Output total) {
                                       return std::tuple{i + 1, total * 2};
                                     },
                                     0, v);
  EXPECT_THAT(values<int>(i), ElementsAre(4));
  EXPECT_THAT(values(total), ElementsAre(16, -32, 48));
  const Output p = constant(g, false);
  EXPECT_THAT(values(cond(
                  p, [] { return 1; }, [] { return 2.5; })),
              ElementsAre(2.5));
  EXPECT_THAT(values<int>(cond(
                  p, [] { return 1; }, [] { return 2; })),
              ElementsAre(2));
  EXPECT_THAT(values(scan([](Output sum, Output each) { return sum + each; }, v, 0)),
              ElementsAre(1, -1, 2));
  EXPECT_THAT(values(map_fn([](Output a, Output b) { return a * b; }, v, v)), ElementsAre(1, 4, 9));
  const auto [twice, squares] = map_fn([](Output a) { return std::tuple{a * 2, a * a}; }, v);
  EXPECT_THAT(values(twice), ElementsAre(2, -4, 6));
  EXPECT_THAT(values(squares), ElementsAre(1, 4, 9));
  expect_error_with(Code::invalid_argument, "all variables start as numbers", [] {
    while_loop([](Output i) { return i < 4; }, [](Output i) { return i + 1; }, 0);
  });
}

TEST_F(Spelling, LayersInferTheirInputs) {
  const nn::Conv2d conv(g, 4, 3, {.strides = 2, .activation = relu});
  EXPECT_FALSE(conv.kernel());
  const Output y = conv(zeros(g, {2, 8, 8, 3}));
  EXPECT_EQ(y.shape(), Shape({2, 4, 4, 4}));
  EXPECT_EQ(conv.kernel().shape(), Shape({3, 3, 3, 4}));
  const nn::Conv2d wide(g, 4, {1, 5});
  EXPECT_EQ(wide(zeros(g, {1, 8, 8, 2})).shape(), Shape({1, 8, 8, 4}));
  EXPECT_EQ(wide.kernel().shape(), Shape({1, 5, 2, 4}));
  EXPECT_EQ(nn::Conv2d(g, 2, 4, 3).kernel().shape(), Shape({3, 3, 2, 4}));
  EXPECT_EQ(max_pool(y, {.size = 2, .strides = 1}).shape(), Shape({2, 3, 3, 4}));
  const nn::Lstm cell(g, 4);
  EXPECT_EQ(nn::rnn(cell, zeros(g, {2, 5, 3}), {.lengths = {5, 2}}).outputs.shape(),
            Shape({2, 5, 4}));
}

TEST_F(Spelling, LabelsMayBeOneHot) {
  const Output logits = constant(g, {{0.1, 0.9}, {0.8, 0.2}, {0.3, 0.7}});
  const Output ids = constant(g, {1, 1, 1});
  EXPECT_NEAR(values(nn::accuracy(logits, ids))[0], 2.0 / 3, 1e-6);
  EXPECT_NEAR(values(nn::accuracy(logits, one_hot(ids, 2)))[0], 2.0 / 3, 1e-6);
}

TEST_F(Spelling, TrainingIsAnOption) {
  const Output rows = constant(g, {{1.0, 2.0}, {3.0, 6.0}});
  EXPECT_THAT(values(mean(nn::batch_norm(rows, {.training = true, .epsilon = 1e-6}), 0)),
              testing::Each(testing::FloatNear(0, 1e-5)));
  const Output training = constant(g, false);
  EXPECT_EQ(nn::batch_norm(rows, {.training = training}).shape(), Shape({2, 2}));
  EXPECT_EQ(nn::batch_norm(rows, training, {.momentum = 0.9}).shape(), Shape({2, 2}));
  EXPECT_EQ(nn::dropout(rows, 0.5, {.training = training, .seed = 1}).shape(), Shape({2, 2}));
}

TEST_F(Spelling, InitialisersHaveOptions) {
  EXPECT_EQ(values(variable(g, "a", {4}, initializers::glorot_uniform({.seed = 1}))),
            values(variable(g, "b", {4}, initializers::glorot_uniform({.seed = 1}))));
  const Output w = variable(g, "w", {1000}, initializers::random_normal({.mean = 5, .seed = 3}));
  EXPECT_NEAR(values(mean(w))[0], 5, 0.2);
  const Output u = variable(g, "u", {1000}, initializers::random_uniform({.low = 2, .high = 3}));
  EXPECT_GE(values(min(u))[0], 2);
}

TEST_F(Spelling, Images) {
  const Output image = reshape(constant(g, {0.0, 1.0, 2.0, 3.0}), {1, 2, 2, 1});
  EXPECT_THAT(values(resize_images(image, {1, 1}, {.method = ResizeMethod::area})),
              ElementsAre(1.5));
  EXPECT_THAT(values(resize_images(image, {2, 4}, {.method = ResizeMethod::nearest})),
              ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_EQ(resize_images(image, {4, 4}).shape(), Shape({1, 4, 4, 1}));
  const Output blocks = space_to_batch(image, {2, 2}, {{0, 0}, {0, 0}});
  EXPECT_EQ(blocks.shape(), Shape({4, 1, 1, 1}));
  EXPECT_THAT(values(batch_to_space(blocks, {2, 2}, {{0, 0}, {0, 0}})), ElementsAre(0, 1, 2, 3));
  expect_error_with(Code::invalid_argument, "align_corners excludes half_pixel_centers", [&] {
    resize_images(image, {4, 4}, {.align_corners = true});
  });
}

TEST_F(Spelling, TextAndSparseTensors) {
  const Output lines = constant(g, {"a bc", "", "d"});
  const SparseTensor parts = string_split(lines);
  Session session(g);
  const Tensor words = session.run(parts.values);
  EXPECT_EQ(words.data<std::string>()[1], "bc");
  EXPECT_EQ(session.run(string_join({lines, constant(g, "!")}, "-")).data<std::string>()[2], "d-!");
  EXPECT_EQ(session.run(substr(lines, 0, 1)).data<std::string>()[0], "a");
  EXPECT_EQ(session.run(regex_replace(lines, "[a-c]+", "x")).data<std::string>()[0], "x x");
  EXPECT_EQ(session.run(as_string(v, {.precision = 1})).data<std::string>()[1], "-2.0");
  EXPECT_THAT(values(string_to_number(constant(g, {"1.5", "2"}))), ElementsAre(1.5, 2));

  const SparseTensor ones = {parts.indices, constant(g, {1.0, 2.0, 3.0}), parts.shape};
  EXPECT_THAT(values(sparse_to_dense(ones)), ElementsAre(1, 2, 0, 0, 3, 0));
  const FilledRows filled = sparse_fill_empty_rows(ones, -1);
  EXPECT_THAT(values(sparse_to_dense(filled.filled)), ElementsAre(1, 2, -1, 0, 3, 0));
  EXPECT_THAT(values(sparse_to_dense(sparse_reshape(ones, {2, -1}))),
              ElementsAre(1, 2, 0, 0, 3, 0));
  EXPECT_THAT(values(sparse_matmul(ones, constant(g, {{1.0}, {10.0}}))), ElementsAre(21, 0, 3));
}

TEST_F(Spelling, SessionsFetchListsAndVectorsBeforeTheFeeds) {
  const Output in = placeholder(g, "in", f32, {});
  const std::vector<Output> both = {in * 2, in + 1};
  Session session(g);
  const auto first = [](const std::vector<Tensor>& got) { return got[0].item<float>(); };
  EXPECT_EQ(first(session.run({both[0], both[1]}, {{in, 4.0F}})), 8);
  EXPECT_EQ(first(session.run({both[1]}, {{in, 4.0F}})), 5);
  EXPECT_EQ(first(session.run(both, {{in, 3.0F}})), 6);
  EXPECT_EQ(first(session.run({{in, 3.0F}}, {both[1]})), 4) << "as before";
  EXPECT_EQ(first(session.run({{in, 3.0F}}, both)), 6);
  const std::vector<Output> constants = {reshape(v, -1), v * 2};
  EXPECT_EQ(session.run(constants)[1].data<float>()[0], 2);
}

TEST_F(Spelling, VectorsOfVectorsAreMatrices) {
  const std::vector<std::vector<float>> rows = {{1, 2}, {3, 4}, {5, 6}};
  const Output in = placeholder(g, "in", f32, {any, 2});
  Session session(g);
  EXPECT_EQ(session.run(sum(in, 0), {{in, rows}}).to_vector<float>(), (std::vector<float>{9, 12}));
  EXPECT_EQ(constant(g, rows).shape(), Shape({3, 2}));
  const std::vector<std::vector<int64_t>> none_at_all;
  EXPECT_EQ(constant(g, none_at_all).shape(), Shape({0, 0}));
  const std::vector<std::vector<int>> ragged = {{1}, {2, 3}};
  expect_error_with(Code::invalid_argument, "rows of different lengths",
                    [&] { constant(g, ragged); });
}

TEST_F(Spelling, PoolsHaveASizeAndOptions) {
  const Output image = reshape(arange(g, 9.0), {1, 3, 3, 1});
  EXPECT_THAT(values(max_pool(image, 2, {.strides = 1})), ElementsAre(4, 5, 7, 8));
  EXPECT_THAT(values(avg_pool(image, 2, {.strides = 1})), ElementsAre(2, 3, 5, 6));
}

TEST_F(Spelling, SeedsAreOptions) {
  const Output x = arange(g, 100), once = random::shuffle(x, {.seed = 2});
  EXPECT_EQ(values<int>(once), values<int>(random::shuffle(x, {.seed = 2})));
  EXPECT_NE(values<int>(once), values<int>(random::shuffle(x, {.seed = 3})));
}

TEST_F(Spelling, SparseTensorsTakeAShapeAsNumbers) {
  const SparseTensor x(constant(g, {{0, 1}, {1, 0}}, i64), constant(g, {1.0, 2.0}), {2, 2});
  EXPECT_THAT(values(sparse_to_dense(x)), ElementsAre(0, 1, 2, 0));
}

TEST_F(Spelling, FoldsGiveTheLastValueOfAScan) {
  const auto f = [](Output y, Output row) { return y * 2 + row; };
  EXPECT_THAT(values(foldl(f, v, 0)), ElementsAre(3));  // ((0·2 + 1)·2 - 2)·2 + 3
  EXPECT_THAT(values(foldr(f, v, 0)), ElementsAre(9));  // ((0·2 + 3)·2 - 2)·2 + 1
  EXPECT_THAT(values(gradients({foldl(f, v, 0)}, {v})[0]), ElementsAre(4, 2, 1));
  EXPECT_THAT(values(foldl([](Output a, Output b) { return a + b; }, x, zeros(g, 3))),
              ElementsAre(3, 5, 7));
}

TEST_F(Spelling, SessionsInitialiseAndAcceptFeedsInEitherPosition) {
  const Output in = placeholder(g, "in", f32, {});
  const Output w = variable(g, "w", 2.0);
  const Output twice = variable(g, "twice", 4.0);
  Session session(g);
  session.initialize();
  EXPECT_EQ(session.run(in * twice, {{in, 3.0F}}).item<float>(), 12);
  EXPECT_EQ(session.run({{in, 3.0F}}, in * w).item<float>(), 6);
  Node& add = *assign_add(w, in).node;
  session.run(add, {{in, 5.0F}});
  EXPECT_EQ(session.run(w).item<float>(), 7);
  const Output late = variable(g, "late", 1.0);
  session.initialize();
  EXPECT_EQ(session.run(late + w).item<float>(), 3);
  Graph without;
  Session(without).initialize();
}

TEST_F(Spelling, DependenciesNamesAndPrint) {
  const Output w = variable(g, "w", 1.0);
  const Output added = assign_add(w, 2.0);
  const Output after = with_dependencies({added}, identity(v, "named"));
  Session session(g);
  session.run({initialize_variables(g)});
  session.run(after);
  EXPECT_EQ(session.run(w).item<float>(), 3);
  EXPECT_TRUE(g.output("named").node->is("Identity"));
  testing::internal::CaptureStderr();
  session.run(print(v, {w}, "w is ", {.summarize = 1}));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("w is [3]"));
}

TEST_F(Spelling, PrintWithoutValuesPrintsItsOperand) {
  Session session(g);
  testing::internal::CaptureStderr();
  EXPECT_THAT(session.run(print(v, "v = ")).to_vector<float>(), ElementsAre(1, -2, 3));
  session.run(print(x, "x = ", {.summarize = 1}));
  session.run(print(v * 2));
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_THAT(printed, testing::HasSubstr("v = [1 -2 3]"));
  EXPECT_THAT(printed, testing::HasSubstr("x = [[0...]...]"));
  EXPECT_THAT(printed, testing::HasSubstr("[2 -4 6]"));
}

TEST_F(Spelling, GlobalNormClippingReturnsThePairOfTensorFlow) {
  const std::vector<Output> pair = {constant(g, {3.0, 4.0}), Output(), constant(g, 12.0)};
  EXPECT_THAT(values(global_norm(pair)), ElementsAre(13));
  const auto [clipped, norm] = clip_by_global_norm(pair, 6.5);
  EXPECT_THAT(values(norm), ElementsAre(13));
  EXPECT_THAT(values(clipped[0]), ElementsAre(1.5, 2));
  EXPECT_FALSE(clipped[1]);
  const std::vector<Output> only = clip_by_global_norm(pair, 26);
  EXPECT_THAT(values(only[2]), ElementsAre(12));
}

TEST_F(Spelling, GradientsAreComputedChangedAndApplied) {
  const Output w = variable(g, "w", 3.0), step = global_step(g);
  const Sgd sgd{0.5};
  std::vector<GradientAndVariable> gradients_and_variables = sgd.compute_gradients(square(w));
  gradients_and_variables[0].gradient *= 2;
  Node& train = sgd.apply_gradients(gradients_and_variables, {.global_step = step});
  Session session(g);
  session.initialize();
  session.run(train);
  EXPECT_EQ(session.run(w).item<float>(), 3 - 0.5F * 2 * 6);
  EXPECT_EQ(session.run(step).item<int64_t>(), 1);
}

TEST_F(Spelling, UniformIntegersAndBernoulli) {
  const std::vector<int> dice =
      values<int>(random::uniform(g, {1000}, {.low = 1, .high = 7, .dtype = i32, .seed = 1}));
  EXPECT_EQ(std::set<int>(dice.begin(), dice.end()), (std::set<int>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(random::uniform(g, 2, {.high = 9, .dtype = i64}).dtype(), i64);
  expect_error_with(Code::invalid_argument, "needs .high",
                    [&] { random::uniform(g, {2}, {.dtype = i32}); });
  expect_error_with(Code::invalid_argument, "high must be a whole number",
                    [&] { random::uniform(g, {2}, {.high = 2.5, .dtype = i32}); });
  const std::vector<float> coins = values(random::bernoulli(g, {10'000}, 0.25, {.seed = 2}));
  EXPECT_THAT(coins, testing::Each(testing::AnyOf(0, 1)));
  // Within five standard deviations.
  EXPECT_NEAR(std::accumulate(coins.begin(), coins.end(), 0.0), 2500, 5 * 43.3);
  EXPECT_THAT(values<int>(random::bernoulli(g, {3}, constant(g, {0.0, 1.0, 0.0}), {.dtype = i32})),
              ElementsAre(0, 1, 0));
  EXPECT_EQ(random::bernoulli(g, {3}, cast(v > 0, f64), {.dtype = boolean}).dtype(), boolean);
  expect_error_with(Code::invalid_argument, "p must be in [0, 1], got 2",
                    [&] { random::bernoulli(g, {2}, 2); });
}

TEST_F(Spelling, InitialisersNeedNoCall) {
  EXPECT_THAT(values(variable(g, "a", {2}, initializers::ones)), ElementsAre(1, 1));
#if !defined(__clang__)  // clang 14 cannot choose the function by options that name an object
  EXPECT_THAT(values(variable(g, "b", {2}, {.initializer = initializers::ones})),
              ElementsAre(1, 1));
  EXPECT_THAT(values(variable(g, "c", {2, 2}, {.initializer = initializers::identity})),
              ElementsAre(1, 0, 0, 1));
#endif
  EXPECT_THAT(values(variable(g, "d", {2}, initializers::constant(7))), ElementsAre(7, 7));
  for (const Initializer& initializer :
       {Initializer(initializers::glorot_uniform), Initializer(initializers::he_normal),
        Initializer(initializers::random_uniform), Initializer(initializers::truncated_normal),
        Initializer(initializers::orthogonal)}) {
    EXPECT_NE(values(variable(g, "e", {2, 2}, initializer))[0], 0);
  }
  const Output y = nn::dense(x, 2,
                             {.kernel_initializer = initializers::zeros,
                              .bias_initializer = initializers::ones,
                              .dtype = f32,
                              .name = "layer"});
  EXPECT_THAT(values(y), ElementsAre(1, 1, 1, 1));
}

TEST_F(Spelling, SparseTensorsAreSummed) {
  const Output given = constant(g, {1.0, 2.0, 4.0});
  const SparseTensor s(constant(g, {{0, 1}, {1, 0}, {1, 2}}, i64), given, {2, 3});
  EXPECT_THAT(values(sum(s)), ElementsAre(7));
  EXPECT_THAT(values(sum(s, 1)), ElementsAre(1, 6));
  EXPECT_THAT(values(sum(s, {0})), ElementsAre(2, 1, 4));
  EXPECT_EQ(sum(s, -1, {.keep_dims = true}).shape(), Shape({2, 1}));
  EXPECT_EQ(values(sum(s, {.keep_dims = true})), (std::vector<float>{7}));
  const Output squares = sum(square(sum(s, 1)));  // 1² + (2 + 4)²
  EXPECT_THAT(values(gradients({squares}, {given})[0]), ElementsAre(2, 12, 12));
}

TEST_F(Spelling, SparseCrossEntropyIsOfClassNumbers) {
  const Output logits = constant(g, {{0.5, 1.5}, {2.0, 0.0}}), labels = constant(g, {1, 0});
  EXPECT_EQ(values(nn::sparse_softmax_cross_entropy(logits, labels)),
            values(nn::softmax_cross_entropy(logits, labels)));
  expect_error_with(Code::invalid_argument, "probabilities are for softmax_cross_entropy",
                    [&] { nn::sparse_softmax_cross_entropy(logits, one_hot(labels, 2)); });
  expect_error_with(Code::invalid_argument, "one for each row", [&] {
    nn::sparse_softmax_cross_entropy(logits, cast(one_hot(labels, 2), i32));
  });
}

TEST_F(Spelling, ErrorsDoNotRepeatTheWordInput) {
  expect_error_with(Code::invalid_argument, "): the input must have rank 1, got []",
                    [&] { string_split(constant(g, "a b")); });
}

TEST_F(Spelling, TensorsAreMadeFromListsAndReadByIndex) {
  const Tensor t = Tensor::of({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(t.dtype(), i32);
  EXPECT_EQ(t.shape(), Shape({2, 3}));
  EXPECT_EQ(t.at<int>(1, 0), 4);
  EXPECT_EQ(Tensor::of({1.0F, 2.0F}).at<float>(1), 2);
  EXPECT_EQ(Tensor::of<float>({{1}, {2}}).shape(), Shape({2, 1}));
  EXPECT_EQ(session_value_of(x).at<float>(1, 2), 5);
  EXPECT_EQ(Tensor::scalar(3).at<int>(), 3);
  expect_error_with(Code::invalid_argument,
                    "index 3 of axis 1 lies outside a tensor of shape [2,3]",
                    [&] { t.at<int>(0, 3); });
  expect_error_with(Code::invalid_argument, "index -1 of axis 0", [&] { t.at<int>(-1, 0); });
  expect_error_with(Code::invalid_argument, "at() got 1 indices for a tensor of shape [2,3]",
                    [&] { t.at<int>(0); });
  expect_error_with(Code::invalid_argument, "was read as float", [&] { t.at<float>(0, 0); });
  expect_error_with(Code::invalid_argument, "the rows have different lengths, 1 and 2", [] {
    Tensor::of<float>({{1}, {2, 3}});
  });
}

TEST(ResourceVariables, AreThoseOfTheWholeGraphIfAskedFor) {
  const auto losses = [](bool use_resource) {
    Graph g;
    g.use_resource_variables(use_resource);
    const Output x = constant(g, {{1.0, 2.0}, {3.0, 5.0}}), step = global_step(g);
    const Output h = nn::dense(
        x, 3,
        {.activation = tanh, .kernel_initializer = initializers::random_uniform({.seed = 1})});
    const Output y = sum(nn::layer_norm(h) * 2 + nn::batch_norm(x[{all, slice(0, 1)}], true));
    const metrics::Mean mean(y);
    const Output loss = square(y - 1);
    Node& train = Adam{0.1}.minimize(loss, {.global_step = step});
    const Counter seen(g, "seen");
    const Output counted = seen.count_up_to(9);
    Session session(g);
    session.initialize();
    std::vector<float> out;
    for (int i = 0; i < 3; ++i) {
      out.push_back(session.run(loss).item<float>());
      session.run({train, mean.update()});
      EXPECT_EQ(session.run(counted).item<int64_t>(), i);
    }
    out.push_back(session.run(mean.value()).item<float>());
    out.push_back(static_cast<float>(session.run(step).item<int64_t>()));
    for (const auto& node : g.nodes()) {
      if (node->op->is_variable) {
        EXPECT_EQ(node->is("VarHandleOp"), use_resource) << node->name;
      }
    }
    return out;
  };
  EXPECT_EQ(losses(true), losses(false));
}

TEST(ResourceVariables, SlotsAreOfTheKindOfTheirVariable) {
  Graph g;
  const Output w = variable(g, "w", 1.0);
  g.use_resource_variables();
  const Output b = variable(g, "b", 1.0);
  Node& train = Momentum(0.1, 0.5).minimize(w * b);
  Session session(g);
  session.initialize();
  session.run(train);
  EXPECT_TRUE(g.find("w/Momentum")->is("VariableV2"));
  EXPECT_TRUE(g.find("b/Momentum")->is("VarHandleOp"));
  EXPECT_NEAR(session.run(w).item<float>(), 0.9, 1e-6);
}

}  // namespace
