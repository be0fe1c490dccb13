#include "kernels/audio/fft.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/step_end.h"

namespace leat {
namespace {

using Complex = std::complex<double>;

// Written out because std::complex's product checks for NaN.
Complex product(const Complex& a, const Complex& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// exp(-pi i numerator / denominator)
Complex root(int64_t numerator, int64_t denominator) {
  const double angle =
      std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {std::cos(angle), -std::sin(angle)};
}

// In pieces, because a large n may take a second.
std::vector<Complex> zeros(int64_t n) {
  std::vector<Complex> out;
  out.reserve(n);
  constexpr int64_t piece = 1 << 16;
  while (static_cast<int64_t>(out.size()) < n) {
    StepEnd::ask();
    out.resize(std::min(n, static_cast<int64_t>(out.size()) + piece));
  }
  return out;
}

}  // namespace

Fft::Fft(int64_t n) : n_(n) {
  if (std::has_single_bit(static_cast<uint64_t>(n))) {
    roots_.reserve(n / 2);
    for (int64_t i = 0; i < n / 2; ++i) {
      StepEnd::pace(8);
      roots_.push_back(root(2 * i, n));
    }
    return;
  }
  convolution_ =
      std::make_shared<Fft>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * n - 1))));
  const int64_t m = convolution_->length();
  chirp_.reserve(n);
  filter_ = zeros(m);
  // k² modulo 2n, by the difference of two squares: the square itself may not fit.
  for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), ++k) {
    StepEnd::pace(8);
    chirp_.push_back(root(square, n));
    filter_[k] = filter_[(m - k) % m] = std::conj(chirp_[k]);
  }
  (*convolution_)(filter_.data());
}

void Fft::operator()(Complex* x) const {
  if (!convolution_) return transform(x);
  const int64_t m = convolution_->length();
  std::vector<Complex> spectrum = zeros(m);
  for (int64_t k = 0; k < n_; ++k) {
    StepEnd::pace();
    spectrum[k] = product(x[k], chirp_[k]);
  }
  convolution_->transform(spectrum.data());
  // The inverse transform is the conjugate of that of the conjugate, divided by m.
  for (int64_t k = 0; k < m; ++k) {
    StepEnd::pace();
    spectrum[k] = std::conj(product(spectrum[k], filter_[k]));
  }
  convolution_->transform(spectrum.data());
  for (int64_t k = 0; k < n_; ++k) {
    StepEnd::pace();
    x[k] = product(std::conj(spectrum[k]), chirp_[k]) / static_cast<double>(m);
  }
}

void Fft::transform(Complex* x) const {
  for (int64_t i = 1, j = 0; i < n_; ++i) {  // bits of the index reversed
    StepEnd::pace();
    int64_t bit = n_ / 2;
    for (; (j & bit) != 0; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  constexpr int64_t ask_every = 1 << 20;
  for (int64_t half = 1; half < n_; half *= 2) {
    const int64_t step = n_ / (2 * half);
    for (int64_t begin = 0; begin < n_; begin += 2 * half) {
      StepEnd::pace(half);
      for (int64_t k = 0; k < half; ++k) {
        if (k % ask_every == ask_every - 1) StepEnd::ask();
        Complex &a = x[begin + k], &b = x[begin + k + half];
        const Complex turned = product(b, roots_[k * step]);
        b = a - turned;
        a += turned;
      }
    }
  }
}

}  // namespace leat
