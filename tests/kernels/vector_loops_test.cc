// Loops that run in vectors, a block at a time: every length, every kind of number, against one
// element at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/examples.h"
#include "kernels/half_rows.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

Tensor random_floats(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(-2, 2);
  Tensor out(f32, shape);
  for (float& value : out.span<float>()) value = numbers(random);
  return out;
}

void expect_same(float actual, float expected, float tolerance, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << what << " is " << actual;
  } else if (expected == 0 || std::isinf(expected)) {
    EXPECT_EQ(actual, expected) << what;
    EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << what;
  } else {
    EXPECT_NEAR(actual, expected, tolerance * std::abs(expected)) << what;
  }
}

TEST(HalfRows, WidenEveryPattern) {
  std::vector<half> from(65536);
  for (uint32_t bits = 0; bits < 65536; ++bits)
    from[bits] = half::from_bits(static_cast<uint16_t>(bits));
  std::vector<float> to(from.size());
  widen_row(from.data(), 65536, to.data());
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float expected = from[bits];
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(to[bits])) << bits;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(to[bits]), std::bit_cast<uint32_t>(expected)) << bits;
    }
  }
}

TEST(HalfRows, NarrowRowsOfEveryLength) {
  std::mt19937 random(1);
  for (int64_t n = 0; n <= 70; ++n) {
    for (int round = 0; round < 50; ++round) {
      std::vector<float> from(n);
      for (float& value : from) {  // most of these patterns are too large or too small for a half
        const auto bits = static_cast<uint32_t>(random());
        value = std::bit_cast<float>(random() % 4 == 0 ? bits : bits % 0x12000000u + 0x32000000u);
      }
      if (n > 0 && round == 0) from[n / 2] = std::bit_cast<float>(0xffc12345u);
      std::vector<half> to(n);
      narrow_row(from.data(), n, to.data());
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(to[i].bits, half(from[i]).bits) << from[i];
    }
  }
}

TEST(VectorLoops, PowersWithUsualExponentsAreThoseOfPow) {
  std::vector<float> bases = {nan,   infinity, -infinity, 0.0F,   -0.0F,  1,     -1,     3,
                              -2.5F, 1e-20F,   -1e-20F,   1e-40F, 1e-45F, 1e15F, -1e15F, 1e38F};
  const Tensor others = random_floats({40}, 3);
  for (const float value : others.span<float>()) bases.push_back(value);
  const auto n = static_cast<int64_t>(bases.size());
  const Tensor x = Tensor::of<float>({n}, bases);
  for (const float y : {1.0F, 2.0F, 3.0F, -1.0F, 0.5F, -0.5F, 0.0F, 2.5F, -2.0F, nan, infinity}) {
    const Tensor powers = run_op("Pow", {x, Tensor::scalar(y)})[0];
    for (int64_t i = 0; i < n; ++i) {
      const auto expected = static_cast<float>(std::pow(double{bases[i]}, double{y}));
      if (std::fpclassify(expected) == FP_SUBNORMAL) continue;  // may be rounded once more
      expect_same(powers.data<float>()[i], expected, 5e-7F, concat(bases[i], " ^ ", y));
    }
  }
}

template <class T, class F>
void expect_quotients(const char* op, const std::vector<T>& numbers, F expected) {
  const auto n = static_cast<int64_t>(numbers.size());
  std::vector<T> divisors = numbers;
  std::erase(divisors, T(0));
  for (const T divisor : divisors) {
    const Tensor x = Tensor::of<T>({n}, numbers);
    Tensor y(dtype_of<T>, {n});
    std::fill_n(y.data<T>(), n, divisor);
    const Tensor by_scalar = run_op(op, {x, Tensor::scalar(divisor)})[0];
    const Tensor by_vector = run_op(op, {x, y})[0];
    for (int64_t i = 0; i < n; ++i) {
      const T value = static_cast<T>(expected(int64_t{numbers[i]}, int64_t{divisor}));
      ASSERT_EQ(by_scalar.data<T>()[i], value) << op << " " << +numbers[i] << " " << +divisor;
      ASSERT_EQ(by_vector.data<T>()[i], value) << op << " " << +numbers[i] << " " << +divisor;
    }
  }
}

template <class T>
void expect_integer_division(const std::vector<T>& numbers) {
  const auto floor_of = [](int64_t x, int64_t y) {
    return x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0);
  };
  expect_quotients("Div", numbers, [](int64_t x, int64_t y) { return x / y; });
  expect_quotients("FloorDiv", numbers, floor_of);
  expect_quotients("FloorMod", numbers,
                   [&](int64_t x, int64_t y) { return x - floor_of(x, y) * y; });
}

TEST(VectorLoops, DivideIntegersExactly) {
  std::vector<int8_t> bytes;
  for (int i = -128; i < 128; ++i) bytes.push_back(static_cast<int8_t>(i));
  expect_integer_division(bytes);
  std::vector<int32_t> ints = {0, 1, -1, 2, -2, 3, 7, -7, INT32_MAX, INT32_MIN, INT32_MAX - 1};
  std::vector<uint32_t> unsigned_ints = {0, 1, 2, 3, 7, UINT32_MAX, UINT32_MAX - 1, 1U << 31};
  std::mt19937 random(2);
  for (int i = 0; i < 60; ++i) {
    ints.push_back(static_cast<int32_t>(random()) >> i % 31);
    unsigned_ints.push_back(static_cast<uint32_t>(random()) >> i % 31);
  }
  expect_integer_division(ints);
  expect_integer_division(unsigned_ints);
}

TEST(VectorLoops, SelectChoosesForEveryKindOfElement) {
  constexpr int64_t n = 77;
  Tensor condition(DType::boolean, {n});
  std::mt19937 random(4);
  for (bool& c : condition.span<bool>()) c = random() % 2 == 0;
  for (const DType dtype : {f32, f64, DType::f16, DType::bf16, DType::i8, DType::u16, i32,
                            DType::i64, DType::complex64, DType::complex128}) {
    std::vector<double> a(n), b(n);
    for (int64_t i = 0; i < n; ++i)
      a[i] = static_cast<double>(i), b[i] = 100 - static_cast<double>(i);
    const Tensor t = from_doubles(dtype, {n}, a), e = from_doubles(dtype, {n}, b);
    const std::vector<double> chosen = to_doubles(run_op("SelectV2", {condition, t, e})[0]),
                              ts = to_doubles(t), es = to_doubles(e);
    const size_t parts = ts.size() / n;  // a complex number has two
    for (size_t i = 0; i < ts.size(); ++i)
      ASSERT_EQ(chosen[i], condition.data<bool>()[i / parts] ? ts[i] : es[i]) << dtype << " " << i;
  }
  const Tensor ones = floats({1}), row = floats({nan, 5, -0.0F});
  const Tensor chosen = run_op("SelectV2", {bools({true, false, true}), row, ones})[0];
  expect_same(chosen.data<float>()[0], nan, 0, "a chosen NaN");
  expect_same(chosen.data<float>()[1], 1, 0, "the other value");
  expect_same(chosen.data<float>()[2], -0.0F, 0, "a chosen -0");
}

TEST(VectorLoops, ActivationsOfHalvesAreRoundedFloats) {
  constexpr int64_t n = 1200;  // more than two tiles of a row of halves
  Tensor x = random_floats({n}, 5), dy = random_floats({n}, 6);
  for (float& value : x.span<float>()) value = half(value * 4);
  for (float& value : dy.span<float>()) value = half(value);
  const auto halves = [](const Tensor& t) {
    return run_op("Cast", {t}, {{"DstT", DType::f16}})[0];
  };
  const auto expect_rounded = [&](const char* op, const std::vector<Tensor>& inputs) {
    std::vector<Tensor> narrow;
    for (const Tensor& input : inputs) narrow.push_back(halves(input));
    const Tensor wide = run_op(op, inputs)[0], actual = run_op(op, narrow)[0];
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(actual.data<half>()[i].bits, half(wide.data<float>()[i]).bits) << op << " " << i;
  };
  for (const char* op : {"Relu", "Relu6", "LeakyRelu", "Floor", "Sign"}) expect_rounded(op, {x});
  for (const char* op : {"ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad"})
    expect_rounded(op, {dy, x});
  for (const char* op : {"Add", "Mul", "Maximum", "DivNoNan", "Xdivy"}) expect_rounded(op, {x, dy});
}

// ---- Curves

// Numbers of every exponent and both signs, and what lies beside them.
std::vector<float> numbers_of_every_exponent() {
  std::vector<float> out = {nan, -nan, infinity, -infinity, 0.0F, -0.0F};
  std::mt19937 random(13);
  for (uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (int i = 0; i < 200; ++i) {
      const auto fraction = static_cast<uint32_t>(random()) >> 9;
      const float x = std::bit_cast<float>(exponent << 23 | (i == 0 ? 0 : fraction));
      out.push_back(x), out.push_back(-x);
    }
  }
  return out;
}

// Within `ulps` of the last place of what f(double) says.
template <class F>
void expect_curve(const char* op, double ulps, F f) {
  const std::vector<float> numbers = numbers_of_every_exponent();
  const auto n = static_cast<int64_t>(numbers.size());
  const Tensor y = run_op(op, {Tensor::of<float>({n}, numbers)})[0];
  for (int64_t i = 0; i < n; ++i) {
    const double exact = f(double{numbers[i]});
    const auto expected = static_cast<float>(exact);
    const float actual = y.data<float>()[i];
    if (std::isnan(expected) || std::isinf(expected) || expected == 0) {
      expect_same(actual, expected, 0, concat(op, " ", numbers[i]));
    } else {
      const float place = std::nextafter(std::abs(expected), infinity) - std::abs(expected);
      ASSERT_NEAR(actual, exact, ulps * place) << op << " " << numbers[i];
    }
  }
}

TEST(VectorLoops, ReciprocalRootsAreThoseOfEveryNumber) {
  expect_curve("Rsqrt", 1.6, [](double x) { return 1 / std::sqrt(x); });
}

TEST(VectorLoops, CurvesAreThoseOfEveryNumber) {
  expect_curve("Tanh", 8, [](double x) { return std::tanh(x); });
  expect_curve("Erf", 8, [](double x) { return std::erf(x); });
}

TEST(VectorLoops, CurvesNeverPassOne) {
  Tensor x(f32, {100'000});
  for (int64_t i = 0; i < x.elements(); ++i)
    x.data<float>()[i] = static_cast<float>(i) * 1.2e-4F - 1.0F;
  for (const char* op : {"Tanh", "Erf"}) {
    const Tensor y = run_op(op, {x})[0];
    for (int64_t i = 0; i < x.elements(); ++i) {
      ASSERT_LE(y.data<float>()[i], 1) << op << " " << x.data<float>()[i];
      if (x.data<float>()[i] >= 9.02F) {
        ASSERT_EQ(y.data<float>()[i], 1) << op << " " << x.data<float>()[i];
      }
    }
  }
}

// Rows of 0 and numbers below it: exp of each, over their sum.
TEST(VectorLoops, SoftmaxTakesEveryDistanceToTheLargest) {
  for (const int64_t columns : {5, 40, 300}) {
    Tensor x(f32, {400, columns});
    std::mt19937 random(21);
    std::uniform_real_distribution<float> distance(0, 1);
    for (int64_t i = 0; i < x.elements(); ++i) {
      const float far = 100.0F * static_cast<float>(i / columns) / 400.0F;
      x.data<float>()[i] = i % columns == 1 ? 0.0F : -far * distance(random);
    }
    x.data<float>()[3] = -infinity;
    x.data<float>()[columns + 3] = nan;
    const Tensor y = run_op("Softmax", {x})[0];
    for (int64_t row = 0; row < 400; ++row) {
      const float *from = x.data<float>() + row * columns, *to = y.data<float>() + row * columns;
      double sum = 0;
      for (int64_t c = 0; c < columns; ++c) sum += std::exp(double{from[c]});
      for (int64_t c = 0; c < columns; ++c) {
        const double exact = std::exp(double{from[c]}) / sum;
        if (std::isnan(exact)) {
          ASSERT_TRUE(std::isnan(to[c])) << row << " " << c;
        } else {
          ASSERT_NEAR(to[c], exact, 1e-6 * exact + 1e-37) << row << " " << from[c];
        }
      }
    }
    EXPECT_EQ(y.data<float>()[3], 0);
  }
}

TEST(VectorLoops, AddNAddsEveryNumberOfInputsInOrder) {
  for (const int64_t length : {1, 31, 5000}) {
    std::vector<Tensor> terms;
    for (uint32_t count = 1; count < 8; ++count) {
      terms.push_back(random_floats({length}, count));
      for (const bool in_place : {false, true}) {
        std::vector<Tensor> copies;
        for (const Tensor& t : terms) copies.push_back(run_op("Add", {t, Tensor::scalar(0.0F)})[0]);
        const Tensor sum =
            run_op("AddN", copies, {{"N", int64_t{count}}}, test_cpu(), {.in_place = in_place})[0];
        for (int64_t i = 0; i < length; ++i) {
          float expected = terms[0].data<float>()[i];
          for (uint32_t k = 1; k < count; ++k) expected += terms[k].data<float>()[i];
          ASSERT_EQ(sum.data<float>()[i], expected) << count << " terms, element " << i;
        }
      }
    }
  }
}

// ---- Places

int64_t place_of_largest(const float* from, int64_t n) {
  float best = std::numeric_limits<float>::lowest();
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (from[i] > best) best = from[i], at = i;
  }
  return at;
}

TEST(VectorLoops, ArgMaxFindsTheFirstOfTheLargest) {
  std::mt19937 random(7);
  for (const int64_t n : {1, 2, 31, 32, 33, 255, 256, 257, 600}) {
    Tensor x(f32, {40, n});
    for (float& value : x.span<float>()) {
      const uint32_t kind = random() % 16;
      value = kind == 0   ? nan
              : kind == 1 ? -infinity
              : kind == 2 ? std::numeric_limits<float>::lowest()
                          : static_cast<float>(random() % 8);  // many are equal
    }
    for (float& value : x.span<float>().subspan(0, n)) value = nan;
    for (float& value : x.span<float>().subspan(n, n)) value = -infinity;
    const Tensor places = run_op("ArgMax", {x, Tensor::scalar(1)})[0];
    for (int64_t row = 0; row < 40; ++row) {
      ASSERT_EQ(places.data<int64_t>()[row], place_of_largest(x.data<float>() + row * n, n))
          << "row " << row << " of " << n;
    }
  }
}

TEST(VectorLoops, ReversesRowsOfEveryLength) {
  for (int64_t n = 1; n < 70; ++n) {
    const Tensor x = random_floats({3, n}, 8), y = run_op("ReverseV2", {x, ints({1})})[0];
    for (int64_t row = 0; row < 3; ++row) {
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(y.data<float>()[row * n + i], x.data<float>()[row * n + n - 1 - i]) << n;
    }
  }
}

// ---- Windows

// Of 2 x 3 windows at a stride of 1 x 2 over one image.
struct Pooled {
  static constexpr int64_t height = 5, width = 8, out_height = 4, out_width = 3;
  int64_t channels;
  Tensor x, dy, largest, mean, dx;

  explicit Pooled(int64_t n)
      : channels(n),
        x(random_floats({1, height, width, n}, 9)),
        dy(random_floats({1, out_height, out_width, n}, 10)),
        largest(f32, dy.shape()),
        mean(f32, dy.shape()),
        dx(f32, x.shape()) {
    for (float& value : x.span<float>()) value = std::round(value * 2);  // many are equal
    std::fill_n(dx.data<float>(), dx.elements(), 0.0F);
    for (int64_t i = 0; i < dy.elements(); ++i) pool(i);
  }

 private:
  void pool(int64_t i) {
    const int64_t c = i % channels, ox = i / channels % out_width, oy = i / channels / out_width;
    int64_t at = -1;
    float sum = 0;
    for (int64_t y = oy; y < oy + 2; ++y) {
      for (int64_t column = ox * 2; column < ox * 2 + 3; ++column) {
        const int64_t tap = (y * width + column) * channels + c;
        sum += x.data<float>()[tap];
        if (at < 0 || x.data<float>()[tap] > x.data<float>()[at]) at = tap;
      }
    }
    largest.data<float>()[i] = x.data<float>()[at];
    mean.data<float>()[i] = sum / 6;
    dx.data<float>()[at] += dy.data<float>()[i];
  }
};

void expect_close(const Tensor& actual, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape());
  for (int64_t i = 0; i < actual.elements(); ++i)
    ASSERT_NEAR(actual.data<float>()[i], expected.data<float>()[i], 1e-5) << what << " " << i;
}

TEST(VectorLoops, PoolsEveryNumberOfChannels) {
  const AttrMap attrs = {{"ksize", std::vector<int64_t>{1, 2, 3, 1}},
                         {"strides", std::vector<int64_t>{1, 1, 2, 1}},
                         {"padding", "VALID"}};
  for (const int64_t channels : {1, 3, 31, 32, 33, 64, 100}) {
    const Pooled pooled(channels);
    const std::string what = concat(channels, " channels, element");
    expect_close(run_op("MaxPool", {pooled.x}, attrs)[0], pooled.largest, what);
    expect_close(run_op("AvgPool", {pooled.x}, attrs)[0], pooled.mean, what);
    expect_close(run_op("MaxPoolGrad", {pooled.x, pooled.largest, pooled.dy}, attrs)[0], pooled.dx,
                 what);
  }
}

TEST(VectorLoops, NormalisesOverNeighboursOfEveryRadius) {
  for (const int64_t channels : {1, 5, 32, 130, 300}) {
    const int64_t pixels = channels == 32 ? 70 : 2;  // more than are normalised together
    const Tensor x = random_floats({1, 1, pixels, channels}, 11), dy = random_floats(x.shape(), 12);
    for (const int64_t radius : {0, 1, 5, 16, 17, 400}) {
      for (const double beta : {0.5, 0.75}) {
        const AttrMap attrs = {{"depth_radius", radius}, {"alpha", 0.5}, {"beta", beta}};
        const Tensor y = run_op("LRN", {x}, attrs)[0];
        const Tensor dx = run_op("LRNGrad", {dy, x, y}, attrs)[0];
        std::vector<double> norms(x.elements());
        const auto for_neighbours = [&](int64_t i, auto f) {
          const int64_t pixel = i / channels * channels;
          for (int64_t k = std::max(pixel, i - radius);
               k < std::min(pixel + channels, i + radius + 1); ++k)
            f(k);
        };
        const auto at = [](const Tensor& t, int64_t i) { return double{t.data<float>()[i]}; };
        for (int64_t i = 0; i < x.elements(); ++i) {
          norms[i] = 1;
          for_neighbours(i, [&](int64_t k) { norms[i] += 0.5 * at(x, k) * at(x, k); });
          ASSERT_NEAR(at(y, i), at(x, i) * std::pow(norms[i], -beta), 1e-5) << radius << " " << i;
        }
        for (int64_t i = 0; i < x.elements(); ++i) {
          double slope = at(dy, i) * std::pow(norms[i], -beta);
          for_neighbours(i, [&](int64_t k) {
            slope -= at(dy, k) * at(x, k) * beta * std::pow(norms[k], -beta - 1) * at(x, i);
          });
          ASSERT_NEAR(at(dx, i), slope, 2e-5) << radius << " " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace leat
