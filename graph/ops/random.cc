#include "graph/ops/random.h"

#include "graph/ops/graph_of.h"

namespace leat::random {
namespace {

// The numbers that the op draws, times `scale`, plus `offset`.
Output drawn(std::string_view name, Graph& graph, const Dims& dims, const Options& options,
             double scale, double offset, Location at) {
  Output out =
      op(name, {dims.in(graph, at)}, {{"dtype", options.dtype}, {"seed", options.seed}}, at);
  if (scale != 1) out = Operand(out, at) * scale;
  return offset == 0 ? out : Operand(out, at) + offset;
}

void check_stddev(std::string_view what, double stddev, Location at) {
  check(stddev >= 0, "random::", what, " (", at, "): stddev must not be negative, got ", stddev);
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
Output uniform(Graph& graph, const Dims& dims, const UniformOptions& options, Location at) {
  const auto& [low, high, dtype, seed] = options;
  check(low < high, "random::uniform (", at, "): low must be below high, got ", low, " and ", high);
  return drawn("RandomUniform", graph, dims, {dtype, seed}, high - low, low, at);
}
Output integers(Graph& graph, const Dims& dims, const Operand& low, const Operand& high,
                Options options, Location at) {
  return op("RandomUniformInt",
            {dims.in(graph, at), low.as(graph, options.dtype), high.as(graph, options.dtype)},
            {{"seed", options.seed}}, at);
}
Output shuffle(Output x, SeedOptions options, Location at) {
  return op("RandomShuffle", {x}, {{"seed", options.seed}}, at);
}
Output categorical(Output logits, const Operand& samples, SeedOptions options, Location at) {
  return op("Multinomial", {logits, samples.as(graph_of(logits, at), i32)},
            {{"seed", options.seed}}, at);
}

}  // namespace leat::random
