// The rendezvous of one step whose edges all stay in this process.
#pragma once

#include <mutex>
#include <optional>
#include <vector>

#include "core/rendezvous.h"

namespace leat {

// See Rendezvous for the contract. A value is handed on where it lies: a receiver that needs it
// elsewhere copies it.
class LocalRendezvous : public Rendezvous {
 public:
  explicit LocalRendezvous(size_t edges) : edges_(edges) {}

  void send(Edge edge, Tensor value, bool is_dead) override;
  void recv(Edge edge, Arrived arrived) override;
  void abort(const Status& status) override;

 private:
  struct State {
    Arrived arrived;  // a receiver that waits
    Tensor value;     // a value that waits
    bool is_dead = false;
    bool is_sent = false;
  };
  State& at(Edge edge);

  std::mutex mutex_;
  std::vector<State> edges_;
  Status aborted_;
};

}  // namespace leat
