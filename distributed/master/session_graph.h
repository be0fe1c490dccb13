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
  // 16 MB: they would be copied for little gain; nor where there is no memory for it.
  void pack();
  bool is_packed() const;
  std::chrono::nanoseconds unused() const;  // since the last get() or set()

 private:
  // One piece, made of a GraphDef and of what that does not hold: node, device and reason, each
  // with a 0. Compressed: a session whose client is gone may stay for good.
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
