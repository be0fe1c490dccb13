#include "graph/ops/random.h"

#include <cmath>

#include "graph/ops/arrays.h"
#include "graph/ops/graph_of.h"
#include "graph/ops/math.h"
#include "graph/ops/seed.h"
#include "graph/shape_inference.h"

namespace leat::random {
namespace {

AttrMap with_seeds(const Graph& graph, int64_t own, AttrMap attrs = {}) {
  const Seeds both = seeds(graph, own);
  attrs.emplace("seed", both.seed);
  attrs.emplace("seed2", both.seed2);
  return attrs;
}

// The numbers that the op draws, times `scale`, plus `offset`.
Output drawn(std::string_view name, Graph& graph, const Dims& dims, const Options& options,
             double scale, double offset, Location at) {
  Output out = op(name, {dims.in(graph, at)},
                  with_seeds(graph, options.seed, {{"dtype", options.dtype}}), at);
  if (scale != 1) out = Operand(out, at) * scale;
  return offset == 0 ? out : Operand(out, at) + offset;
}

void check_stddev(std::string_view what, double stddev, Location at) {
  check(stddev >= 0, "random::", what, " (", at, "): stddev must not be negative, got ", stddev);
}

int64_t whole_number(std::string_view what, double value, Location at) {
  constexpr double exact = 1LL << 53;  // above, a double may be another integer than was written
  check(value == std::trunc(value) && std::abs(value) <= exact, "random::uniform (", at,
        "): ", what, " must be a whole number of at most 2^53, got ", value,
        "; random::integers takes all integers");
  return static_cast<int64_t>(value);
}

}  // namespace

Output normal(Graph& graph, const Dims& dims, const NormalOptions& options, Location at) {
  const auto& [mean, stddev, dtype, seed] = options;
  check_stddev("normal", stddev, at);
  return drawn("RandomStandardNormal", graph, dims, {dtype, seed}, stddev, mean, at);
}
Output truncated_normal(Graph& graph, const Dims& dims, const NormalOptions& options, Location at) {
  const auto& [mean, stddev, dtype, seed] = options;
  check_stddev("truncated_normal", stddev, at);
  return drawn("TruncatedNormal", graph, dims, {dtype, seed}, stddev, mean, at);
}
Output normal(Graph& graph, const Dims& dims, double mean, double stddev, const Options& options,
              Location at) {
  return normal(
      graph, dims,
      NormalOptions{.mean = mean, .stddev = stddev, .dtype = options.dtype, .seed = options.seed},
      at);
}
Output uniform(Graph& graph, const Dims& dims, double low, double high, const Options& options,
               Location at) {
  return uniform(
      graph, dims,
      UniformOptions{.low = low, .high = high, .dtype = options.dtype, .seed = options.seed}, at);
}
Output uniform(Graph& graph, const Dims& dims, const UniformOptions& options, Location at) {
  const double low = options.low, high = options.high.value_or(1);
  const Options how{options.dtype, options.seed};
  const bool are_integers = options.dtype == i32 || options.dtype == i64;
  check(!are_integers || options.high.has_value(), "random::uniform (", at, ") of ", options.dtype,
        " needs .high, the end of the range");
  check(low < high, "random::uniform (", at, "): low must be below high, got ", low, " and ", high);
  if (!are_integers) return drawn("RandomUniform", graph, dims, how, high - low, low, at);
  return integers(graph, dims, Operand(whole_number("low", low, at), at),
                  Operand(whole_number("high", high, at), at), how, at);
}
Output integers(Graph& graph, const Dims& dims, const Operand& low, const Operand& high,
                Options options, Location at) {
  if (options.dtype == f32) options.dtype = i32;  // as Options have it by default
  return op("RandomUniformInt",
            {dims.in(graph, at), low.as(graph, options.dtype), high.as(graph, options.dtype)},
            with_seeds(graph, options.seed), at);
}
Output bernoulli(Graph& graph, const Dims& dims, const Operand& p, const Options& options,
                 Location at) {
  Output probability = p.as(graph, f32);
  if (p.is_number()) {
    const auto value = constant_value(probability).item<float>();
    check(value >= 0 && value <= 1, "random::bernoulli (", at, "): p must be in [0, 1], got ",
          value);
  }
  if (is_floating(probability.dtype()) && probability.dtype() != f32)
    probability = op("Cast", {probability}, {{"DstT", f32}}, at);
  const Output numbers = uniform(graph, dims, {.dtype = f32, .seed = options.seed}, at);
  const Output is_one = op("Less", {numbers, probability}, {}, at);
  return options.dtype == boolean ? is_one : op("Cast", {is_one}, {{"DstT", options.dtype}}, at);
}
Output gamma(Graph& graph, const Dims& dims, const Operand& alpha, const GammaOptions& options,
             Location at) {
  check(options.scale > 0, "random::gamma (", at, "): scale must be positive, got ", options.scale);
  const Output drawn = op("RandomGamma", {dims.in(graph, at), alpha.as(graph, options.dtype)},
                          with_seeds(graph, options.seed), at);
  return options.scale == 1 ? drawn : Operand(drawn, at) * options.scale;
}
Output poisson(Graph& graph, const Dims& dims, const Operand& mean, const Options& options,
               Location at) {
  return op("RandomPoissonV2", {dims.in(graph, at), mean.as(graph, f32)},
            with_seeds(graph, options.seed, {{"dtype", options.dtype}}), at);
}
Output crop(Output x, const Dims& size, SeedOptions options, Location at) {
  Graph& graph = graph_of(x, at);
  const Output extents = shape_of(x, i32, at), wanted = cast(size.in(graph, at), i32, at);
  // One number for each axis, below 1, times the number of places.
  const Output share = uniform(graph, {size_of(extents, i32, at)}, {.seed = options.seed}, at);
  const Output places = extents - wanted + Operand(1, at);
  const Output begin =
      minimum(cast(floor(share * cast(places, f32, at), at), i32, at), extents - wanted);
  return op("Slice", {x, begin, wanted}, {}, at);
}
Output shuffle(Output x, SeedOptions options, Location at) {
  return op("RandomShuffle", {x}, with_seeds(graph_of(x, at), options.seed), at);
}
Output permutation(Graph& graph, const Operand& n, SeedOptions options, Location at) {
  return shuffle(arange(graph, n, at), options, at);
}
Output choice(Output x, const Dims& dims, const ChoiceOptions& options, Location at) {
  Graph& graph = graph_of(x, at);
  const Output shape = dims.in(graph, at);
  const Output count = prod(shape, Axes(), {}, at);
  const Output rows = shape_of(x, i32, at)[Index(0, at)];
  Output drawn;  // [count]
  if (!options.replace) {
    check(!options.p, "random::choice (", at, "): with .p, rows may be drawn again: leave out ",
          ".replace = false");
    drawn = shuffle(arange(graph, rows, at), {options.seed}, at);
    // Fails if there are too few.
    drawn = op("Slice",
               {drawn, constant(graph, {0}, "begin", at), expand_dims(cast(count, i32, at), 0, at)},
               {}, at);
  } else if (options.p) {
    check(options.p.shape().is_compatible(Shape{any}) && is_floating(options.p.dtype()),
          "random::choice (", at, "): p must be a vector of probabilities, got '", options.p.name(),
          "' ", options.p.dtype(), options.p.shape());
    const Output logits = log(expand_dims(options.p, 0, at), at);
    drawn = categorical(logits, cast(count, i32, at), {options.seed}, at);
  } else {
    return take(x, integers(graph, dims, 0, rows, {.dtype = i32, .seed = options.seed}, at), 0, at);
  }
  return take(x, reshape(drawn, dims, at), 0, at);
}
Output choice(Graph& graph, const Operand& n, const Dims& dims, const ChoiceOptions& options,
              Location at) {
  return choice(arange(graph, n, at), dims, options, at);
}
Output categorical(Output logits, const Operand& samples, SeedOptions options, Location at) {
  Graph& graph = graph_of(logits, at);
  return op("Multinomial", {logits, samples.as(graph, i32)}, with_seeds(graph, options.seed), at);
}

}  // namespace leat::random
