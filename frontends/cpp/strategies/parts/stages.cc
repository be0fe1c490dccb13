#include "frontends/cpp/strategies/parts/stages.h"

#include <algorithm>

#include "frontends/cpp/session.h"

namespace leat {

NodeCosts measured_costs(const Graph& graph, const std::vector<Output>& targets) {
  Graph here = graph.clone();
  for (const auto& node : here.nodes()) node->requested_device = {};
  Targets list;
  for (const Output& target : targets)
    list.emplace_back(*here.nodes()[static_cast<size_t>(target.node->id)]);
  NodeCosts out{.seconds = std::vector<double>(graph.size()),
                .bytes = std::vector<double>(graph.size())};
  Session session(here, {.fuse = false, .threads = 1});  // each node has a time of its own
  session.initialize();
  constexpr int runs = 5;
  session.run({}, std::vector<Output>{}, list);
  std::vector<double> least(graph.size(), std::numeric_limits<double>::infinity());
  for (int run = 0; run < runs; ++run) {
    RunMetadata metadata;
    session.run({}, std::vector<Output>{}, list, {.trace = true}, &metadata);
    std::vector<double> sum(graph.size());
    for (const TraceEvent& event : metadata.events) {
      const Node* const node = here.find(event.node);
      if (node == nullptr) continue;  // made by the compiler
      const auto id = static_cast<size_t>(node->id);
      sum[id] += static_cast<double>(event.end_ns - event.start_ns) * 1e-9;
      out.bytes[id] = static_cast<double>(event.output_bytes);
    }
    for (size_t i = 0; i < sum.size(); ++i) least[i] = std::min(least[i], sum[i]);
  }
  out.seconds = std::move(least);
  return out;
}

namespace {

double extent(int64_t n) { return n < 0 ? 1 : static_cast<double>(n); }

double elements(const Shape& shape) {
  double out = 1;
  for (int i = 0; shape.has_rank() && i < shape.rank(); ++i) out *= extent(shape[i]);
  return out;
}

// Multiplications for each number of the result.
double products(const Node& node) {
  const auto shape = [&](size_t i) { return node.inputs[i].shape(); };
  const bool is_product = node.is("MatMul") || node.is("BatchMatMul") || node.is("BatchMatMulV2");
  if (is_product && shape(0).has_rank() && shape(0).rank() >= 2) {
    const std::string_view key = node.is("MatMul") ? "transpose_a" : "adj_x";
    return extent(shape(0)[shape(0).rank() - (node.attr<bool>(key) ? 2 : 1)]);
  }
  if (node.is("Conv2D") && shape(1).has_rank())
    return elements(shape(1)) / extent(shape(1)[shape(1).rank() - 1]);
  return 0;
}

}  // namespace

NodeCosts estimated_costs(const Graph& graph) {
  NodeCosts out{.seconds = std::vector<double>(graph.size()),
                .bytes = std::vector<double>(graph.size())};
  for (const auto& node : graph.nodes()) {
    const auto id = static_cast<size_t>(node->id);
    for (const OutputSpec& output : node->outputs) {
      if (output.is_handle()) continue;
      const double n = elements(output.shape);
      out.seconds[id] += n * std::max(1.0, 2 * products(*node)) * 1e-9;
      out.bytes[id] += n * static_cast<double>(dtype_size(output.dtype));
    }
  }
  return out;
}

namespace {

// Where cuts are considered, with 0 and n.
std::vector<size_t> places(std::span<const double> costs, std::span<const double> before) {
  constexpr size_t many = 1000;
  double all = 0;
  for (const double cost : costs) all += cost;
  std::vector<size_t> out = {0};
  const bool are_few = costs.size() <= many;
  double so_far = 0;
  size_t last_part = 0, best = 0;  // best: 0 if there is none yet
  for (size_t i = 1; i < costs.size(); ++i) {
    so_far += costs[i - 1];
    if (before[i] == no_cut) continue;
    if (are_few) {
      out.push_back(i);
      continue;
    }
    const auto part = static_cast<size_t>(all > 0 ? so_far / all * static_cast<double>(many) : 0);
    if (best != 0 && part != last_part) {
      out.push_back(best);
      best = 0;
    }
    if (best == 0 || before[i] < before[best]) best = i;
    last_part = part;
  }
  if (best != 0) out.push_back(best);
  out.push_back(costs.size());
  return out;
}

}  // namespace

std::vector<size_t> cut_into_stages(std::span<const double> costs, std::span<const double> before,
                                    int stages) {
  check_internal(costs.size() == before.size(), "a cost for each place");
  const std::vector<size_t> at = places(costs, before);
  const size_t n = at.size() - 1;  // segments between places
  const auto k = static_cast<size_t>(stages);
  check(stages > 0 && n >= k, "the model can be cut in ", n - 1, " places, so not into ", stages,
        " stages: ask for fewer");
  std::vector<double> sum(at.size());
  for (size_t p = 1, i = 0; p < at.size(); ++p) {
    sum[p] = sum[p - 1];
    for (; i < at[p]; ++i) sum[p] += costs[i];
  }
  const auto border = [&](size_t p) { return p == 0 || p == n ? 0 : before[at[p]]; };
  // best[s][p]: the most expensive of s + 1 stages that end at place p; from[s][p]: where the last
  // of them begins. Of equal ones, that with the cheapest cuts.
  struct Best {
    double largest = std::numeric_limits<double>::infinity(), all_cuts = 0;
    size_t from = 0;
  };
  std::vector<std::vector<Best>> best(k, std::vector<Best>(n + 1));
  for (size_t s = 0; s < k; ++s) {
    for (size_t p = s + 1; p <= n; ++p) {
      for (size_t q = s; q < p; ++q) {
        if (s == 0 && q > 0) break;
        const double stage = sum[p] - sum[q] + border(q) + border(p);
        const double largest = s == 0 ? stage : std::max(best[s - 1][q].largest, stage);
        const double all_cuts = border(q) + (s == 0 ? 0 : best[s - 1][q].all_cuts);
        Best& old = best[s][p];
        if (largest < old.largest || (largest == old.largest && all_cuts < old.all_cuts))
          old = {largest, all_cuts, q};
      }
    }
  }
  std::vector<size_t> out(k);
  for (size_t s = k, p = n; s-- > 0;) {
    p = best[s][p].from;
    out[s] = at[p];
  }
  return out;
}

}  // namespace leat
