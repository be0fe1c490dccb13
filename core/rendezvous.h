// Rendezvous: where partitions of one step exchange tensors. A sender never waits, a receiver may
// come first.
#pragma once

#include <cstdint>
#include <functional>

#include "core/error.h"
#include "core/tensor.h"

namespace leat {

// One per step and task. An edge is one (tensor, destination partition) of the registered graph,
// numbered when the graph was partitioned; each edge carries one value per step. Thread-safe.
//   - send() hands the value over and returns; the buffer stays alive until it is delivered.
//   - recv() calls `arrived` once: with the value, or with the status that ended the step. On any
//     thread, possibly before recv() returns. A dead value is of a branch that was not taken and
//     has no tensor.
//   - abort() ends all current and later calls with `status`; the first abort wins.
class Rendezvous {
 public:
  using Edge = int64_t;
  using Arrived = std::function<void(const Status&, Tensor value, bool is_dead)>;

  virtual ~Rendezvous() = default;
  virtual void send(Edge edge, Tensor value, bool is_dead) = 0;
  virtual void recv(Edge edge, Arrived arrived) = 0;
  virtual void abort(const Status& status) = 0;
};

}  // namespace leat
