// Discrete Fourier transforms. Lengths that are powers of two: J. Cooley, J. Tukey, "An algorithm
// for the machine calculation of complex Fourier series", 1965. Other lengths, as a convolution
// with a chirp: L. Bluestein, "A linear filtering approach to the computation of the discrete
// Fourier transform", 1970.
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
  std::vector<std::complex<double>> roots_;  // for a power of two
  // For other lengths: exp(-pi i k² / n), and the transform of its conjugate.
  std::vector<std::complex<double>> chirp_, filter_;
  std::shared_ptr<const Fft> convolution_;
};

}  // namespace leat
