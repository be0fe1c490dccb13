// Eight sequences in the lanes of vectors, as Fft::of_lanes() takes them, and their way from and to
// tensors. Only for .cc files.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "kernels/audio/fft.h"
#include "kernels/cpu.h"

// Vectors pass only between functions that are inlined into one version.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace leat {

using Lanes [[gnu::vector_size(Fft::lanes * sizeof(double))]] = double;

// A complex number; V is double, or Lanes for one in each lane.
template <class V>
struct Pair {
  V re, im;

  LEAT_INLINE Pair operator+(const Pair& b) const { return {re + b.re, im + b.im}; }
  LEAT_INLINE Pair operator-(const Pair& b) const { return {re - b.re, im - b.im}; }
  LEAT_INLINE Pair operator*(double factor) const { return {re * factor, im * factor}; }
  LEAT_INLINE Pair operator*(const std::complex<double>& w) const {
    return {re * w.real() - im * w.imag(), re * w.imag() + im * w.real()};
  }
  LEAT_INLINE Pair times_minus_i() const { return {im, -re}; }
  LEAT_INLINE Pair conjugate() const { return {re, -im}; }
};

// Rows become columns.
LEAT_INLINE inline void transpose(Lanes (&r)[8]) {
  Lanes t[8], u[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = i; j < i + 2; ++j) {
      u[j] = __builtin_shufflevector(t[j], t[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
      u[j + 2] = __builtin_shufflevector(t[j], t[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = __builtin_shufflevector(u[i], u[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    r[i + 4] = __builtin_shufflevector(u[i], u[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
}

// Lines of n complex numbers of type T, given by the places of their real parts; neighbours in a
// line are `stride` numbers apart. The lane of a line that is not there repeats another's.
template <class T>
struct Lines {
  T* at[Fft::lanes];
  int64_t count = 0;  // of lines that are there
  int64_t n, stride;

  // Lines side by side, as those of an axis that is not the last one.
  bool are_neighbours() const {
    for (int64_t l = 1; l < Fft::lanes; ++l)
      if (at[l] != at[0] + 2 * l) return false;
    return count == Fft::lanes;
  }
};

// `lanes` is 8, or 1 for the first line alone. `swapped`: real and imaginary parts are exchanged.
template <int64_t lanes, class T>
LEAT_INLINE inline void load(const Lines<const T>& lines, bool swapped, double* x) {
  using Loaded [[gnu::vector_size(8 * sizeof(T)), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  int64_t k = 0;
  if constexpr (lanes > 1) {
    if (lines.stride == 1) {
      for (; k + 4 <= lines.n; k += 4) {  // eight numbers of each line
        Lanes rows[8];
        for (int l = 0; l < 8; ++l) {
          rows[l] =
              __builtin_convertvector(*reinterpret_cast<const Loaded*>(lines.at[l] + 2 * k), Lanes);
        }
        transpose(rows);
        auto* const to = reinterpret_cast<Lanes*>(x + 2 * k * lanes);
        for (int i = 0; i < 8; ++i) to[i ^ (swapped ? 1 : 0)] = rows[i];
      }
    } else if (lines.are_neighbours()) {
      for (; k < lines.n; ++k) {
        const T* from = lines.at[0] + 2 * k * lines.stride;
        double *re = x + (2 * k + (swapped ? 1 : 0)) * lanes,
               *im = x + (2 * k + (swapped ? 0 : 1)) * lanes;
        for (int64_t l = 0; l < lanes; ++l) {
          re[l] = static_cast<double>(from[2 * l]);
          im[l] = static_cast<double>(from[2 * l + 1]);
        }
      }
    }
  }
  for (; k < lines.n; ++k) {
    for (int64_t l = 0; l < lanes; ++l) {
      const T* from = lines.at[l] + 2 * k * lines.stride;
      x[(2 * k + (swapped ? 1 : 0)) * lanes + l] = static_cast<double>(from[0]);
      x[(2 * k + (swapped ? 0 : 1)) * lanes + l] = static_cast<double>(from[1]);
    }
  }
}

// The opposite, times `by`.
template <int64_t lanes, class T>
LEAT_INLINE inline void store(const double* x, bool swapped, double by, const Lines<T>& lines) {
  using Stored [[gnu::vector_size(8 * sizeof(T)), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
  int64_t k = 0;
  if constexpr (lanes > 1) {
    if (lines.stride == 1) {
      for (; k + 4 <= lines.n; k += 4) {
        const auto* from = reinterpret_cast<const Lanes*>(x + 2 * k * lanes);
        Lanes rows[8];
        for (int i = 0; i < 8; ++i) rows[i] = from[i ^ (swapped ? 1 : 0)] * by;
        transpose(rows);
        for (int64_t l = 0; l < lines.count; ++l) {
          *reinterpret_cast<Stored*>(lines.at[l] + 2 * k) =
              __builtin_convertvector(rows[l], Stored);
        }
      }
    } else if (lines.are_neighbours()) {
      for (; k < lines.n; ++k) {
        T* to = lines.at[0] + 2 * k * lines.stride;
        const double *re = x + (2 * k + (swapped ? 1 : 0)) * lanes,
                     *im = x + (2 * k + (swapped ? 0 : 1)) * lanes;
        for (int64_t l = 0; l < lanes; ++l) {
          to[2 * l] = static_cast<T>(re[l] * by);
          to[2 * l + 1] = static_cast<T>(im[l] * by);
        }
      }
    }
  }
  for (; k < lines.n; ++k) {
    for (int64_t l = 0; l < std::min(lanes, lines.count); ++l) {
      T* to = lines.at[l] + 2 * k * lines.stride;
      to[0] = static_cast<T>(x[(2 * k + (swapped ? 1 : 0)) * lanes + l] * by);
      to[1] = static_cast<T>(x[(2 * k + (swapped ? 0 : 1)) * lanes + l] * by);
    }
  }
}

}  // namespace leat
