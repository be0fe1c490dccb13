// Truncated normal numbers whose mean, deviation and bounds are inputs:
// ParameterizedTruncatedNormal and StatelessParameterizedTruncatedNormal. They equal TensorFlow's
// for the same seeds if TensorFlow runs on one thread. With more threads TensorFlow's depend on how
// it splits the work; ours never do.
#include <cmath>
#include <limits>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/broadcast_gradient.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/random/random_fill.h"
#include "kernels/random/stateless_start.h"

namespace leat {
namespace {

// The consecutive candidates that one number may cost.
constexpr int most_candidates = 1000;

// The length of the part of the stream that each batch gets.
int64_t blocks_of_batch(int64_t samples) { return 2 * most_candidates * (samples + 3) / 4; }

// ---- One set of parameters

// Candidates are drawn from one of three distributions until one is accepted (Robert, "Simulation
// of truncated normal variables", 1995; and plain normal numbers where few of these are lost). All
// computation is in T, as in TensorFlow: `r` rounds values that were computed in a wider type.
template <class T>
class TruncatedNormalSampler {
  using C = ComputeType<T>;

 public:
  TruncatedNormalSampler(T mean, T deviation, T low, T high) : mean_(mean), deviation_(deviation) {
    C from = low, to = high;
    check(deviation_ > 0 && from < to && (std::isfinite(from) || std::isfinite(to)),
          "Invalid parameters: standard deviation ", deviation_, ", bounds ", from, " and ", to);
    // Mirrored, if that makes both bounds positive or the lower one the finite one.
    if ((std::isinf(from) && from < 0) || to < mean_) {
      std::swap(from, to);
      deviation_ = -deviation_;
    }
    low_ = r(r(from - mean_) / deviation_);
    high_ = r(r(to - mean_) / deviation_);
  }

  // Calls write(i, number) for every i < count.
  template <class Write>
  void draw(Philox& random, int64_t count, Write write) const {
    int64_t written = 0;
    int lost = 0;
    // Drops the rest of a group of candidates after the last number.
    const auto offer = [&](C candidate, bool is_accepted) {
      if (written == count) return;
      if (is_accepted) {
        write(written++, T(r(candidate * deviation_) + mean_));
        lost = 0;
      } else if (++lost >= most_candidates) {
        fail(Code::internal, "TruncatedNormal: none of ", most_candidates,
             " candidates was accepted (mean ", mean_, ", standard deviation ",
             std::abs(deviation_), ", bounds ", low_, " and ", high_,
             " standard deviations from the mean)");
      }
    };
    while (written < count) {
      StepEnd::pace(64);
      if (is_mostly_within()) {
        offer_normal(random, offer);
      } else if (r(high_ - low_) < uniform_limit()) {
        offer_uniform(random, offer);
      } else {
        offer_exponential(random, offer);
      }
    }
  }

 private:
  static C r(C x) { return C(T(x)); }

  bool is_mostly_within() const {
    const C enough = r(C(1.3));
    return (low_ < -enough && high_ >= 0) || (high_ > enough && low_ <= 0);
  }
  C root() const { return r(std::sqrt(r(r(low_ * low_) + 4))); }
  // A limit for the distance of the bounds: below it, uniform candidates are accepted more often.
  C uniform_limit() const {
    const C exponent = r(C(0.5) + r(r(low_ * r(low_ - root())) / 4));
    return r(r(2 * r(std::exp(exponent))) / r(low_ + root()));
  }

  template <class Offer>
  void offer_normal(Philox& random, Offer& offer) const {
    T group[Normal<T>::group];
    Normal<T>{}.fill(random, group);
    for (const T z : group) offer(z, C(z) >= low_ && C(z) <= high_);
  }

  template <class Offer>
  void offer_uniform(Philox& random, Offer& offer) const {
    constexpr int n = Uniform<T>::group;
    T places[n], chances[n];
    Uniform<T>{}.fill(random, places);
    Uniform<T>{}.fill(random, chances);
    const C distance = r(high_ - low_), largest = low_ < 0 ? C(0) : r(low_ * low_);
    for (int i = 0; i < n; ++i) {
      const C z = r(r(places[i] * distance) + low_), g = r(r(largest - r(z * z)) / 2);
      offer(z, C(chances[i]) <= r(std::exp(g)));
    }
  }

  template <class Offer>
  void offer_exponential(Philox& random, Offer& offer) const {
    T group[Uniform<T>::group];
    Uniform<T>{}.fill(random, group);
    const C rate = r(r(low_ + root()) / 2);
    for (int i = 0; i < Uniform<T>::group; i += 2) {
      const C z = r(r(-r(std::log(C(group[i]))) / rate) + low_);
      const C x = low_ < rate ? r(rate - z) : r(low_ - rate);
      const C g = r(std::exp(r(r(-x * x) / 2)));
      offer(z, C(group[i + 1]) <= g && z < high_);
    }
  }

  C mean_, deviation_;
  C low_, high_;  // in deviations from the mean
};

// ---- Of a stream

struct BatchPlan {
  int64_t batches, samples;  // samples: of each batch but the last
};

// Batch b is output[b, …]. With a single set of parameters, a batch is any hundred numbers.
BatchPlan plan_batches(const KernelRequest& r) {
  const Shape& out = r.outputs[0].shape;
  check(out.rank() > 0, "Shape tensor must not be empty: the output has no batches");
  const auto parameter = [&](int i) -> const Shape& { return r.inputs[i].shape; };
  const auto is_one = [&](int i) { return parameter(i).elements() == 1; };
  if (is_one(1) && is_one(2) && parameter(3).rank() == 0 && parameter(4).rank() == 0)
    return {(out.elements() + 99) / 100, 100};
  for (int i = 1; i <= 4; ++i) {
    check(is_one(i) || parameter(i)[0] == out[0], "Input ", i,
          " should have length 1 or shape[0], which is ", out[0], "; got shape ", parameter(i));
  }
  // Parameters are checked even if no number is drawn, but once is enough for one set of them.
  if (out.elements() == 0)
    return {
        is_one(1) && is_one(2) && is_one(3) && is_one(4) ? std::min<int64_t>(out[0], 1) : out[0],
        0};
  return {out[0], out.elements() / out[0]};
}

template <class T>
BoundKernel prepare_stream(TypeTag<T>, const KernelRequest& request) {
  const BatchPlan plan = plan_batches(request);
  const int64_t n = request.outputs[0].shape.elements();
  int64_t steps[5] = {};  // 0: the parameter is the same for every batch
  for (int i = 1; i <= 4; ++i) steps[i] = request.inputs[i].shape.elements() == 1 ? 0 : 1;
  BoundKernel kernel = BoundKernel::of(
      [=, stream = RandomStream::of(request), step = std::to_array(steps)](const Arguments& a) {
        Philox random = stream->take(plan.batches * blocks_of_batch(plan.samples));
        for (int64_t b = 0; b < plan.batches; ++b) {
          const auto parameter = [&](int i) { return a.input<T>(i)[b * step[i]]; };
          const TruncatedNormalSampler<T> sampler(parameter(1), parameter(2), parameter(3),
                                                  parameter(4));
          const int64_t first = b * plan.samples;
          sampler.draw(random, std::min(plan.samples, n - first),
                       [&](int64_t i, T value) { a.output<T>()[first + i] = value; });
        }
      });
  kernel.cost_ns = 30.0 * static_cast<double>(n);
  return kernel;
}

void infer_stream(ShapeContext& c) {
  for (int i = 1; i <= 4; ++i) {
    check(c.input(i).rank() <= 1, "input ", c.input_name(i),
          " should be a scalar or a vector, got shape ", c.input(i));
  }
  c.set_output(0, c.shape_from_value(0));
}

// ---- Stateless

// The element of a tensor at element i of the shape that it is repeated to.
class Repeated {
 public:
  Repeated(const Shape& from, const Shape& to) : to_(to) {
    int64_t stride = 1;
    for (int d = to.rank() - 1, f = from.rank() - 1; f >= 0; --d, --f) {
      if (from[f] != 1) strides_[static_cast<size_t>(d)] = stride;
      stride *= from[f];
    }
  }
  int64_t operator()(int64_t i) const {
    int64_t at = 0;
    for (int d = to_.rank() - 1; d >= 0; --d) {
      at += i % to_[d] * strides_[static_cast<size_t>(d)];
      i /= to_[d];
    }
    return at;
  }

 private:
  Shape to_;
  std::array<int64_t, Shape::max_rank> strides_{};
};

constexpr int first_parameter = 2;

Shape shape_of_parameters(std::span<const TensorSpec> inputs) {
  Shape out;
  for (const TensorSpec& input : inputs.subspan(first_parameter)) out = broadcast(input.shape, out);
  return out;
}

// output[s…, p…]: batch b has the parameters at element b of p….
template <class T>
BoundKernel prepare_stateless(TypeTag<T>, const KernelRequest& request) {
  const Shape &out = request.outputs[0].shape, parameters = shape_of_parameters(request.inputs);
  check(out.rank() >= parameters.rank() &&
            std::ranges::equal(parameters.dims(), out.dims().last(parameters.dims().size())),
        "Shape passed in must end with broadcasted shape: ", out, " does not end with ",
        parameters);
  const int64_t n = out.elements();
  if (n == 0) return {};
  std::vector<Repeated> places;
  for (const TensorSpec& input : request.inputs.subspan(first_parameter))
    places.emplace_back(input.shape, parameters);
  const int64_t batches = parameters.elements();
  BoundKernel kernel = BoundKernel::of([=, start = StatelessStart(request)](const Arguments& a) {
    Philox random = start(a);
    for (int64_t b = 0; b < batches; ++b) {
      const auto parameter = [&](size_t i) {
        return a.input<T>(first_parameter + static_cast<int>(i))[places[i](b)];
      };
      const TruncatedNormalSampler<T> sampler(parameter(0), parameter(1), parameter(2),
                                              parameter(3));
      sampler.draw(random, n / batches,
                   [&](int64_t i, T value) { a.output<T>()[i * batches + b] = value; });
    }
  });
  kernel.cost_ns = 30.0 * static_cast<double>(n);
  return kernel;
}

void infer_stateless_parameters(ShapeContext& c) {
  Shape parameters;
  for (int i = first_parameter; i < c.num_inputs(); ++i)
    parameters = broadcast(c.input(i), parameters);
  infer_stateless(c);
}

// ---- The gradient: how a number moves if it keeps its quantile (Figurnov et al., "Implicit
// reparameterization gradients", 2018)

Output normal_distribution_function(const Output& x) {
  const double root = std::sqrt(0.5);
  const Output w = x * root, z = abs(w), above = op("Erfc", {z});
  return 0.5 *
         where(less(z, root), 1.0 + op("Erf", {w}), where(greater(w, 0.0), 2.0 - above, above));
}

// The smallest number that is not 0 and the distance from 1 to the next one.
std::pair<double, double> smallest_steps(DType dtype) {
  if (dtype == f64)
    return {std::numeric_limits<double>::min(), std::numeric_limits<double>::epsilon()};
  if (dtype == f16) return {0x1p-14, 0x1p-10};
  return {std::numeric_limits<float>::min(), std::numeric_limits<float>::epsilon()};
}

void gradient(Gradient& g) {
  const Output mean = g.x(2), deviation = g.x(3), y = (g.y() - mean) / deviation;
  const Output low = (g.x(4) - mean) / deviation, high = (g.x(5) - mean) / deviation;
  const Output below = normal_distribution_function(low);
  const auto [tiny, epsilon] = smallest_steps(g.y().dtype());
  const Output quantile = minimum(maximum((normal_distribution_function(y) - below) /
                                              (normal_distribution_function(high) - below),
                                          tiny),
                                  1.0 - epsilon);
  const Output by_low = exp(0.5 * (square(y) - square(low)) + op("Log1p", {-quantile}));
  const Output by_high = exp(0.5 * (square(y) - square(high)) + log(quantile));
  const auto set = [&](int input, const Output& dx) {
    g.dx(input) = sum_to_shape_of(g.x(input), g.y(), dx);
  };
  set(2, g.dy());
  set(3, g.dy() * y);
  set(4, g.dy() * by_low);
  set(5, g.dy() * by_high);
}

// ---- The ops

const Op truncated_normal_op{{
    .name = "ParameterizedTruncatedNormal",
    .doc = "output[b, …] = normal numbers with mean means[b] and standard deviation stdevs[b], "
           "limited to those between minvals[b] and maxvals[b]. A parameter may be the same for "
           "all b.",
    .inputs = {"shape: T", "means: dtype", "stdevs: dtype", "minvals: dtype", "maxvals: dtype"},
    .outputs = {"output: dtype"},
    .attrs = {"seed: int = 0", "seed2: int = 0", "dtype: {half, bfloat16, float, double}",
              "T: {int32, int64}"},
    .shape = infer_stream,
    .kernels = {cpu_kernel(
        "dtype", Types<half, float, double>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_stream(t, r); })},
    .value_inputs = {0},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op stateless_truncated_normal_op{{
    .name = "StatelessParameterizedTruncatedNormal",
    .doc = "output[s…, p…] = normal numbers with mean means[p…] and standard deviation "
           "stddevs[p…], limited to those between minvals[p…] and maxvals[p…], the same for the "
           "same seed. `shape` is that of all of output; the parameters broadcast.",
    .inputs = {"shape: S", "seed: Tseed", "means: dtype", "stddevs: dtype", "minvals: dtype",
               "maxvals: dtype"},
    .outputs = {"output: dtype"},
    .attrs = {"S: {int32, int64}", "Tseed: {int32, int64} = int64", "dtype: {half, float, double}"},
    .shape = infer_stateless_parameters,
    .gradient = gradient,
    .kernels = {cpu_kernel(
        "dtype", Types<half, float, double>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_stateless(t, r); })},
    .examples = {{.inputs = {ints({3, 2}), longs({1, 2}), floats({0, 10}), Tensor::scalar(2.0F),
                             Tensor::scalar(-1.0F), Tensor::scalar(12.0F)},
                  .outputs = {floats({3, 2}, {1.0882202F, 7.39682F, 0.41476062F, 8.092287F,
                                              0.14712864F, 11.683457F})}}},
    .value_inputs = {0},
}};

}  // namespace
}  // namespace leat
