#include "distributed/master/master_session.h"

#include <algorithm>
#include <atomic>
#include <iostream>

#include "core/execution/thread_pool.h"
#include "core/execution/work_source.h"
#include "core/memory/lasting_memory.h"
#include "graph/import/graph_def.h"
#include "graph/passes/placer.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto start_limit = std::chrono::seconds(60);  // for the tasks that a session needs
constexpr auto close_limit = std::chrono::seconds(10);
// A client that has not returned this long after its step was cancelled was killed, or is in no
// hurry.
constexpr auto return_limit = std::chrono::seconds(1);
constexpr auto idle_at_return_limit =
    std::chrono::milliseconds(300);  // the step took some time to end
// What a session has not used for so many times what its longest build took is dropped: a client
// that comes back to it loses 4 % of its time at most.
constexpr auto least_unused = std::chrono::seconds(2);
constexpr int builds_unused = 25;

// Some time before the client gives up, so that it still hears why.
Clock::time_point answer_by(WorkerClient::Deadline deadline) {
  const Clock::time_point now = Clock::now();
  Clock::time_point limit = now + start_limit;
  if (deadline && *deadline < limit) limit = now + (*deadline - now) * 9 / 10;
  return limit;
}

// So that a session can tell what it waits for itself.
std::shared_ptr<const Peers> with_own_waits(const Peers& peers, WaitList& waits) {
  auto own = std::make_shared<Peers>(peers);
  own->waits = &waits;
  return own;
}

// Where collectives of several programs meet.
const std::string& checked_leader(const std::string& leader) {
  try {
    (void)DeviceName::parse(leader);
  } catch (const Error& error) {
    fail(Code::invalid_argument, "the leader of collectives must be a task, as ",
         "\"/job:worker/task:0\" is, not \"", leader, "\": ", error.message());
  }
  return leader;
}

std::set<std::string> devices_named_in(const Graph& graph) {
  std::set<std::string> out;
  const Node* before = nullptr;  // neighbours ask for the same mostly
  for (const auto& node : graph.nodes()) {
    const bool is_same = before != nullptr && before->requested_device == node->requested_device;
    if (!is_same && !node->requested_device->is_empty())
      out.insert(node->requested_device->to_string());
    before = node.get();
  }
  return out;
}

}  // namespace

MasterSession::MasterSession(std::shared_ptr<const Peers> peers, uint64_t master_incarnation,
                             ThreadPool& pool, std::string handle, SessionOptions options)
    : peers_(with_own_waits(*peers, waits_)),
      master_incarnation_(master_incarnation),
      pool_(pool),
      handle_(std::move(handle)),
      options_(std::move(options)) {
  if (peers->waits != nullptr)
    listed_ = peers->waits->add([waits = waits_] { return waits.now(); });
}

// ---- The graph ----

PipelineOptions MasterSession::pipeline_options(const StepSignature& signature,
                                                const TaskStatuses& tasks) const {
  PipelineOptions out;
  out.signature = signature;
  out.simplify = simplify_extent(options_.simplify, options_.simplify_arithmetic);
  out.fuse = options_.fuse;
  out.recompute = options_.recompute;
  out.mixed_precision = options_.mixed_precision;
  out.bfloat16_edges = options_.bfloat16_edges;
  // The members of isolated sessions could never meet: these share no state.
  if (!options_.isolate_state) out.collective_leader = options_.collective_leader;
  out.placement.allow_soft_placement = options_.allow_soft_placement;
  out.placement.log_placement = options_.log_placement;
  out.placement.gpus = options_.gpus;
  for (const auto& [task, status] : tasks) {
    for (const DeviceDescription& device : status.devices) {
      const DeviceType type = device_type_from_name(device.type);
      out.placement.devices.push_back({DeviceName::parse(device.name), type,
                                       type == DeviceType::gpu ? status.gpu_kernels : nullptr,
                                       device.problem});
    }
  }
  DeviceName own = peers_->self.device_name();
  own.type = "CPU";
  own.id = 0;
  out.placement.default_device = own;
  return out;
}

void MasterSession::extend(std::string graph_def, int64_t version, Deadline deadline,
                           std::function<void(const Status&, int64_t)> done) {
  auto graph = std::make_shared<Graph>();
  std::set<TaskName> asked;
  bool is_ours = false;  // the right to extend
  try {
    std::shared_ptr<const Graph> before;
    TaskStatuses known;
    {
      std::lock_guard lock(mutex_);
      throw_if_error(closed_);
      if (version != version_) {
        fail(Code::aborted, "Current version is ", version_, " but caller expected ", version, ".");
      }
      if (is_extending_)
        fail(Code::aborted, "Current version is ", version_, ", and another call is extending it.");
      is_ours = is_extending_ = true;
      before = graph_.get();
      known = tasks_;
    }
    const LastingMemory::Scope for_graph;
    *graph = before->clone();
    for (const std::string& remark : from_graph_def(graph_def, *graph, {.allow_internal = false})) {
      std::cerr << "session " << handle_ << ": " << remark << std::endl;
    }
    asked = tasks_needed(*peers_, devices_named_in(*graph), options_.device_filters);
    // The leader is needed even if the filters leave it out.
    if (const std::string& leader = options_.collective_leader; !leader.empty())
      asked.merge(tasks_needed(*peers_, {checked_leader(leader)}, {leader}));
    for (const auto& [task, status] : known) asked.erase(task);
  } catch (...) {
    const Status status = status_of_current_exception();
    if (is_ours) {
      std::lock_guard lock(mutex_);
      is_extending_ = false;
    }
    return done(status, 0);
  }
  discover(peers_, asked, answer_by(deadline), /*partial=*/false,
           [self = shared_from_this(), graph, done = std::move(done)](const Status& status,
                                                                      const TaskStatuses& found) {
             // Not on the transport's thread, which may have brought the last answer.
             const WorkSource::Scope source(WorkSource::requests);
             self->pool_.schedule([=] { self->accept_graph(status, found, graph, done); });
           });
}

void MasterSession::accept_graph(Status status, const TaskStatuses& found,
                                 const std::shared_ptr<Graph>& graph,
                                 const std::function<void(const Status&, int64_t)>& done) {
  TaskStatuses tasks;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [task, answer] : found) tasks_[task] = answer;
    tasks = tasks_;
  }
  try {
    const LastingMemory::Scope for_graph;
    if (status.is_ok()) place_stateful(*graph, pipeline_options({}, tasks).placement);
  } catch (...) {
    status = status_of_current_exception();
  }
  int64_t version = 0;
  {
    std::lock_guard lock(mutex_);
    is_extending_ = false;
    last_used_ = Clock::now();
    if (status.is_ok()) {
      graph_.set(graph);
      version = ++version_;
    }
  }
  done(status, version);
}

// ---- Programs ----

void MasterSession::program(const StepSignature& signature, ClusterProgramCache::Ready ready) {
  if (!programs_.get(signature, std::move(ready))) return;
  // Not on the caller's thread: it belongs to the transport.
  const WorkSource::Scope source(WorkSource::requests);
  pool_.schedule([self = shared_from_this(), signature] { self->build(signature); });
}

// Asks tasks that have restarted who they are now, compiles, and registers with the workers.
void MasterSession::build(const StepSignature& signature) {
  std::set<TaskName> stale;
  {
    std::lock_guard lock(mutex_);
    stale = stale_tasks_;
  }
  const auto self = shared_from_this();
  discover(peers_, stale, Clock::now() + start_limit, /*partial=*/false,
           [self, signature](const Status& status, const TaskStatuses& found) {
             const WorkSource::Scope source(WorkSource::requests);
             self->pool_.schedule([=] {
               try {
                 throw_if_error(status);
                 self->compile(signature, found);
               } catch (...) {
                 self->programs_.built(signature, status_of_current_exception(), nullptr);
               }
             });
           });
}

void MasterSession::compile(const StepSignature& signature, const TaskStatuses& restarted) {
  std::shared_ptr<const Graph> graph;
  TaskStatuses tasks;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [task, status] : restarted) {
      tasks_[task] = status;
      stale_tasks_.erase(task);
    }
    graph = graph_.get();
    tasks = tasks_;
  }
  const Clock::time_point begin = Clock::now();
  PartitionedGraph partitioned;
  {
    const LastingMemory::Scope for_program;
    partitioned = run_pipeline(*graph, pipeline_options(signature, tasks));
  }
  std::vector<std::shared_ptr<WorkerClient>> workers;  // now: later this task may be shutting down
  for (const auto& [task, status] : tasks) workers.push_back(peers_->worker(task));
  register_program(*peers_, {handle_, options_.isolate_state, master_incarnation_},
                   std::move(partitioned), signature.targets, tasks,
                   [self = shared_from_this(), signature, begin, workers](
                       const Status& status, const ClusterProgramCache::Program& program,
                       const std::vector<TaskName>& restarted) {
                     self->note_build(Clock::now() - begin);
                     self->forget_programs_on(restarted);
                     self->programs_.built(signature, status, program);
                     if (self->is_over()) self->cleanup(workers);
                   });
}

void MasterSession::note_build(std::chrono::nanoseconds took) {
  std::lock_guard lock(mutex_);
  longest_build_ = std::max(longest_build_, took);
}

void MasterSession::forget_programs_on(const std::vector<TaskName>& tasks) {
  if (tasks.empty()) return;
  {
    std::lock_guard lock(mutex_);
    stale_tasks_.insert(tasks.begin(), tasks.end());
  }
  programs_.forget(tasks);
}

// A registration that reached a worker after the session's end has made it anew there, also one
// whose answer did not come.
void MasterSession::cleanup(const std::vector<std::shared_ptr<WorkerClient>>& workers) const {
  for (const auto& worker : workers) worker->cleanup_session(handle_);
}

bool MasterSession::is_over() const {
  std::lock_guard lock(mutex_);
  return !closed_.is_ok();
}

// ---- Life ----

std::vector<DeviceDescription> MasterSession::devices() const {
  std::vector<DeviceDescription> out;
  std::lock_guard lock(mutex_);
  for (const auto& [task, status] : tasks_)
    out.insert(out.end(), status.devices.begin(), status.devices.end());
  return out;
}

size_t MasterSession::running_steps() const {
  std::lock_guard lock(mutex_);
  return runs_.size();
}

std::chrono::nanoseconds MasterSession::idle() const {
  std::lock_guard lock(mutex_);
  return runs_.empty() ? Clock::now() - last_used_ : std::chrono::nanoseconds(0);
}

void MasterSession::drop_unused(std::chrono::nanoseconds limit) {
  {
    std::lock_guard lock(mutex_);
    limit = std::min(
        limit, std::max<std::chrono::nanoseconds>(least_unused, builds_unused * longest_build_));
  }
  programs_.forget_unused(limit);
  if (graph_.unused() >= limit) graph_.pack();
}

void MasterSession::sleep_if_left() {
  {
    std::lock_guard lock(mutex_);
    if (!has_client_left_ || !runs_.empty()) return;
  }
  programs_.forget_all();
  graph_.pack();
}

void MasterSession::client_left() {
  {
    std::lock_guard lock(mutex_);
    has_client_left_ = true;
  }
  peers_->timer->after(return_limit, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->idle() < idle_at_return_limit) return;
    const WorkSource::Scope source(WorkSource::requests);
    self->pool_.schedule([self] { self->sleep_if_left(); });
  });
}

void MasterSession::task_lost(const TaskName& task, const std::string& why) {
  std::vector<std::shared_ptr<SessionStep>> runs;
  {
    std::lock_guard lock(mutex_);
    runs.assign(runs_.begin(), runs_.end());
  }
  for (const auto& run : runs) run->task_lost(task, why);
}

void MasterSession::close(std::function<void()> done) {
  end({Code::cancelled, "Step was cancelled by an explicit call to `Session::Close()`.", false},
      {Code::failed_precondition, "Session is closed.", false}, std::move(done));
}

void MasterSession::close(const Status& why, std::function<void()> done) {
  end(why, why, std::move(done));
}

// Of `steps` and `later` the former is for the steps that run, the latter for those that come.
void MasterSession::end(const Status& steps, const Status& later, std::function<void()> done) {
  const auto self = shared_from_this();
  // Called when the last step has ended, or when that takes too long; the first call does it.
  struct Closing {
    std::atomic<bool> is_done{false};
    std::atomic<Timer::Id> timer{0};
  };
  const auto closing = std::make_shared<Closing>();
  const auto finish = [self, closing, done = std::move(done)] {
    if (closing->is_done.exchange(true)) return;
    self->peers_->timer->cancel(closing->timer);

    TaskStatuses tasks;
    {
      std::lock_guard lock(self->mutex_);
      tasks.swap(self->tasks_);
    }
    self->programs_.close();
    for (const auto& [task, status] : tasks)
      self->peers_->worker(task)->cleanup_session(self->handle_);
    done();
  };
  std::vector<std::shared_ptr<SessionStep>> runs;
  {
    std::lock_guard lock(mutex_);
    closed_ = later;
    runs.assign(runs_.begin(), runs_.end());
    if (!runs.empty()) when_idle_.push_back(finish);
  }
  if (runs.empty()) return finish();
  closing->timer = peers_->timer->after(close_limit, finish);

  for (const auto& run : runs) run->cancel(steps);
}

}  // namespace leat
