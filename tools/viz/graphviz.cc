// The only file that uses Graphviz. Not thread-safe: libgvc has global state.
#include <graphviz/gvc.h>

#include <memory>

#include "core/error.h"
#include "tools/viz/render.h"

namespace leat::viz {
namespace {

std::string& complaints() {
  static std::string text;
  return text;
}

int keep_complaint(char* text) {
  complaints() += text;
  return 0;
}

}  // namespace

std::string draw(const std::string& dot, const std::string& format) {
  agseterrf(keep_complaint);
  complaints().clear();
  const std::unique_ptr<GVC_t, int (*)(GVC_t*)> context(gvContext(), gvFreeContext);
  const std::unique_ptr<Agraph_t, int (*)(Agraph_t*)> graph(agmemread(dot.c_str()), agclose);
  if (graph == nullptr) fail(Code::internal, "Graphviz cannot read our DOT: ", complaints());
  if (gvLayout(context.get(), graph.get(), "dot") != 0)
    fail(Code::internal, "Graphviz cannot lay out the graph: ", complaints());
  char* data = nullptr;
  unsigned length = 0;
  const int failed = gvRenderData(context.get(), graph.get(), format.c_str(), &data, &length);
  std::string out = failed == 0 ? std::string(data, length) : "";
  if (data != nullptr) gvFreeRenderData(data);
  gvFreeLayout(context.get(), graph.get());
  if (failed != 0 || out.empty()) {
    fail(Code::internal, "Graphviz cannot write ", format,
         " (its plug-in may be missing; `dot -c` lists them): ", complaints());
  }
  return out;
}

}  // namespace leat::viz
