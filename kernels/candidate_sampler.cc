// Candidate sampling, for losses over many classes: UniformCandidateSampler,
// LogUniformCandidateSampler, ComputeAccidentalHits. As in random.cc, results are TensorFlow's for
// the same seeds.
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/random_stream.h"

namespace leat {
namespace {

struct Uniform {
  int64_t range;
  explicit Uniform(int64_t range) : range(range) {}

  int64_t draw(RandomWords& words) const {
    const uint64_t n = static_cast<uint64_t>(range);
    const auto word = [&] {
      const uint64_t low = words.next();
      return low | uint64_t{words.next()} << 32;
    };
    if ((n & (n - 1)) == 0) return static_cast<int64_t>(word() & (n - 1));
    const uint64_t all = std::numeric_limits<uint64_t>::max(), rest = all % n + 1;
    uint64_t drawn = word();
    while (drawn >= all - rest) drawn = word();
    return static_cast<int64_t>(drawn % n);
  }
  float probability(int64_t) const { return 1.0f / static_cast<float>(range); }
};

// P(k) = (log(k + 2) - log(k + 1)) / log(range + 1): for classes sorted by frequency, the most
// frequent first.
struct LogUniform {
  int64_t range;
  double log_range;
  explicit LogUniform(int64_t range)
      : range(range), log_range(std::log1p(static_cast<double>(range))) {}

  int64_t draw(RandomWords& words) const {
    const uint32_t high = words.next(), low = words.next();
    return (static_cast<int64_t>(std::exp(uniform(high, low) * log_range)) - 1) % range;
  }
  float probability(int64_t k) const {
    const double x = static_cast<double>(k);
    return static_cast<float>(std::log((x + 2) / (x + 1)) / log_range);
  }
};

// How often a class is expected among `count` samples that took `tries` draws.
float expected_count(float probability, int64_t count, int64_t tries) {
  if (tries == count) return probability * static_cast<float>(count);
  return static_cast<float>(
      -std::expm1(static_cast<double>(tries) * std::log1p(-static_cast<double>(probability))));
}

template <class Sampler>
BoundKernel prepare(const KernelRequest& r) {
  const int64_t count = r.attr<int64_t>("num_sampled"), range = r.attr<int64_t>("range_max");
  const bool unique = r.attr<bool>("unique");
  check(!unique || count <= range, "Sampler's range is too small: ", count,
        " different samples out of ", range);
  return BoundKernel::of([=, sampler = Sampler(range), stream = RandomStream::of(r),
                          trues = r.inputs[0].shape.elements()](const Arguments& a) {
    RandomWords words(stream->take(512 * count));
    int64_t* samples = a.output<int64_t>(0);
    int64_t tries = count;
    if (unique) {
      std::unordered_set<int64_t> used;
      tries = 0;
      for (int64_t i = 0; i < count;) {
        ++tries;
        const int64_t drawn = sampler.draw(words);
        if (used.insert(drawn).second) samples[i++] = drawn;
      }
    } else {
      for (int64_t i = 0; i < count; ++i) samples[i] = sampler.draw(words);
    }
    const auto expected = [&](int64_t k) {
      return expected_count(sampler.probability(k), count, tries);
    };
    for (int64_t i = 0; i < trues; ++i) a.output<float>(1)[i] = expected(a.input<int64_t>(0)[i]);
    for (int64_t i = 0; i < count; ++i) a.output<float>(2)[i] = expected(samples[i]);
  });
}

template <class Sampler>
OpDef sampler(std::string name, const std::string& which) {
  return {
      .name = std::move(name),
      .doc = "sampled_candidates = num_sampled classes in [0, range_max), drawn " + which +
             " (different ones if unique); the others: how often each of true_classes, and of the "
             "samples, is expected among them.",
      .inputs = {"true_classes: int64"},
      .outputs = {"sampled_candidates: int64", "true_expected_count: float",
                  "sampled_expected_count: float"},
      .attrs = {"num_true: int >= 1", "num_sampled: int >= 1", "unique: bool",
                "range_max: int >= 1", "seed: int = 0", "seed2: int = 0"},
      .shape =
          [](ShapeContext& c) {
            const int64_t num_true = c.attr<int64_t>("num_true");
            const Shape trues = c.with_rank(0, 2);
            check(trues[1] == any || trues[1] == num_true,
                  "true_classes must have num_true columns, expected: ", num_true,
                  " was: ", trues[1]);
            const Shape samples{c.attr<int64_t>("num_sampled")};
            c.set_output(0, samples);
            c.set_output(1, Shape{trues[0], num_true});
            c.set_output(2, samples);
          },
      .kernels = {cpu_kernel(prepare<Sampler>)},
      .is_stateful = true,
      .is_not_differentiable = true,
  };
}

const Op uniform_op{sampler<Uniform>("UniformCandidateSampler", "with equal probabilities")};
const Op log_uniform_op{
    sampler<LogUniform>("LogUniformCandidateSampler",
                        "with probabilities log((k + 2) / (k + 1)) / log(range_max + 1)")};

// ---- ComputeAccidentalHits

void find_hits(ExecuteContext& c) {
  const Tensor &trues = c.input(0), &samples = c.input(1);
  const int64_t num_true = c.node().attr<int64_t>("num_true");
  check(trues.shape().rank() == 2 && trues.shape()[1] == num_true,
        "true_candidates must be a batch_size * num_true matrix, got shape ", trues.shape());
  check(samples.shape().rank() == 1,
        "sampled_candidates must be a vector, which is typically an output from "
        "CandidateSampler, got shape ",
        samples.shape());
  std::unordered_map<int64_t, int64_t> place;  // the last one of equal samples
  for (int64_t i = 0; i < samples.elements(); ++i) place[samples.data<int64_t>()[i]] = i;
  std::vector<int32_t> indices;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < trues.elements(); ++i) {
    const auto found = place.find(trues.data<int64_t>()[i]);
    if (found == place.end()) continue;
    indices.push_back(static_cast<int32_t>(i / num_true));
    ids.push_back(found->second);
  }
  const Shape shape{static_cast<int64_t>(ids.size())};
  Tensor weights(f32, shape);
  std::fill_n(weights.data<float>(), ids.size(), -std::numeric_limits<float>::max());
  c.set_output(0, Tensor::of<int32_t>(shape, std::span<const int32_t>(indices)));
  c.set_output(1, Tensor::of<int64_t>(shape, std::span<const int64_t>(ids)));
  c.set_output(2, std::move(weights));
}

const Op hits_op{{
    .name = "ComputeAccidentalHits",
    .doc = "The rows and the places in sampled_candidates of true classes that were sampled, with "
           "the lowest float as the weight that takes them out of a softmax.",
    .inputs = {"true_classes: int64", "sampled_candidates: int64"},
    .outputs = {"indices: int32", "ids: int64", "weights: float"},
    .attrs = {"num_true: int", "seed: int = 0", "seed2: int = 0"},
    .shape =
        [](ShapeContext& c) {
          const Shape trues = c.with_rank(0, 2);
          c.with_rank(1, 1);
          check(trues[1] == any || trues[1] == c.attr<int64_t>("num_true"),
                "true_classes must have num_true columns, got shape ", trues);
          for (int i = 0; i < 3; ++i) c.set_output(i, Shape{any});
        },
    .kernels = {{.execute = find_hits}},
    .examples = {{.inputs = {longs({2, 1}, {7, 3}), longs({5, 3})},
                  .attrs = {{"num_true", 1}},
                  .outputs = {ints({1}), longs({1}),
                              floats({-std::numeric_limits<float>::max()})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
