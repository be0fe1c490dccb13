// What tutorials of TensorFlow 1 and Keras use besides dense layers: word vectors, texts, images,
// records, second derivatives. Values are NumPy's or TensorFlow's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/control_flow/custom_gradient.h"
#include "frontends/cpp/control_flow/function.h"
#include "frontends/cpp/control_flow/jacobian.h"
#include "frontends/cpp/control_flow/tensor_list.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/data/dataset.h"
#include "frontends/cpp/graph_files.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/moving_average.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/optimizers/schedules.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/training/training_hooks.h"
#include "graph/gradient.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

class Tutorials : public testing::Test {
 protected:
  template <class T = float>
  std::vector<T> values(Output y, const Feeds& feeds = {}) {
    Session session(g);
    session.initialize();
    return session.run(feeds, y).to_vector<T>();
  }
  void expect_near(Output y, const std::vector<float>& expected, float tolerance = 1e-5F) {
    EXPECT_THAT(values(y), Pointwise(testing::FloatNear(tolerance), expected));
  }

  Graph g;
  Output x = constant(g, {{3.0, 1.0, 2.0}, {0.5, 0.5, -1.0}});
  Output v = constant(g, {1.0, -2.0, 3.0});
};

// ---- Arrays ----

TEST_F(Tutorials, SortsAlongAnAxis) {
  EXPECT_THAT(values(sort(x)), ElementsAre(1, 2, 3, -1, 0.5, 0.5));
  EXPECT_THAT(values(sort(x, 0)), ElementsAre(0.5, 0.5, -1, 3, 1, 2));
  EXPECT_THAT(values<int>(argsort(x)), ElementsAre(1, 2, 0, 2, 0, 1));
  EXPECT_THAT(values<int>(argsort(x, 0)), ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(values<int>(argsort(constant(g, {2, -3, 2, 0}))), ElementsAre(1, 3, 0, 2));
  const Output cube = reshape(concatenate({x, -x}), {2, 2, 3});
  EXPECT_EQ(sort(cube, 1).shape(), Shape({2, 2, 3}));
  EXPECT_THAT(values(sort(cube, -2)[1]), ElementsAre(-3, -1, -2, -0.5, -0.5, 1));
  EXPECT_THAT(values(gradients(sum(sort(x, 0)[0] * v), x)[0]), ElementsAre(0, 0, 0, 1, -2, 3));
  expect_error_with(Code::invalid_argument, "the extent of axis 2 of its input must be known",
                    [&] { sort(x, 2); });
}

TEST_F(Tutorials, TakesAlongAnAxis) {
  EXPECT_THAT(values(take_along_axis(x, argsort(x), -1)), ElementsAre(1, 2, 3, -1, 0.5, 0.5));
  EXPECT_THAT(values(take_along_axis(x, argsort(x, 0), 0)), ElementsAre(0.5, 0.5, -1, 3, 1, 2));
  const Output most = expand_dims(argmax(x, 1), 1);
  EXPECT_THAT(values(take_along_axis(x, most, 1)), ElementsAre(3, 0.5));
  EXPECT_THAT(values(gradients(sum(take_along_axis(x, most, 1)), x)[0]),
              ElementsAre(1, 0, 0, 1, 0, 0));
  expect_error_with(Code::invalid_argument, "the other extents must be equal",
                    [&] { take_along_axis(x, constant(g, {{0}}), 1); });
  expect_error_with(Code::invalid_argument, "of the same known rank as x",
                    [&] { take_along_axis(x, constant(g, {0}), 1); });
  expect_error_with(Code::invalid_argument, "", [&] {
    values(take_along_axis(x, constant(g, {{3}, {0}}), 1));
  });
}

TEST_F(Tutorials, CountsAndSearches) {
  EXPECT_THAT(values<int>(bincount(constant(g, {1, 3, 1}))), ElementsAre(0, 2, 0, 1));
  EXPECT_THAT(values<int>(bincount(constant(g, {{1, 0}}, i64), {.minlength = 3})),
              ElementsAre(1, 1, 0));
  EXPECT_THAT(values(bincount(constant(g, {1, 3, 1}), {.weights = v})), ElementsAre(0, 4, 0, -2));
  const Output sorted = constant(g, {1.0, 3.0, 3.0, 5.0});
  EXPECT_THAT(values<int>(searchsorted(sorted, {0.0, 3.0, 6.0})), ElementsAre(0, 1, 4));
  EXPECT_THAT(values<int>(searchsorted(sorted, {{3.0}, {1.0}}, {.right = true})),
              ElementsAre(3, 1));
  EXPECT_THAT(values(full_like(x, 7)), testing::Each(7));
  EXPECT_EQ(full_like(constant(g, {1, 2}), 7).dtype(), i32);
  const auto [columns, rows] = meshgrid(constant(g, {1, 2, 3}), constant(g, {4, 5}));
  EXPECT_THAT(values<int>(columns), ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_THAT(values<int>(rows), ElementsAre(4, 4, 4, 5, 5, 5));
  EXPECT_THAT(values(reverse_sequence(x, constant(g, {2, 3}))), ElementsAre(1, 3, 2, -1, 0.5, 0.5));
  expect_error_with(Code::invalid_argument, "bincount (", [&] { bincount(v); });
  expect_error_with(Code::invalid_argument, "meshgrid (", [&] { meshgrid(x, v); });
}

TEST_F(Tutorials, DecomposesMatrices) {
  const Output a = constant(g, {{4.0, 1.0}, {1.0, 3.0}, {0.0, 2.0}}), square = a[slice(2)];
  const auto [u, s, vh] = svd(a);
  expect_near(matmul(u * s, vh), {4, 1, 1, 3, 0, 2});
  expect_near(s, {4.76014F, 2.88810F}, 1e-4F);
  const auto [eigenvalues, vectors] = eigh(square);
  expect_near(eigenvalues, {2.381966F, 4.618034F});
  expect_near(matmul(vectors * eigenvalues, transpose(vectors)), {4, 1, 1, 3});
  const auto [q, r] = qr(a);
  expect_near(matmul(q, r), {4, 1, 1, 3, 0, 2});
  expect_near(matmul(q, q, {.transpose_a = true}), {1, 0, 0, 1});
  const Output b = constant(g, {{1.0}, {2.0}, {3.0}});
  expect_near(solve_triangular(square, b[slice(2)]), {0.25F, 0.583333F});
  expect_near(solve_triangular(square, b[slice(2)], {.lower = false}), {0.083333F, 0.666667F});
  expect_near(lstsq(a, b), {-0.037037F, 0.947090F});
  expect_near(cross(v, constant(g, {0.0, 1.0, 0.0})), {-3, 0, 1});
  expect_error_with(Code::invalid_argument, "svd (", [&] { svd(v); });
}

TEST_F(Tutorials, DrawsFromMoreDistributions) {
  // Within five standard deviations.
  EXPECT_NEAR(values(mean(random::gamma(g, {10'000}, 2.0, {.scale = 3, .seed = 1})))[0], 6, 0.22);
  const Output counts = random::poisson(g, {10'000}, 4.0, {.dtype = i32, .seed = 1});
  EXPECT_EQ(counts.dtype(), i32);
  EXPECT_NEAR(values(mean(counts))[0], 4, 0.1);
  EXPECT_EQ(random::gamma(g, {2}, v * v).shape(), Shape({2, 3}));
  const Output image = reshape(arange(g, 60), {4, 5, 3});
  const Output part = random::crop(image, {2, 5, 3}, {.seed = 3});
  Session session(g);
  std::set<int> begins;
  for (int i = 0; i < 60; ++i) {
    const Tensor t = session.run(part);
    begins.insert(t.data<int>()[0] / 15);
    EXPECT_EQ(t.data<int>()[29] - t.data<int>()[0], 29);
  }
  EXPECT_THAT(begins, ElementsAre(0, 1, 2));
}

TEST_F(Tutorials, Images) {
  const Output image = cast(reshape(arange(g, 48), {4, 4, 3}) * 5, u8);
  EXPECT_THAT(values<uint8_t>(decode_image(encode_png(image))),
              Pointwise(testing::Eq(), values<uint8_t>(image)));
  EXPECT_EQ(decode_image(encode_jpeg(image), {.channels = 1, .dtype = f32}).dtype(), f32);
  const Output standard = per_image_standardization(image);
  expect_near(mean(standard), {0}, 1e-4F);
  expect_near(stddev(standard), {1}, 1e-4F);
  EXPECT_THAT(values(per_image_standardization(ones(g, {2, 2, 2, 1}))), testing::Each(0));
  Session session(g);
  EXPECT_THAT(session.run(image_summary("pictures", expand_dims(image, 0))).item<std::string>(),
              HasSubstr("pictures/image"));
}

TEST_F(Tutorials, HashesAndSparseTensors) {
  const std::vector<int64_t> ids =
      values<int64_t>(string_to_hash_bucket(constant(g, {"a", "b", "a"}), 1'000'000));
  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_NE(ids[0], ids[1]);
  const SparseTensor sparse = sparse_from_dense(constant(g, {{0, 7}, {8, 0}}));
  EXPECT_THAT(values<int>(sparse.values), ElementsAre(7, 8));
  EXPECT_THAT(values<int>(sparse_to_dense(sparse)), ElementsAre(0, 7, 8, 0));
  expect_error_with(Code::invalid_argument, "write string_to_number(x, dtype)",
                    [&] { cast(constant(g, {"1"}), f32); });
  expect_error_with(Code::invalid_argument, "write as_string(x)", [&] { cast(v, str); });
}

// ---- Gradients ----

TEST_F(Tutorials, Jacobians) {
  const Output w = variable(g, "w", v);
  EXPECT_THAT(values(jacobian(square(w), w)), ElementsAre(2, 0, 0, 0, -4, 0, 0, 0, 6));
  const Output y = matmul(x, expand_dims(w, 1));  // [2, 1]
  EXPECT_EQ(jacobian(y, w).shape(), Shape({2, 1, 3}));
  EXPECT_THAT(values(jacobian(y, w)), ElementsAre(3, 1, 2, 0.5, 0.5, -1));
  EXPECT_THAT(values(jacobian(v, w)), testing::Each(0)) << "v does not depend on w";
  const auto [i, power] = while_loop([](Output i, Output) { return i < 2; },
                                     [&](Output i, Output p) {
                                       return std::tuple{i + 1, p * w};
                                     },
                                     0, ones_like(v));
  EXPECT_THAT(values(jacobian(power, w)), ElementsAre(2, 0, 0, 0, -4, 0, 0, 0, 6));
  const Output chosen = cond(
      sum(w) > 0, [&] { return w * w * w; }, [&] { return w; });
  EXPECT_THAT(values(jacobian(chosen, w)), ElementsAre(3, 0, 0, 0, 12, 0, 0, 0, 27));
  EXPECT_THAT(values(gradients(sum(jacobian(w * w * w, w)), w)[0]), ElementsAre(6, -12, 18));
  const Output fed = placeholder(g, "fed", f32, {any});
  EXPECT_THAT(values(jacobian(fed * 3, fed), {{fed, {1.0, 2.0}}}), ElementsAre(3, 0, 0, 3));
  expect_error_with(Code::invalid_argument, "jacobian (", [&] { jacobian(Output(), w); });
}

TEST_F(Tutorials, Hessians) {
  const Output w = variable(g, "w", constant(g, {2.0, 3.0})), b = variable(g, "b", 4.0);
  const Output loss = w[0] * w[0] * w[1] + b * b * w[0];
  const std::vector<Output> all = hessians(loss, {w, b});
  EXPECT_THAT(values(all[0]), ElementsAre(6, 4, 4, 0));
  EXPECT_THAT(values(all[1]), ElementsAre(4));
  EXPECT_THAT(values(hessians(sum(w), w)[0]), ElementsAre(0, 0, 0, 0));
}

TEST_F(Tutorials, CustomGradients) {
  const Output big = constant(g, {100.0, 0.0});
  const auto log1pexp = [](Output x) {
    return custom_gradient([](Output x) { return log(1 + exp(x)); },
                           [](Output x, Output dy) { return dy * sigmoid(x); }, x);
  };
  EXPECT_THAT(values(gradients(sum(log1pexp(big)), big)[0]), ElementsAre(1, 0.5));
  // Of both orders, in a loop, of a function's copies, of two inputs and two results.
  const Output zero = constant(g, {0.0});
  const Output slope = gradients(sum(log1pexp(zero)), zero)[0];
  EXPECT_THAT(values(gradients(sum(slope), zero)[0]), ElementsAre(0.25));
  const auto ten_times = [](Output x) {
    return custom_gradient([](Output x) { return x * x; },
                           [](Output x, Output dy) { return 10 * x * dy; }, x);
  };
  const auto [i, y] = while_loop([](Output i, Output) { return i < 2; },
                                 [&](Output i, Output y) {
                                   return std::tuple{i + 1, ten_times(y)};
                                 },
                                 0, v);
  // y = (v²)²: 10 v² · 10 v.
  EXPECT_THAT(values(gradients(sum(y), v)[0]), ElementsAre(100, -800, 2700));
  const Function f = function(g, "f", {f32}, ten_times);
  EXPECT_THAT(values(gradients(sum(f(v) + f(2 * v)), v)[0]), ElementsAre(50, -100, 150));
  const Output w = constant(g, {1.0, 1.0, 2.0});
  const auto [product, total] = custom_gradient(
      [](Output a, Output b) {
        return std::tuple{a * b, a + b};
      },
      [](Output a, Output, Output d_product, Output d_total) {
        return std::tuple{d_product * a, d_total * 3};
      },
      v, w);
  const std::vector<Output> both = gradients({sum(product), sum(total * total)}, {v, w});
  EXPECT_THAT(values(both[0]), ElementsAre(1, -2, 3));
  EXPECT_THAT(values(both[1]), ElementsAre(12, -6, 30));
  // What it captures gets no gradient.
  const Output captured =
      custom_gradient([&](Output x) { return x * w; }, [](Output, Output dy) { return dy; }, v);
  EXPECT_FALSE(gradients(sum(captured), w)[0]);
  EXPECT_THAT(values(gradients(sum(captured), v)[0]), ElementsAre(1, 1, 1));
}

// ---- Lists ----

TEST_F(Tutorials, LoopsFillLists) {
  const TensorList rows(g, f32, {3});
  const auto [n, list] =
      while_loop([](Output n, Output) { return n < 3; },
                 [&](Output n, Output list) {
                   const Output row = v * cast(n, f32);
                   return std::tuple<Output, Output>{n + 1, rows.with(list).push_back(row * row)};
                 },
                 0, rows);
  const Output all_rows = rows.with(list).stack();
  EXPECT_EQ(all_rows.shape(), Shape({any, 3}));
  EXPECT_THAT(values(all_rows), ElementsAre(0, 0, 0, 1, 4, 9, 4, 16, 36));
  EXPECT_THAT(values<int>(rows.with(list).size()), ElementsAre(3));
  EXPECT_THAT(values(gradients(sum(all_rows), v)[0]), ElementsAre(10, -20, 30));

  TensorList three(g, f32, {}, {.size = 3});
  three = three.set(1, v[0]).set(2, v[1]);
  EXPECT_THAT(values(three.stack()), ElementsAre(0, 1, -2));
  EXPECT_THAT(values(gradients(three.get(2) * 5, v)[0]), ElementsAre(0, 5, 0));
  const auto [shorter, last] = TensorList::of(x).pop_back();
  EXPECT_THAT(values(last), ElementsAre(0.5, 0.5, -1));
  EXPECT_THAT(values(shorter.get(0)), ElementsAre(3, 1, 2));
  expect_error_with(Code::invalid_argument, "the elements of the list are float[3], got Const",
                    [&] { rows.push_back(constant(g, {1.0})); });
  expect_error_with(Code::invalid_argument, "needs a list", [&] { rows.with(x); });
  expect_error_with(Code::invalid_argument, "", [&] { values(three.get(7)); });
}

// ---- Layers ----

TEST_F(Tutorials, ConvolvesSequences) {
  const Output words = reshape(arange(g, 10.0), {1, 5, 2});
  const Output y = nn::conv1d(words, 1, 3,
                              {.padding = valid,
                               .kernel_initializer = initializers::ones,
                               .bias_initializer = initializers::ones});
  EXPECT_THAT(values(y), ElementsAre(16, 28, 40));
  EXPECT_EQ(variable_named(g, "conv1d/kernel").shape(), Shape({3, 2, 1}));
  EXPECT_EQ(nn::conv1d(words, 4, 3, {.strides = 2, .activation = relu}).shape(), Shape({1, 3, 4}));
  expect_error_with(Code::invalid_argument, "the input must be [batch, length, channels]",
                    [&] { nn::conv1d(x, 4, 3); });
}

TEST_F(Tutorials, SeparableConvolutionsAndPools) {
  const Output image = reshape(arange(g, 32.0), {1, 4, 4, 2});
  const Output y = nn::separable_conv2d(
      image, 3, 2, 2, {.padding = valid, .kernel_initializer = initializers::ones, .name = "s"});
  EXPECT_EQ(y.shape(), Shape({1, 3, 3, 3}));
  // Four positions of two channels, each twice.
  EXPECT_EQ(values(y)[0], 2 * (0 + 1 + 2 + 3 + 8 + 9 + 10 + 11));
  EXPECT_EQ(variable_named(g, "s/pointwise_kernel").shape(), Shape({1, 1, 4, 3}));
  EXPECT_THAT(values(nn::global_max_pool(image)), ElementsAre(30, 31));
}

TEST_F(Tutorials, NormalisesVectorsAndResponses) {
  expect_near(nn::l2_normalize(constant(g, {{3.0, 4.0}, {0.0, 0.0}}), -1), {0.6F, 0.8F, 0, 0});
  const Output image = constant(g, {{{{1.0, 2.0, 3.0}}}});
  const Output y = nn::local_response_normalization(
      image, {.depth_radius = 1, .bias = 2, .alpha = 0.5, .beta = 1});
  expect_near(y, {1 / 4.5F, 2 / 9.0F, 3 / 8.5F});
}

TEST_F(Tutorials, TablesOfNumbers) {
  const Output ids = constant(g, {{2, 0}, {2, 1}});
  const Output bias = nn::embedding(ids, 3, {.initializer = initializers::ones, .name = "bias"});
  EXPECT_EQ(bias.shape(), Shape({2, 2}));
  const Output table = variable_named(g, "bias/embeddings");
  EXPECT_EQ(table.shape(), Shape({3}));
  Node& train = Sgd{1}.minimize(sum(bias) / 4);
  Node& slower = Adagrad{1}.minimize(sum(bias));
  Session session(g);
  session.initialize();
  session.run(train);
  EXPECT_THAT(session.run(table).to_vector<float>(), ElementsAre(0.75, 0.75, 0.5));
  session.run(slower);
  EXPECT_LT(session.run(table).at<float>(0), 0.75);
  expect_error_with(Code::invalid_argument, "rows must be positive, got 0",
                    [&] { nn::embedding(ids, 0, {.name = "none"}); });
}

TEST_F(Tutorials, MasksOfAttentionFit) {
  const Output q = zeros(g, {2, 4, 6});
  EXPECT_EQ(
      nn::attention(
          q, q, q, {.mask = constant(g, {{{true, true, false, true}}, {{true, true, true, true}}})})
          .shape(),
      Shape({2, 4, 6}));
  const Output keys = placeholder(g, "keys", boolean, {2, 4});
  expect_error_with(Code::invalid_argument, "the mask must be [batch, queries, keys]",
                    [&] { nn::attention(q, q, q, {.mask = keys}); });
  EXPECT_EQ(nn::attention(q, q, q, {.mask = keys[{all, newaxis, all}]}).shape(), Shape({2, 4, 6}));
}

TEST_F(Tutorials, SharedLayersAreObjects) {
  const nn::LayerNorm norm(g, {.name = "norm"});
  const Output a = norm(x), b = norm(2 * x);
  EXPECT_TRUE(same(norm.gamma(), variable_named(g, "norm/gamma")));
  EXPECT_EQ(values(max(abs(a - b)))[0] < 0.01, true);
  expect_error_with(Code::invalid_argument, "it was made for 3 features", [&] {
    norm(zeros(g, {2, 4}));
  });
  const size_t before = trainable_variables(g).size();
  const nn::MultiHeadAttention heads(g, {.heads = 2});
  const Output q = random::normal(g, {2, 3, 4}, {.seed = 1});
  const Output first = heads(q, q, q), second = heads(q, q, q);
  EXPECT_EQ(trainable_variables(g).size(), before + 8);
  EXPECT_TRUE(variable_named(g, "multi_head_attention/output/kernel"));
  EXPECT_EQ(values(max(abs(first - second)))[0], 0);
  EXPECT_EQ(nn::multi_head_attention(q, q, q, {.heads = 2}).shape(), Shape({2, 3, 4}));
  EXPECT_EQ(trainable_variables(g).size(), before + 16);
}

TEST_F(Tutorials, SampledLossesApproachTheWholeSoftmax) {
  constexpr int64_t classes = 20, size = 4;
  const Output weights = variable(g, "weights", {classes, size}, initializers::random_normal(1, 4)),
               biases = variable(g, "biases", {classes}, initializers::zeros),
               inputs = random::normal(g, {3, size}, {.seed = 5}),
               labels = constant(g, {0, 7, 3}, i64);
  // All classes are drawn, each of which is expected a little less than once.
  const Output sampled = nn::sampled_softmax_loss(weights, biases, labels, inputs,
                                                  {.num_sampled = classes, .seed = 3});
  const Output logits = matmul(inputs, weights, {.transpose_b = true}) + biases;
  const Output whole = nn::softmax_cross_entropy(logits, labels);
  const Output nce = nn::nce_loss(weights, biases, reshape(labels, {-1, 1}), inputs,
                                  {.num_sampled = classes, .seed = 3});
  // The logistic loss of the class, and of all classes as if each was a wrong one.
  const Output one = sum(one_hot(labels, classes) * logits, 1);
  const Output expected = softplus(-one) + sum(softplus(logits), 1);
  Session session(g);
  session.initialize();
  const std::vector<Tensor> all = session.run({sampled, whole, nce, expected});
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(all[0].at<float>(i), all[1].at<float>(i), 0.3);
    EXPECT_NEAR(all[2].at<float>(i), all[3].at<float>(i), 1);
  }
  expect_error_with(Code::invalid_argument, "num_sampled must be positive and at most",
                    [&] { nn::nce_loss(weights, biases, labels, inputs, {.num_sampled = 21}); });
  expect_error_with(Code::invalid_argument, "labels must be class numbers",
                    [&] { nn::nce_loss(weights, biases, inputs, inputs); });
}

TEST_F(Tutorials, SampledLossesTrain) {
  const Output ids = constant(g, {1, 2}), labels = constant(g, {3, 4}, i64);
  const Output words = nn::embedding(ids, 30, 8, {.name = "words"});
  const Output weights = variable(g, "weights", {30, 8}, initializers::truncated_normal(0.1)),
               biases = variable(g, "biases", {30}, initializers::zeros);
  const Output loss =
      mean(nn::nce_loss(weights, biases, labels, words, {.num_sampled = 5})) +
      mean(nn::sampled_softmax_loss(weights, biases, labels, words, {.num_sampled = 5}));
  Node& train = Adagrad{0.5}.minimize(loss);
  Session session(g);
  session.initialize();
  const float before = session.run(loss).item<float>();
  for (int i = 0; i < 100; ++i) session.run(train);
  EXPECT_LT(session.run(loss).item<float>(), before / 2);
}

TEST_F(Tutorials, RecurrentNetworksWithTimeFirst) {
  const Output by_batch = random::normal(g, {3, 4, 2}, {.seed = 7});
  const Output by_time = transpose(by_batch, {1, 0, 2});
  const nn::Gru forward(g, 5), backward(g, 5);
  for (const bool has_lengths : {false, true}) {
    for (const bool reverse : {false, true}) {
      nn::RnnOptions options{.reverse = reverse};
      if (has_lengths) options.lengths = {4, 2, 0};
      const auto a = nn::rnn(forward, by_batch, options);
      options.time_major = true;
      const auto b = nn::rnn(forward, by_time, options);
      EXPECT_EQ(b.outputs.shape(), Shape({4, 3, 5}));
      const Output difference =
          max(abs(transpose(a.outputs, {1, 0, 2}) - b.outputs)) + max(abs(a.state[0] - b.state[0]));
      EXPECT_EQ(values(difference)[0], 0) << has_lengths << reverse;
      const auto both = nn::bidirectional_rnn(forward, backward, by_time, options);
      EXPECT_EQ(both.outputs.shape(), Shape({4, 3, 10}));
    }
  }
  expect_error_with(Code::invalid_argument, "the input must be [time, batch, features]",
                    [&] { nn::rnn(forward, x, {.time_major = true}); });
}

// ---- Training ----

TEST_F(Tutorials, MinimizeClipsTheGlobalNorm) {
  const Output w = variable(g, "w", constant(g, {3.0, 0.0})), b = variable(g, "b", 4.0);
  EXPECT_TRUE(variable(g, "unused", 0.0));
  Node& clipped = Sgd{1}.minimize((sum(square(w)) + square(b)) / 2, {.clip_norm = 2.5});
  Node& whole =
      Sgd{1}.minimize((sum(square(w)) + square(b)) / 2, {.variables = {w, b}, .clip_norm = 100});
  Session session(g);
  session.initialize();
  session.run(clipped);
  EXPECT_THAT(session.run(w).to_vector<float>(), ElementsAre(1.5, 0));
  EXPECT_EQ(session.run(b).item<float>(), 2);
  session.run(whole);
  EXPECT_THAT(session.run(w).to_vector<float>(), ElementsAre(0, 0));
  expect_error_with(Code::invalid_argument, "clip_norm must be finite and not negative, got -1",
                    [&] { Sgd{1}.minimize(square(b), {.clip_norm = -1}); });
}

TEST_F(Tutorials, MinimizeRunsTheUpdatesItIsGiven) {
  const Output w = variable(g, "w", 1.0),
               counted = variable(g, "counted", 0.0, {.trainable = false});
  g.add_to_collection("update_ops", assign_add(counted, 100));
  Node& with_one = Sgd{1}.minimize(w, {.update_ops = std::vector{assign_add(counted, 1)}});
  Node& with_none = Sgd{1}.minimize(w, {.update_ops = std::vector<Output>()});
  Node& with_all = Sgd{1}.minimize(w);
  Session session(g);
  session.initialize();
  session.run(with_one);
  session.run(with_none);
  EXPECT_EQ(session.run(counted).item<float>(), 1);
  session.run(with_all);
  EXPECT_EQ(session.run(counted).item<float>(), 101);
}

TEST_F(Tutorials, SchedulesTakeTheirSteps) {
  const Output step = constant(g, 5, i64);
  expect_near(schedules::cosine_decay(0.5, step, 10), {0.25});
  expect_near(schedules::polynomial_decay(0.5, step, 10), {0.5 * (0.5 + 1e-4)}, 1e-4F);
  expect_near(schedules::inverse_time_decay(0.5, step, 10, 2), {0.25});
}

TEST_F(Tutorials, VariablesByScopeAndOptions) {
  Output a;
  {
    const NameScope scope(g, "generator");
    a = nn::dense(x, 2, {.name = "out"});
  }
  const Output other = variable(g, "generators", {2}, initializers::ones, {.trainable = true}),
               fixed = variable(g, "fixed", {2}, initializers::ones,
                                {.dtype = f64, .trainable = false});
  EXPECT_EQ(fixed.dtype(), f64);
  EXPECT_THAT(values<double>(fixed), ElementsAre(1, 1));
  const std::vector<Output> found = trainable_variables(g, "generator");
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(variable_name(found[0]), "generator/out/kernel");
  EXPECT_EQ(trainable_variables(g).size(), 3);
  EXPECT_TRUE(trainable_variables(g, "none").empty());
  ExponentialMovingAverage average(0.5);
  Node& follow = average.apply({other});
  Session session(g);
  session.initialize();
  session.run(assign(other, {3.0, 3.0}));
  session.run(follow);
  EXPECT_THAT(session.run(average.average(other)).to_vector<float>(), ElementsAre(2, 2));
  expect_error_with(Code::invalid_argument, "apply() needs a variable",
                    [&] { average.apply(std::vector<Output>()); });
}

TEST_F(Tutorials, HooksLogValuesAndStopAtNan) {
  const Output w = variable(g, "w", 1.0);
  const Output loss = w * w, step = global_step(g);
  Node& train = Sgd{0.25}.minimize(loss, {.global_step = step});
  testing::internal::CaptureStderr();
  {
    TrainingSession session(
        g, train,
        {.hooks = {stop_at(5), log_values({{"loss", loss}, {"both", stack({w, w})}}, 2)}});
    while (!session.should_stop()) session.step({});
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, testing::StartsWith("step 1: loss = "));
  EXPECT_THAT(text, HasSubstr("both = float[2] ["));
  EXPECT_THAT(text, HasSubstr("\nstep 3: loss"));
  EXPECT_THAT(text, HasSubstr("\nstep 5: loss"));
  EXPECT_THAT(text, testing::Not(HasSubstr("step 2")));
  expect_error_with(Code::invalid_argument, "'loss' is an empty Output", [] {
    log_values({{"loss", Output()}});
  });
  Node& grows = Sgd{-log(w - 1)}.minimize(loss, {.global_step = step});
  TrainingSession session(g, grows, {.hooks = {nan_guard(loss)}});
  expect_error_with(Code::failed_precondition, "is NaN at step", [&] {
    for (int i = 0; i < 9; ++i) session.step({});
  });
}

TEST_F(Tutorials, SaversNameTheUsersLine) {
  variable(g, "w", 1.0);
  const Saver saver(g);
  Session session(g);
  expect_error_with(Code::not_found,
                    "tutorials_test.cc:", [&] { saver.restore(session, "/nowhere/model-3"); });
}

TEST_F(Tutorials, GraphsAsFiles) {
  const ScratchDirectory directory;
  const Output fed = placeholder(g, "fed", f32, {any});
  identity(fed * 2 + 1, "y");
  for (const std::string name : {"graph.pb", "graph.pbtxt"}) {
    write_graph(g, directory / name);
    const Graph again = read_graph(directory / name);
    const Tensor y = Session(again).run(again.output("y"), {{again.output("fed"), {1.0, 2.0}}});
    EXPECT_THAT(y.to_vector<float>(), ElementsAre(3, 5));
  }
  expect_error_with(Code::not_found, "none.pb", [&] { read_graph(directory / "none.pb"); });
  std::ofstream(directory / "bad.pb") << "no graph";
  expect_error_with(Code::invalid_argument, "bad.pb: ", [&] { read_graph(directory / "bad.pb"); });
}

// ---- Data ----

class TutorialData : public testing::Test {
 protected:
  template <class T = int64_t>
  std::vector<T> all(const Dataset& dataset) {
    Graph g;
    const Output next = dataset.next(g)[0];
    Session session(g);
    std::vector<T> out;
    while (true) {
      Tensor value;
      const Status status = error_of([&] { value = session.run(next); });
      if (!status.is_ok()) {
        EXPECT_EQ(status.code, Code::out_of_range) << status.to_string();
        return out;
      }
      for (const T& each : value.span<T>()) out.push_back(each);
    }
  }
};

TEST_F(TutorialData, FunctionsReturnDatasetsOfTheirElements) {
  const Dataset three = datasets::range(1, 4);
  EXPECT_THAT(all(three.flat_map([](Output n) { return datasets::range(n); })),
              ElementsAre(0, 0, 1, 0, 1, 2));
  EXPECT_THAT(all(three.flat_map([](Output n) { return datasets::range(n, 4); })),
              ElementsAre(1, 2, 3, 2, 3, 3));
  EXPECT_THAT(all(three.interleave([](Output n) { return datasets::range(0, cast(n, i32) * 2, n); },
                                   {.cycle_length = 3})),
              ElementsAre(0, 0, 0, 1, 2, 3));
  const Dataset rows = datasets::from_tensors(Tensor::of<int64_t>({2, 2}, {1, 2, 3, 4}));
  EXPECT_THAT(all(rows.flat_map([](Output row) { return datasets::from_tensors(row * 10); })),
              ElementsAre(10, 20, 30, 40));
  EXPECT_THAT(
      all(rows.flat_map([](Output row) {
        return datasets::from_tensors({row, row + 1}).map([](Output a, Output b) { return a * b; });
      })),
      ElementsAre(2, 6, 12, 20));
  expect_error_with(Code::invalid_argument, "the step is 0", [] { datasets::range(0, 3, 0); });
  expect_error_with(Code::invalid_argument, "must be whole numbers", [] { datasets::range(0.5); });
  expect_error_with(Code::invalid_argument, "must have rows",
                    [&] { three.flat_map([](Output n) { return datasets::from_tensors(n); }); });
}

TEST_F(TutorialData, ExamplesHaveNamedFeatures) {
  // features { image: [0.5, 2] label: 7 words: ["a", "bc"] }, as protobuf writes them.
  const auto field = [](int number, const std::string& text) {
    return std::string(1, static_cast<char>(number << 3 | 2)) +
           std::string(1, static_cast<char>(text.size())) + text;
  };
  const auto feature = [&](const std::string& name, const std::string& list) {
    return field(1, field(1, name) + field(2, list));
  };
  const float pixels[] = {0.5F, 2};
  const std::string packed(reinterpret_cast<const char*>(pixels), sizeof pixels);
  const std::string example =
      field(1, feature("image", field(2, field(1, packed))) +
                   feature("label", field(3, field(1, "\x07"))) +
                   feature("words", field(1, field(1, "a") + field(1, "bc"))));
  const Tensor records = Tensor::of<std::string>({2}, {example, example});
  const Dataset parsed = datasets::from_tensors(records).map([](Output record) {
    return parse_example(record, {{"image", f32, {2}}, {"label", i64}, {"words", str, {any}}});
  });
  Graph g;
  const Batch batch = parsed.batch(2).next(g);
  Session session(g);
  const auto [image, label, words] =
      session.run({}, fetch(batch["image"], batch["label"], batch["words"]));
  EXPECT_THAT(image.to_vector<float>(), ElementsAre(0.5, 2, 0.5, 2));
  EXPECT_THAT(label.to_vector<int64_t>(), ElementsAre(7, 7));
  EXPECT_EQ(words.shape(), Shape({2, 2}));
  EXPECT_THAT(words.to_vector<std::string>(), ElementsAre("a", "bc", "a", "bc"));
  expect_error_with(Code::invalid_argument, "parse_example (", [&] {
    parse_example(constant(g, 1), {{"image", f32}});
  });
  expect_error_with(Code::invalid_argument, "'label' must be float, int64 or string, not int32",
                    [&] {
                      parse_example(constant(g, "x"), {{"label", i32}});
                    });
}

}  // namespace
}  // namespace leat
