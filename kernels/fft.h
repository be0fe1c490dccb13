// Discrete Fourier transforms of lengths that are powers of two: J. Cooley, J. Tukey, "An algorithm
// for the machine calculation of complex Fourier series", 1965.
#pragma once

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <vector>

namespace leat {

class Fft {
 public:
  // Makes tables for length n.
  explicit Fft(int64_t n) : n_(n), roots_(n / 2) {
    for (int64_t i = 0; i < n / 2; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
      roots_[i] = {std::cos(angle), -std::sin(angle)};
    }
  }

  // x[k] becomes the sum over j of x[j] exp(-2 pi i j k / n), in place.
  void operator()(std::complex<double>* x) const {
    for (int64_t i = 1, j = 0; i < n_; ++i) {  // bits of the index reversed
      int64_t bit = n_ / 2;
      for (; (j & bit) != 0; bit /= 2) j ^= bit;
      j ^= bit;
      if (i < j) std::swap(x[i], x[j]);
    }
    for (int64_t half = 1; half < n_; half *= 2) {
      const int64_t step = n_ / (2 * half);
      for (int64_t begin = 0; begin < n_; begin += 2 * half) {
        for (int64_t k = 0; k < half; ++k) {
          std::complex<double>&a = x[begin + k], &b = x[begin + k + half];
          const std::complex<double> root = roots_[k * step];
          // By hand: std::complex's product looks for NaN.
          const std::complex<double> turned(b.real() * root.real() - b.imag() * root.imag(),
                                            b.real() * root.imag() + b.imag() * root.real());
          b = a - turned;
          a += turned;
        }
      }
    }
  }

 private:
  int64_t n_;
  std::vector<std::complex<double>> roots_;
};

}  // namespace leat
