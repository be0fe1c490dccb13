// What every kind of session can do: in this process (local_session.h) or on a cluster
// (distributed/cluster_session.h). frontends/cpp/session.h is what users hold.
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
#include "graph/passes/pipeline.h"

namespace leat {

// What is longer is as good as for ever, and sums with the clock do not overflow.
inline constexpr std::chrono::milliseconds longest_timeout = std::chrono::hours(24 * 365);

struct SessionOptions {
  std::string target = {};  // "" = this process; "grpc://host:port" = the task to dial
  bool allow_soft_placement = false;
  bool log_placement = false;
  bool simplify = true;         // constant folding and friends
  bool isolate_state = false;   // variables of its own instead of the task's shared ones
  bool bfloat16_edges = false;  // float32 travels between tasks as bfloat16 (cluster only)
  std::vector<std::string> device_filters =
      {};  // "/job:ps", …: tasks that this session uses (cluster only)
  std::chrono::milliseconds timeout{0};  // of every call; 0 = the default deadline of 10 minutes
  int threads = 0;                       // in process: threads of the pool; 0 = one per core
};

// How long a call may take: what it asks for, else what the session's options say, else 10 minutes.
std::chrono::milliseconds call_timeout(const SessionOptions& options,
                                       std::chrono::milliseconds asked = {});

struct RunOptions {
  std::chrono::milliseconds timeout{0};  // 0 = the session's
  bool trace = false;                    // fill RunMetadata::events
  bool partition_graphs = false;
};

// One timed thing of a traced step.
struct TraceEvent {
  std::string node;  // a node's name, or "RecvTensor …"
  std::string op;
  std::string device;    // complete name
  int64_t start_ns = 0;  // since the epoch
  int64_t end_ns = 0;
  int64_t output_bytes = 0;
  uint32_t thread = 0;
  std::string inputs;  // "a, b"; of a transfer "edge_7_w @/job:worker/…": from or to there
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
};

// INVALID_ARGUMENT, with their names, unless there are as many values as feeds.
[[noreturn]] void fail_for_feeds(const StepSignature& signature, size_t values);
inline void check_feeds(const StepSignature& signature, size_t values) {
  if (values != signature.feeds.size()) fail_for_feeds(signature, values);
}

// Thread-safe: any number of runs at once. Every call throws leat::Error; a call on a closed
// session is FAILED_PRECONDITION "Session is closed.".
class SessionInterface {
 public:
  virtual ~SessionInterface() = default;

  // Takes over what `graph` has beyond what it had at the last call.
  virtual void extend(const Graph& graph) = 0;
  // One step. Fetches come back in the order asked for; a variable as the step leaves it.
  virtual std::vector<Tensor> run(const NamedTensors& feeds,
                                  const std::vector<std::string>& fetches,
                                  const std::vector<std::string>& targets,
                                  const RunOptions& options = {},
                                  RunMetadata* metadata = nullptr) = 0;
  // A prepared step: the signature is looked up once. Feeds and fetches are in the order of
  // `signature`, as given. A session in this process compiles it at once and throws what is wrong
  // with it (NOT_FOUND for a fetch that does not exist); one on a cluster does so at its first run.
  using CallableHandle = int64_t;
  virtual CallableHandle make_callable(const StepSignature& signature) = 0;
  virtual void run_callable(CallableHandle handle, std::span<const Tensor> feeds,
                            std::vector<Tensor>& fetches) = 0;
  virtual void release_callable(CallableHandle handle) = 0;

  // `steps` runs of a prepared step, up to `in_flight` of them begun before the first has ended, so
  // that feeds are made and results used while others compute. `feed(step, feeds)` fills in the
  // feeds, `result(step, fetches)` gets what was fetched; both are called on the caller's thread,
  // in the order of the steps. Steps in flight together are not ordered among each other on several
  // devices: one may read a variable before the step before it has written it. The first error ends
  // it: no further step is begun, those in flight are waited for.
  using StepFeeds = std::function<void(int64_t step, std::vector<Tensor>& feeds)>;
  using StepFetches = std::function<void(int64_t step, std::vector<Tensor>& fetches)>;
  virtual void run_steps(CallableHandle handle, int64_t steps, const StepFeeds& feed,
                         const StepFetches& result, int in_flight = 2);

  virtual std::vector<DeviceDescription> list_devices() = 0;  // the dialled task's first
  // Ends running steps with CANCELLED and waits for them (with a deadline). Safe to call twice.
  virtual void close() = 0;
};

}  // namespace leat
