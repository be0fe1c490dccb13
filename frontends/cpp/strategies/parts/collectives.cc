#include "frontends/cpp/strategies/parts/collectives.h"

#include <algorithm>
#include <numeric>

#include "frontends/cpp/strategies/parts/all_reduce_ways.h"
#include "frontends/cpp/strategies/parts/reduction.h"
#include "frontends/cpp/variables.h"
#include "graph/ops/collective_result.h"

namespace leat::collectives {
namespace {

// Of equal shapes, which are complete unless only an axis must be known.
Graph& checked(const Replicas& replicas, const PerReplica& values, std::string_view what,
               Location at, bool is_complete = true) {
  check(std::ssize(values) == replicas.count(), what, " (", at, ") needs a value of each of the ",
        replicas.count(), " replicas, got ", values.size());
  for (size_t k = 0; k < values.size(); ++k) {
    check(bool{values[k]}, what, " (", at, "): the value of replica ", k, " is an empty Output");
    check(!is_complete || values[k].shape().is_complete(), what, " (", at, "): the shape of '",
          values[k].name(), "' must be complete, got ", values[k].shape());
    const Output& first = values.front();
    check(values[k].dtype() == first.dtype() && values[k].shape() == first.shape(), what, " (", at,
          "): replica ", k, " has ", values[k].dtype(), values[k].shape(), ", but replica 0 has ",
          first.dtype(), first.shape());
  }
  return values.front().graph();
}

void check_axis(const PerReplica& values, int axis, std::string_view what, Location at) {
  const Shape& shape = values.front().shape();
  check(shape.rank() != 0, what, " (", at, ") cuts along axis ", axis,
        ", but the values are scalars");
  check(shape.has_rank() && axis >= 0 && axis < shape.rank() && shape[axis] != any, what, " (", at,
        ") cuts along axis ", axis, ", but the values are ", shape,
        ": give an axis of a known extent");
}

// The workers that share a host, or what the options say.
std::vector<std::vector<int>> groups_of(const Replicas& replicas, const AllReduceOptions& options) {
  if (options.workers_per_group == 0) return replicas.by_host();
  std::vector<std::vector<int>> out;
  for (int k = 0; k < replicas.count(); ++k) {
    if (k % options.workers_per_group == 0) out.emplace_back();
    out.back().push_back(k);
  }
  return out;
}

// By replica: a node that has run when all tensors are there.
std::vector<Node*> ends(const Replicas& replicas, const std::vector<PerReplica>& tensors) {
  Graph& graph = tensors.front().front().graph();
  return Exchange(replicas, graph, "all_reduce").on_each([&](size_t k) {
    std::vector<Output> own;
    for (const PerReplica& values : tensors) own.push_back(values[k]);
    return &group(graph, own, "all_there");
  });
}

// The way that a vector of so many bytes goes: one of those that the options may name.
Algorithm chosen(const Output& flat, const Replicas& replicas,
                 const std::vector<std::vector<int>>& groups, const AllReduceOptions& options) {
  const int n = replicas.count();
  const bool has_groups = groups.size() > 1 && std::ssize(groups) < n;
  if (flat.shape().elements() < n || is_sent_whole(flat, n, options)) return Algorithm::direct;
  if (options.algorithm == Algorithm::automatic)
    return has_groups ? Algorithm::hierarchical : Algorithm::chunks;
  if (options.algorithm == Algorithm::hierarchical && !has_groups) return Algorithm::chunks;
  return options.algorithm;
}

PerReplica reduced_by(Algorithm algorithm, const Exchange& exchange, const Replicas& replicas,
                      const std::vector<std::vector<int>>& groups, const PerReplica& flat,
                      Reduction reduction) {
  switch (algorithm) {
    case Algorithm::ring:
      return by_ring(exchange, flat, reduction);
    case Algorithm::halving_doubling:
      return by_halving(exchange, flat, reduction);
    case Algorithm::tree:
      return by_tree(exchange, flat, reduction);
    case Algorithm::hierarchical:
      return by_groups(exchange, flat, groups, reduction);
    case Algorithm::direct:
      return directly(exchange, flat, reduction);
    case Algorithm::automatic:
    case Algorithm::chunks:
    case Algorithm::servers:
      break;
  }
  const std::vector<Owner> owners = owners_of(replicas, algorithm == Algorithm::servers);
  if (flat.front().shape().elements() < std::ssize(owners))
    return directly(exchange, flat, reduction);
  return gathered(exchange, scattered(exchange, flat, owners, reduction));
}

// Marked, so that GPUs can leave the exchange to a library. `own`: by replica, where it is.
PerReplica marked(const Exchange& exchange, CollectiveKind kind, Reduction reduction,
                  const PerReplica& own, const PerReplica& results) {
  if (reduction == Reduction::adasum) return results;
  return exchange.on_each([&](size_t k) {
    return collective_result(results[k], own[k],
                             {.kind = kind,
                              .is_mean = reduction == Reduction::mean,
                              .group = exchange.name(),
                              .rank = static_cast<int64_t>(k),
                              .members = std::ssize(own)});
  });
}

}  // namespace

const std::map<std::string, Algorithm>& algorithms() {
  static const std::map<std::string, Algorithm> all = {
      {"automatic", Algorithm::automatic},
      {"direct", Algorithm::direct},
      {"chunks", Algorithm::chunks},
      {"servers", Algorithm::servers},
      {"hierarchical", Algorithm::hierarchical},
      {"ring", Algorithm::ring},
      {"halving_doubling", Algorithm::halving_doubling},
      {"tree", Algorithm::tree},
  };
  return all;
}

std::vector<PerReplica> all_reduce(const Replicas& replicas, const std::vector<PerReplica>& tensors,
                                   const AllReduceOptions& options, Location at) {
  check(options.bucket_bytes > 0 && options.trip_bytes >= 0 && options.workers_per_group >= 0,
        "all_reduce (", at, "): bucket_bytes must be positive, trip_bytes and workers_per_group ",
        "not negative, got ", options.bucket_bytes, ", ", options.trip_bytes, " and ",
        options.workers_per_group);
  if (tensors.empty()) return {};
  for (const PerReplica& values : tensors) checked(replicas, values, "all_reduce", at);
  if (replicas.count() == 1) return tensors;
  Graph& graph = tensors.front().front().graph();
  const auto n = static_cast<int64_t>(replicas.count());
  std::vector<PerReplica> out(tensors.size(), PerReplica(static_cast<size_t>(n)));
  // Each tensor by itself: its angles count.
  const bool is_adasum = options.reduction == Reduction::adasum;
  const int64_t bucket_bytes = is_adasum ? 1 : options.bucket_bytes;
  const std::vector<std::vector<int>> groups = groups_of(replicas, options);
  std::vector<Output> firsts;
  for (const PerReplica& values : tensors) firsts.push_back(values.front());
  std::vector<std::vector<size_t>> buckets = make_buckets(firsts, bucket_bytes);
  if (options.priority) std::reverse(buckets.begin(), buckets.end());
  const std::vector<Node*> all_there =
      options.overlap ? std::vector<Node*>() : ends(replicas, tensors);
  for (const std::vector<size_t>& bucket : buckets) {
    const Exchange exchange(replicas, graph, "all_reduce");
    std::vector<int64_t> sizes;
    for (const size_t i : bucket) sizes.push_back(tensors[i].front().shape().elements());
    const PerReplica flat = exchange.on_each([&](size_t k) {
      std::vector<Output> rows;
      for (const size_t i : bucket)
        rows.push_back(reshaped(tensors[i][k], {tensors[i][k].shape().elements()}));
      const Output all = joined(rows);
      if (all_there.empty()) return all;
      const ControlScope after(graph, {*all_there[k]});
      return identity(all);
    });
    PerReplica sums = reduced_by(chosen(flat.front(), replicas, groups, options), exchange,
                                 replicas, groups, flat, options.reduction);
    if (options.algorithm == Algorithm::automatic)
      sums = marked(exchange, CollectiveKind::all_reduce, options.reduction, flat, sums);
    exchange.on_each([&](size_t k) {
      const std::vector<Output> parts = cut(sums[k], sizes);
      for (size_t j = 0; j < bucket.size(); ++j)
        out[bucket[j]][k] = reshaped(parts[j], tensors[bucket[j]][k].shape());
      return k;
    });
  }
  return out;
}

PerReplica all_reduce(const Replicas& replicas, const PerReplica& values,
                      const AllReduceOptions& options, Location at) {
  return all_reduce(replicas, std::vector<PerReplica>{values}, options, at).front();
}

void all_reduce(const Replicas& replicas, Gradients& gradients, const std::vector<size_t>& which,
                const AllReduceOptions& options, Location at) {
  if (replicas.count() == 1 || which.empty()) return;
  std::vector<PerReplica> tensors;
  for (auto v = which.rbegin(); v != which.rend(); ++v) {  // as backward makes them
    tensors.emplace_back();
    for (auto& of_replica : gradients) {
      GradientAndVariable& each = of_replica[*v];
      check(bool{each.gradient}, "all_reduce (", at, "): the loss of one replica depends on the ",
            "variable '", variable_name(each.variable), "', and that of another does not");
      each = densify(each, at);
      const ColocationScope with(each.variable.graph(), {each.variable});
      each.gradient = reshaped(each.gradient, each.variable.shape());
      tensors.back().push_back(each.gradient);
    }
  }
  const std::vector<PerReplica> reduced = all_reduce(replicas, tensors, options, at);
  for (size_t i = 0; i < which.size(); ++i) {
    for (size_t k = 0; k < gradients.size(); ++k)
      gradients[k][which[which.size() - 1 - i]].gradient = reduced[i][k];
  }
}

void all_reduce(const Replicas& replicas, Gradients& gradients, const AllReduceOptions& options,
                Location at) {
  std::vector<size_t> all(gradients.front().size());
  std::iota(all.begin(), all.end(), size_t{0});
  all_reduce(replicas, gradients, all, options, at);
}

PerReplica all_reduce_directly(const Replicas& replicas, const PerReplica& values,
                               Reduction reduction, Location at) {
  Graph& graph = checked(replicas, values, "all_reduce_directly", at, false);
  return directly(Exchange(replicas, graph, "all_reduce"), values, reduction);
}

PerReplica reduce_scatter(const Replicas& replicas, const PerReplica& values, Reduction reduction,
                          int axis, Location at) {
  Graph& graph = checked(replicas, values, "reduce_scatter", at, false);
  check_axis(values, axis, "reduce_scatter", at);
  check(values.front().shape()[axis] >= replicas.count(), "reduce_scatter (", at,
        ") needs a row for ", "each of the ", replicas.count(), " replicas, got ",
        values.front().shape());
  check(reduction != Reduction::adasum, "reduce_scatter (", at, "): adasum needs whole tensors");
  const Exchange exchange(replicas, graph, "reduce_scatter");
  const PerReplica parts = scattered(exchange, values, owners_of(replicas, false), reduction, axis);
  if (axis != 0 || values.front().shape()[0] % replicas.count() != 0) return parts;
  return marked(exchange, CollectiveKind::reduce_scatter, reduction, values, parts);
}

PerReplica all_gather(const Replicas& replicas, const PerReplica& values, int axis, Location at) {
  Graph& graph = checked(replicas, values, "all_gather", at, false);
  check_axis(values, axis, "all_gather", at);
  const Exchange exchange(replicas, graph, "all_gather");
  const PerReplica all = gathered(exchange, values, axis);
  if (axis != 0) return all;
  return marked(exchange, CollectiveKind::all_gather, Reduction::sum, values, all);
}

PerReplica broadcast(const Replicas& replicas, Output value, Location at) {
  check(bool{value}, "broadcast (", at, "): the value is an empty Output");
  return Exchange(replicas, value.graph(), "broadcast").on_each([&](size_t) {
    return identity(value);
  });
}

PerReplica all_to_all(const Replicas& replicas, const PerReplica& values, int split_axis,
                      int concat_axis, Location at) {
  Graph& graph = checked(replicas, values, "all_to_all", at, false);
  check_axis(values, split_axis, "all_to_all", at);
  check_axis(values, concat_axis, "all_to_all", at);
  check(values.front().shape()[split_axis] % replicas.count() == 0, "all_to_all (", at,
        "): the rows must be a multiple of the ", replicas.count(), " replicas, got ",
        values.front().shape());
  const Exchange exchange(replicas, graph, "all_to_all");
  const auto parts =
      exchange.on_each([&](size_t k) { return split(values[k], replicas.count(), split_axis); });
  return exchange.on_each([&](size_t to) {
    std::vector<Output> received;
    for (const auto& of_worker : parts) received.push_back(of_worker[to]);
    return joined(received, concat_axis);
  });
}

}  // namespace leat::collectives
