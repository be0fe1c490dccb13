// Random numbers of a gamma and of a Poisson distribution, from a stream and stateless. As in
// random.cc, results are TensorFlow's for the same seeds: each output has its own part of the
// stream, and all computation is in double precision.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/random/random_fill.h"
#include "kernels/random/stateless_start.h"

namespace leat {
namespace {

// Uniform and normal numbers of one stretch; each kind comes in pairs, and the second of a pair is
// used first.
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

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Marsaglia and Tsang, "A simple method for generating gamma variables", 2000. For alpha < 1, a
// variable for alpha + 1 times a power of a uniform one. The search works for some negative alpha,
// too, and TensorFlow returns these numbers; below -2/3 it would never end.
struct Gamma {
  static double draw(Numbers& random, double alpha) {
    if (alpha == 1) return -std::log1p(-random.uniform());
    const bool is_below_1 = alpha < 1;
    const double d = alpha + (is_below_1 ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / std::sqrt(d);
    if (!(d > 0)) return nan;
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
    if (std::isnan(rate)) return nan;
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
};

// outputs[s, p] = draw(parameters[p]), where the stretches are numbered by p first; `start(a)` is
// the generator of a run.
template <class Parameter, class Out, class Start, class Draw>
BoundKernel bind(const KernelRequest& request, int input, Start start, Draw draw) {
  const int64_t parameters = request.inputs[input].shape.elements(),
                n = request.outputs[0].shape.elements();
  if (n == 0) return {};
  BoundKernel kernel = BoundKernel::of([=, samples = n / parameters](const Arguments& a) {
    const Philox first = start(a);
    a.stream->parallel_for(n, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t parameter = i / samples, sample = i % samples;
        Philox random = first;
        random.skip(static_cast<uint64_t>(i * blocks_per_output));
        Numbers numbers(random);
        const auto value =
            static_cast<double>(ComputeType<Parameter>(a.input<Parameter>(input)[parameter]));
        a.output<Out>()[sample * parameters + parameter] =
            Out(static_cast<ComputeType<Out>>(draw(numbers, value)));
      }
    });
  });
  kernel.cost_ns = 100.0 * static_cast<double>(n);
  return kernel;
}

// Draws from the stream of the node; the parameters are input 1.
template <class Parameter, class Out, class Draw>
BoundKernel bind_stream(const KernelRequest& request, Draw draw) {
  const int64_t n = request.outputs[0].shape.elements();
  const auto start = [stream = RandomStream::of(request), n](const Arguments&) {
    return stream->take(n * blocks_per_output);
  };
  return bind<Parameter, Out>(request, 1, start, draw);
}

// Without state; the parameters are the last input, and the shape of the output ends with theirs.
template <class Parameter, class Out, class Draw>
BoundKernel bind_stateless(const KernelRequest& request, Draw draw) {
  const int input = static_cast<int>(request.inputs.size()) - 1;
  const Shape &parameters = request.inputs[input].shape, &out = request.outputs[0].shape;
  if (out.elements() == 0) return {};
  check(out.rank() >= parameters.rank() &&
            std::ranges::equal(parameters.dims(), out.dims().last(parameters.dims().size())),
        "Shape passed in must end with broadcasted shape: ", out, " does not end with ",
        parameters);
  return bind<Parameter, Out>(request, input, StatelessStart(request), draw);
}

template <class Out>
constexpr double largest() {
  if constexpr (std::is_same_v<Out, half>)
    return 65504;
  else
    return static_cast<double>(std::numeric_limits<Out>::max());
}

template <class Out>
double draw_poisson(Numbers& numbers, double rate) {
  const double count = Poisson::draw(numbers, rate, largest<Out>());
  return std::is_integral_v<Out> && !std::isfinite(count) ? 0 : count;
}

// The shape of the input, then that of the parameters.
void infer(ShapeContext& c) {
  const Shape samples = c.shape_from_value(0), parameters = c.input(1);
  if (!samples.has_rank() || !parameters.has_rank()) return c.set_output(0, Shape::unknown());
  Shape out = samples;
  for (const int64_t extent : parameters.dims()) out.push_back(extent);
  c.set_output(0, out);
}

using GammaTypes = Types<half, float, double>;
using PoissonTypes = Types<half, float, double, int32_t, int64_t>;

// The derivative of the numbers drawn with respect to alpha, summed over all those drawn with the
// same alpha: over the first `axes` axes.
Output gradient_of_alpha(Gradient& g, const Output& alpha, const Output& axes) {
  const Output by_alpha = op("RandomGammaGrad", {alpha, g.y()});
  return sum(g.dy() * by_alpha, arange(g.graph(), axes));
}

// bind_out(TypeTag<Rate>, TypeTag<Out>, request) for the two types of a Poisson op.
template <class F>
Kernel poisson_kernel(const char* rate, F bind_out) {
  return cpu_kernel(
      rate, PoissonTypes{}, [=]<class Rate>(TypeTag<Rate> rate_tag, const KernelRequest& r) {
        return visit_type(PoissonTypes{}, r.attr<DType>("dtype"),
                          [&](auto out_tag) { return bind_out(rate_tag, out_tag, r); });
      });
}

const Op gamma_op{{
    .name = "RandomGamma",
    .doc = "output[s…, p…] = independent numbers of the gamma distribution with shape alpha[p…] "
           "and rate 1; `shape` is that of s….",
    .inputs = {"shape: S", "alpha: T"},
    .outputs = {"output: T"},
    .attrs = {"seed: int = 0", "seed2: int = 0", "S: {int32, int64}", "T: {half, float, double}"},
    .shape = infer,
    .gradient = [](Gradient& g) { g.dx(1) = gradient_of_alpha(g, g.x(1), size_of(g.x(0))); },
    .kernels = {cpu_kernel("T", GammaTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return bind_stream<T, T>(r, Gamma::draw);
                           })},
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
    .kernels = {poisson_kernel(
        "R",
        []<class Rate, class Out>(TypeTag<Rate>, TypeTag<Out>, const KernelRequest& r) {
          return bind_stream<Rate, Out>(r, draw_poisson<Out>);
        })},
    .value_inputs = {0},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

OpDef stateless_gamma_op(bool has_seed) {
  OpDef out{
      .name = has_seed ? "StatelessRandomGammaV2" : "StatelessRandomGammaV3",
      .doc = concat("output[s…, p…] = independent numbers of the gamma distribution with shape "
                    "alpha[p…] and rate 1, the same for the same ",
                    has_seed ? "seed." : "key and counter.", " `shape` is that of all of output."),
      .outputs = {"output: dtype"},
      .shape = infer_stateless,
      .gradient =
          [](Gradient& g) {
            const int last = g.num_inputs() - 1;
            g.dx(last) = gradient_of_alpha(g, g.x(last), size_of(g.x(0)) - rank_of(g.x(last)));
          },
      .kernels = {cpu_kernel("dtype", GammaTypes{},
                             []<class T>(TypeTag<T>, const KernelRequest& r) {
                               return bind_stateless<T, T>(r, Gamma::draw);
                             })},
      .value_inputs = {0},
  };
  if (has_seed) {
    out.inputs = {"shape: T", "seed: Tseed", "alpha: dtype"};
    out.attrs = {"dtype: {half, float, double}", "T: {int32, int64}",
                 "Tseed: {int32, int64} = int64"};
    out.examples = {
        {.inputs = {ints({2, 2}), longs({1, 2}), floats({0.5F, 3})},
         .outputs = {floats({2, 2}, {0.06695361F, 4.674579F, 0.6282355F, 3.3503754F})}}};
  } else {
    out.inputs = {"shape: shape_dtype", "key: uint64", "counter: uint64", "alg: int32",
                  "alpha: dtype"};
    out.attrs = {"dtype: {half, float, double}", "shape_dtype: {int32, int64} = int32"};
    out.examples = {
        {.inputs = {ints({2, 2}), Tensor::of<uint64_t>({1}, {7}), Tensor::of<uint64_t>({2}, {0, 5}),
                    Tensor::scalar(philox), floats({0.5F, 3})},
         .outputs = {floats({2, 2}, {0.2787539F, 3.3701627F, 0.29942146F, 1.1200709F})}}};
  }
  return out;
}

const Op stateless_gamma_v2_op(stateless_gamma_op(true));
const Op stateless_gamma_v3_op(stateless_gamma_op(false));

const Op stateless_poisson_op{{
    .name = "StatelessRandomPoisson",
    .doc = "output[s…, p…] = independent numbers of the Poisson distribution with the mean "
           "lam[p…], the same for the same seed. `shape` is that of all of output.",
    .inputs = {"shape: T", "seed: Tseed", "lam: Rtype"},
    .outputs = {"output: dtype"},
    .attrs = {"Rtype: {half, float, double, int32, int64}",
              "dtype: {half, float, double, int32, int64}", "T: {int32, int64}",
              "Tseed: {int32, int64} = int64"},
    .shape = infer_stateless,
    .kernels = {poisson_kernel(
        "Rtype",
        []<class Rate, class Out>(TypeTag<Rate>, TypeTag<Out>, const KernelRequest& r) {
          return bind_stateless<Rate, Out>(r, draw_poisson<Out>);
        })},
    .examples = {{.inputs = {ints({3, 2}), longs({1, 2}), floats({3, 50})},
                  .attrs = {{"dtype", i32}},
                  .outputs = {ints({3, 2}, {5, 58, 5, 43, 4, 56})}}},
    .value_inputs = {0},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
