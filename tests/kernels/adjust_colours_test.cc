// AdjustHue and AdjustSaturation, whose loops run in vectors, against one pixel at a time with
// branches.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/examples.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

using Rgb = std::array<float, 3>;

// More than one block of halves, and no full block at the end.
std::vector<Rgb> pixels() {
  std::vector<Rgb> all = {{0, 0, 0},           {1, 1, 1},         {0.5, 0.5, 0.5}, {1, 0, 0},
                          {1, 1, 0},           {0, 1, 0},         {0, 1, 1},       {0, 0, 1},
                          {1, 0, 1},           {-1, -0.5, -0.25}, {-1, 0, -1},     {1, 0, 1e-20F},
                          {infinity, 0, 0},    {nan, 0.5, 0},     {0, nan, 0.5},   {0.5, 0, nan},
                          {-infinity, 0, 0.5}, {255, 3, 100},     {1e-30F, 0, 0}};
  std::mt19937 random(7);
  std::uniform_real_distribution<float> numbers(0, 1);
  while (all.size() < 619) all.push_back({numbers(random), numbers(random), numbers(random)});
  return all;
}

float place_of(const Rgb& rgb, float least, float largest) {
  const auto [red, green, blue] = rgb;
  const float range = largest - least;
  if (range == 0) return 0;
  const float place = red == largest     ? (green - blue) / range
                      : green == largest ? (blue - red) / range + 2
                                         : (red - green) / range + 4;
  return place < 0 ? place + 6 : place;
}

Rgb colour(float place, float least, float largest) {
  const Rgb full = {std::abs(place - 3) - 1, 2 - std::abs(place - 2), 2 - std::abs(place - 4)};
  Rgb rgb;
  for (int i = 0; i < 3; ++i) rgb[i] = least + (largest - least) * std::clamp(full[i], 0.0F, 1.0F);
  return rgb;
}

Rgb adjusted(const std::string& op, const Rgb& rgb, float by) {
  float least = std::min({rgb[0], rgb[1], rgb[2]});
  const float largest = std::max({rgb[0], rgb[1], rgb[2]});
  float place = place_of(rgb, least, largest);
  if (op == "AdjustHue") {
    place = std::fmod(place + 6 * by, 6.0F);
    if (place < 0) place += 6;
  } else if (!(largest <= 0)) {
    const float saturation = (largest - least) / largest;
    least = largest * (1 - std::clamp(saturation * by, 0.0F, 1.0F));
  }
  return colour(place, least, largest);
}

void expect_alike(float actual, float expected, float tolerance, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << what << " is " << actual;
  } else if (std::isinf(expected)) {
    EXPECT_EQ(actual, expected) << what;
  } else {
    EXPECT_NEAR(actual, expected, tolerance) << what;
  }
}

TEST(AdjustColours, AreThoseOfOnePixelAtATime) {
  const std::vector<Rgb> all = pixels();
  const auto count = static_cast<int64_t>(all.size());
  for (const auto& [dtype, close] : {std::pair{f32, 1e-6F}, {DType::f16, 1e-3F}}) {
    std::vector<double> values;
    for (const Rgb& rgb : all) values.insert(values.end(), rgb.begin(), rgb.end());
    const Tensor x = from_doubles(dtype, {1, count, 3}, values);
    values = to_doubles(x);  // as the type has them
    for (const std::string op : {"AdjustHue", "AdjustSaturation"}) {
      for (const float by :
           {0.0F, 0.1F, -0.4F, 0.999F, 1.0F, -1.0F, 1.5F, -2.25F, 100.25F, infinity, nan}) {
        const std::vector<double> y = to_doubles(run_op(op, {x, Tensor::scalar(by)})[0]);
        for (int64_t i = 0; i < count; ++i) {
          const Rgb from = {static_cast<float>(values[3 * i]),
                            static_cast<float>(values[3 * i + 1]),
                            static_cast<float>(values[3 * i + 2])};
          const Rgb expected = adjusted(op, from, by);
          // A large turn costs the sum with the place its last digits.
          const float turns = op == "AdjustHue" && std::isfinite(by) ? std::abs(by) : 0;
          for (int c = 0; c < 3; ++c) {
            expect_alike(static_cast<float>(y[3 * i + c]), expected[c],
                         close * (1 + turns) * std::max(1.0F, std::abs(expected[c])),
                         op + " by " + std::to_string(by) + ", channel " + std::to_string(c) +
                             " of pixel " + std::to_string(i));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace leat
