#include "graph/custom_gradient.h"

#include <map>
#include <mutex>

#include "graph/ops.h"

namespace leat {
namespace {

// Nodes have the numbers of their functions, which copies of a node share.
constexpr std::string_view function_attr = "_custom_gradient", xs_attr = "_custom_gradient_xs";

struct Functions {
  std::mutex mutex;
  std::map<int64_t, CustomGradient> by_number;
};
Functions& functions() {
  static auto* const all = new Functions;
  return *all;
}

int64_t number_of(CustomGradient function) {
  Functions& all = functions();
  const std::lock_guard lock(all.mutex);
  const auto number = static_cast<int64_t>(all.by_number.size()) + 1;
  all.by_number.emplace(number, std::move(function));
  return number;
}

CustomGradient function_of(const Node& node) {
  const auto number = node.attr<int64_t>(function_attr);
  Functions& all = functions();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_number.find(number);
  check(found != all.by_number.end(), "the gradient of '", node.name,
        "' is a function of the process that made the graph");
  return found->second;
}

}  // namespace

std::vector<Output> with_gradient(const std::vector<Output>& xs, const std::vector<Output>& ys,
                                  CustomGradient gradient, Location at) {
  // IdentityN of both: so the node has the xs, and what depends on the ys reads the copies.
  std::vector<Output> inputs = ys;
  inputs.insert(inputs.end(), xs.begin(), xs.end());
  std::vector<Output> out =
      op_outputs("IdentityN", inputs,
                 {{std::string(function_attr), number_of(std::move(gradient))},
                  {std::string(xs_attr), static_cast<int64_t>(xs.size())}},
                 at);
  out.resize(ys.size());
  return out;
}

bool has_custom_gradient(const Node& node) { return node.view().has(function_attr); }

std::vector<Output> custom_gradient_of(Node& node, const std::vector<Output>& dy) {
  const auto xs = static_cast<size_t>(node.attr<int64_t>(xs_attr));
  const size_t ys = node.inputs.size() - xs;
  std::vector<Output> dys(dy.begin(), dy.begin() + static_cast<int64_t>(ys)), y;
  for (size_t i = 0; i < ys; ++i) {
    y.push_back(node.output(static_cast<int>(i)));
    if (!dys[i]) dys[i] = op("ZerosLike", {y[i]});
  }
  const std::vector<Output> x(node.inputs.begin() + static_cast<int64_t>(ys), node.inputs.end());
  const std::vector<Output> dx = function_of(node)(x, y, dys);
  check(dx.size() == xs, "the custom gradient of ", describe(node), " gives ", dx.size(),
        " gradients for ", xs, " inputs");
  std::vector<Output> out(ys);
  out.insert(out.end(), dx.begin(), dx.end());
  return out;
}

}  // namespace leat
