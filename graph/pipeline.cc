// The list of passes, in order.
#include "graph/pipeline.h"

#include <algorithm>

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

PartitionedGraph run_pipeline(const Graph& graph, const PipelineOptions& options) {
  const auto finish_pass = [&](std::string_view pass, const Graph& result) {
    verify(result, pass);
    if (options.after_pass) options.after_pass(pass, result);
  };

  StepSignature signature = options.signature;
  std::optional<Graph> connected;
  if (!signature.connections.empty()) {
    connected = connect(graph, signature);
    finish_pass("connect", *connected);
  }
  Graph step = prune(connected ? *connected : graph, signature);
  connected.reset();
  finish_pass("prune", step);
  FetchFeeds fetch_feeds;
  if (signature.is_partial) {
    fetch_feeds = feeds_behind_fetches(step, signature);
    step = defer(step, options.placement.default_device, signature);
    finish_pass("defer", step);
  }
  const auto finish_if = [&](bool has_changed, std::string_view pass) {
    if (has_changed) verify(step, pass);
    if (options.after_pass) options.after_pass(pass, step);
  };
  finish_if(structure_loops(step, signature), "structure_loops");
  finish_if(split_identity_n(step, signature), "split_identity_n");
  infer(step);
  finish_if(false, "infer");  // writes shapes, of which verify knows nothing
  finish_if(read_late(step, &options.placement), "read_late");
  if (options.simplify) {
    simplify(step, signature);
    finish_pass("simplify", step);
  }
  place(step, options.placement);
  finish_if(false, "place");  // writes devices alone
  std::vector<CutEdge> loop_edges;
  finish_if(spread_loops(step, loop_edges), "spread_loops");
  PartitionedGraph out = partition(std::move(step), signature,
                                   {.bfloat16_edges = options.bfloat16_edges,
                                    .client = options.placement.default_device,
                                    .first_edge = static_cast<int64_t>(loop_edges.size())});
  out.edges.insert(out.edges.begin(), loop_edges.begin(), loop_edges.end());
  for (const auto& [device, part] : out.partitions) finish_pass("partition", part);
  out.fetch_feeds = std::move(fetch_feeds);
  return out;
}

}  // namespace leat
