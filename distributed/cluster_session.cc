#include "distributed/cluster_session.h"

#include <deque>
#include <map>
#include <mutex>

#include "distributed/master/local_master.h"
#include "distributed/master/remote_master.h"
#include "graph/import/graph_def.h"
#include "runtime/run_steps.h"

namespace leat {
namespace {

using std::chrono::milliseconds;

class ClusterSession final : public SessionInterface {
 public:
  ClusterSession(const SessionOptions& options, std::unique_ptr<MasterClient> master)
      : options_(options), timeout_(call_timeout(options)), master_(std::move(master)) {}

  ~ClusterSession() override {
    try {
      close();
    } catch (const Error&) {
      // The master is gone, and the session with it.
    }
  }

  void extend(const Graph& graph) override {
    std::lock_guard lock(graph_mutex_);
    std::string handle;
    {
      std::lock_guard handle_lock(mutex_);
      throw_if_closed();
      handle = handle_;
    }
    if (!handle.empty() && graph.size() == nodes_sent_) return;
    if (handle.empty()) {
      MasterClient::Created created =
          master_->create_session(to_graph_def(graph), options_, timeout_);
      version_ = created.version;
      std::unique_lock handle_lock(mutex_);
      if (is_closed_) {  // meanwhile, when there was no handle to close yet
        handle_lock.unlock();
        master_->close_session(created.handle, timeout_);
        handle_lock.lock();
        throw_if_closed();
      }
      handle_ = std::move(created.handle);
    } else {
      version_ = master_->extend_session(handle, to_graph_def_from(graph, nodes_sent_), version_,
                                         timeout_);
    }
    nodes_sent_ = graph.size();
  }

  std::vector<Tensor> run(const NamedTensors& feeds, const std::vector<std::string>& fetches,
                          const std::vector<std::string>& targets, const RunOptions& options,
                          RunMetadata* metadata) override {
    StepSignature signature{{}, fetches, targets};
    std::vector<Tensor> values;
    for (const auto& [name, value] : feeds) {
      signature.feeds.push_back(name);
      values.push_back(value);
    }
    StepAnswer result = start(signature, values, options)->wait();
    if (metadata != nullptr) *metadata = std::move(result.metadata);
    return std::move(result.fetches);
  }

  // A callable is kept here: it runs as a step, whose errors come with their whole text.
  CallableHandle make_callable(const StepSignature& signature) override {
    if (!signature.connections.empty()) {
      fail(
          Code::unimplemented,
          "a step on a cluster cannot have connections: fetch and feed the tensor, or add the edge "
          "to the graph");
    }
    std::lock_guard lock(mutex_);
    throw_if_closed();
    callables_[++last_callable_] = std::make_shared<const StepSignature>(signature);
    return last_callable_;
  }

  void run_callable(CallableHandle handle, std::span<const Tensor> feeds,
                    std::vector<Tensor>& fetches) override {
    fetches = start_callable(*callable(handle), feeds)->wait().fetches;
  }

  void run_steps(CallableHandle handle, int64_t steps, const StepFeeds& feed,
                 const StepFetches& result, int in_flight) override {
    check(in_flight >= 1, "at least one step must be in flight, not ", in_flight);
    const std::shared_ptr<const StepSignature> signature = callable(handle);
    std::deque<std::unique_ptr<StartedStep>> running;
    std::vector<Tensor> feeds;
    try {
      for (int64_t begun = 0, ended = 0; ended < steps; ++ended) {
        while (begun < steps && begun - ended < in_flight) {
          feeds.clear();
          feed(begun, feeds);
          running.push_back(in_step(begun, [&] { return start_callable(*signature, feeds); }));
          ++begun;
        }
        const std::unique_ptr<StartedStep> first = std::move(running.front());
        running.pop_front();
        std::vector<Tensor> fetches = in_step(ended, [&] { return first->wait().fetches; });
        result(ended, fetches);
      }
    } catch (...) {
      for (const auto& step : running) end(*step);
      throw;
    }
  }

  void release_callable(CallableHandle handle) override {
    std::lock_guard lock(mutex_);
    check(callables_.erase(handle) == 1, "No such callable handle: ", handle);
  }

  std::vector<DeviceDescription> list_devices() override {
    std::string handle;
    {
      std::lock_guard lock(mutex_);
      throw_if_closed();
      handle = handle_;
    }
    return master_->list_devices(handle, timeout_);
  }

  void close() override {
    std::string handle;
    {
      std::lock_guard lock(mutex_);
      if (is_closed_) return;
      is_closed_ = true;
      handle.swap(handle_);
    }
    if (!handle.empty()) master_->close_session(handle, timeout_);
  }

 private:
  std::unique_ptr<StartedStep> start(const StepSignature& signature, std::span<const Tensor> feeds,
                                     RunOptions options) {
    options.timeout = call_timeout(options_, options.timeout);
    return master_->start_step(open_handle(), signature, feeds, options);
  }

  std::unique_ptr<StartedStep> start_callable(const StepSignature& signature,
                                              std::span<const Tensor> feeds) {
    check_feeds(signature, feeds.size());
    return start(signature, feeds, {});
  }

  // Part of step `step` of run_steps().
  template <class Part>
  static auto in_step(int64_t step, Part&& part) -> decltype(part()) {
    try {
      return part();
    } catch (...) {
      rethrow_of_step(step);
    }
  }

  // Of a step whose result nobody wants any more: another one's error is the caller's.
  static void end(StartedStep& step) {
    try {
      step.wait();
    } catch (const Error&) {
    }
  }

  std::shared_ptr<const StepSignature> callable(CallableHandle handle) const {
    std::lock_guard lock(mutex_);
    throw_if_closed();
    const auto found = callables_.find(handle);
    check(found != callables_.end(), "No such callable handle: ", handle);
    return found->second;
  }

  void throw_if_closed() const {
    if (is_closed_) fail(Code::failed_precondition, "Session is closed.");
  }
  std::string open_handle() const {
    std::lock_guard lock(mutex_);
    throw_if_closed();
    if (handle_.empty())
      fail(Code::failed_precondition, "the session has no graph yet: call extend() first");
    return handle_;
  }

  const SessionOptions options_;
  const milliseconds timeout_;
  const std::unique_ptr<MasterClient> master_;
  std::mutex graph_mutex_;  // held while the graph is sent
  int64_t version_ = 0;
  size_t nodes_sent_ = 0;
  mutable std::mutex mutex_;
  std::string handle_;
  bool is_closed_ = false;
  std::map<CallableHandle, std::shared_ptr<const StepSignature>> callables_;
  CallableHandle last_callable_ = 0;
};

}  // namespace

std::unique_ptr<SessionInterface> make_cluster_session(const SessionOptions& options) {
  std::unique_ptr<MasterClient> master = find_local_master(options.target);
  if (master == nullptr) master = make_remote_master(options.target);
  return std::make_unique<ClusterSession>(options, std::move(master));
}

std::unique_ptr<SessionInterface> make_grpc_session(const SessionOptions& options) {
  return std::make_unique<ClusterSession>(options, make_remote_master(options.target));
}

}  // namespace leat
