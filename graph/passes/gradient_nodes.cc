#include "graph/passes/gradient_nodes.h"

#include <algorithm>

namespace leat {

bool is_called_gradient(std::string_view name) {
  constexpr std::string_view scope = "gradients", digits = "0123456789";
  for (size_t begin = 0, end; (end = name.find('/', begin)) != std::string_view::npos;
       begin = end + 1) {
    std::string_view part = name.substr(begin, end - begin);
    if (!part.starts_with(scope)) continue;
    part.remove_prefix(scope.size());
    const bool is_numbered =
        part.size() > 1 && part[0] == '_' && part.find_first_not_of(digits, 1) == part.npos;
    if (part.empty() || is_numbered) return true;
  }
  return false;
}

GradientNodes::GradientNodes(const Graph& graph)
    : is_gradient_(graph.size()), comes_from_(graph.size(), -1) {
  for (const auto& node : graph.nodes()) {
    if (!is_called_gradient(node->name)) {
      // All others are there from the beginning.
      if (!node->inputs.empty()) comes_from_[node->id] = node->id;
      continue;
    }
    is_gradient_[node->id] = true;
    for (const Output& input : node->inputs)
      comes_from_[node->id] = std::max(comes_from_[node->id], comes_from_[input.node->id]);
    last_forward_ = std::max(last_forward_, comes_from_[node->id]);
  }
}

}  // namespace leat
