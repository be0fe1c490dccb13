// Discrete Fourier transforms. Of lengths that are powers of two: J. Cooley, J. Tukey, "An
// algorithm for the machine calculation of complex Fourier series", 1965; of others as a
// convolution with a chirp: L. Bluestein, "A linear filtering approach to the computation of the
// discrete Fourier transform", 1970.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace leat {

class Fft {
 public:
  // Makes tables for length n >= 1.
  explicit Fft(int64_t n);

  // x[k] becomes the sum over j of x[j] exp(-2 pi i j k / n), in place. Thread-safe.
  void operator()(std::complex<double>* x) const;

  int64_t length() const { return n_; }

 private:
  void transform(std::complex<double>* x) const;

  int64_t n_;
  std::vector<std::complex<double>> roots_;  // of a power of two
  // Of other lengths: exp(-pi i k² / n), and what its conjugate becomes in the transform of the
  // convolution.
  std::vector<std::complex<double>> chirp_, filter_;
  std::shared_ptr<const Fft> convolution_;
};

}  // namespace leat
