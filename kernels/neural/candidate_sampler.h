// Shared by the candidate samplers. A sampler is
//   struct S {
//     explicit S(const KernelRequest&);
//     int64_t range;                            // the classes are 0 to range - 1
//     int64_t draw(RandomWords&) const;
//     float probability(int64_t k) const;
//     void learn(const int64_t*, int64_t);      // if it learns from the true classes
//   };
// Every node of a session has its own. As in random.cc, the same seeds draw the same numbers as in
// TensorFlow.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/random/random_stream.h"

namespace leat {

// A number below n, from words of its type.
template <class Word, class Next>
Word uniform_below(Word n, Next next) {
  if ((n & (n - 1)) == 0) return next() & (n - 1);
  constexpr Word all = std::numeric_limits<Word>::max();
  const Word rest = all % n + 1;
  Word drawn = next();
  while (drawn >= all - rest) drawn = next();
  return drawn % n;
}

// How often a class is expected among `count` samples that took `tries` draws.
inline float expected_count(float probability, int64_t count, int64_t tries) {
  if (tries == count) return probability * static_cast<float>(count);
  return static_cast<float>(
      -std::expm1(static_cast<double>(tries) * std::log1p(-static_cast<double>(probability))));
}

inline void check_true_classes(const int64_t* classes, int64_t n, int64_t range) {
  for (int64_t i = 0; i < n; ++i)
    check(classes[i] >= 0 && classes[i] < range, "true_classes has class ", classes[i],
          ", which is not in [0, ", range, ")");
}

template <class Sampler>
constexpr bool learns = requires(Sampler sampler) {
  sampler.learn(nullptr, 0);
};

template <class Sampler>
struct SamplerState {
  std::shared_ptr<RandomStream> stream;
  Sampler sampler;
  std::mutex mutex;  // guards the sampler, if it learns

  explicit SamplerState(const KernelRequest& r) : stream(stream_of(r)), sampler(r) {}

  static std::shared_ptr<RandomStream> stream_of(const KernelRequest& r) {
    std::shared_ptr<void> state;
    return RandomStream::of({r.node, r.inputs, r.outputs, r.device, state});
  }
};

// Draws `count` classes, distinct if `unique`; returns how many draws that took.
template <class Sampler>
int64_t sample(const Sampler& sampler, RandomWords& words, int64_t count, bool unique,
               int64_t* samples) {
  if (!unique) {
    for (int64_t i = 0; i < count; ++i) samples[i] = sampler.draw(words);
    return count;
  }
  std::unordered_set<int64_t> used;
  int64_t tries = 0;
  for (int64_t i = 0; i < count;) {
    check(++tries < std::numeric_limits<int32_t>::max(), "only ", i, " different classes of ",
          count, " were drawn in ", tries, " tries: the other classes are too improbable");
    const int64_t drawn = sampler.draw(words);
    if (used.insert(drawn).second) samples[i++] = drawn;
  }
  return tries;
}

template <class Sampler>
BoundKernel prepare_sampler(const KernelRequest& r) {
  using State = SamplerState<Sampler>;
  if (!r.node_state) r.node_state = std::make_shared<State>(r);
  const auto state = std::static_pointer_cast<State>(r.node_state);
  const int64_t count = r.attr<int64_t>("num_sampled"), range = state->sampler.range;
  const bool unique = r.attr<bool>("unique");
  check(!unique || count <= range, "Sampler's range is too small: ", count,
        " different samples out of ", range);
  return BoundKernel::of([=, trues = r.inputs[0].shape.elements()](const Arguments& a) {
    const int64_t* classes = a.input<int64_t>(0);
    int64_t* samples = a.output<int64_t>(0);
    check_true_classes(classes, trues, range);
    RandomWords words(state->stream->take(512 * count));
    std::unique_lock<std::mutex> lock(state->mutex, std::defer_lock);
    if constexpr (learns<Sampler>) lock.lock();
    Sampler& sampler = state->sampler;
    const int64_t tries = sample(sampler, words, count, unique, samples);
    const auto expected = [&](int64_t k) {
      return expected_count(sampler.probability(k), count, tries);
    };
    for (int64_t i = 0; i < trues; ++i) a.output<float>(1)[i] = expected(classes[i]);
    for (int64_t i = 0; i < count; ++i) a.output<float>(2)[i] = expected(samples[i]);
    if constexpr (learns<Sampler>) sampler.learn(classes, trues);
  });
}

inline void infer_samples(ShapeContext& c) {
  const int64_t num_true = c.attr<int64_t>("num_true");
  const Shape trues = c.with_rank(0, 2);
  check(trues[1] == any || trues[1] == num_true,
        "true_classes must have num_true columns, expected: ", num_true, " was: ", trues[1]);
  const Shape samples{c.attr<int64_t>("num_sampled")};
  c.set_output(0, samples);
  c.set_output(1, Shape{trues[0], num_true});
  c.set_output(2, samples);
}

template <class Sampler>
OpDef sampler_op(std::string name, const std::string& which) {
  return {
      .name = std::move(name),
      .doc = "sampled_candidates = num_sampled classes in [0, range_max), drawn " + which +
             " (different ones if unique); the other outputs: how often each of true_classes, and "
             "each of the samples, is expected among them.",
      .inputs = {"true_classes: int64"},
      .outputs = {"sampled_candidates: int64", "true_expected_count: float",
                  "sampled_expected_count: float"},
      .attrs = {"num_true: int >= 1", "num_sampled: int >= 1", "unique: bool",
                "range_max: int >= 1", "seed: int = 0", "seed2: int = 0"},
      .shape = infer_samples,
      .kernels = {cpu_kernel(prepare_sampler<Sampler>)},
      .is_stateful = true,
      .is_not_differentiable = true,
  };
}

}  // namespace leat
