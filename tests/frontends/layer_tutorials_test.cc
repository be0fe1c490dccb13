// What tutorials of Keras and TensorFlow 1 use besides dense layers: word vectors, sequences,
// losses over many classes. Values are NumPy's or TensorFlow's.
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/state/table.h"
#include "graph/gradient.h"
#include "tests/frontends/tutorials.h"

namespace leat {
namespace {

using testing::ElementsAre;

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
  const Output weights =
                   variable(g, "weights", {classes, size}, initializers::random_normal(0, 1, 4)),
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

TEST_F(Tutorials, VocabulariesNumberTheirWords) {
  const Table words = Table::from_vocabulary(g, "words", {"the", "cat", "sat"});
  const Output ids = words.lookup(constant(g, {{"sat", "the"}, {"dog", "cat"}}));
  EXPECT_THAT(values<int64_t>(ids), ElementsAre(2, 0, -1, 1));
  const std::vector<std::string> list = {"a", "b"};
  const Table letters = Table::from_vocabulary(g, "letters", list, 7);
  EXPECT_THAT(values<int64_t>(letters.lookup(constant(g, {"b", "c"}))), ElementsAre(1, 7));
  const Table numbers = Table::from_vocabulary(g, "numbers", {50, 60});
  EXPECT_THAT(values<int64_t>(numbers.lookup(constant(g, {60, 50}, i64))), ElementsAre(1, 0));
  expect_error_with(Code::invalid_argument, "the vocabulary must be a vector",
                    [&] { Table::from_vocabulary(g, "none", "word"); });
}

}  // namespace
}  // namespace leat
