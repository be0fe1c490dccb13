// The graph that a master keeps for a client: nodes while the client uses it, bytes once it is
// idle. A killed client never closes its session, and looks the same as one that pauses.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "graph/graph.h"

namespace leat {

// Thread-safe.
class SessionGraph {
 public:
  // Unpacks the graph if needed. Its nodes stay valid for the holder.
  std::shared_ptr<const Graph> get();
  void set(std::shared_ptr<const Graph> graph);
  // Keeps the graph as bytes until the next get(). Does nothing if its constants exceed 16 MB,
  // because copying them would gain little, or if memory is short.
  void pack();
  bool is_packed() const;
  std::chrono::nanoseconds unused() const;  // since the last get() or set()

 private:
  // One piece: a GraphDef, and what it does not hold: node, device and reason, each ending in a 0.
  // Compressed, because a session whose client is gone may stay for good.
  struct Packed {
    std::string bytes;
    size_t graph_def_size = 0, placed_size = 0;
  };

  mutable std::mutex mutex_;
  std::shared_ptr<const Graph> graph_ = std::make_shared<Graph>();  // null while it is packed
  Packed packed_;
  std::chrono::steady_clock::time_point last_used_ = std::chrono::steady_clock::now();
};

}  // namespace leat
