// Sequences in the lanes of vectors, and their way from and to tensors. Only for .cc files.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/audio/fft.h"
#include "kernels/cpu.h"

// Vectors pass only between functions that are inlined into one version.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace leat {

template <class R, int64_t lanes>
struct LanesOf {
  using Type [[gnu::vector_size(lanes * sizeof(R))]] = R;
};
template <class R>
struct LanesOf<R, 1> {
  using Type = R;
};
template <class R, int64_t lanes>
using Lanes = typename LanesOf<R, lanes>::Type;

// A complex number of type R; V is R, or a vector for one in each lane.
template <class V, class R>
struct Pair {
  V re, im;

  LEAT_INLINE Pair operator+(const Pair& b) const { return {re + b.re, im + b.im}; }
  LEAT_INLINE Pair operator-(const Pair& b) const { return {re - b.re, im - b.im}; }
  LEAT_INLINE Pair operator*(R factor) const { return {re * factor, im * factor}; }
  LEAT_INLINE Pair operator*(const std::complex<R>& w) const {
    return {re * w.real() - im * w.imag(), re * w.imag() + im * w.real()};
  }
  LEAT_INLINE Pair times_minus_i() const { return {im, -re}; }
  LEAT_INLINE Pair conjugate() const { return {re, -im}; }
};

// Of every square of 2 · size lanes in two rows, exchanges the two corners off the diagonal.
template <int size, class V, int... lane>
LEAT_INLINE inline void exchange_corners(V& a, V& b, std::integer_sequence<int, lane...>) {
  constexpr int lanes = sizeof...(lane);
  const V low = __builtin_shufflevector(a, b, ((lane & size) == 0 ? lane : lanes + lane - size)...);
  b = __builtin_shufflevector(a, b, ((lane & size) == 0 ? lane + size : lanes + lane)...);
  a = low;
}

// Rows become columns.
template <int size = 1, class V, size_t lanes>
LEAT_INLINE inline void transpose_lanes(V (&rows)[lanes]) {
  if constexpr (size < lanes) {
    for (size_t i = 0; i < lanes; ++i)
      if ((i & size) == 0)
        exchange_corners<size>(rows[i], rows[i + size], std::make_integer_sequence<int, lanes>());
    transpose_lanes<2 * size>(rows);
  }
}

// Lines of n complex numbers, given by the places of their real parts; neighbours in a line are
// `stride` numbers apart. The lane of a line that is not there repeats another's. T is R or const
// R.
template <class T, int64_t lanes>
struct Lines {
  T* at[lanes];
  int64_t count = 0;  // of lines that are there
  int64_t n, stride;

  // Lines side by side, as those of an axis that is not the last one.
  bool are_neighbours() const {
    for (int64_t l = 1; l < lanes; ++l)
      if (at[l] != at[0] + 2 * l) return false;
    return count == lanes;
  }
};

// Element k of the sequence of lane l becomes x[(2 k) lanes + l] + i x[(2 k + 1) lanes + l].
// `swapped`: real and imaginary parts are exchanged.
template <class R, int64_t lanes>
LEAT_INLINE inline void load(const Lines<const R, lanes>& lines, bool swapped, R* x) {
  using Loaded [[gnu::aligned(alignof(R)), gnu::may_alias]] = Lanes<R, lanes>;
  int64_t k = 0;
  if constexpr (lanes > 1) {
    if (lines.stride == 1) {
      for (; k + lanes / 2 <= lines.n; k += lanes / 2) {  // a vector of each line
        Lanes<R, lanes> rows[lanes];
        for (int64_t l = 0; l < lanes; ++l)
          rows[l] = *reinterpret_cast<const Loaded*>(lines.at[l] + 2 * k);
        transpose_lanes(rows);
        auto* const to = reinterpret_cast<Lanes<R, lanes>*>(x + 2 * k * lanes);
        for (int64_t i = 0; i < lanes; ++i) to[i ^ (swapped ? 1 : 0)] = rows[i];
      }
    } else if (lines.are_neighbours()) {
      for (; k < lines.n; ++k) {
        const R* from = lines.at[0] + 2 * k * lines.stride;
        R *re = x + (2 * k + (swapped ? 1 : 0)) * lanes,
          *im = x + (2 * k + (swapped ? 0 : 1)) * lanes;
        for (int64_t l = 0; l < lanes; ++l) {
          re[l] = from[2 * l];
          im[l] = from[2 * l + 1];
        }
      }
    }
  }
  for (; k < lines.n; ++k) {
    for (int64_t l = 0; l < lanes; ++l) {
      const R* from = lines.at[l] + 2 * k * lines.stride;
      x[(2 * k + (swapped ? 1 : 0)) * lanes + l] = from[0];
      x[(2 * k + (swapped ? 0 : 1)) * lanes + l] = from[1];
    }
  }
}

// The opposite, times `by`.
template <class R, int64_t lanes>
LEAT_INLINE inline void store(const R* x, bool swapped, R by, const Lines<R, lanes>& lines) {
  using Stored [[gnu::aligned(alignof(R)), gnu::may_alias]] = Lanes<R, lanes>;
  int64_t k = 0;
  if constexpr (lanes > 1) {
    if (lines.stride == 1) {
      for (; k + lanes / 2 <= lines.n; k += lanes / 2) {
        const auto* from = reinterpret_cast<const Lanes<R, lanes>*>(x + 2 * k * lanes);
        Lanes<R, lanes> rows[lanes];
        for (int64_t i = 0; i < lanes; ++i) rows[i] = from[i ^ (swapped ? 1 : 0)] * by;
        transpose_lanes(rows);
        for (int64_t l = 0; l < lines.count; ++l)
          *reinterpret_cast<Stored*>(lines.at[l] + 2 * k) = rows[l];
      }
    } else if (lines.are_neighbours()) {
      for (; k < lines.n; ++k) {
        R* to = lines.at[0] + 2 * k * lines.stride;
        const R *re = x + (2 * k + (swapped ? 1 : 0)) * lanes,
                *im = x + (2 * k + (swapped ? 0 : 1)) * lanes;
        for (int64_t l = 0; l < lanes; ++l) {
          to[2 * l] = re[l] * by;
          to[2 * l + 1] = im[l] * by;
        }
      }
    }
  }
  for (; k < lines.n; ++k) {
    for (int64_t l = 0; l < std::min(lanes, lines.count); ++l) {
      R* to = lines.at[l] + 2 * k * lines.stride;
      to[0] = x[(2 * k + (swapped ? 1 : 0)) * lanes + l] * by;
      to[1] = x[(2 * k + (swapped ? 0 : 1)) * lanes + l] * by;
    }
  }
}

}  // namespace leat
