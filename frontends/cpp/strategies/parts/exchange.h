// How an exchange between replicas is built: its nodes, worker by worker, and who sums what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/cpp/strategies/parts/replicas.h"
#include "graph/ops.h"

namespace leat::collectives {

using PerReplica = std::vector<Output>;  // as in collectives.h

// Who sums, and which part of all.
struct Owner {
  DeviceName device;
  std::string prefix;  // of its nodes
  double share = 0;
};

// The workers, each with an equal share; or with the servers beside them, so that all links are
// equally busy (collectives.h). Those without a share are left out.
std::vector<Owner> owners_of(const Replicas& replicas, bool with_servers);
// How many of `rows` each owner gets: its share, rounded.
std::vector<int64_t> chunk_sizes(int64_t rows, const std::vector<Owner>& owners);

// The ops of one exchange, on all workers.
class Exchange {
 public:
  Exchange(const Replicas& replicas, Graph& graph, std::string_view name)
      : replicas_(replicas), graph_(graph), name_(NameScope(graph, name).name()) {}

  int count() const { return replicas_.count(); }
  const std::string& name() const { return name_; }  // unique in the graph
  // What `make()` makes on worker k.
  template <class Make>
  auto on(int k, const Make& make) const {
    const auto there = replicas_.on_worker(graph_, k);
    const NameScope scope(graph_, concat(name_, replicas_.prefix(k)));
    return make();
  }
  // The same for an owner.
  template <class Make>
  auto on(const Owner& owner, const Make& make) const {
    const auto there = replicas_.on_device(graph_, owner.device);
    const NameScope scope(graph_, concat(name_, owner.prefix));
    return make();
  }
  // What `make(k)` makes on worker k, for all of them.
  template <class Make>
  auto on_each(const Make& make) const {
    std::vector<decltype(make(size_t{0}))> out;
    for (int k = 0; k < count(); ++k)
      out.push_back(on(k, [&] { return make(static_cast<size_t>(k)); }));
    return out;
  }

 private:
  const Replicas& replicas_;
  Graph& graph_;
  const std::string name_;
};

}  // namespace leat::collectives
