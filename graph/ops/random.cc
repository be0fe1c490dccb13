#include "graph/ops/random.h"

#include "graph/ops/graph_of.h"

namespace leat::random {
namespace {

Output of_shape(std::string_view name, Graph& graph, const Dims& dims, const Options& options,
                Location at) {
  return op(name, {dims.in(graph, at)}, {{"dtype", options.dtype}, {"seed", options.seed}}, at);
}

}  // namespace

Output normal(Graph& graph, const Dims& dims, const Options& options, Location at) {
  return of_shape("RandomStandardNormal", graph, dims, options, at);
}
Output uniform(Graph& graph, const Dims& dims, const Options& options, Location at) {
  return of_shape("RandomUniform", graph, dims, options, at);
}
Output truncated_normal(Graph& graph, const Dims& dims, const Options& options, Location at) {
  return of_shape("TruncatedNormal", graph, dims, options, at);
}
Output integers(Graph& graph, const Dims& dims, const Operand& low, const Operand& high,
                Options options, Location at) {
  return op("RandomUniformInt",
            {dims.in(graph, at), low.as(graph, options.dtype), high.as(graph, options.dtype)},
            {{"seed", options.seed}}, at);
}
Output shuffle(Output x, int64_t seed, Location at) {
  return op("RandomShuffle", {x}, {{"seed", seed}}, at);
}
Output categorical(Output logits, const Operand& samples, int64_t seed, Location at) {
  return op("Multinomial", {logits, samples.as(graph_of(logits, at), i32)}, {{"seed", seed}}, at);
}

}  // namespace leat::random
