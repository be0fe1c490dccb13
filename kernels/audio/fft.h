// Discrete Fourier transforms of one or of eight sequences, the latter in the lanes of vectors. No
// library of Debian does that with a free licence: over rows of 500, kissfft (one row at a time)
// takes three times as long as this.
// Lengths with the factors 2, 3 and 5: T. Stockham, "High-speed convolution and correlation", 1966.
// Other lengths, as a convolution with a chirp: L. Bluestein, "A linear filtering approach to the
// computation of the discrete Fourier transform", 1970.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace leat {

class Fft {
 public:
  static constexpr int64_t lanes = 8;

  // Makes tables for length n >= 1.
  explicit Fft(int64_t n);

  // Of each of `lanes` sequences, the sum over j of x[j] exp(-2 pi i j k / n). Element k of
  // sequence l is x[(2 k) lanes + l] + i x[(2 k + 1) lanes + l]. x and `other` are aligned to 64
  // bytes and have room for capacity() elements; returns which of them holds the result. With real
  // and imaginary parts exchanged before and after, it is the inverse, times n. Thread-safe.
  double* of_lanes(double* x, double* other) const;
  // The same of one sequence.
  double* of_one(double* x, double* other) const;

  // One sequence, in place.
  void operator()(std::complex<double>* x) const;

  int64_t length() const { return n_; }
  int64_t capacity() const { return convolution_ ? convolution_->n_ : n_; }

 private:
  using Complex = std::complex<double>;
  template <class V>
  friend struct FftStages;

  int64_t n_;
  std::vector<int> radices_;    // whose product is n
  std::vector<Complex> roots_;  // for each stage, in the order in which it reads them
  // For other lengths: exp(-pi i k² / n), and the transform of its conjugate.
  std::vector<Complex> chirp_, filter_;
  std::shared_ptr<const Fft> convolution_;
};

}  // namespace leat
