// Images changed at random, and parts and colours with the values of tf.image.
#include "graph/ops/augmentation.h"

#include <set>

#include "tests/frontends/tutorials.h"

namespace leat {
namespace {

using testing::ElementsAre;

class Augmentation : public Tutorials {
 protected:
  // 0, 1, 2, … of that shape.
  Output numbers(const Shape& shape) {
    return reshape(arange(g, static_cast<double>(shape.elements())), shape);
  }
};

TEST_F(Augmentation, CropsTheMiddle) {
  const Output image = numbers({5, 6, 1});
  const Output y = central_crop(image, 0.5);  // ⌊2.5 / 2⌋ = 1 row and 1 column at either end
  EXPECT_EQ(y.shape(), Shape({3, 4, 1}));
  EXPECT_THAT(values(y), ElementsAre(7, 8, 9, 10, 13, 14, 15, 16, 19, 20, 21, 22));
  EXPECT_EQ(central_crop(numbers({2, 8, 4, 3}), 0.25).shape(), Shape({2, 2, 2, 3}));
  EXPECT_EQ(central_crop(image, 1).shape(), image.shape());
  const Output fed = placeholder(g, "fed", f32, {any, any, any, 1});
  const Tensor got =
      Session(g).run({{fed, Session(g).run(image[newaxis])}}, central_crop(fed, 0.5));
  EXPECT_EQ(got.shape(), Shape({1, 3, 4, 1}));
  EXPECT_EQ(got.to_vector<float>(), values(y));
  expect_error_with(Code::invalid_argument, "must be in (0, 1]", [&] { central_crop(image, 0); });
  expect_error_with(Code::invalid_argument, "images must be [height, width, channels]",
                    [&] { central_crop(x, 0.5); });
}

TEST_F(Augmentation, GraysHaveOneChannel) {
  const Output pixels = constant(g, {{1.0, 0.0, 0.0}, {0.5, 1.0, 2.0}});
  const Output y = rgb_to_grayscale(pixels);
  EXPECT_EQ(y.shape(), Shape({2, 1}));
  expect_near(y, {0.2989F, 0.5F * 0.2989F + 0.587F + 0.228F});
  expect_error_with(Code::invalid_argument, "must have 3 channels", [&] {
    rgb_to_grayscale(numbers({2, 4}));
  });
  expect_error_with(Code::invalid_argument, "must be floating-point numbers", [&] {
    rgb_to_grayscale(constant(g, {1, 2, 3}));
  });
}

// Each image of a batch by itself: of 200, about half; each is itself or mirrored.
TEST_F(Augmentation, FlipsAboutHalfOfTheImages) {
  const Output batch = tile(numbers({1, 2, 2, 1}), {200, 1, 1, 1});
  const auto count = [&](Output y, const std::vector<float>& mirrored) {
    EXPECT_EQ(y.shape(), Shape({200, 2, 2, 1}));
    const std::vector<float> all = values(y);
    int flips = 0;
    for (size_t i = 0; i < all.size(); i += 4) {
      const std::vector<float> image(all.begin() + i, all.begin() + i + 4);
      if (image == mirrored) {
        ++flips;
      } else {
        EXPECT_THAT(image, ElementsAre(0, 1, 2, 3));
      }
    }
    return flips;
  };
  EXPECT_NEAR(count(random::flip_left_right(batch, {.seed = 3}), {1, 0, 3, 2}), 100, 40);
  EXPECT_NEAR(count(random::flip_up_down(batch, {.seed = 3}), {2, 3, 0, 1}), 100, 40);
  // One image, in many steps.
  const Output one = random::flip_left_right(numbers({1, 2, 1}), {.seed = 5});
  Session session(g);
  std::set<std::vector<float>> seen;
  for (int i = 0; i < 40; ++i) seen.insert(session.run(one).to_vector<float>());
  EXPECT_EQ(seen, (std::set<std::vector<float>>{{0, 1}, {1, 0}}));
}

TEST_F(Augmentation, BrightnessAndContrastAreDrawnOnce) {
  const Output image = numbers({2, 2, 1});
  const Output brighter = random::brightness(image, 0.5, {.seed = 2});
  const Output sharper = random::contrast(image, 2, 3, {.seed = 2});
  Session session(g);
  std::set<float> deltas, factors;
  for (int i = 0; i < 20; ++i) {
    const std::vector<float> a = session.run(brighter).to_vector<float>();
    deltas.insert(a[0]);
    EXPECT_LE(std::abs(a[0]), 0.5);
    for (size_t k = 0; k < 4; ++k) EXPECT_NEAR(a[k], a[0] + static_cast<float>(k), 1e-6);
    const std::vector<float> b = session.run(sharper).to_vector<float>();  // around the mean, 1.5
    const float factor = (b[3] - 1.5F) / 1.5F;
    factors.insert(factor);
    EXPECT_GE(factor, 2 - 1e-5);
    EXPECT_LE(factor, 3 + 1e-5);
    EXPECT_NEAR(b[1], 1.5F - 0.5F * factor, 1e-5);
  }
  EXPECT_GT(deltas.size(), 10U);
  EXPECT_LT(*deltas.begin(), 0);
  EXPECT_GT(factors.size(), 10U);
  expect_error_with(Code::invalid_argument, "not be negative and below high",
                    [&] { random::contrast(image, 2, 1); });
  expect_error_with(Code::invalid_argument, "must be floating-point numbers", [&] {
    random::brightness(constant(g, {1, 2}), 1);
  });
}

}  // namespace
}  // namespace leat
