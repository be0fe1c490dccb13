// A graph, given as text, after the pass simplify.
#pragma once

#include <string_view>
#include <utility>

#include "graph/passes/pipeline.h"
#include "graph/text.h"

namespace leat {

inline Graph simplified(Graph graph, const StepSignature& signature,
                        Simplify extent = Simplify::all) {
  simplify(graph, signature, extent);
  verify(graph, "simplify");
  return graph;
}

inline std::string simplified_text(std::string_view text, const StepSignature& signature) {
  return dump(simplified(parse(text), signature), {.attrs = false});
}

}  // namespace leat
