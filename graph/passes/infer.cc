// infer: infers shapes again, since a feed may have replaced a constant that they were derived
// from.
#include "graph/passes/pipeline.h"
#include "graph/shape_inference.h"

namespace leat {

void infer(Graph& graph) {
  for (const auto& node : graph.nodes()) infer_shapes_or_defer(*node);
}

}  // namespace leat
