#include "kernels/audio/fft.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/execution/step_end.h"
#include "kernels/audio/fft_lanes.h"

namespace leat {
namespace {

using Complex = std::complex<double>;

// exp(-pi i numerator / denominator)
Complex root(int64_t numerator, int64_t denominator) {
  const double angle =
      std::numbers::pi * static_cast<double>(numerator) / static_cast<double>(denominator);
  return {std::cos(angle), -std::sin(angle)};
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

// The transform of as many numbers as the radix, in place.
template <class P>
LEAT_INLINE inline void transform_few(P (&a)[2]) {
  const P sum = a[0] + a[1];
  a[1] = a[0] - a[1];
  a[0] = sum;
}

template <class P>
LEAT_INLINE inline void transform_few(P (&a)[3]) {
  const P sum = a[1] + a[2], middle = a[0] - sum * 0.5,
          turned = ((a[1] - a[2]) * 0.86602540378443864676).times_minus_i();
  a[0] = a[0] + sum;
  a[1] = middle + turned;
  a[2] = middle - turned;
}

template <class P>
LEAT_INLINE inline void transform_few(P (&a)[4]) {
  const P even = a[0] + a[2], odd = a[1] + a[3], difference = a[0] - a[2],
          turned = (a[1] - a[3]).times_minus_i();
  a[0] = even + odd;
  a[1] = difference + turned;
  a[2] = even - odd;
  a[3] = difference - turned;
}

template <class P>
LEAT_INLINE inline void transform_few(P (&a)[5]) {
  constexpr double cos1 = 0.30901699437494742410, cos2 = -0.80901699437494742410,
                   sin1 = 0.95105651629515357212, sin2 = 0.58778525229247312917;
  const P outer = a[1] + a[4], inner = a[2] + a[3], outer_difference = a[1] - a[4],
          inner_difference = a[2] - a[3];
  const P first = a[0] + outer * cos1 + inner * cos2, second = a[0] + outer * cos2 + inner * cos1,
          first_turned = (outer_difference * sin1 + inner_difference * sin2).times_minus_i(),
          second_turned = (outer_difference * sin2 - inner_difference * sin1).times_minus_i();
  a[0] = a[0] + outer + inner;
  a[1] = first + first_turned;
  a[2] = second + second_turned;
  a[3] = second - second_turned;
  a[4] = first - first_turned;
}

// One stage: `left` is the length of the transforms that are left, `done` their number.
template <int radix, class V>
LEAT_INLINE inline void stage(int64_t left, int64_t done, const Complex* roots, const V* from,
                              V* to) {
  const int64_t next = left / radix;
  for (int64_t p = 0; p < next; ++p, roots += radix - 1) {
    for (int64_t begin = 0; begin < done; begin += 4096) {
      const int64_t end = std::min(done, begin + 4096);
      StepEnd::pace(radix * (end - begin));
      for (int64_t q = begin; q < end; ++q) {
        Pair<V> a[radix];
        for (int j = 0; j < radix; ++j) {
          const V* at = from + 2 * (q + done * (p + next * j));
          a[j] = {at[0], at[1]};
        }
        transform_few(a);
        V* const out = to + 2 * (q + done * radix * p);
        out[0] = a[0].re;
        out[1] = a[0].im;
        for (int j = 1; j < radix; ++j) {
          const Pair<V> turned = a[j] * roots[j - 1];
          out[2 * done * j] = turned.re;
          out[2 * done * j + 1] = turned.im;
        }
      }
    }
  }
}

}  // namespace

template <class V>
struct FftStages {
  // Returns where the result is.
  LEAT_INLINE static V* smooth(const Fft& fft, V* x, V* other) {
    int64_t left = fft.n_, done = 1;
    const Complex* roots = fft.roots_.data();
    for (const int radix : fft.radices_) {
      switch (radix) {
        case 2:
          stage<2>(left, done, roots, x, other);
          break;
        case 3:
          stage<3>(left, done, roots, x, other);
          break;
        case 4:
          stage<4>(left, done, roots, x, other);
          break;
        default:
          stage<5>(left, done, roots, x, other);
      }
      left /= radix;
      done *= radix;
      roots += (radix - 1) * left;
      std::swap(x, other);
    }
    return x;
  }

  // In two halves, between which smooth() runs, for there shall be one copy of it.
  LEAT_INLINE static void before(const Fft& fft, V* x, V*) {
    const int64_t m = fft.capacity();
    times(x, fft.chirp_.data(), fft.n_, 1);
    for (int64_t k = 2 * fft.n_; k < 2 * m; ++k) {
      StepEnd::pace();
      x[k] = V{};
    }
  }
  LEAT_INLINE static void times(V* x, const Complex* factors, int64_t n, double by) {
    for (int64_t k = 0; k < n; ++k) {
      StepEnd::pace(4);
      const Pair<V> product = Pair<V>{x[2 * k], x[2 * k + 1]} * factors[k] * by;
      x[2 * k] = product.re;
      x[2 * k + 1] = product.im;
    }
  }
  // The inverse transform, which follows, is that of the conjugate, conjugated.
  LEAT_INLINE static void conjugate(V* x, int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      StepEnd::pace();
      x[2 * k + 1] = -x[2 * k + 1];
    }
  }

  LEAT_INLINE static V* run(const Fft& fft, V* x, V* other) {
    const bool is_smooth = fft.convolution_ == nullptr;
    const Fft& stages = is_smooth ? fft : *fft.convolution_;
    const int64_t m = stages.n_;
    if (!is_smooth) before(fft, x, other);
    for (int pass = is_smooth ? 1 : 0;; ++pass) {
      V* const result = smooth(stages, x, other);
      if (result != x) std::swap(x, other);
      if (pass == 1) break;
      times(x, fft.filter_.data(), m, 1);
      conjugate(x, m);
    }
    if (is_smooth) return x;
    conjugate(x, fft.n_);
    times(x, fft.chirp_.data(), fft.n_, 1 / static_cast<double>(m));
    return x;
  }
};

namespace {

Lanes* run_base(const Fft& fft, Lanes* x, Lanes* other) {
  return FftStages<Lanes>::run(fft, x, other);
}
LEAT_TARGET_AVX2 Lanes* run_avx2(const Fft& fft, Lanes* x, Lanes* other) {
  return FftStages<Lanes>::run(fft, x, other);
}
LEAT_TARGET_AVX512 Lanes* run_avx512(const Fft& fft, Lanes* x, Lanes* other) {
  return FftStages<Lanes>::run(fft, x, other);
}

}  // namespace

Fft::Fft(int64_t n) : n_(n), radices_(radices_of(n)) {
  if (n == 1) return;
  if (!radices_.empty()) {
    roots_.reserve(n);
    int64_t left = n;
    for (const int radix : radices_) {
      for (int64_t p = 0; p < left / radix; ++p) {
        StepEnd::pace(8 * radix);
        for (int j = 1; j < radix; ++j) roots_.push_back(root(2 * p * j, left));
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
    chirp_.push_back(root(square, n));
    filter_[k] = filter_[(m - k) % m] = std::conj(chirp_[k]);
  }
  (*convolution_)(filter_.data());
}

double* Fft::of_lanes(double* x, double* other) const {
  static const auto run = choose_isa(run_base, run_avx2, run_avx512);
  return reinterpret_cast<double*>(
      run(*this, reinterpret_cast<Lanes*>(x), reinterpret_cast<Lanes*>(other)));
}

double* Fft::of_one(double* x, double* other) const {
  return FftStages<double>::run(*this, x, other);
}

void Fft::operator()(Complex* x) const {
  std::vector<double> own(convolution_ ? 2 * capacity() : 0), other(2 * capacity());
  auto* const values = reinterpret_cast<double*>(x);
  if (convolution_) std::copy_n(values, 2 * n_, own.data());
  const double* result = of_one(convolution_ ? own.data() : values, other.data());
  if (result != values) std::copy_n(result, 2 * n_, values);
}

}  // namespace leat
