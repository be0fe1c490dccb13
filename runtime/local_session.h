// The session in this process: its own graph, and a RegisteredGraph per step signature.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/device.h"
#include "core/state/variable.h"
#include "runtime/registered_graph.h"
#include "runtime/session.h"

namespace leat {

// The devices that the session computes on, as /job:localhost/replica:0/task:0.
struct LocalDevices {
  int cpus = 1;      // several CPU devices share the cores: edges between them are cut like those
                     // between any devices
  bool gpus = true;  // those of this machine, if it has a driver
};

// Variables belong to the session. Thread-safe, as SessionInterface requires. A step of a single
// segment runs on the caller's thread, without allocation in steady state. Other steps begin there
// and may go on elsewhere while the caller waits, at most until the deadline. Steps that no longer
// run give their memory back after a number of other calls.
class LocalSession : public SessionInterface {
 public:
  // A step gives its memory back after this many to twice this many calls without a run.
  static constexpr int64_t calls_of_memory = 1'024;

  explicit LocalSession(const SessionOptions& options = {}, const LocalDevices& devices = {});
  ~LocalSession() override;
  LocalSession(const LocalSession&) = delete;

  void extend(const Graph& graph) override;
  std::vector<Tensor> run(const NamedTensors& feeds, const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets, const RunOptions& options = {},
                          RunMetadata* metadata = nullptr) override;
  CallableHandle make_callable(const StepSignature& signature) override;
  void run_callable(CallableHandle handle, std::span<const Tensor> feeds,
                    std::vector<Tensor>& fetches) override;
  void release_callable(CallableHandle handle) override;
  void run_steps(CallableHandle handle, int64_t steps, const StepFeeds& feed,
                 const StepFetches& result, int in_flight = 2) override;
  std::vector<DeviceDescription> list_devices() override;
  void close() override;

  // For tests and reports.
  Containers& containers() { return *resources_.containers; }
  size_t prepared_graphs() const;
  std::shared_ptr<const RegisteredGraph> registered_graph(CallableHandle handle) const;

 private:
  // A signature as a caller spelled it: its RegisteredGraph, and where feeds and fetches go.
  struct Prepared {
    StepSignature spelling;
    std::shared_ptr<RegisteredGraph> graph;
    std::shared_ptr<const RegisteredGraph::Call> call;
    size_t edges = 0;
  };
  // A normalised signature. The first caller that asks builds it; the others wait.
  struct Entry {
    StepSignature signature;
    std::shared_ptr<RegisteredGraph> graph;  // null until built
    size_t edges = 0;
    Status failure;
    bool is_built = false;
  };
  // Counts running calls, for close(). FAILED_PRECONDITION if the session is closed.
  class Running {
   public:
    explicit Running(LocalSession& session);
    ~Running() { leave(); }
    Running(const Running&) = delete;

   private:
    void leave();
    LocalSession& session_;
  };

  std::shared_ptr<const Prepared> prepared(const StepSignature& spelling);
  std::shared_ptr<Entry> entry_of(const StepSignature& signature);
  void build(Entry& entry);
  std::shared_ptr<const Prepared> callable(CallableHandle handle) const;
  void run(const std::shared_ptr<const Prepared>& prepared, std::span<const Tensor> feeds,
           std::vector<Tensor>& fetches, std::chrono::milliseconds timeout);
  void run_traced(const std::shared_ptr<const Prepared>& prepared, std::span<const Tensor> feeds,
                  std::vector<Tensor>& fetches, std::chrono::milliseconds timeout,
                  RunMetadata& metadata);
  void cancel_if_closed(RegisteredGraph& graph, int64_t step) const;
  std::vector<std::shared_ptr<RegisteredGraph>> graphs();
  void drop_unused();

  const SessionOptions options_;
  const std::chrono::milliseconds timeout_;  // for calls without their own
  ThreadPool pool_;
  std::vector<std::unique_ptr<Device>> devices_;
  TaskResources resources_;
  PlacementOptions placement_;

  std::shared_mutex graph_mutex_;  // guards the two below
  Graph graph_;
  std::vector<Node*> nodes_;  // of graph_, by id in the user's graph

  mutable std::mutex cache_mutex_;  // guards the next four
  std::condition_variable built_;
  std::list<std::shared_ptr<Entry>> entries_;  // the most recently used first
  std::unordered_multimap<size_t, std::shared_ptr<const Prepared>> spellings_;
  std::vector<std::weak_ptr<RegisteredGraph>> evicted_;  // from entries_; some may still run
  mutable std::mutex callables_mutex_;
  std::vector<std::shared_ptr<const Prepared>> callables_;

  std::atomic<int64_t> next_step_{1};
  std::atomic<int64_t> running_{0};  // calls
  std::atomic<int64_t> calls_{0};    // approximate, since the last drop_unused()
  std::atomic<bool> is_closed_{false};
  std::mutex idle_mutex_;
  std::condition_variable idle_;
};

}  // namespace leat
