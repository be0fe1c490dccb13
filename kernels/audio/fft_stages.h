// The stages of a transform. Only for .cc files.
#pragma once

#include <algorithm>
#include <utility>

#include "core/execution/step_end.h"
#include "kernels/audio/fft_lanes.h"

namespace leat {

// The transform of as many numbers as the radix, in place.
template <class V, class R>
LEAT_INLINE inline void transform_few(Pair<V, R> (&a)[2]) {
  const Pair<V, R> sum = a[0] + a[1];
  a[1] = a[0] - a[1];
  a[0] = sum;
}

template <class V, class R>
LEAT_INLINE inline void transform_few(Pair<V, R> (&a)[3]) {
  const Pair<V, R> sum = a[1] + a[2], middle = a[0] - sum * R(0.5),
                   turned = ((a[1] - a[2]) * R(0.86602540378443864676)).times_minus_i();
  a[0] = a[0] + sum;
  a[1] = middle + turned;
  a[2] = middle - turned;
}

template <class V, class R>
LEAT_INLINE inline void transform_few(Pair<V, R> (&a)[4]) {
  const Pair<V, R> even = a[0] + a[2], odd = a[1] + a[3], difference = a[0] - a[2],
                   turned = (a[1] - a[3]).times_minus_i();
  a[0] = even + odd;
  a[1] = difference + turned;
  a[2] = even - odd;
  a[3] = difference - turned;
}

template <class V, class R>
LEAT_INLINE inline void transform_few(Pair<V, R> (&a)[5]) {
  constexpr R cos1(0.30901699437494742410), cos2(-0.80901699437494742410),
      sin1(0.95105651629515357212), sin2(0.58778525229247312917);
  const Pair<V, R> outer = a[1] + a[4], inner = a[2] + a[3], outer_difference = a[1] - a[4],
                   inner_difference = a[2] - a[3];
  const Pair<V, R> first = a[0] + outer * cos1 + inner * cos2,
                   second = a[0] + outer * cos2 + inner * cos1,
                   first_turned =
                       (outer_difference * sin1 + inner_difference * sin2).times_minus_i(),
                   second_turned =
                       (outer_difference * sin2 - inner_difference * sin1).times_minus_i();
  a[0] = a[0] + outer + inner;
  a[1] = first + first_turned;
  a[2] = second + second_turned;
  a[3] = second - second_turned;
  a[4] = first - first_turned;
}

// One stage: `left` is the length of the transforms that are left, `done` their number.
template <int radix, class V, class R>
LEAT_INLINE inline void fft_stage(int64_t left, int64_t done, const std::complex<R>* roots,
                                  const V* from, V* to) {
  const int64_t next = left / radix;
  for (int64_t p = 0; p < next; ++p, roots += radix - 1) {
    for (int64_t begin = 0; begin < done; begin += 4096) {
      const int64_t end = std::min(done, begin + 4096);
      StepEnd::pace(radix * (end - begin));
      for (int64_t q = begin; q < end; ++q) {
        Pair<V, R> a[radix];
        for (int j = 0; j < radix; ++j) {
          const V* at = from + 2 * (q + done * (p + next * j));
          a[j] = {at[0], at[1]};
        }
        transform_few(a);
        V* const out = to + 2 * (q + done * radix * p);
        out[0] = a[0].re;
        out[1] = a[0].im;
        for (int j = 1; j < radix; ++j) {
          const Pair<V, R> turned = a[j] * roots[j - 1];
          out[2 * done * j] = turned.re;
          out[2 * done * j + 1] = turned.im;
        }
      }
    }
  }
}

// Transforms sequences: V is R for one, or a vector with one in each lane. The sum over j of x[j]
// exp(-2 pi i j k / n); with real and imaginary parts exchanged before and after, the inverse,
// times n.
template <class V, class R>
struct FftStages {
  using Complex = std::complex<R>;

  // Returns where the result is.
  LEAT_INLINE static V* smooth(const Fft<R>& fft, V* x, V* other) {
    int64_t left = fft.n_, done = 1;
    const Complex* roots = fft.roots_.data();
    for (const int radix : fft.radices_) {
      switch (radix) {
        case 2:
          fft_stage<2>(left, done, roots, x, other);
          break;
        case 3:
          fft_stage<3>(left, done, roots, x, other);
          break;
        case 4:
          fft_stage<4>(left, done, roots, x, other);
          break;
        default:
          fft_stage<5>(left, done, roots, x, other);
      }
      left /= radix;
      done *= radix;
      roots += (radix - 1) * left;
      std::swap(x, other);
    }
    return x;
  }

  // What is convolved: the sequence times the chirp, then zeros.
  LEAT_INLINE static void begin_convolution(const Fft<R>& fft, V* x) {
    times(x, fft.chirp_.data(), fft.n_, 1);
    for (int64_t k = 2 * fft.n_; k < 2 * fft.capacity(); ++k) {
      StepEnd::pace();
      x[k] = V{};
    }
  }
  LEAT_INLINE static void times(V* x, const Complex* factors, int64_t n, R by) {
    for (int64_t k = 0; k < n; ++k) {
      StepEnd::pace(4);
      const Pair<V, R> product = Pair<V, R>{x[2 * k], x[2 * k + 1]} * factors[k] * by;
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

  // x[2 k] and x[2 k + 1] are the parts of element k. x and `other` have room for capacity()
  // elements; returns which of them holds the result. Thread-safe.
  LEAT_INLINE static V* run(const Fft<R>& fft, V* x, V* other) {
    const bool is_smooth = fft.convolution_ == nullptr;
    const Fft<R>& stages = is_smooth ? fft : *fft.convolution_;
    const int64_t m = stages.n_;
    if (!is_smooth) begin_convolution(fft, x);
    // A convolution takes two passes, in a loop: smooth() is inlined, and stands here once.
    for (int pass = is_smooth ? 1 : 0;; ++pass) {
      V* const result = smooth(stages, x, other);
      if (result != x) std::swap(x, other);
      if (pass == 1) break;
      times(x, fft.filter_.data(), m, 1);
      conjugate(x, m);
    }
    if (is_smooth) return x;
    conjugate(x, fft.n_);
    times(x, fft.chirp_.data(), fft.n_, 1 / static_cast<R>(m));
    return x;
  }
};

}  // namespace leat
