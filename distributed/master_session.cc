#include "distributed/master_session.h"

#include <algorithm>
#include <atomic>
#include <iostream>

#include "core/lasting_memory.h"
#include "core/thread_pool.h"
#include "graph/graph_def.h"
#include "graph/placer.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto start_limit = std::chrono::seconds(60);  // for the tasks that a session needs
constexpr auto close_limit = std::chrono::seconds(10);
// A client that is not back so long after its step was cancelled was killed, or has no haste.
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

std::set<std::string> devices_named_in(const Graph& graph) {
  std::set<std::string> out;
  for (const auto& node : graph.nodes()) {
    if (!node->requested_device.is_empty()) out.insert(node->requested_device.to_string());
  }
  return out;
}

}  // namespace

// A step from the request on: first its program is looked up or built, then it runs.
class MasterSession::Run {
 public:
  explicit Run(Step::Done end) : end_(std::move(end)) {}

  void cancel(const Status& status) {
    std::shared_ptr<Step> step;
    {
      std::lock_guard lock(mutex_);
      step = step_;
    }
    if (step != nullptr) return step->fail(status);
    StepOutcome outcome;
    outcome.status = status;
    end(std::move(outcome));
  }

  void task_lost(const TaskName& task, const std::string& why) {
    std::shared_ptr<Step> step;
    {
      std::lock_guard lock(mutex_);
      step = step_;
    }
    if (step != nullptr) step->task_lost(task, why);
  }

  // False: it was cancelled while its program was built.
  bool begin(std::shared_ptr<Step> step) {
    std::lock_guard lock(mutex_);
    if (end_) step_ = std::move(step);
    return end_ != nullptr;
  }

  // The first call counts.
  void end(StepOutcome outcome) {
    Step::Done end;
    {
      std::lock_guard lock(mutex_);
      end.swap(end_);
      step_ = nullptr;
    }
    if (end) end(std::move(outcome));
  }

 private:
  std::mutex mutex_;
  Step::Done end_;  // empty after the end
  std::shared_ptr<Step> step_;
};

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
  out.simplify = options_.simplify;
  out.bfloat16_edges = options_.bfloat16_edges;
  out.placement.allow_soft_placement = options_.allow_soft_placement;
  out.placement.log_placement = options_.log_placement;
  for (const auto& [task, status] : tasks) {
    for (const DeviceDescription& device : status.devices) {
      out.placement.devices.push_back(
          {DeviceName::parse(device.name), device_type_from_name(device.type)});
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

void MasterSession::program(const StepSignature& signature, ProgramCache::Ready ready) {
  if (!programs_.get(signature, std::move(ready))) return;
  // Not on the caller's thread: it belongs to the transport.
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
                       const Status& status, const ProgramCache::Program& program,
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

// The cached program's graphs are the workers' now, so they are made again.
std::vector<std::string> MasterSession::partition_graphs(const StepSignature& signature) {
  std::shared_ptr<const Graph> graph;
  TaskStatuses tasks;
  {
    std::lock_guard lock(mutex_);
    graph = graph_.get();
    tasks = tasks_;
  }
  std::vector<std::string> out;
  for (const auto& [device, partition] :
       run_pipeline(*graph, pipeline_options(signature, tasks)).partitions) {
    out.push_back(to_graph_def(partition, /*assigned_devices=*/true));
  }
  return out;
}

// ---- Steps ----

MasterSession::Cancel MasterSession::run(StepRequestOfClient request, Step::Done done) {
  Step::Request step;
  StepSignature signature;
  std::shared_ptr<Run> run;
  const auto self = shared_from_this();
  try {
    for (auto& [name, tensor] : request.feeds) {
      std::string feed = endpoint(std::move(name));
      signature.feeds.push_back(feed);
      check(step.feeds.emplace(feed, std::move(tensor)).second, feed, " is fed more than once.");
    }
    for (std::string& fetch : request.fetches) {
      step.fetches.push_back(endpoint(std::move(fetch)));
      signature.fetches.push_back(step.fetches.back());
    }
    signature.targets = std::move(request.targets);
    check(!signature.fetches.empty() || !signature.targets.empty(),
          "Must specify at least one target to fetch or execute.");
    signature = signature.normalised();
    step.trace = request.options.trace;
    step.times = request.times;
    run = std::make_shared<Run>([self, done](StepOutcome outcome) {
      self->forget_programs_on(outcome.restarted);
      done(std::move(outcome));
    });
    std::lock_guard lock(mutex_);
    throw_if_error(closed_);
    runs_.insert(run);
    has_client_left_ = false;
  } catch (...) {
    StepOutcome outcome;
    outcome.status = status_of_current_exception();
    done(std::move(outcome));
    return [](const Status&) {};
  }
  const auto end = [self, run](StepOutcome outcome) {
    run->end(std::move(outcome));
    self->run_ended(run);
  };
  Timer::Id too_late = 0;  // before the step begins; then it minds its deadline itself
  if (request.times.deadline) {
    too_late = peers_->timer->at(*request.times.deadline, [self, end] {
      StepOutcome outcome;
      std::string text = "the step's deadline passed while its program was being built";
      for (const StepActivity& each : self->waits_.now())
        text += concat("; ", self->peers_->self, ' ', each.to_string());
      outcome.status = {Code::deadline_exceeded, text, false};
      end(std::move(outcome));
    });
  }
  program(signature, [self, run, end, too_late, signature, step = std::move(step),
                      with_graphs = request.options.partition_graphs](
                         const Status& status, const ProgramCache::Program& program) mutable {
    self->peers_->timer->cancel(too_late);
    if (!status.is_ok()) {
      StepOutcome outcome;
      outcome.status = status;
      return end(std::move(outcome));
    }
    Step::Done done = end;
    if (with_graphs) {
      done = [self, end, signature](StepOutcome outcome) {
        self->pool_.schedule([self, end, signature, outcome = std::move(outcome)]() mutable {
          try {
            if (outcome.status.is_ok())
              outcome.partition_graphs = self->partition_graphs(signature);
          } catch (...) {
            outcome.status = status_of_current_exception();
          }
          end(std::move(outcome));
        });
      };
    }
    const auto started =
        std::make_shared<Step>(self->peers_, program, std::move(step), std::move(done));
    if (!run->begin(started)) return self->run_ended(run);
    started->start();
  });
  return [weak = std::weak_ptr<Run>(run)](const Status& status) {
    if (const auto run = weak.lock()) run->cancel(status);
  };
}

void MasterSession::run_ended(const std::shared_ptr<Run>& run) {
  std::vector<std::function<void()>> idle;
  {
    std::lock_guard lock(mutex_);
    runs_.erase(run);
    last_used_ = Clock::now();
    if (runs_.empty()) idle.swap(when_idle_);
  }
  for (const auto& action : idle) action();
}

void MasterSession::make_callable(StepSignature signature, const RunOptions& options,
                                  std::function<void(const Status&, int64_t)> done) {
  try {
    check(!signature.fetches.empty() || !signature.targets.empty(),
          "Must specify at least one target to fetch or execute.");
    for (std::string& feed : signature.feeds) feed = endpoint(std::move(feed));
    for (std::string& fetch : signature.fetches) fetch = endpoint(std::move(fetch));
    const std::set<std::string> feeds(signature.feeds.begin(), signature.feeds.end());
    check(feeds.size() == signature.feeds.size(), "a callable feeds a tensor more than once");
    std::lock_guard lock(mutex_);
    throw_if_error(closed_);
  } catch (...) {
    return done(status_of_current_exception(), 0);
  }
  program(signature.normalised(),
          [self = shared_from_this(), signature, options, done = std::move(done)](
              const Status& status, const ProgramCache::Program&) {
            if (!status.is_ok()) return done(status, 0);
            int64_t handle = 0;
            {
              std::lock_guard lock(self->mutex_);
              handle = ++self->last_callable_;
              self->callables_[handle] = {signature, options};
            }
            done({}, handle);
          });
}

StepRequestOfClient MasterSession::request_of_callable(int64_t handle,
                                                       std::vector<Tensor> feeds) const {
  StepRequestOfClient request;
  std::lock_guard lock(mutex_);
  throw_if_error(closed_);
  const auto found = callables_.find(handle);
  check(found != callables_.end(), "No such callable handle: ", handle);
  const StepSignature& signature = found->second.signature;
  check_feeds(signature, feeds.size());
  for (size_t i = 0; i < feeds.size(); ++i)
    request.feeds.emplace_back(signature.feeds[i], std::move(feeds[i]));
  request.fetches = signature.fetches;
  request.targets = signature.targets;
  request.options = found->second.options;
  return request;
}

void MasterSession::release_callable(int64_t handle) {
  std::lock_guard lock(mutex_);
  check(callables_.erase(handle) == 1, "No such callable handle: ", handle);
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
    self->pool_.schedule([self] { self->sleep_if_left(); });
  });
}

void MasterSession::task_lost(const TaskName& task, const std::string& why) {
  std::vector<std::shared_ptr<Run>> runs;
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
  std::vector<std::shared_ptr<Run>> runs;
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
