#include "graph/ops/seed.h"

#include "graph/ops/operand.h"
#include "graph/shape_inference.h"

namespace leat::random {
namespace {
constexpr const char* collection = "random_seed";
}  // namespace

void seed(Graph& graph, int64_t seed, Location at) {
  graph.add_to_collection(collection, constant(graph, Tensor::scalar(seed), "random_seed", at));
}

Seeds seeds(const Graph& graph, int64_t own) {
  const std::vector<Output>& given = graph.collection(collection);
  if (given.empty()) return {own, 0};
  const auto of_graph = constant_value(given.back()).item<int64_t>();
  return {of_graph, own != 0 ? own : static_cast<int64_t>(graph.size())};
}

}  // namespace leat::random
