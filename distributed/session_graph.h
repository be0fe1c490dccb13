// The graph that a master keeps for a client: nodes while the client uses it, bytes once it has
// been idle. A client that was killed never closes its session, and nobody can tell it from one
// that pauses.
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
  // Unpacked if it was packed. What it points to stays valid for its holder.
  std::shared_ptr<const Graph> get();
  void set(std::shared_ptr<const Graph> graph);
  // Keeps it as bytes until the next get(). Not done for a graph whose constants have more than
  // 16 MB: they would be copied for little gain.
  void pack();
  bool is_packed() const;
  std::chrono::nanoseconds unused() const;  // since the last get() or set()

 private:
  // Two pieces: many small ones, made between the nodes, would keep the pages of these.
  struct Packed {
    std::string graph_def;
    std::string placed;  // what a GraphDef does not hold: node, device and reason, each with a 0
  };

  mutable std::mutex mutex_;
  std::shared_ptr<const Graph> graph_ = std::make_shared<Graph>();  // null while it is packed
  Packed packed_;
  std::chrono::steady_clock::time_point last_used_ = std::chrono::steady_clock::now();
};

}  // namespace leat
