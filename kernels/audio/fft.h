// Discrete Fourier transforms. fft_stages.h transforms as many sequences at a time as a vector has
// lanes: no library of Debian does that with a free licence, and over rows of 500, kissfft (one row
// at a time) takes three times as long as this did in double precision.
// Lengths with the factors 2, 3 and 5: T. Stockham, "High-speed convolution and correlation", 1966.
// Other lengths, as a convolution with a chirp: L. Bluestein, "A linear filtering approach to the
// computation of the discrete Fourier transform", 1970.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace leat {

// Computes in R, float or double.
template <class R>
class Fft {
 public:
  // Makes tables for length n >= 1.
  explicit Fft(int64_t n);

  // The sum over j of x[j] exp(-2 pi i j k / n), in place. Thread-safe.
  void operator()(std::complex<R>* x) const;

  int64_t length() const { return n_; }
  int64_t capacity() const { return convolution_ ? convolution_->n_ : n_; }

 private:
  using Complex = std::complex<R>;
  template <class, class>
  friend struct FftStages;

  int64_t n_;
  std::vector<int> radices_;    // whose product is n
  std::vector<Complex> roots_;  // for each stage, in the order in which it reads them
  // For other lengths: exp(-pi i k² / n), and the transform of its conjugate.
  std::vector<Complex> chirp_, filter_;
  std::shared_ptr<const Fft> convolution_;
};

// fft.cc instantiates them.
extern template class Fft<float>;
extern template class Fft<double>;

}  // namespace leat
