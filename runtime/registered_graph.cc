#include "runtime/registered_graph.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <unordered_map>

#include "core/memory/lasting_memory.h"
#include "graph/endpoint.h"
#include "runtime/pointers.h"
#include "runtime/program_step.h"
#include "runtime/trace.h"

namespace leat {
namespace {

// The destructor waits this long for the steps that it has cancelled.
constexpr auto patience = std::chrono::seconds(60);

struct ProgramSlot {
  int program;
  int index;  // of the program's feeds or fetches
};

// "/job:ps/task:0", or with the device if the step does not leave the task `here`.
std::string owner_of(const DeviceName& source, const DeviceName& here) {
  const bool is_same_task = source.job == here.job && source.task == here.task;
  if (is_same_task || !source.job || !source.task) return source.to_string();
  return concat("/job:", *source.job, "/task:", *source.task);
}

std::string op_and_name(const Node& node) { return concat(node.op->name, " node ", node.name); }

StepActivity activity_of(const Item& item, int64_t ns, const ProgramPlan& plan,
                         const std::unordered_map<int64_t, CutEdge>& edges) {
  switch (item.kind) {
    case ItemKind::receive: {
      const auto edge = edges.find(item.edge);
      if (edge == edges.end()) return {"waits for tensor " + item.label, "", ns};
      return {
          concat("waits for tensor ", edge->second.tensor_name, " of node ", edge->second.producer),
          owner_of(edge->second.source, plan.device->name()), ns};
    }
    case ItemKind::segment: {
      const std::vector<SegmentNode>& nodes = plan.segments[item.segment].nodes;
      const std::string first = "runs " + op_and_name(*nodes.front().node);
      if (nodes.size() == 1) return {first, "", ns};
      return {concat(first, " and ", nodes.size() - 1, " more, the last ",
                     op_and_name(*nodes.back().node)),
              "", ns};
    }
    case ItemKind::execute_async: {
      int resource = item.resource;
      for (const ItemSource& input : item.inputs) {
        if (resource < 0) resource = input.resource;
      }
      if (resource < 0) return {"runs " + op_and_name(*item.node), "", ns};
      return {concat("waits in ", op_and_name(*item.node), ": ", plan.resources[resource]->state()),
              "", ns};
    }
    default:
      if (item.node == nullptr) return {"copies a value between host and device", "", ns};
      return {"runs " + op_and_name(*item.node), "", ns};
  }
}

}  // namespace

struct RegisteredGraph::Call {
  std::vector<std::vector<ProgramSlot>> feeds;  // a feed may be used on several devices
  std::vector<ProgramSlot> fetches;
};

class RegisteredGraph::State {
 public:
  class Run;

  TaskResources resources;
  std::vector<std::unique_ptr<Program>> programs;
  std::unordered_map<std::string, std::vector<ProgramSlot>> feeds;
  std::vector<std::pair<std::string, ProgramSlot>> fetches;
  std::unordered_map<std::string, ProgramSlot> fetch_places;
  std::unordered_map<int64_t, CutEdge> edges;  // by id
  bool has_edges = false;

  Run& start(int64_t step_id);
  void finish(Run& run, const Status& status);
  ProgramSlot fetch_place(const std::string& name) const {
    if (const auto found = fetch_places.find(name); found != fetch_places.end())
      return found->second;
    fail(Code::not_found, "'", name, "' is not fetched by this graph");
  }

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable idle;
  std::map<int64_t, Run*> running;
  std::vector<std::unique_ptr<Run>> runs;  // all of them
  std::vector<Run*> free_runs;
};

// One step over all programs of this task.
class RegisteredGraph::State::Run : public ProgramStep::Owner {
 public:
  explicit Run(State& state) : state_(state) {
    for (const auto& program : state.programs) {
      steps_.push_back(std::make_unique<ProgramStep>(*program, *this));
      step_pointers_.push_back(steps_.back().get());
    }
  }

  using Ended = std::function<void(Run&, const Status&)>;

  void start(std::vector<std::vector<Tensor>> feeds, std::shared_ptr<Rendezvous> rendezvous,
             bool is_traced, Ended ended) {
    ended_ = std::move(ended);
    Rendezvous* const meeting = rendezvous.get();
    Status early;
    {
      const std::lock_guard lock(mutex_);
      rendezvous_ = std::move(rendezvous);
      status_ = {};
      left_ = static_cast<int>(steps_.size());
      if (is_cancelled_) early = cancel_status_;
    }
    if (!early.is_ok() && meeting != nullptr) meeting->abort(early);
    if (steps_.empty()) return end();
    for (size_t p = 0; p < steps_.size(); ++p)
      steps_[p]->start(std::move(feeds[p]), meeting, is_traced);
    ProgramStep::drive(step_pointers_);
  }

  void step_done(ProgramStep& step) override {
    {
      const std::lock_guard lock(mutex_);
      const Status& status = step.status();
      if (!status.is_ok() && (status_.is_ok() || (status_.derived && !status.derived)))
        status_ = status;
      if (--left_ > 0) return;
    }
    end();
  }

  bool is_ending() const override { return is_cancelled_.load(std::memory_order_acquire); }
  Status cancel_status() const override {
    const std::lock_guard lock(mutex_);
    return cancel_status_;
  }
  Cancellation& cancellation() override { return cancellation_; }
  const StepEnd::Flag& step_end() const override { return step_end_; }
  void step_failed(const Status& status) override {
    step_end_.store(true, std::memory_order_relaxed);
    cancellation_.cancel(id(), status);
  }
  // If it still is that step.
  void cancel(int64_t step_id, const Status& status) {
    std::shared_ptr<Rendezvous> rendezvous;
    {
      const std::lock_guard lock(mutex_);
      if (id_ != step_id || is_cancelled_) return;
      cancel_status_ = status;
      is_cancelled_ = true;
      step_end_.store(true, std::memory_order_relaxed);
      rendezvous = rendezvous_;
    }
    if (rendezvous) rendezvous->abort(status);
    cancellation_.cancel(step_id, status);
  }

  void set_id(int64_t id) {
    const std::lock_guard lock(mutex_);
    id_ = id;
    is_cancelled_ = false;
    step_end_.store(false, std::memory_order_relaxed);
    cancellation_.begin(id);
  }
  int64_t id() const { return id_; }
  State& state() const { return state_; }
  Tensor fetch(ProgramSlot place) const { return steps_[place.program]->fetch(place.index); }
  void collect_events(std::vector<TraceEvent>& events) {
    for (const auto& step : steps_)
      events.insert(events.end(), step->events().begin(), step->events().end());
  }
  // A fetch that nothing computes: a constant, a feed, a variable as it is.
  void trace_fetch(ProgramSlot place, const Tensor& value, std::vector<TraceEvent>& events) const {
    const ProgramPlan& plan = state_.programs[place.program]->plan();
    const Node& node = *plan.fetches[place.index].node;
    if (std::any_of(events.begin(), events.end(),
                    [&](const TraceEvent& event) { return event.node == node.name; }))
      return;
    const int64_t now = trace_now_ns();
    events.push_back(trace_event(node, plan.device->name().to_string(), now, now,
                                 static_cast<int64_t>(value.bytes())));
  }
  const std::vector<std::unique_ptr<ProgramStep>>& steps() const { return steps_; }
  void clear() {
    for (const auto& step : steps_) step->clear();
    const std::lock_guard lock(mutex_);
    rendezvous_.reset();
    id_ = -1;
  }

 private:
  void end() {
    const Ended ended = std::move(ended_);
    Status status;
    {
      const std::lock_guard lock(mutex_);
      status = status_;
    }
    ended(*this, status);
  }

  State& state_;
  std::vector<std::unique_ptr<ProgramStep>> steps_;
  std::vector<ProgramStep*> step_pointers_;
  Ended ended_;
  Cancellation cancellation_;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<Rendezvous> rendezvous_;
  Status status_, cancel_status_;
  std::atomic<bool> is_cancelled_{false};
  StepEnd::Flag step_end_{false};
  std::atomic<int64_t> id_{-1};
  int left_ = 0;
};

RegisteredGraph::State::Run& RegisteredGraph::State::start(int64_t step_id) {
  const std::lock_guard lock(mutex);
  check(!running.contains(step_id), "a step ", step_id, " is running already");
  if (free_runs.empty()) {
    const LastingMemory::Scope for_run;
    runs.push_back(std::make_unique<Run>(*this));
    free_runs.push_back(runs.back().get());
  }
  Run& run = *free_runs.back();
  free_runs.pop_back();
  run.set_id(step_id);
  running[step_id] = &run;
  return run;
}

// The last that a step does here: the graph may be destroyed now. What a step that has failed
// needed much memory for may never be run again.
void RegisteredGraph::State::finish(Run& run, const Status& status) {
  const int64_t id = run.id();
  run.clear();
  if (!status.is_ok()) {
    for (const auto& program : programs) program->drop_large();
  }
  const std::lock_guard lock(mutex);
  running.erase(id);
  free_runs.push_back(&run);
  if (running.empty()) idle.notify_all();
}

RegisteredGraph::RegisteredGraph(std::map<std::string, Graph> partitions,
                                 std::vector<std::string> fetches,
                                 const std::vector<CutEdge>& edges, TaskResources resources)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.resources = std::move(resources);
  for (const CutEdge& edge : edges) state.edges.emplace(edge.id, edge);

  Device* host = nullptr;
  for (Device* device : state.resources.devices) {
    if (device->type() == DeviceType::cpu && host == nullptr) host = device;
  }
  check(host != nullptr, "a task needs a CPU device");

  for (auto& [name, partition] : partitions) {
    Device* device = nullptr;
    for (Device* candidate : state.resources.devices) {
      if (candidate->name().to_string() == name) device = candidate;
    }
    check(device != nullptr, "a partition is for device ", name, ", which this task does not have");
    std::vector<std::string> here;
    for (const std::string& fetch : fetches) {
      if (partition.find(node_of(fetch)) != nullptr) here.push_back(fetch);
    }
    const int index = static_cast<int>(state.programs.size());
    state.programs.push_back(std::make_unique<Program>(
        std::move(partition), here, *device, *host, *state.resources.containers,
        *state.resources.node_states, *state.resources.pool));
    const ProgramPlan& plan = state.programs.back()->plan();
    for (size_t f = 0; f < plan.feeds.size(); ++f)
      state.feeds[plan.feeds[f].name].push_back({index, static_cast<int>(f)});
    for (size_t f = 0; f < plan.fetches.size(); ++f) {
      state.fetches.push_back({plan.fetches[f].name, {index, static_cast<int>(f)}});
      state.fetch_places.emplace(plan.fetches[f].name, ProgramSlot{index, static_cast<int>(f)});
    }
    state.has_edges = state.has_edges || state.programs.back()->has_edges();
  }
  for (const std::string& fetch : fetches) state.fetch_place(fetch);
}

RegisteredGraph::~RegisteredGraph() {
  cancel({Code::cancelled, "the graph was dropped while a step of it ran"});
  std::unique_lock lock(state_->mutex);
  const bool is_idle =
      state_->idle.wait_for(lock, patience, [&] { return state_->running.empty(); });
  if (is_idle) return;
  std::fprintf(stderr, "leat: %zu steps of a dropped graph did not end within %lld s\n",
               state_->running.size(), static_cast<long long>(patience.count()));
  lock.unlock();
  state_.release();  // those steps still use it
}

void RegisteredGraph::run(StepRequest request, Done done) {
  State& state = *state_;
  StepResult result;
  std::vector<std::vector<Tensor>> feeds;
  State::Run* run = nullptr;
  try {
    for (const auto& program : state.programs) feeds.emplace_back(program->plan().feeds.size());
    for (auto& [name, tensor] : request.feeds) {
      const auto places = state.feeds.find(name);
      if (places == state.feeds.end())
        fail(Code::invalid_argument, "'", name, "' was fed, but this graph has no such feed");
      for (const ProgramSlot& place : places->second) {
        state.programs[place.program]->check_feed(place.index, tensor);
        feeds[place.program][place.index] = tensor;
      }
    }
    for (size_t p = 0; p < feeds.size(); ++p) {
      for (size_t f = 0; f < feeds[p].size(); ++f) {
        check(feeds[p][f].is_valid(), "no value was fed for '",
              state.programs[p]->plan().feeds[f].name, "'");
      }
    }
    check_internal(!state.has_edges || request.rendezvous,
                   "a step with edges between devices needs a rendezvous");
    run = &state.start(request.step_id);
  } catch (...) {
    result.status = status_of_current_exception();
    return done(std::move(result));
  }
  if (request.early_abort) {
    if (const Status status = request.early_abort(); !status.is_ok())
      run->cancel(request.step_id, status);
  }
  run->start(
      std::move(feeds), std::move(request.rendezvous), request.trace,
      [done = std::move(done), is_traced = request.trace](State::Run& run, const Status& status) {
        StepResult result{.status = status};
        State& state = run.state();
        if (is_traced) run.collect_events(result.events);
        if (status.is_ok()) {
          try {
            for (const auto& [name, place] : state.fetches) {
              result.fetches.emplace_back(name, run.fetch(place));
              if (is_traced) run.trace_fetch(place, result.fetches.back().second, result.events);
            }
          } catch (...) {
            result.status = status_of_current_exception();
            result.fetches.clear();
          }
        }
        state.finish(run, result.status);
        done(std::move(result));
      });
}

void RegisteredGraph::cancel(const Status& status) {
  std::vector<std::pair<int64_t, State::Run*>> runs;
  {
    const std::lock_guard lock(state_->mutex);
    runs.assign(state_->running.begin(), state_->running.end());
  }
  for (const auto& [id, run] : runs) run->cancel(id, status);
}

void RegisteredGraph::cancel(int64_t step_id, const Status& status) {
  State::Run* run = nullptr;
  {
    const std::lock_guard lock(state_->mutex);
    const auto found = state_->running.find(step_id);
    if (found == state_->running.end()) return;
    run = found->second;
  }
  run->cancel(step_id, status);
}

std::vector<StepActivity> RegisteredGraph::activity(int64_t step_id) const {
  const std::lock_guard lock(state_->mutex);
  std::vector<StepActivity> out;
  const auto run = state_->running.find(step_id);
  if (run == state_->running.end()) return out;
  for (const auto& step : run->second->steps()) {
    for (const auto& [item, plan, ns] : step->busy())
      out.push_back(activity_of(*item, ns, *plan, state_->edges));
  }
  return out;
}

// ---- Prepared calls ----

std::shared_ptr<const RegisteredGraph::Call> RegisteredGraph::prepare(
    const std::vector<std::string>& feeds, const std::vector<std::string>& fetches) const {
  const State& state = *state_;
  auto call = std::make_shared<Call>();
  for (const std::string& name : feeds) {
    const auto places = state.feeds.find(name);
    // A feed that nothing needs is fine.
    call->feeds.push_back(places == state.feeds.end() ? std::vector<ProgramSlot>()
                                                      : places->second);
  }
  for (const auto& [name, places] : state.feeds) {
    check(std::find(feeds.begin(), feeds.end(), name) != feeds.end(), "no value is fed for '", name,
          "'");
  }
  for (const std::string& name : fetches) call->fetches.push_back(state.fetch_place(name));
  return call;
}

bool RegisteredGraph::has_feed(const std::string& name) const {
  return state_->feeds.contains(name);
}

bool RegisteredGraph::runs_on_caller() const {
  return state_->programs.empty() ||
         (state_->programs.size() == 1 && state_->programs[0]->is_straight());
}

void RegisteredGraph::run_here(const Call& call, std::span<const Tensor> feeds,
                               std::vector<Tensor>& fetches) {
  for (Tensor& fetch : fetches) fetch = Tensor();
  fetches.resize(call.fetches.size());
  if (state_->programs.empty()) return;
  Program& program = *state_->programs[0];
  Pointers<const Tensor*> in(program.plan().feeds.size());
  for (size_t i = 0; i < call.feeds.size(); ++i) {
    for (const ProgramSlot& place : call.feeds[i]) {
      program.check_feed(place.index, feeds[i]);
      in[place.index] = &feeds[i];
    }
  }
  Pointers<Tensor*> out(program.plan().fetches.size());
  for (size_t i = call.fetches.size(); i-- > 0;)
    out[call.fetches[i].index] = &fetches[i];  // the first of its name
  program.run_straight(in.span(), out.span(), nullptr);
  for (size_t i = 0; i < call.fetches.size(); ++i) {
    if (Tensor* first = out[call.fetches[i].index]; first != &fetches[i]) fetches[i] = *first;
  }
}

void RegisteredGraph::start(const Call& call, int64_t step_id, std::span<const Tensor> feeds,
                            std::shared_ptr<Rendezvous> rendezvous, std::vector<Tensor>* fetches,
                            std::function<void(const Status&)> done) {
  State& state = *state_;
  std::vector<std::vector<Tensor>> inputs;
  State::Run* run = nullptr;
  try {
    for (Tensor& fetch : *fetches) fetch = Tensor();
    fetches->resize(call.fetches.size());
    for (const auto& program : state.programs) inputs.emplace_back(program->plan().feeds.size());
    for (size_t i = 0; i < call.feeds.size(); ++i) {
      for (const ProgramSlot& place : call.feeds[i]) {
        state.programs[place.program]->check_feed(place.index, feeds[i]);
        inputs[place.program][place.index] = feeds[i];
      }
    }
    check_internal(!state.has_edges || rendezvous,
                   "a step with edges between devices needs a rendezvous");
    run = &state.start(step_id);
  } catch (...) {
    return done(status_of_current_exception());
  }
  run->start(std::move(inputs), std::move(rendezvous), false,
             [&call, fetches, done = std::move(done)](State::Run& run, Status status) {
               if (status.is_ok()) {
                 try {
                   for (size_t i = 0; i < call.fetches.size(); ++i)
                     (*fetches)[i] = run.fetch(call.fetches[i]);
                 } catch (...) {
                   status = status_of_current_exception();
                 }
               }
               run.state().finish(run, status);
               done(status);
             });
}

void RegisteredGraph::drop_unused() {
  for (const auto& program : state_->programs) program->drop_unused();
}

const std::vector<std::unique_ptr<Program>>& RegisteredGraph::programs() const {
  return state_->programs;
}

}  // namespace leat
