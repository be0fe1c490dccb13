// Candidate sampling, for losses over many classes: UniformCandidateSampler,
// LogUniformCandidateSampler, AllCandidateSampler, ComputeAccidentalHits.
#include "kernels/neural/candidate_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

namespace leat {
namespace {

struct Uniform {
  int64_t range;
  explicit Uniform(const KernelRequest& r) : range(r.attr<int64_t>("range_max")) {}

  int64_t draw(RandomWords& words) const {
    return static_cast<int64_t>(uniform_below(static_cast<uint64_t>(range), [&] {
      const uint64_t low = words.next();
      return low | uint64_t{words.next()} << 32;
    }));
  }
  float probability(int64_t) const { return 1.0f / static_cast<float>(range); }
};

// P(k) = (log(k + 2) - log(k + 1)) / log(range + 1): for classes sorted by frequency, the most
// frequent first.
struct LogUniform {
  int64_t range;
  double log_range;
  explicit LogUniform(const KernelRequest& r)
      : range(r.attr<int64_t>("range_max")), log_range(std::log1p(static_cast<double>(range))) {}

  int64_t draw(RandomWords& words) const {
    const uint32_t high = words.next(), low = words.next();
    const double drawn = std::min(std::exp(uniform(high, low) * log_range), 0x1.fffffffffffffp62);
    return (static_cast<int64_t>(drawn) - 1) % range;
  }
  float probability(int64_t k) const {
    const double x = static_cast<double>(k);
    return static_cast<float>(std::log((x + 2) / (x + 1)) / log_range);
  }
};

const Op uniform_op{sampler_op<Uniform>("UniformCandidateSampler", "with equal probabilities")};
const Op log_uniform_op{
    sampler_op<LogUniform>("LogUniformCandidateSampler",
                           "with probabilities log((k + 2) / (k + 1)) / log(range_max + 1)")};

// ---- AllCandidateSampler

BoundKernel prepare_all(const KernelRequest& r) {
  const int64_t count = r.attr<int64_t>("num_sampled");
  return BoundKernel::of([=, trues = r.inputs[0].shape.elements()](const Arguments& a) {
    check_true_classes(a.input<int64_t>(0), trues, count);
    std::iota(a.output<int64_t>(0), a.output<int64_t>(0) + count, int64_t{0});
    std::fill_n(a.output<float>(1), trues, 1.0F);
    std::fill_n(a.output<float>(2), count, 1.0F);
  });
}

const Op all_op{{
    .name = "AllCandidateSampler",
    .doc = "sampled_candidates = all the classes, 0 to num_sampled - 1; each is expected once.",
    .inputs = {"true_classes: int64"},
    .outputs = {"sampled_candidates: int64", "true_expected_count: float",
                "sampled_expected_count: float"},
    .attrs = {"num_true: int >= 1", "num_sampled: int >= 1", "unique: bool", "seed: int = 0",
              "seed2: int = 0"},
    .shape = infer_samples,
    .kernels = {cpu_kernel(prepare_all)},
    .examples = {{.inputs = {longs({2, 1}, {0, 2})},
                  .attrs = {{"num_true", 1}, {"num_sampled", 3}, {"unique", true}},
                  .outputs = {longs({0, 1, 2}), floats({2, 1}, {1, 1}), floats({1, 1, 1})}}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

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
    .doc = "The rows and the places in sampled_candidates of true classes that were sampled too; "
           "their weights are the lowest float, which removes them from a softmax.",
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
