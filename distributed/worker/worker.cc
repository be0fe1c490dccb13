// Sessions, registered graphs and running steps of one task, in tables under one lock. Calls to the
// outside are made without it.
#include "distributed/worker/worker.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "core/execution/thread_pool.h"
#include "core/execution/work_source.h"
#include "core/memory/block_memory.h"
#include "core/memory/lasting_memory.h"
#include "core/memory/malloc_heap.h"
#include "distributed/cluster/identity.h"
#include "distributed/random_id.h"
#include "distributed/request_memory.h"
#include "distributed/worker/registration_check.h"
#include "distributed/worker/worker_replies.h"
#include "runtime/lent_thread.h"
#include "runtime/registered_graph.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t remembered_aborts = 1'000;
constexpr size_t masters_remembered = 16;  // processes of one task
constexpr auto aborts_remembered_for = std::chrono::minutes(1);
constexpr auto drain_limit = std::chrono::seconds(1);
// A step that is known to be this quick is run where its request arrived: a change of threads would
// cost as much.
constexpr int64_t quick_ns = 30'000;

struct RunAnswer {
  Status call;
  RunGraphResult result;
};
struct RegisterAnswer {
  Status call;
  uint64_t graph = 0;
};

struct Registration {
  std::shared_ptr<RegisteredGraph> graph;
  std::shared_ptr<const std::vector<CutEdge>> edges;
  std::atomic<int64_t> usual_ns{quick_ns};  // that run() kept its caller, smoothed
};

}  // namespace

struct Worker::Session {
  std::string handle;
  TaskName master;
  uint64_t master_incarnation = 0;
  std::shared_ptr<Containers> containers;
  std::shared_ptr<NodeStates> node_states = std::make_shared<NodeStates>();
  std::map<uint64_t, std::shared_ptr<Registration>> graphs;
};

struct Worker::Step {
  int64_t id = 0;
  std::string session;
  std::shared_ptr<Registration> registration;
  std::shared_ptr<Rendezvous> rendezvous;
  std::function<void(Status call, RunGraphResult)> done;
  Clock::time_point since = Clock::now();
  std::atomic<bool> has_begun{false};
  // Under the worker's lock.
  Status abort;
  bool is_drained = false;             // drain() aborts it: the whole task goes
  std::vector<StepActivity> activity;  // when it was aborted

  int64_t age_ns() const { return std::chrono::nanoseconds(Clock::now() - since).count(); }
  std::vector<StepActivity> current_activity() const {
    if (!has_begun) return {{"waits for a free thread of the task", "", age_ns()}};
    return registration->graph->activity(id);
  }
};

struct Worker::State {
  mutable std::mutex mutex;
  std::condition_variable step_ended;
  std::map<std::string, std::shared_ptr<Session>> sessions;
  std::unordered_map<int64_t, std::shared_ptr<Step>> steps;
  struct Aborted {
    int64_t step;
    Status status;
    Clock::time_point since;
  };
  std::deque<Aborted> aborted;  // steps that had not come yet
  std::shared_ptr<WorkerReplies> replies = std::make_shared<WorkerReplies>();
  std::shared_ptr<Containers> containers = std::make_shared<Containers>();
  RequestMemory<RunAnswer> runs{RequestMemoryLimits{}};
  RequestMemory<RegisterAnswer> registrations{RequestMemoryLimits{}};
  struct Master {
    uint64_t connected = 0;
    std::vector<uint64_t> gone;  // the processes before that one
  };
  std::map<TaskName, Master> masters;
  Status closed;  // set by drain()
};

Worker::Worker(WorkerOptions options)
    : options_(std::move(options)), state_(std::make_unique<State>()) {
  check_internal(options_.pool != nullptr && options_.incarnation != 0,
                 "a worker needs a pool and an incarnation");
}

Worker::~Worker() = default;

void Worker::check_incarnation(uint64_t expected) const {
  if (expected == 0 || expected == options_.incarnation) return;
  fail(Code::aborted, options_.task, " expects a different device incarnation: ", expected, " vs. ",
       options_.incarnation,
       ". It has restarted, its variables are gone: initialise or restore them (a "
       "MonitoredTrainingSession does so by itself)");
}

// A master that has just restarted may ask before membership has met it; one that was replaced may
// not, its sessions would never be closed.
void Worker::check_master(const TaskName& master, uint64_t incarnation) const {
  std::lock_guard lock(state_->mutex);
  const auto found = state_->masters.find(master);
  if (found == state_->masters.end()) return;
  const std::vector<uint64_t>& gone = found->second.gone;
  if (std::find(gone.begin(), gone.end(), incarnation) == gone.end()) return;
  fail(Code::aborted, master, " has restarted: a graph of its incarnation ", incarnation,
       " reached ", options_.task, " while incarnation ", found->second.connected,
       " was connected");
}

WorkerStatus Worker::current_status() const {
  WorkerStatus out;
  out.task = options_.task;
  out.cluster_id = cluster_mark(options_.cluster_id, options_.task, options_.incarnation);
  out.incarnation = options_.incarnation;
  out.pid = getpid();
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  out.host = host;
  for (const Device* device : options_.devices) {
    if (device->type() == DeviceType::gpu && out.gpu_kernels == nullptr)
      out.gpu_kernels = std::make_shared<KernelTable>(kernel_table(DeviceType::gpu));
    out.devices.push_back({device->name().to_string(),
                           std::string(device_type_name(device->type())), device->memory_limit(),
                           options_.incarnation, device->problem()});
  }
  if (options_.exchange.sent_bytes) out.sent_bytes = options_.exchange.sent_bytes();
  if (options_.exchange.links) out.links = options_.exchange.links();
  std::lock_guard lock(state_->mutex);
  out.sessions = static_cast<int64_t>(state_->sessions.size());
  for (const auto& [handle, session] : state_->sessions)
    out.graphs += static_cast<int64_t>(session->graphs.size());
  out.running_steps = static_cast<int64_t>(state_->steps.size());
  return out;
}

void Worker::status(Deadline, Done<WorkerStatus> done) { done({}, current_status()); }

void Worker::register_graph(RegisterGraph request, Deadline, Done<uint64_t> done) {
  const uint64_t id = request.request_id != 0 ? request.request_id : random_id();
  const bool is_first =
      state_->registrations.begin(id, [done](const std::shared_ptr<const RegisterAnswer>& answer) {
        if (answer == nullptr) {
          done({Code::aborted, "the answer to this registration is no longer kept"}, 0);
        } else {
          done(answer->call, answer->graph);
        }
      });
  if (!is_first) return;
  auto answer = std::make_shared<RegisterAnswer>();
  std::shared_ptr<const std::vector<CutEdge>> edges;
  try {
    check_incarnation(request.worker_incarnation);
    check_master(request.master, request.master_incarnation);
    check_registration(request, options_.task);
    std::shared_ptr<Session> session;
    {
      std::lock_guard lock(state_->mutex);
      throw_if_error(state_->closed);
      std::shared_ptr<Session>& entry = state_->sessions[request.session];
      if (entry == nullptr) {
        entry = std::make_shared<Session>();
        entry->handle = request.session;
        entry->master = request.master;
        entry->master_incarnation = request.master_incarnation;
        entry->containers =
            request.isolate_state ? std::make_shared<Containers>() : state_->containers;
      }
      check(entry->master == request.master &&
                entry->master_incarnation == request.master_incarnation,
            "session ", request.session, " belongs to another master than ", request.master);
      session = entry;
    }
    std::shared_ptr<Registration> registration;
    {
      const LastingMemory::Scope for_graph;
      registration = std::make_shared<Registration>();
      set_places(request.partitions, request.edges);
      edges = std::make_shared<const std::vector<CutEdge>>(std::move(request.edges));
      registration->edges = edges;
      registration->graph = std::make_shared<RegisteredGraph>(
          std::move(request.partitions), std::move(request.fetches), *registration->edges,
          TaskResources{options_.devices, options_.pool, session->containers,
                        session->node_states});
    }
    answer->graph = id;  // so that a master that has not heard the answer can deregister it
    std::lock_guard lock(state_->mutex);
    session->graphs.emplace(answer->graph, std::move(registration));
  } catch (...) {
    answer->call = status_of_current_exception();
  }
  if (!answer->call.is_ok() || !options_.exchange.meet) {
    state_->registrations.answer(id, std::move(answer), sizeof(RegisterAnswer));
    return;
  }
  // In a cluster that is starting, the master may know tasks that do not know each other yet.
  options_.exchange.meet(edges, [kept = weak_from_this(), id, answer] {
    if (const auto self = kept.lock())
      self->state_->registrations.answer(id, answer, sizeof(RegisterAnswer));
  });
}

void Worker::deregister_graph(const std::string& session, uint64_t graph) {
  std::shared_ptr<Registration> last;  // goes after the lock
  std::lock_guard lock(state_->mutex);
  const auto found = state_->sessions.find(session);
  if (found == state_->sessions.end()) return;
  const auto entry = found->second->graphs.find(graph);
  if (entry == found->second->graphs.end()) return;
  last = std::move(entry->second);
  found->second->graphs.erase(entry);
}

void Worker::drop_unused() {
  std::vector<std::shared_ptr<Registration>> registrations;
  {
    std::lock_guard lock(state_->mutex);
    for (const auto& [handle, session] : state_->sessions) {
      for (const auto& [id, registration] : session->graphs) registrations.push_back(registration);
    }
    const Clock::time_point limit = Clock::now() - aborts_remembered_for;
    while (!state_->aborted.empty() && state_->aborted.front().since < limit)
      state_->aborted.pop_front();
  }
  for (const auto& registration : registrations) registration->graph->drop_unused();
  BlockMemory::process().trim();
  trim_heaps();
}

void Worker::run_graph(RunGraph request, Deadline, Done<RunGraphResult> done) {
  const uint64_t id = request.request_id != 0 ? request.request_id : random_id();
  const bool is_first =
      state_->runs.begin(id, [done](const std::shared_ptr<const RunAnswer>& answer) {
        if (answer == nullptr) {
          done({Code::aborted, "the step was run before, and its result is no longer kept"}, {});
        } else {
          done(answer->call, answer->result);
        }
      });
  if (!is_first) return;
  const auto self = shared_from_this();
  const auto answer = [self, id](Status call, RunGraphResult result) {
    const size_t bytes = bytes_of(result);
    self->state_->runs.answer(
        id, std::make_shared<const RunAnswer>(RunAnswer{std::move(call), std::move(result)}),
        bytes);
  };
  const WorkSource::Scope source(WorkSource::of(request.session));
  const auto step = std::make_shared<Step>();
  Status early;  // the abort came before the step
  try {
    check_incarnation(request.worker_incarnation);
    step->id = request.step;
    step->session = request.session;
    step->done = answer;
    const auto find_registration = [&] {  // under the lock
      throw_if_error(state_->closed);
      const auto session = state_->sessions.find(request.session);
      if (session == state_->sessions.end()) {
        fail(Code::aborted, "Session handle is not found: ", request.session, " on ", options_.task,
             ". Possibly, this worker just restarted, or the master did.");
      }
      const auto graph = session->second->graphs.find(request.graph);
      if (graph == session->second->graphs.end()) {
        for (const auto& [handle, other] : state_->sessions)
          check(!other->graphs.contains(request.graph), "graph ", request.graph,
                " belongs to another session than ", request.session);
        fail(Code::aborted, "Graph handle is not found: ", request.graph, " on ", options_.task,
             ". Possibly, this worker just restarted.");
      }
      return graph->second;
    };
    std::unique_lock lock(state_->mutex);
    step->registration = find_registration();
    if (!step->registration->edges->empty()) {
      lock.unlock();
      step->rendezvous = options_.exchange.open(step->id, step->registration->edges);
      lock.lock();
      find_registration();  // nobody has closed it meanwhile
    }
    check(state_->steps.emplace(step->id, step).second, "step ", step->id, " runs twice on ",
          options_.task);
    const auto aborted = std::find_if(state_->aborted.begin(), state_->aborted.end(),
                                      [&](const auto& entry) { return entry.step == step->id; });
    if (aborted != state_->aborted.end()) {
      step->abort = early = aborted->status;
      early.derived = true;
    }
  } catch (...) {
    const Status status = status_of_current_exception();
    if (step->rendezvous != nullptr) options_.exchange.close(step->id);
    return answer(status, {});
  }
  if (!early.is_ok()) return finish(step, {early, {}, {}, {}});
  const int64_t usual_ns = step->registration->usual_ns.load(std::memory_order_relaxed);
  if (usual_ns < quick_ns) {
    const LentThread::Scope lent;
    return start(step, std::move(request));
  }
  options_.pool->schedule([self, step, request = std::move(request)]() mutable {
    self->start(step, std::move(request));
  });
}

void Worker::start(std::shared_ptr<Step> step, RunGraph request) {
  step->has_begun = true;
  StepRequest run;
  run.step_id = step->id;
  run.feeds = std::move(request.feeds);
  run.rendezvous = step->rendezvous;
  run.trace = request.trace;
  run.early_abort = [this, step] {
    std::lock_guard lock(state_->mutex);
    Status status = step->abort;
    status.derived = true;
    return status;
  };
  const auto done = [self = shared_from_this(), step](StepResult result) {
    self->finish(
        step, {std::move(result.status), std::move(result.fetches), std::move(result.events), {}});
  };
  const Clock::time_point start = Clock::now();
  try {
    step->registration->graph->run(std::move(run), done);
  } catch (...) {
    return finish(step, {status_of_current_exception(), {}, {}, {}});
  }
  const int64_t ns = std::chrono::nanoseconds(Clock::now() - start).count();
  std::atomic<int64_t>& usual = step->registration->usual_ns;
  const int64_t before = usual.load(std::memory_order_relaxed);
  usual.store(before + (ns - before) / 8, std::memory_order_relaxed);
}

void Worker::finish(const std::shared_ptr<Step>& step, RunGraphResult result) {
  Status call;
  {
    std::lock_guard lock(state_->mutex);
    const auto found = state_->steps.find(step->id);
    if (found == state_->steps.end() || found->second != step) return;  // it has ended
    state_->steps.erase(found);
    result.activity = std::move(step->activity);
    state_->replies->add(step->id, result);
    if (step->is_drained && result.status.derived) call = state_->closed;
  }
  if (step->rendezvous != nullptr) options_.exchange.close(step->id);
  step->done(std::move(call), std::move(result));
  std::lock_guard lock(state_->mutex);
  state_->step_ended.notify_all();
}

void Worker::abort_step(int64_t id, const Status& status, Deadline,
                        Done<std::vector<StepActivity>> done) {
  done({}, abort(id, status));
}

std::vector<StepActivity> Worker::abort(int64_t id, const Status& status) {
  std::shared_ptr<Step> step;
  {
    std::lock_guard lock(state_->mutex);
    const auto found = state_->steps.find(id);
    if (found == state_->steps.end()) {
      if (const auto ended = state_->replies->activity(id)) return {*ended};
      state_->aborted.push_back({id, status, Clock::now()});
      if (state_->aborted.size() > remembered_aborts) state_->aborted.pop_front();
      return {{"has not received the step", "", 0}};
    }
    step = found->second;
    if (!step->abort.is_ok()) return step->activity;
    step->abort = status;
  }
  std::vector<StepActivity> activity = step->current_activity();
  {
    std::lock_guard lock(state_->mutex);
    step->activity = activity;
  }
  Status derived = status;
  derived.derived = true;
  if (step->rendezvous != nullptr) step->rendezvous->abort(derived);
  step->registration->graph->cancel(id, derived);
  return activity;
}

TaskActivity Worker::current_activity() const {
  std::vector<std::shared_ptr<Step>> steps;
  std::vector<RunningStep> replies = state_->replies->leaving();
  TaskActivity out;
  if (options_.waits != nullptr) out.waits = options_.waits->now();
  {
    std::lock_guard lock(state_->mutex);
    const auto master_of = [&](const std::string& session) {
      const auto found = state_->sessions.find(session);
      return found != state_->sessions.end() ? found->second->master : TaskName();
    };
    for (const auto& [id, step] : state_->steps) {
      steps.push_back(step);
      out.steps.push_back({id, step->session, master_of(step->session), step->age_ns(), {}});
    }
    for (RunningStep& reply : replies) reply.master = master_of(reply.session);
  }
  for (size_t i = 0; i < steps.size(); ++i) out.steps[i].activity = steps[i]->current_activity();
  std::move(replies.begin(), replies.end(), std::back_inserter(out.steps));
  return out;
}

std::shared_ptr<const void> Worker::reply_leaves(int64_t step, const std::string& session) {
  return state_->replies->leaves(step, session);
}

void Worker::activity(Deadline, Done<TaskActivity> done) { done({}, current_activity()); }

void Worker::cleanup_session(const std::string& session) {
  std::shared_ptr<Session> last;
  std::vector<int64_t> steps;
  {
    std::lock_guard lock(state_->mutex);
    const auto found = state_->sessions.find(session);
    if (found == state_->sessions.end()) return;
    last = std::move(found->second);
    state_->sessions.erase(found);
    for (const auto& [id, step] : state_->steps) {
      if (step->session == session) steps.push_back(id);
    }
  }
  for (const int64_t id : steps) abort(id, {Code::cancelled, "the session was closed", true});
}

void Worker::master_connected(const TaskName& master, uint64_t incarnation) {
  {
    std::lock_guard lock(state_->mutex);
    State::Master& known = state_->masters[master];
    if (known.connected != incarnation) {
      std::erase(known.gone, incarnation);
      if (known.connected != 0) known.gone.push_back(known.connected);
      if (known.gone.size() > masters_remembered) known.gone.erase(known.gone.begin());
      known.connected = incarnation;
    }
  }
  drop_sessions_of_others(master, incarnation);
}

void Worker::drop_sessions_of_others(const TaskName& master, uint64_t incarnation) {
  std::vector<std::string> old;
  {
    std::lock_guard lock(state_->mutex);
    for (const auto& [handle, session] : state_->sessions) {
      if (session->master == master && session->master_incarnation != incarnation)
        old.push_back(handle);
    }
  }
  for (const std::string& handle : old) cleanup_session(handle);
}

void Worker::reset(const std::vector<std::string>& containers, Deadline, Done<> done) {
  if (containers.empty()) state_->containers->clear("");
  for (const std::string& container : containers) state_->containers->clear(container);
  done({});
}

bool Worker::drain(const Status& status, std::chrono::milliseconds grace) {
  const auto is_idle = [this] { return state_->steps.empty(); };
  std::unique_lock lock(state_->mutex);
  state_->closed = status;
  if (!state_->step_ended.wait_for(lock, grace, is_idle)) {
    std::vector<int64_t> steps;
    for (const auto& [id, step] : state_->steps) {
      steps.push_back(id);
      step->is_drained = step->abort.is_ok();
    }
    lock.unlock();
    for (const int64_t id : steps) abort(id, status);
    lock.lock();
  }
  const bool has_ended = state_->step_ended.wait_for(lock, drain_limit, is_idle);
  if (has_ended) state_->sessions.clear();
  return has_ended;
}

}  // namespace leat
