// The list of passes, in order.
#include "graph/passes/pipeline.h"

#include <algorithm>
#include <array>
#include <utility>

#include "graph/endpoint.h"

namespace leat {
namespace {

void sort_unique(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

void complete_endpoints(std::vector<std::string>& names) {
  for (std::string& name : names) name = Endpoint::complete(std::move(name));
  sort_unique(names);
}

void append_list(std::string& out, std::string_view title, const std::vector<std::string>& names) {
  if (names.empty()) return;
  if (!out.empty()) out += "; ";
  out += concat(title, " ");
  for (size_t i = 0; i < names.size(); ++i) out += concat(i == 0 ? "" : ", ", names[i]);
}

PassResult changed_if(bool has_changed) {
  return has_changed ? PassResult::changed : PassResult::unchanged;
}

PassResult run_connect(Graph& graph, StepContext& step) {
  if (step.signature.connections.empty()) return PassResult::skipped;
  graph = connect(step.whole, step.signature);
  return PassResult::changed;
}

PassResult run_prune(Graph& graph, StepContext& step) {
  graph = prune(step.signature.connections.empty() ? step.whole : graph, step.signature);
  return PassResult::changed;
}

PassResult run_defer(Graph& graph, StepContext& step) {
  if (!step.signature.is_partial) return PassResult::skipped;
  step.fetch_feeds = feeds_behind_fetches(graph, step.signature);
  graph = defer(graph, step.options.placement.default_device, step.signature);
  return PassResult::changed;
}

PassResult run_structure_loops(Graph& graph, StepContext& step) {
  return changed_if(structure_loops(graph, step.signature, step.options.simplify));
}

PassResult run_split_identity_n(Graph& graph, StepContext& step) {
  return changed_if(split_identity_n(graph, step.signature));
}

PassResult run_infer(Graph& graph, StepContext&) {
  infer(graph);
  return PassResult::unchanged;  // it writes shapes, of which verify knows nothing
}

PassResult run_expand_collectives(Graph& graph, StepContext& step) {
  const bool has_changed = expand_collectives(graph, step.options.collective_leader,
                                              step.options.placement.default_device);
  return has_changed ? PassResult::changed : PassResult::skipped;
}

PassResult run_read_late(Graph& graph, StepContext& step) {
  return changed_if(read_late(graph, &step.options.placement));
}

PassResult run_simplify(Graph& graph, StepContext& step) {
  if (step.options.simplify == Simplify::nothing) return PassResult::skipped;
  simplify(graph, step.signature, step.options.simplify);
  return PassResult::changed;
}

PassResult run_place(Graph& graph, StepContext& step) {
  place(graph, step.options.placement);
  return PassResult::unchanged;  // it writes devices alone
}

PassResult run_lower_collectives(Graph& graph, StepContext& step) {
  const auto& devices = step.options.placement.devices;
  return lower_collectives(graph, step.signature, devices) ? PassResult::changed
                                                           : PassResult::skipped;
}

PassResult run_simplify_placed(Graph& graph, StepContext& step) {
  if (step.options.simplify == Simplify::nothing) return PassResult::skipped;
  return changed_if(simplify_placed(graph, step.signature));
}

PassResult run_mixed_precision(Graph& graph, StepContext& step) {
  if (step.options.mixed_precision == MixedPrecision::nothing) return PassResult::skipped;
  return changed_if(mixed_precision(graph, step.signature, step.options.mixed_precision,
                                    step.options.placement.devices));
}

PassResult run_spread_loops(Graph& graph, StepContext& step) {
  return changed_if(spread_loops(graph, step.loop_edges));
}

bool fuses(const StepContext& step) {
  return step.options.simplify != Simplify::nothing && step.options.fuse;
}

PassResult run_fuse_attention(Graph& graph, StepContext& step) {
  const bool has_changed =
      fuses(step) && fuse_attention(graph, step.signature, step.options.placement.devices);
  return has_changed ? PassResult::changed : PassResult::skipped;
}

PassResult run_fuse(Graph& graph, StepContext& step) {
  if (!fuses(step)) return PassResult::skipped;
  return changed_if(fuse(graph, step.signature, step.options.placement.devices));
}

PassResult run_recompute(Graph& graph, StepContext& step) {
  if (step.options.recompute == Recompute::nothing) return PassResult::skipped;
  return changed_if(recompute(graph, step.signature, step.options.recompute));
}

PassResult run_partition(Graph& graph, StepContext& step) {
  std::vector<CutEdge>& first = step.loop_edges;
  PartitionedGraph& out =
      step.parts.emplace(partition(std::move(graph), step.signature,
                                   {.bfloat16_edges = step.options.bfloat16_edges,
                                    .client = step.options.placement.default_device,
                                    .first_edge = static_cast<int64_t>(first.size())}));
  out.edges.insert(out.edges.begin(), first.begin(), first.end());
  out.fetch_feeds = std::move(step.fetch_feeds);
  return PassResult::changed;
}

PassResult run_receive_in_place(Graph&, StepContext& step) {
  if (!fuses(step)) return PassResult::skipped;
  return receive_in_place(*step.parts) ? PassResult::changed : PassResult::skipped;
}

constexpr auto passes = std::to_array<Pass>({{"connect", run_connect},
                                             {"prune", run_prune},
                                             {"defer", run_defer},
                                             {"structure_loops", run_structure_loops},
                                             {"split_identity_n", run_split_identity_n},
                                             {"infer", run_infer},
                                             {"expand_collectives", run_expand_collectives},
                                             {"read_late", run_read_late},
                                             {"simplify", run_simplify},
                                             {"place", run_place},
                                             {"lower_collectives", run_lower_collectives},
                                             {"simplify_placed", run_simplify_placed},
                                             {"mixed_precision", run_mixed_precision},
                                             {"spread_loops", run_spread_loops},
                                             {"fuse_attention", run_fuse_attention},
                                             {"fuse", run_fuse},
                                             {"recompute", run_recompute},
                                             {"partition", run_partition},
                                             {"receive_in_place", run_receive_in_place}});

}  // namespace

StepSignature StepSignature::normalised() const {
  StepSignature out = *this;
  complete_endpoints(out.feeds);
  complete_endpoints(out.fetches);
  sort_unique(out.targets);
  out.connections.clear();
  for (const auto& [to, from] : connections)
    out.connections.emplace(Endpoint::complete(to), Endpoint::complete(from));
  return out;
}

std::string StepSignature::to_string() const {
  std::string out;
  append_list(out, "feeds", feeds);
  append_list(out, "fetches", fetches);
  append_list(out, "targets", targets);
  std::vector<std::string> edges;
  for (const auto& [to, from] : connections) edges.push_back(concat(from, " as ", to));
  append_list(out, "connections", edges);
  if (is_partial) out += "; a partial run";
  return out;
}

std::span<const Pass> pipeline() { return passes; }

PartitionedGraph run_pipeline(const Graph& graph, const PipelineOptions& options) {
  StepContext step{.whole = graph, .options = options, .signature = options.signature};
  Graph made;
  for (const Pass& pass : pipeline()) {
    const PassResult result = pass.run(made, step);
    if (result == PassResult::skipped) continue;
    const auto finish = [&](const Graph& after) {
      if (result == PassResult::changed) verify(after, pass.name);
      if (options.after_pass) options.after_pass(pass.name, after);
    };
    if (!step.parts) {
      finish(made);
    } else {
      for (const auto& [device, part] : step.parts->partitions) finish(part);
    }
  }
  return std::move(*step.parts);
}

}  // namespace leat
