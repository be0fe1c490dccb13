// Fourier transforms of many rows, which are computed 8 (f64) or 16 (f32) at a time.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numbers>

#include "core/visit_dtype.h"
#include "graph/ops.h"
#include "kernels/examples.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

Tensor some_complex(const Shape& shape) {
  Tensor out(DType::complex128, shape);
  for (int64_t i = 0; i < out.elements(); ++i) {
    const auto x = static_cast<double>(i);
    out.data<complex128>()[i] = {std::sin(7 * x * x + 1), std::cos(3 * x * x + x)};
  }
  return out;
}

Tensor cast_to(const Tensor& x, DType dtype) { return run_op("Cast", {x}, {{"DstT", dtype}})[0]; }

complex128 defined(const complex128* row, int64_t n, int64_t k) {
  complex128 sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    const double turns = static_cast<double>(j * k % n) / static_cast<double>(n);
    sum += row[j] * std::polar(1.0, -2 * std::numbers::pi * turns);
  }
  return sum;
}

double largest_difference(const Tensor& a, const Tensor& b) {
  const Tensor x = cast_to(a, DType::complex128), y = cast_to(b, DType::complex128);
  EXPECT_EQ(x.shape(), y.shape());
  double largest = 0;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const double difference = std::abs(x.data<complex128>()[i] - y.data<complex128>()[i]);
    largest = difference <= largest ? largest : difference;  // NaN is largest
  }
  return largest;
}

const int64_t lengths[] = {1,  2,  3,  4,  5,  6,  7,  8,   9,   10,
                           12, 15, 16, 25, 49, 60, 77, 101, 500, 512};

TEST(Fourier, RowsMatchTheDefinition) {
  for (const int64_t n : lengths) {
    for (const int64_t rows : {1, 2, 3, 8, 9, 17, 34}) {
      const Tensor x = some_complex({rows, n}), y = run_op("FFT", {x})[0];
      for (const int64_t row : {int64_t{0}, rows / 2, rows - 1}) {
        for (int64_t k = 0; k < n; k += 1 + n / 40) {
          const complex128 expected = defined(x.data<complex128>() + row * n, n, k);
          ASSERT_LT(std::abs(y.data<complex128>()[row * n + k] - expected), 1e-11)
              << k << " of row " << row << " of [" << rows << ", " << n << "]";
        }
      }
      ASSERT_LT(largest_difference(run_op("IFFT", {y})[0], x), 1e-13) << rows << ", " << n;
      const Tensor narrow = run_op("FFT", {cast_to(x, DType::complex64)})[0];
      ASSERT_LT(largest_difference(narrow, y), 2e-5) << rows << ", " << n;
    }
  }
}

TEST(Fourier, RealRowsAreHalfOfComplexOnesAndInvert) {
  for (const int64_t n : lengths) {
    for (const int64_t rows : {1, 9, 19}) {
      for (const DType dtype : {DType::f32, DType::f64}) {
        const DType complex = dtype == DType::f32 ? DType::complex64 : DType::complex128;
        const double close = dtype == DType::f32 ? 2e-5 : 1e-11;
        const AttrMap types = {{"Treal", dtype}, {"Tcomplex", complex}};
        const Tensor x = cast_to(run_op("Real", {some_complex({rows, n})}, {{"Tout", f64}})[0],
                                 dtype),
                     length = Tensor::of<int32_t>({1}, {static_cast<int32_t>(n)});
        const Tensor y = run_op("RFFT", {x, length}, types)[0],
                     whole = run_op("FFT", {cast_to(x, complex)})[0];
        const Tensor begin = longs({0, 0}), size = longs({rows, n / 2 + 1});
        ASSERT_LT(largest_difference(y, run_op("Slice", {whole, begin, size})[0]), close)
            << rows << ", " << n;
        ASSERT_LT(largest_difference(run_op("IRFFT", {y, length}, types)[0], x), close / 10)
            << rows << ", " << n;
      }
    }
  }
}

// What is left out by fft_length, along both axes.
TEST(Fourier, LengthsCropTheInput) {
  const AttrMap types = {{"Treal", f64}, {"Tcomplex", DType::complex128}};
  const Tensor x = run_op("Real", {some_complex({2, 12, 20})}, {{"Tout", f64}})[0];
  for (const int32_t n : {13, 16}) {
    const Tensor length = Tensor::of<int32_t>({2}, {10, n});
    const Tensor cropped = run_op("Slice", {x, longs({0, 0, 0}), longs({2, 10, n})})[0];
    const Tensor y = run_op("RFFT2D", {x, length}, types)[0];
    EXPECT_LT(largest_difference(y, run_op("RFFT2D", {cropped, length}, types)[0]), 1e-13);
    // Half a spectrum, too.
    const Tensor wide = some_complex({2, 12, 11});
    const Tensor half = run_op("Slice", {wide, longs({0, 0, 0}), longs({2, 10, n / 2 + 1})})[0];
    EXPECT_LT(largest_difference(run_op("IRFFT2D", {wide, length}, types)[0],
                                 run_op("IRFFT2D", {half, length}, types)[0]),
              1e-13);
  }
}

template <class R>
void expect_rows_do_not_mix(int64_t n) {
  using Complex = std::complex<R>;
  const Tensor x = cast_to(some_complex({17, n}), dtype_of<Complex>), y = run_op("FFT", {x})[0];
  Tensor spoiled = x.clone();
  spoiled.data<Complex>()[3 * n + 1] = std::numeric_limits<R>::quiet_NaN();
  const Tensor z = run_op("FFT", {spoiled})[0];
  for (int64_t i = 0; i < z.elements(); ++i) {
    const Complex found = z.data<Complex>()[i];
    if (i / n == 3) {
      EXPECT_TRUE(std::isnan(found.real())) << i << " of rows of " << n;
    } else {
      EXPECT_EQ(found, y.data<Complex>()[i]) << i << " of rows of " << n;
    }
  }
}

TEST(Fourier, RowsDoNotMix) {
  for (const int64_t n : {7, 16, 500}) {
    expect_rows_do_not_mix<float>(n);
    expect_rows_do_not_mix<double>(n);
  }
}

}  // namespace
}  // namespace leat
