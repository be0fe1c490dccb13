#include "frontends/cpp/strategies/parts/collectives.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontends/cpp/strategies/parts/reduction.h"
#include "frontends/cpp/variables.h"

namespace leat::collectives {
namespace {

// Who sums, and which part of all.
struct Owner {
  DeviceName device;
  std::string prefix;  // of its nodes
  double share = 0;
};

std::vector<Owner> owners_of(const Replicas& replicas, bool with_servers) {
  const auto n = static_cast<double>(replicas.count());
  const std::vector<DeviceName> servers =
      with_servers ? replicas.servers() : std::vector<DeviceName>();
  const auto k = std::min(static_cast<double>(servers.size()), n);
  const double all = n * n + k * n - 2 * k;
  std::vector<Owner> out;
  for (int i = 0; i < replicas.count(); ++i)
    out.push_back({replicas.worker(i), replicas.prefix(i), n == 1 ? 1 : (n - k) / all});
  for (size_t i = 0; i < servers.size(); ++i)
    out.push_back({servers[i], concat("server_", i, "/"),
                   static_cast<double>(servers.size()) > n ? 1 / static_cast<double>(servers.size())
                                                           : 2 * (n - 1) / all});
  std::erase_if(out, [](const Owner& owner) { return owner.share <= 0; });
  return out;
}

// How many rows each owner gets: their share, rounded.
std::vector<int64_t> chunk_sizes(int64_t rows, const std::vector<Owner>& owners) {
  std::vector<int64_t> out;
  double share = 0;
  int64_t given = 0;
  for (const Owner& owner : owners) {
    share += owner.share;
    const bool is_last = &owner == &owners.back();
    const auto end =
        is_last ? rows : static_cast<int64_t>(std::floor(share * static_cast<double>(rows) + 1e-9));
    out.push_back(end - given);
    given = end;
  }
  return out;
}

// The ops of one exchange, on all workers.
class Exchange {
 public:
  Exchange(const Replicas& replicas, Graph& graph, std::string_view name)
      : replicas_(replicas), graph_(graph), name_(NameScope(graph, name).name()) {}

  // What `make(k)` makes on worker k, for all of them.
  template <class Make>
  auto on_each(const Make& make) const {
    std::vector<decltype(make(size_t{0}))> out;
    for (int k = 0; k < replicas_.count(); ++k) {
      const auto there = replicas_.on_worker(graph_, k);
      const NameScope scope(graph_, concat(name_, replicas_.prefix(k)));
      out.push_back(make(static_cast<size_t>(k)));
    }
    return out;
  }

  PerReplica directly(const PerReplica& values, Reduction reduction) const {
    return on_each([&](size_t) { return reduced(values, reduction); });
  }
  // Each owner the sum of its part along the axis.
  std::vector<Output> scattered(const PerReplica& values, const std::vector<Owner>& owners,
                                Reduction reduction, int axis = 0) const {
    const std::vector<int64_t> sizes = chunk_sizes(values.front().shape()[axis], owners);
    const auto chunks = on_each([&](size_t k) { return split(values[k], sizes, axis); });
    std::vector<Output> out;
    for (size_t owner = 0; owner < owners.size(); ++owner) {
      const auto there = replicas_.on_device(graph_, owners[owner].device);
      const NameScope scope(graph_, concat(name_, owners[owner].prefix));
      std::vector<Output> of_owner;
      for (const auto& of_worker : chunks) of_owner.push_back(of_worker[owner]);
      out.push_back(reduced(of_owner, reduction));
    }
    return out;
  }
  PerReplica gathered(const PerReplica& values, int axis = 0) const {
    return on_each(
        [&](size_t) { return values.size() == 1 ? values[0] : concatenate(values, axis); });
  }

 private:
  const Replicas& replicas_;
  Graph& graph_;
  const std::string name_;
};

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

}  // namespace

std::vector<PerReplica> all_reduce(const Replicas& replicas, const std::vector<PerReplica>& tensors,
                                   const AllReduceOptions& options, Location at) {
  check(options.bucket_bytes > 0 && options.trip_bytes >= 0, "all_reduce (", at,
        "): bucket_bytes must be positive and trip_bytes not negative, got ", options.bucket_bytes,
        " and ", options.trip_bytes);
  if (tensors.empty()) return {};
  for (const PerReplica& values : tensors) checked(replicas, values, "all_reduce", at);
  if (replicas.count() == 1) return tensors;
  Graph& graph = tensors.front().front().graph();
  const auto n = static_cast<int64_t>(replicas.count());
  std::vector<PerReplica> out(tensors.size(), PerReplica(static_cast<size_t>(n)));
  // Each tensor by itself: its angles count.
  const bool is_adasum = options.reduction == Reduction::adasum;
  const int64_t bucket_bytes = is_adasum ? 1 : options.bucket_bytes;
  std::vector<Output> firsts;
  for (const PerReplica& values : tensors) firsts.push_back(values.front());
  for (const std::vector<size_t>& bucket : make_buckets(firsts, bucket_bytes)) {
    const Exchange exchange(replicas, graph, "all_reduce");
    std::vector<int64_t> sizes;
    for (const size_t i : bucket) sizes.push_back(tensors[i].front().shape().elements());
    const PerReplica flat = exchange.on_each([&](size_t k) {
      std::vector<Output> rows;
      for (const size_t i : bucket)
        rows.push_back(reshaped(tensors[i][k], {tensors[i][k].shape().elements()}));
      return rows.size() == 1 ? rows.front() : concatenate(rows, 0);
    });
    const int64_t elements = flat.front().shape().elements();
    const std::vector<Owner> owners = owners_of(replicas, options.algorithm == Algorithm::servers);
    const bool is_direct = elements < std::ssize(owners) || is_sent_whole(flat.front(), n, options);
    const PerReplica sums =
        is_direct ? exchange.directly(flat, options.reduction)
                  : exchange.gathered(exchange.scattered(flat, owners, options.reduction));
    exchange.on_each([&](size_t k) {
      const std::vector<Output> parts =
          sizes.size() == 1 ? std::vector<Output>{sums[k]} : split(sums[k], sizes, 0);
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
  return Exchange(replicas, graph, "all_reduce").directly(values, reduction);
}

PerReplica reduce_scatter(const Replicas& replicas, const PerReplica& values, Reduction reduction,
                          int axis, Location at) {
  Graph& graph = checked(replicas, values, "reduce_scatter", at, false);
  check_axis(values, axis, "reduce_scatter", at);
  check(values.front().shape()[axis] >= replicas.count(), "reduce_scatter (", at,
        ") needs a row for ", "each of the ", replicas.count(), " replicas, got ",
        values.front().shape());
  check(reduction != Reduction::adasum, "reduce_scatter (", at, "): adasum needs whole tensors");
  return Exchange(replicas, graph, "reduce_scatter")
      .scattered(values, owners_of(replicas, false), reduction, axis);
}

PerReplica all_gather(const Replicas& replicas, const PerReplica& values, int axis, Location at) {
  Graph& graph = checked(replicas, values, "all_gather", at, false);
  check_axis(values, axis, "all_gather", at);
  return Exchange(replicas, graph, "all_gather").gathered(values, axis);
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
    return received.size() == 1 ? received.front() : concatenate(received, concat_axis);
  });
}

}  // namespace leat::collectives
