// The interface of every session: in this process (local_session.h) or on a cluster
// (distributed/cluster_session.h). Users hold frontends/cpp/session.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "graph/graph.h"
#include "graph/passes/gpus.h"
#include "graph/passes/mixed_precision/mixed_precision.h"
#include "graph/passes/recompute/recompute.h"
#include "graph/passes/step_signature.h"

namespace leat {

// Practically unlimited, yet sums with the clock do not overflow.
inline constexpr std::chrono::milliseconds longest_timeout = std::chrono::hours(24 * 365);

struct SessionOptions {
  std::string target = {};  // "" = this process; "grpc://host:port" = the task to dial
  bool allow_soft_placement = false;
  bool log_placement = false;
  Gpus gpus = Gpus::prefer;  // where nodes go that request neither a CPU nor a GPU
  bool simplify = true;      // constant folding and friends; false: the graph's own nodes run
  bool simplify_arithmetic = true;  // part of it: Pow(x, 2) as Square(x), and its like
  bool fuse = true;  // elementwise ops, and attention on GPUs, run as one; not without simplify
  Recompute recompute = Recompute::nothing;  // what a training step does not keep in memory
  // What products and convolutions compute in. For float16, give the loss a scale (LossScale).
  MixedPrecision mixed_precision = MixedPrecision::nothing;
  bool isolate_state = false;   // variables of its own instead of the task's shared ones
  bool bfloat16_edges = false;  // float32 travels between tasks as bfloat16 (cluster only)
  std::vector<std::string> device_filters =
      {};  // "/job:ps", …: tasks that this session uses (cluster only)
  // "/job:worker/task:0": the task where members of TensorFlow's collectives (CollectiveReduceV2,
  // …) meet if they belong to several programs. Empty, or with isolate_state: each step must have
  // all members.
  std::string collective_leader = {};
  std::chrono::milliseconds timeout{0};  // of every call; 0 = the default deadline of 10 minutes
  int threads = 0;                       // in process: threads of the pool; 0 = one per core
};

// The time limit of a call: its own, else the session's option, else 10 minutes.
std::chrono::milliseconds call_timeout(const SessionOptions& options,
                                       std::chrono::milliseconds asked = {});

struct RunOptions {
  std::chrono::milliseconds timeout{0};  // 0 = the session's
  bool trace = false;                    // fill RunMetadata::events
  bool partition_graphs = false;
};

// One timed event of a traced step.
struct TraceEvent {
  std::string node;  // a node's name, or "RecvTensor …"
  std::string op;
  std::string device;    // complete name
  int64_t start_ns = 0;  // since the epoch
  int64_t end_ns = 0;
  int64_t output_bytes = 0;
  uint32_t thread = 0;
  std::string inputs;  // "a, b"; for a transfer "edge_7_w @/job:worker/…": the other end
};

struct RunMetadata {
  std::vector<TraceEvent> events;
  std::vector<std::string> partition_graphs;  // binary GraphDefs
};

// Chrome's trace format (chrome://tracing, Perfetto): a process per task, a thread per device and
// executor thread.
std::string to_chrome_trace(const std::vector<TraceEvent>& events);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;  // "node:index" → value

struct DeviceDescription {
  std::string name;  // complete
  std::string type;  // "CPU", "GPU"
  int64_t memory_limit = 0;
  uint64_t incarnation = 0;
  std::string problem = {};  // why it cannot be used (Device::problem); empty: it can
};

// INVALID_ARGUMENT, naming the feeds, unless there is one value per feed.
[[noreturn]] void fail_for_feeds(const StepSignature& signature, size_t values);
inline void check_feeds(const StepSignature& signature, size_t values) {
  if (values != signature.feeds.size()) fail_for_feeds(signature, values);
}

// Thread-safe: any number of runs at once. Every call throws leat::Error; on a closed session
// FAILED_PRECONDITION "Session is closed.".
class SessionInterface {
 public:
  virtual ~SessionInterface() = default;

  // Adds the nodes that `graph` has gained since the last call.
  virtual void extend(const Graph& graph) = 0;
  // Runs one step. Fetches come back in the requested order; a variable has its value at the end of
  // the step.
  virtual std::vector<Tensor> run(const NamedTensors& feeds,
                                  const std::vector<std::string>& fetches,
                                  const std::vector<std::string>& targets,
                                  const RunOptions& options = {},
                                  RunMetadata* metadata = nullptr) = 0;
  // A prepared step: the signature is looked up once. Feeds and fetches are in the order of
  // `signature`. A session in this process compiles it at once and throws its errors (NOT_FOUND for
  // a missing fetch); a session on a cluster does so at the first run.
  using CallableHandle = int64_t;
  virtual CallableHandle make_callable(const StepSignature& signature) = 0;
  virtual void run_callable(CallableHandle handle, std::span<const Tensor> feeds,
                            std::vector<Tensor>& fetches) = 0;
  virtual void release_callable(CallableHandle handle) = 0;

  // Runs a prepared step `steps` times. Up to `in_flight` steps begin before the first has ended,
  // so that the caller makes feeds and uses results while others compute. `feed(step, feeds)` fills
  // in the feeds, and `result(step, fetches)` gets the fetches; both are called on the caller's
  // thread, in the order of the steps. On several devices, steps in flight together are not
  // ordered: one may read a variable before the preceding step has written it. After an error (its
  // message begins with "step 7: ") no further step begins; the call waits for those in flight.
  using StepFeeds = std::function<void(int64_t step, std::vector<Tensor>& feeds)>;
  using StepFetches = std::function<void(int64_t step, std::vector<Tensor>& fetches)>;
  virtual void run_steps(CallableHandle handle, int64_t steps, const StepFeeds& feed,
                         const StepFetches& result, int in_flight = 2);

  virtual std::vector<DeviceDescription> list_devices() = 0;  // the dialled task's first
  // Ends running steps with CANCELLED and waits for them (with a deadline). Safe to call twice.
  virtual void close() = 0;
};

}  // namespace leat
