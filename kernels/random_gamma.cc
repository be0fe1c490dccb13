// Random numbers of a gamma and of a Poisson distribution. As in random.cc, results are
// TensorFlow's for the same seeds: each output has a stretch of the stream of its own, and all is
// computed in double precision.
#include <cmath>
#include <limits>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/random_fill.h"

namespace leat {
namespace {

// Uniform and normal numbers of one stretch; each kind comes in pairs, of which the second is used
// first.
class Numbers {
 public:
  explicit Numbers(const Philox& random) : random_(random) {}

  double uniform() {
    if (uniforms_left_ == 0) {
      const Philox::Block x = random_.next();
      uniforms_[0] = leat::uniform(x[0], x[1]);
      uniforms_[1] = leat::uniform(x[2], x[3]);
      uniforms_left_ = 2;
    }
    return uniforms_[--uniforms_left_];
  }

  double normal() {
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

// ---- Distributions of one parameter

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. For alpha < 1 a
// variable of alpha + 1 times a power of a uniform one.
struct Gamma {
  static double draw(Numbers& random, double alpha) {
    if (!(alpha >= 0) || std::isinf(alpha)) return std::numeric_limits<double>::quiet_NaN();
    if (alpha == 1) return -std::log(1 - random.uniform());
    const bool is_below_1 = alpha < 1;
    const double d = (is_below_1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
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
};

// For small rates Knuth's product of uniform variables; else Hoermann, "The transformed rejection
// method for generating Poisson random variables", 1993 (its algorithm PTRS).
struct Poisson {
  static double draw(Numbers& random, double rate, double largest) {
    if (!(rate >= 0) || std::isinf(rate)) return std::numeric_limits<double>::quiet_NaN();
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
};

// outputs[s, p] = draw(parameters[p]), the stretches being numbered by p first.
template <class Parameter, class Out, class Draw>
BoundKernel bind(const KernelRequest& request, Draw draw) {
  const int64_t parameters = request.inputs[1].shape.elements(),
                n = request.outputs[0].shape.elements();
  if (n == 0) return {};
  BoundKernel kernel = BoundKernel::of(
      [=, stream = RandomStream::of(request), samples = n / parameters](const Arguments& a) {
        const Philox start = stream->take(n * blocks_per_output);
        a.stream->parallel_for(n, 256, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t parameter = i / samples, sample = i % samples;
            Philox random = start;
            random.skip(static_cast<uint64_t>(i * blocks_per_output));
            Numbers numbers(random);
            const auto value =
                static_cast<double>(ComputeType<Parameter>(a.input<Parameter>(1)[parameter]));
            a.output<Out>()[sample * parameters + parameter] =
                Out(static_cast<ComputeType<Out>>(draw(numbers, value)));
          }
        });
      });
  kernel.cost_ns = 100.0 * static_cast<double>(n);
  return kernel;
}

template <class Out>
constexpr double largest() {
  if constexpr (std::is_same_v<Out, half>)
    return 65504;
  else
    return static_cast<double>(std::numeric_limits<Out>::max());
}

template <class Parameter, class Out>
BoundKernel bind_poisson(const KernelRequest& request) {
  return bind<Parameter, Out>(request, [](Numbers& numbers, double rate) {
    const double count = Poisson::draw(numbers, rate, largest<Out>());
    return std::is_integral_v<Out> && std::isnan(count) ? 0 : count;
  });
}

// The shape of the input, then that of the parameters.
void infer(ShapeContext& c) {
  const Shape samples = c.shape_from_value(0), parameters = c.input(1);
  if (!samples.has_rank() || !parameters.has_rank()) return c.set_output(0, Shape::unknown());
  Shape out = samples;
  for (const int64_t extent : parameters.dims()) out.push_back(extent);
  c.set_output(0, out);
}

using PoissonTypes = Types<half, float, double, int32_t, int64_t>;

const Op gamma_op{{
    .name = "RandomGamma",
    .doc = "output[s…, p…] = independent numbers of the gamma distribution with shape alpha[p…] "
           "and rate 1; `shape` is that of s….",
    .inputs = {"shape: S", "alpha: T"},
    .outputs = {"output: T"},
    .attrs = {"seed: int = 0", "seed2: int = 0", "S: {int32, int64}", "T: {half, float, double}"},
    .shape = infer,
    // The derivative of a number that was drawn by alpha, summed over those drawn with it.
    .gradient =
        [](Gradient& g) {
          const Output by_alpha = op("RandomGammaGrad", {g.x(1), g.y()});
          const Output zero = constant(g.graph(), Tensor::scalar<int32_t>(0));
          const Output one = constant(g.graph(), Tensor::scalar<int32_t>(1));
          g.dx(1) = sum(mul(g.dy(), by_alpha), range(zero, size_of(g.x(0)), one));
        },
    .kernels = {cpu_kernel(
        "T", Types<half, float, double>{},
        []<class T>(TypeTag<T>, const KernelRequest& r) { return bind<T, T>(r, Gamma::draw); })},
    .value_inputs = {0},
    .is_stateful = true,
}};

const Op poisson_op{{
    .name = "RandomPoissonV2",
    .doc =
        "output[s…, p…] = independent numbers of the Poisson distribution with the mean rate[p…]; "
        "`shape` is that of s….",
    .inputs = {"shape: S", "rate: R"},
    .outputs = {"output: dtype"},
    .attrs = {"seed: int = 0", "seed2: int = 0", "S: {int32, int64}",
              "R: {half, float, double, int32, int64} = double",
              "dtype: {half, float, double, int32, int64} = int64"},
    .shape = infer,
    .kernels = {cpu_kernel("R", PoissonTypes{},
                           []<class Rate>(TypeTag<Rate>, const KernelRequest& r) {
                             return visit_type(PoissonTypes{}, r.attr<DType>("dtype"),
                                               [&]<class Out>(TypeTag<Out>) {
                                                 return bind_poisson<Rate, Out>(r);
                                               });
                           })},
    .value_inputs = {0},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
