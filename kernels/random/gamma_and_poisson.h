// Samplers of the gamma and the Poisson distribution, the same source for CPUs and GPUs: a sample
// is accepted or rejected by comparisons, so both must compute alike. Templates and constexpr, as
// in random_stream.h: nvcc compiles them for the GPU, too.
//
// The logarithm, the exponential and the power of CUDA may differ from the host's in the last
// binary digit of a double. A sample changes only if that digit decides a comparison, about once in
// 10^14 samples.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/kernel.h"
#include "kernels/random/random_stream.h"
#include "kernels/types.h"

namespace leat {

// Uniform and normal numbers of one stretch; each kind comes in pairs, and the second of a pair is
// used first.
class RandomNumbers {
 public:
  constexpr explicit RandomNumbers(const Philox& random) : random_(random) {}

  constexpr double uniform() {
    if (uniforms_left_ == 0) {
      const Philox::Block x = random_.next();
      uniforms_[0] = leat::uniform(x[0], x[1]);
      uniforms_[1] = leat::uniform(x[2], x[3]);
      uniforms_left_ = 2;
    }
    return uniforms_[--uniforms_left_];
  }

  constexpr double normal() {
    if (normals_left_ == 0) {
      const Philox::Block x = random_.next();
      box_muller(x[0], x[1], x[2], x[3], normals_);
      normals_left_ = 2;
    }
    return normals_[--normals_left_];
  }

 private:
  Philox random_;
  double uniforms_[2] = {}, normals_[2] = {};
  int uniforms_left_ = 0, normals_left_ = 0;
};

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. For alpha < 1, a
// variable for alpha + 1 times a power of a uniform one. The search works for some negative alpha,
// too, and TensorFlow returns these numbers; below -2/3 it would never end.
template <class = void>
constexpr double draw_gamma(RandomNumbers& random, double alpha) {
  if (alpha == 1) return -std::log1p(-random.uniform());
  const bool is_below_1 = alpha < 1;
  const double d = alpha + (is_below_1 ? 2.0 / 3 : -1.0 / 3);
  if (!(d > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double c = 1.0 / 3 / std::sqrt(d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root, u = random.uniform();
    if (u < 1 - 0.0331 * (x * x) * (x * x) ||
        std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) {
      return is_below_1 ? d * v * std::pow(random.uniform(), 1 / alpha) : d * v;
    }
  }
}

// For small rates Knuth's product of uniform variables; else Hoermann, "The transformed rejection
// method for generating Poisson random variables", 1993 (its algorithm PTRS).
template <class = void>
constexpr double draw_poisson(RandomNumbers& random, double rate, double largest) {
  if (std::isnan(rate)) return std::numeric_limits<double>::quiet_NaN();
  if (rate == std::numeric_limits<double>::infinity()) return rate;
  if (rate > largest) return largest;  // the search below might never end
  if (rate < 10) {
    const double limit = std::exp(-rate);
    double product = random.uniform(), count = 0;
    for (; product > limit; ++count) product *= random.uniform();
    return count;
  }
  const double log_rate = std::log(rate), b = 0.931 + 2.53 * std::sqrt(rate),
               a = -0.059 + 0.02483 * b, inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  for (;;) {
    const double u = random.uniform() - 0.5, v = random.uniform(), us = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (k > largest) continue;
    if (us >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v * inverse_alpha / (a / (us * us) + b)) <=
        -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

// ---- Distributions of one parameter, as functors

struct Gamma {
  template <class Out>
  constexpr double draw(RandomNumbers& random, double alpha) const {
    return draw_gamma(random, alpha);
  }
};

struct Poisson {
  template <class Out>
  static constexpr double largest() {
    if constexpr (std::is_same_v<Out, half>)
      return 65504;
    else
      return static_cast<double>(std::numeric_limits<Out>::max());
  }
  template <class Out>
  constexpr double draw(RandomNumbers& random, double rate) const {
    const double count = draw_poisson(random, rate, largest<Out>());
    return std::is_integral_v<Out> && !std::isfinite(count) ? 0 : count;
  }
};

using GammaTypes = Types<half, float, double>;
using PoissonTypes = Types<half, float, double, int32_t, int64_t>;

// INVALID_ARGUMENT unless the shape of a stateless op's output ends with that of its parameters.
inline void check_ends_with_parameters(const Shape& out, const Shape& parameters) {
  check(out.rank() >= parameters.rank() &&
            std::equal(parameters.dims().begin(), parameters.dims().end(),
                       out.dims().end() - static_cast<std::ptrdiff_t>(parameters.dims().size())),
        "Shape passed in must end with broadcasted shape: ", out, " does not end with ",
        parameters);
}

}  // namespace leat
