// Volumes, sequences, and normalisation by groups, with the values of TensorFlow and Keras.
#include "frontends/cpp/nn/volumes.h"

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "graph/gradient.h"
#include "graph/ops/sequences.h"
#include "tests/frontends/tutorials.h"

namespace leat {
namespace {

using testing::ElementsAre;

class Volumes : public Tutorials {
 protected:
  // 0.1, 0.2, … : [1, 3, 3, 3, 2]
  Output volume = reshape(arange(g, 1.0, 55.0) / 10.0, {1, 3, 3, 3, 2});
  Tensor filter = [] {
    Tensor out = Tensor::zeros({2, 2, 2, 2, 1});
    for (int i = 0; i < 16; ++i) out.data<float>()[i] = static_cast<float>(i) / 10;
    return out;
  }();
};

TEST_F(Volumes, Convolve) {
  expect_near(conv3d(volume, constant(g, filter), {.padding = valid}),
              {24.32F, 26.72F, 31.52F, 33.92F, 45.92F, 48.32F, 53.12F, 55.52F}, 1e-4F);
  const Output y = nn::conv3d(volume, 1, 2,
                              {.strides = 2,
                               .kernel_initializer = initializers::constant(filter),
                               .bias_initializer = initializers::ones,
                               .name = "scan"});
  EXPECT_EQ(y.shape(), Shape({1, 2, 2, 2, 1}));
  expect_near(y, {25.32F, 13.48F, 14.32F, 7.22F, 13.2F, 5.7F, 4.08F, 1.54F}, 1e-4F);
  EXPECT_EQ(variable_named(g, "scan/kernel").shape(), Shape({2, 2, 2, 2, 1}));
  EXPECT_EQ(variable_named(g, "scan/bias").shape(), Shape({1}));
  EXPECT_EQ(nn::conv3d(volume, 5, {1, 2, 3}, {.padding = valid, .activation = relu}).shape(),
            Shape({1, 3, 2, 1, 5}));
}

TEST_F(Volumes, ConvolveBack) {
  const Output small = ones(g, {1, 1, 1, 2, 1});
  const Output y = nn::conv3d_transpose(
      small, 2, 2,
      {.strides = 2, .use_bias = false, .kernel_initializer = initializers::constant(filter)});
  EXPECT_EQ(y.shape(), Shape({1, 2, 2, 4, 2}));
  std::vector<float> expected;
  for (int pair : {0, 0, 2, 2, 4, 4, 6, 6}) {  // rows of two positions, each once per element
    for (int k = 0; k < 4; ++k)
      expected.push_back(static_cast<float>(2 * (pair - pair % 2) + k) / 10);
  }
  EXPECT_THAT(values(y), testing::Pointwise(testing::FloatNear(1e-6F), expected));
  const Output batch = placeholder(g, "batch", f32, {any, 2, 2, 2, 3});
  const Output larger = nn::conv3d_transpose(batch, 4, 3, {.padding = valid});
  EXPECT_EQ(larger.shape(), Shape({any, 4, 4, 4, 4}));
  Session session(g);
  session.initialize();
  EXPECT_EQ(session.run({{batch, Tensor::zeros({5, 2, 2, 2, 3})}}, larger).shape(),
            Shape({5, 4, 4, 4, 4}));
}

TEST_F(Volumes, Pool) {
  EXPECT_THAT(values(max_pool3d(volume, 2, {.strides = 1})),
              testing::Pointwise(testing::FloatNear(1e-6F),
                                 {2.7F, 2.8F, 2.9F, 3.0F, 3.3F, 3.4F, 3.5F, 3.6F, 4.5F, 4.6F, 4.7F,
                                  4.8F, 5.1F, 5.2F, 5.3F, 5.4F}));
  expect_near(avg_pool3d(volume, 2, {.padding = same}),
              {1.4F, 1.5F, 1.7F, 1.8F, 2.3F, 2.4F, 2.6F, 2.7F, 4.1F, 4.2F, 4.4F, 4.5F, 5, 5.1F,
               5.3F, 5.4F});
  EXPECT_EQ(nn::max_pool3d(volume, {3, 1, 1}).shape(), Shape({1, 1, 3, 3, 2}));
}

TEST_F(Volumes, Train) {
  const Output y = nn::conv3d(volume, 1, 3, {.name = "c"});
  const Output loss = mean(square(y - 1));
  Node& train = Adam{0.05}.minimize(loss);
  Session session(g);
  session.initialize();
  const float before = session.run(loss).item<float>();
  for (int i = 0; i < 100; ++i) session.run(train);
  EXPECT_LT(session.run(loss).item<float>(), 0.2 * before);
}

TEST_F(Volumes, ReportWhatDoesNotFit) {
  const Output image = zeros(g, {1, 4, 4, 2});
  expect_error_with(Code::invalid_argument, "must be [batch, planes, height, width, channels]",
                    [&] { nn::conv3d(image, 4, 3); });
  expect_error_with(Code::invalid_argument, "must be [batch, planes, height, width, channels]",
                    [&] { max_pool3d(image); });
  expect_error_with(Code::invalid_argument, "filters and size must be positive",
                    [&] { nn::conv3d(volume, 0, 3); });
  expect_error_with(Code::invalid_argument, "the padding must be `same` or `valid`", [&] {
    conv3d(volume, constant(g, filter), {.padding = {1, 1, 1, 1}});
  });
  expect_error_with(Code::invalid_argument, "planes, height and width must be known", [&] {
    nn::conv3d_transpose(placeholder(g, "any", f32, {1, any, 2, 2, 2}), 4, 3);
  });
}

// ---- Sequences ----

class Sequences : public Tutorials {};

TEST_F(Sequences, MasksSayWhatBelongsToEach) {
  const Output mask_of_all = sequence_mask(constant(g, {{1, 3}, {0, 2}}));
  EXPECT_EQ(mask_of_all.dtype(), boolean);
  EXPECT_THAT(values<int32_t>(cast(mask_of_all, i32)),
              ElementsAre(1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0));
  const Output wide = sequence_mask(constant(g, {1, 2}, i64), 4, {.dtype = f32});
  EXPECT_EQ(wide.shape(), Shape({2, 4}));
  EXPECT_THAT(values(wide), ElementsAre(1, 0, 0, 0, 1, 1, 0, 0));
  const Output fed = placeholder(g, "lengths", i32, {any});
  const Output words = placeholder(g, "words", i32, {any, any});
  const Output mask = sequence_mask(fed, shape_of(words)[1]);
  EXPECT_EQ(Session(g).run({{fed, {2}}, {words, {{7, 8, 0, 0}}}}, mask).shape(), Shape({1, 4}));
  expect_error_with(Code::invalid_argument, "lengths must be int32 or int64",
                    [&] { sequence_mask(v); });
}

TEST_F(Sequences, Pool) {
  const Output one = reshape(constant(g, {1.0, 5.0, 2.0, 4.0, 3.0}), {1, 5, 1});
  EXPECT_THAT(values(max_pool1d(one)), ElementsAre(5, 4));
  expect_near(avg_pool1d(one, 3, {.strides = 2, .padding = same}), {3, 11 / 3.0F, 3.5F});
  expect_error_with(Code::invalid_argument, "must be [batch, length, channels]",
                    [&] { max_pool1d(x); });
}

// ---- Normalisation by groups ----

TEST_F(Sequences, GroupNormAsInKeras) {
  const Output a = pow(reshape(arange(g, 16.0), {2, 2, 4}), 1.3);
  const Output y = nn::group_norm(a, 2);
  expect_near(y, {-1.1190062F, -0.8238735F, -1.1752634F, -0.76548254F, 0.67034316F, 1.2725365F,
                  0.6971371F, 1.2436087F, -1.1981342F, -0.7422056F, -1.200566F, -0.7397499F,
                  0.7142265F, 1.2261117F, 0.71631336F, 1.2240033F});
  EXPECT_EQ(y.shape(), a.shape());
  EXPECT_EQ(variable_named(g, "group_norm/gamma").shape(), Shape({4}));
  EXPECT_EQ(variable_named(g, "group_norm/beta").shape(), Shape({4}));
}

TEST_F(Sequences, InstanceNormHasAGroupForEachChannel) {
  const Output image = constant(g, {{{{1.0, 10.0}, {3.0, 30.0}}}});  // [1, 1, 2, 2]
  expect_near(nn::instance_norm(image, {.epsilon = 0}), {-1, -1, 1, 1});
  const Output fed = placeholder(g, "fed", f32, {any, any, 6});
  EXPECT_EQ(nn::group_norm(fed, 3, {.use_scale = false, .name = "fed_norm"}).shape(),
            Shape({any, any, 6}));
  EXPECT_FALSE(variable_named(g, "fed_norm/gamma"));
  expect_error_with(Code::invalid_argument, "6 channels cannot be cut into 4 groups",
                    [&] { nn::group_norm(fed, 4); });
  expect_error_with(Code::invalid_argument, "rank and channels known",
                    [&] { nn::instance_norm(placeholder(g, "p", f32)); });
}

}  // namespace
}  // namespace leat
