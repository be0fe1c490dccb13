#include "frontends/cpp/state/staging_area.h"

namespace leat {

StagingArea::StagingArea(Graph& graph, std::string_view name, std::vector<DType> dtypes,
                         const StagingOptions& options, Location at)
    : graph_(&graph),
      name_(name),
      spec_{std::move(dtypes), options.shapes},
      device_(graph.scopes().device) {
  const std::string what = concat("staging area '", name, "' (", at, ")");
  spec_.check_valid(what);
  check(options.capacity >= 0 && options.memory_limit >= 0, what,
        ": the limits must not be negative, got ", options.capacity, " elements and ",
        options.memory_limit, " bytes");
  std::string shared = options.shared_name;
  if (shared.empty()) {  // it has no node of its own that would take the name
    shared = graph.unique_name(concat(graph.scopes().name, name));
    graph.reserve_name(shared);
  }
  attrs_ = {{"dtypes", spec_.dtypes},
            {"capacity", options.capacity},
            {"memory_limit", options.memory_limit},
            {"container", options.container},
            {"shared_name", std::move(shared)}};
}

std::string StagingArea::what(std::string_view operation, Location at) const {
  return concat(operation, " of the staging area '", name_, "' (", at, ")");
}

Node& StagingArea::add(std::string_view op, std::string_view operation, std::vector<Output> inputs,
                       Location at) const {
  const DeviceScope on(*graph_, device_.to_string());
  return graph_->add({.op = std::string(op),
                      .name = concat(name_, "_", operation),
                      .inputs = std::move(inputs),
                      .attrs = attrs_,
                      .location = at});
}

Node& StagingArea::put(const Tuple& values, Location at) const {
  return add("Stage", "put", spec_.inputs(*graph_, values, false, what("put", at)), at);
}

std::vector<Output> StagingArea::get(Location at) const {
  return spec_.outputs(add("Unstage", "get", {}, at));
}

std::vector<Output> StagingArea::peek(const Operand& index, Location at) const {
  check(index.is_constant() || index.output(), what("peek", at), ": the index is an empty Output");
  return spec_.outputs(add("StagePeek", "peek", {index.as(*graph_, i32)}, at));
}

Output StagingArea::size(Location at) const { return add("StageSize", "size", {}, at).output(); }

Node& StagingArea::clear(Location at) const { return add("StageClear", "clear", {}, at); }

}  // namespace leat
