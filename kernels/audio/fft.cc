#include "kernels/audio/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/execution/step_end.h"
#include "kernels/audio/fft_stages.h"

namespace leat {
namespace {

// exp(-pi i numerator / denominator)
template <class R>
std::complex<R> root(int64_t numerator, int64_t denominator) {
  const double angle =
      std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {static_cast<R>(std::cos(angle)), static_cast<R>(-std::sin(angle))};
}

// The factors of n in the order of the stages, or none if there are others than 2, 3 and 5.
std::vector<int> radices_of(int64_t n) {
  std::vector<int> out;
  for (const int radix : {5, 3, 4, 2}) {
    for (; n % radix == 0; n /= radix) out.push_back(radix);
  }
  if (n != 1) out.clear();
  return out;
}

int64_t next_smooth(int64_t n) {
  int64_t best = 1;
  while (best < n) best *= 2;
  for (int64_t five = 1; five < 2 * n; five *= 5) {
    for (int64_t odd = five; odd < 2 * n; odd *= 3) {
      int64_t found = odd;
      while (found < n) found *= 2;
      best = std::min(best, found);
    }
  }
  return best;
}

}  // namespace

template <class R>
Fft<R>::Fft(int64_t n) : n_(n), radices_(radices_of(n)) {
  if (n == 1) return;
  if (!radices_.empty()) {
    roots_.reserve(n);
    int64_t left = n;
    for (const int radix : radices_) {
      for (int64_t p = 0; p < left / radix; ++p) {
        StepEnd::pace(8 * radix);
        for (int j = 1; j < radix; ++j) roots_.push_back(root<R>(2 * p * j, left));
      }
      left /= radix;
    }
    return;
  }
  convolution_ = std::make_shared<Fft>(next_smooth(2 * n - 1));
  const int64_t m = capacity();
  chirp_.reserve(n);
  filter_.reserve(m);
  while (static_cast<int64_t>(filter_.size()) < m) {  // in pieces: it may take a second
    StepEnd::ask();
    filter_.resize(std::min<int64_t>(m, static_cast<int64_t>(filter_.size()) + (1 << 16)));
  }
  // k² modulo 2n, by the difference of two squares: the square itself may not fit.
  for (int64_t k = 0, square = 0; k < n; square = (square + 2 * k + 1) % (2 * n), ++k) {
    StepEnd::pace(8);
    chirp_.push_back(root<R>(square, n));
    filter_[k] = filter_[(m - k) % m] = std::conj(chirp_[k]);
  }
  (*convolution_)(filter_.data());
}

template <class R>
void Fft<R>::operator()(Complex* x) const {
  std::vector<R> own(convolution_ ? 2 * capacity() : 0), other(2 * capacity());
  auto* const values = reinterpret_cast<R*>(x);
  if (convolution_) std::copy_n(values, 2 * n_, own.data());
  const R* result = FftStages<R, R>::run(*this, convolution_ ? own.data() : values, other.data());
  if (result != values) std::copy_n(result, 2 * n_, values);
}

template class Fft<float>;
template class Fft<double>;

}  // namespace leat
