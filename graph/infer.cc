// infer: shapes anew, because a feed may have replaced a constant that they were derived from.
#include "graph/pipeline.h"
#include "graph/rebuild.h"
#include "graph/shape_inference.h"

namespace leat {

Graph infer(const Graph& graph) {
  Rebuild rebuild(graph);
  for (const auto& node : graph.nodes()) {
    infer_shapes_or_defer(rebuild.copy(*node));
  }
  return std::move(rebuild).finish();
}

}  // namespace leat
