// One task of a cluster in this process: a server on its address, the worker that runs its part of
// steps, the data plane that exchanges tensors with other tasks, and a master for the clients that
// dial it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "distributed/cluster/cluster_spec.h"

namespace leat {

class Master;
class Membership;
class Worker;

struct TaskOptions {
  int threads = 0;    // compute threads; 0: one per core
  bool gpus = false;  // offer this machine's GPUs, whatever the cluster's description says
  // Towards other tasks (membership.h).
  std::chrono::milliseconds heartbeat{500};
  std::chrono::milliseconds silence{6'000};
  // Called when another task comes, goes, or becomes unreachable for another reason. Must be quick;
  // an exception is logged to stderr.
  std::function<void()> on_peer_change;
  // If the cluster requires certificates: a second port without TLS, on 127.0.0.1 only, for
  // sessions of clients without TLS (TensorFlow's). 0: any free one; -1: none.
  int plaintext_port = -1;
};

// Thread-safe. Several tasks may live in one process.
class Task {
 public:
  // Listens on the task's address in `spec` (port 0: any free one). NOT_FOUND if the spec has no
  // such task; UNAVAILABLE, with the reason, if the address cannot be used.
  Task(const ClusterSpec& spec, const TaskName& name, TaskOptions options = {});
  ~Task();  // shutdown() with no grace
  Task(const Task&) = delete;

  const TaskName& name() const;
  std::string address() const;  // with the port that was bound
  std::string target() const;   // "grpc://host:port", for SessionOptions
  uint64_t incarnation() const;
  int plaintext_port() const;  // as bound; -1: none
  // The line of exposure.h; may be "".
  const std::string& exposure() const;

  // Begins to work. If the spec had open ports, `spec` now has the bound ports of all tasks.
  void start(const ClusterSpec& spec);
  // Waits for all tasks of the cluster. UNAVAILABLE after `limit`, with a table of the missing
  // tasks and reasons.
  void wait_for_peers(std::chrono::milliseconds limit = std::chrono::seconds(60));

  // Refuses new work, gives running steps `grace` to end, aborts the rest, says goodbye to the
  // other tasks and stops the server. Safe to call twice.
  void shutdown(std::chrono::milliseconds grace = std::chrono::milliseconds(0));

  Master& master();
  Worker& worker();
  Membership& membership();  // UNAVAILABLE after shutdown(), which destroys it

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace leat
