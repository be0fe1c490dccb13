#include "frontends/cpp/strategies/sharding/conversions.h"

#include <algorithm>
#include <limits>

#include "frontends/cpp/strategies/sharding/rules.h"

namespace leat::sharding {

using collectives::PerReplica;

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
      return "all-reduce";
    case Collective::all_gather:
      return "all-gather";
    case Collective::reduce_scatter:
      return "reduce-scatter";
    case Collective::all_to_all:
      return "all-to-all";
    default:
      return "none";
  }
}

Collective collective_between(State from, State to) {
  if (from == to || from.is_replicated()) return Collective::none;
  if (from.is_partial()) return to.is_split() ? Collective::reduce_scatter : Collective::all_reduce;
  return to.is_split() ? Collective::all_to_all : Collective::all_gather;
}

namespace {

struct Cost {
  double trips = 0, bytes = 0;
};

double trip_bytes() { return static_cast<double>(collectives::AllReduceOptions().trip_bytes); }

Cost cost_of(State from, State to, double bytes, int n) {
  const double part = bytes / n, others = n - 1;
  switch (collective_between(from, to)) {
    case Collective::all_reduce: {
      const Cost direct{1, others * bytes}, chunks{2, 2 * others * part};
      return direct.bytes <= chunks.bytes + trip_bytes() ? direct : chunks;
    }
    case Collective::all_gather:
      return {1, others * part};
    case Collective::reduce_scatter:
      return {1, others * part};
    case Collective::all_to_all:
      return {1, others * part / n};
    default:
      return {};
  }
}

// Part k of n along the axis.
Output part_of(const Output& value, int axis, int k, int n, Location at) {
  const Shape& shape = value.shape();
  std::vector<int64_t> begin(static_cast<size_t>(shape.rank())),
      size(static_cast<size_t>(shape.rank()), -1);
  const int64_t own = shape[axis] / n;
  begin[static_cast<size_t>(axis)] = own * k;
  size[static_cast<size_t>(axis)] = own;
  Graph& graph = value.graph();
  return op("Slice",
            {value, constant(graph, integers(i32, begin), "begin", at),
             constant(graph, integers(i32, size), "size", at)},
            {}, at);
}

// Two collectives with a third of the bytes, where an extent that can be cut is known.
int axis_for_chunks(const Output& value, int n) {
  for (int axis = 0; axis < value.shape().rank(); ++axis) {
    if (can_split(value.shape(), axis, n)) return axis;
  }
  return -1;
}

PerReplica summed(const Replicas& group, const PerReplica& values, Location at) {
  using collectives::Reduction;
  const Output& first = values.front();
  if (first.shape().is_complete())
    return collectives::all_reduce(group, values, {.reduction = Reduction::sum}, at);
  const int axis = axis_for_chunks(first, group.count());
  if (group.count() < 3 || axis < 0)
    return collectives::all_reduce_directly(group, values, Reduction::sum, at);
  return collectives::all_gather(
      group, collectives::reduce_scatter(group, values, Reduction::sum, axis, at), axis, at);
}

}  // namespace

double bytes_sent(State from, State to, double bytes, int n) {
  return cost_of(from, to, bytes, n).bytes;
}

double price(State from, State to, double bytes, int n) {
  const Cost cost = cost_of(from, to, bytes, n);
  return cost.trips * trip_bytes() + cost.bytes;
}

State cheapest_source(uint32_t have, State to, double bytes, int n) {
  State best;
  double least = std::numeric_limits<double>::infinity();
  for (int code = 0; code < State::codes; ++code) {
    if ((have >> code & 1) == 0) continue;
    const double of_it = price(State::of_code(code), to, bytes, n);
    if (of_it >= least) continue;
    least = of_it;
    best = State::of_code(code);
  }
  check_internal(least < std::numeric_limits<double>::infinity(), "a tensor has no state");
  return best;
}

PerReplica converted(const Replicas& group, const PerReplica& values, State from, State to,
                     const WorkerScopes& scopes, Location at) {
  if (from == to) return values;
  const int n = group.count();
  PerReplica out;
  switch (collective_between(from, to)) {
    case Collective::all_reduce:
      return summed(group, values, at);
    case Collective::reduce_scatter:
      return collectives::reduce_scatter(group, values, collectives::Reduction::sum, to.axis(), at);
    case Collective::all_to_all:
      return collectives::all_to_all(group, values, to.axis(), from.axis(), at);
    case Collective::all_gather: {
      const PerReplica all = collectives::all_gather(group, values, from.axis(), at);
      return converted(group, all, State::replicated(), to, scopes, at);
    }
    default:
      break;
  }
  if (to.is_split())
    check_internal(can_split(values.front().shape(), to.axis(), n), "'", values.front().name(),
                   "' ", values.front().shape(), " cannot be split along axis ", to.axis());
  for (int k = 0; k < n; ++k) {
    const ReplicaScope there = scopes(k);
    const Output& value = values[static_cast<size_t>(k)];
    if (to.is_split()) {
      out.push_back(part_of(value, to.axis(), k, n, at));
    } else if (to.is_partial() && k > 0) {
      out.push_back(zeros_like(value, at));
    } else {
      out.push_back(value);
    }
  }
  return out;
}

}  // namespace leat::sharding
