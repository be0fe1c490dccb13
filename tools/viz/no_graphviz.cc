// Replaces graphviz.cc in builds without libgvc.
#include "core/error.h"
#include "tools/viz/render.h"

namespace leat::viz {

std::string draw(const std::string&, const std::string& format) {
  fail(Code::unimplemented,
       "this leat-viz was built without Graphviz, so it writes dot and json, not ", format,
       "; install libgraphviz-dev and configure again, or run `dot -T", format,
       "` on the dot file");
}

}  // namespace leat::viz
