#include "runtime/loop.h"

#include <algorithm>

#include "core/execution/thread_pool.h"
#include "graph/host_values.h"
#include "runtime/node_error.h"
#include "runtime/pinned_loop.h"
#include "runtime/pointers.h"
#include "runtime/trace.h"

namespace leat {
namespace {

// A longer loop continues on another thread, so that the step's thread can do the rest.
constexpr int64_t long_ns = 50'000;

// A loop that may be pinned is, after a few iterations: earlier its values may be anybody's, and
// the loop may be over. Then it runs some iterations before it looks around.
constexpr int iterations_before_pinned = 3, pinned_at_once = 8;

// On a GPU; on a CPU all values are in host memory. `next`: the variables' values, if the part is
// the body. The host reads what the condition says.
PartPlaces places_of(const Graph& part, const std::vector<std::string>& next, const Node& loop) {
  const std::vector<bool> on_host = loop_inputs_on_host(loop);
  PartPlaces out;
  for (const auto& node : part.nodes()) {
    if (!node->is("_Feed")) continue;
    const std::string& name = node->attr<std::string>("name");
    const LoopFeed from = LoopFeed::parse(name);
    const size_t input = static_cast<size_t>(from.number) +
                         (from.is_variable ? 0 : static_cast<size_t>(loop.num_outputs()));
    if (input < on_host.size() && !on_host[input]) out.feeds_on_device.insert(name);
  }
  for (size_t v = 0; v < next.size() && v < on_host.size(); ++v) {
    if (!on_host[v]) out.fetches_on_device.insert(next[v]);
  }
  return out;
}

// The parts of a loop may come from another process: what goes into them, and out of them, is
// compared with what the loop declares.
LoopProgram::Part make_part(const Node& loop, Graph graph, const std::vector<std::string>& wanted,
                            Device& device, Device& host, Containers& containers,
                            NodeStates& node_states, ThreadPool& pool, bool is_body = false) {
  const int variables = loop.num_outputs();
  LoopProgram::Part part;
  PartPlaces places;
  if (device.type() != DeviceType::cpu)
    places = places_of(graph, is_body ? wanted : std::vector<std::string>(), loop);
  part.program = std::make_unique<Program>(std::move(graph), wanted, device, host, containers,
                                           node_states, pool, &places);
  const ProgramPlan& plan = part.program->plan();
  for (const ProgramPlan::Feed& feed : plan.feeds) {
    const LoopFeed from = LoopFeed::parse(feed.name);
    const int input = from.number + (from.is_variable ? 0 : variables);
    check(from.number < std::ssize(loop.inputs) && input < std::ssize(loop.inputs) &&
              (!from.is_variable || input < variables),
          describe(loop), " has no input '", feed.name, "'");
    check(feed.dtype == loop.inputs[input].dtype(), describe(loop), ": '", feed.name, "' is ",
          loop.inputs[input].dtype(), ", but the loop's graph expects ", feed.dtype);
    part.feeds.push_back(input);
  }
  for (const std::string& name : wanted) {
    const auto found = std::find_if(plan.fetches.begin(), plan.fetches.end(),
                                    [&](const ProgramPlan::Fetch& f) { return f.name == name; });
    part.fetches.push_back(static_cast<int>(found - plan.fetches.begin()));
  }
  return part;
}

}  // namespace

LoopProgram::LoopProgram(const Node& loop, Device& device, Device& host, Containers& containers,
                         NodeStates& node_states, ThreadPool& pool) {
  done_edge_ = loop.attr<int64_t>("done_edge");
  LoopParts parts(loop);
  const int variables = static_cast<int>(loop.outputs.size());
  check(static_cast<int>(parts.next.size()) == variables, describe(loop), " has ", variables,
        " variables, but its body gives ", parts.next.size());
  for (int v = 0; v < variables; ++v) {
    const DType next = parts.body.output(parts.next[v]).dtype();
    check(next == loop.outputs[v].dtype, describe(loop), ": variable ", v, " is ",
          loop.outputs[v].dtype, ", but its body gives ", next, " as '", parts.next[v], "'");
  }
  condition_ = make_part(loop, std::move(parts.condition), {parts.predicate}, device, host,
                         containers, node_states, pool);
  body_ = make_part(loop, std::move(parts.body), parts.next, device, host, containers, node_states,
                    pool, /*is_body=*/true);
  if (parts.last.size() > 0)
    last_ = make_part(loop, std::move(parts.last), {}, device, host, containers, node_states, pool);
}

void LoopProgram::drop_unused() {
  condition_.program->drop_unused();
  body_.program->drop_unused();
  if (last_) last_->program->drop_unused();
}

void LoopProgram::drop_large() {
  condition_.program->drop_large();
  body_.program->drop_large();
  if (last_) last_->program->drop_large();
}

LoopRun::LoopRun(const LoopProgram& loop, ProgramStep& outer, ThreadPool& pool)
    : loop_(loop), outer_(outer), pool_(pool) {}

void LoopRun::start(std::vector<Tensor> inputs, Rendezvous* rendezvous, bool is_traced,
                    std::function<void(const Status&)> done) {
  values_ = std::move(inputs);
  rendezvous_ = rendezvous;
  is_traced_ = is_traced;
  at_ = At::condition;
  done_ = std::move(done);
  events_.clear();
  until_pinned_ = is_traced ? -1 : iterations_before_pinned;
  advance();
}

// Until the loop has ended or waits for a part that is under way: step_done() goes on then.
void LoopRun::advance() {
  const StepEnd::Scope scope(&step_end());
  const int64_t begun = trace_now_ns();
  try {
    for (;;) {
      if (is_ending()) return finish(cancel_status());
      if (at_ == At::condition && pool_.threads() > 1 && trace_now_ns() - begun > long_ns) {
        const WorkSource::Scope source(outer_.source());
        pool_.schedule([this] { ProgramStep::run_in_turn([this] { advance(); }); });
        return;
      }
      if (at_ == At::condition && pin()) {
        if (!pinned_->run(pinned_at_once)) continue;
        pinned_.reset();
        at_ = At::last;
        if (loop_.last() == nullptr) return finish({});
      }
      const bool has_run = at_ == At::condition ? run(loop_.condition(), condition_)
                           : at_ == At::body    ? run(loop_.body(), body_)
                                                : run(*loop_.last(), last_);
      if (!has_run) return;
      if (!take_results()) return finish({});
    }
  } catch (...) {
    finish(status_of_current_exception());
  }
}

LoopRun::~LoopRun() = default;

bool LoopRun::pin() {
  if (until_pinned_ == 0) {
    until_pinned_ = -1;
    results_.clear();
    pinned_ = PinnedLoop::make(loop_, values_);
  }
  return pinned_ != nullptr;
}

// False if the part is under way.
bool LoopRun::run(const LoopProgram::Part& part, std::optional<ProgramStep>& step) {
  if (part.program->is_straight()) {
    run_straight(part);
    return true;
  }
  if (!step) step.emplace(*part.program, *this);
  std::vector<Tensor> feeds;
  feeds.reserve(part.feeds.size());
  for (const int input : part.feeds) {
    // The body gives each variable a new value, so it may have the old one.
    const bool is_last_use = at_ == At::body && input < loop_.variables();
    feeds.push_back(is_last_use ? std::move(values_[input]) : values_[input]);
  }
  step->start(std::move(feeds), rendezvous_, is_traced_);
  under_way_.store(&*step, std::memory_order_release);
  ProgramStep* const started = &*step;
  ProgramStep::drive({&started, 1});
  return false;
}

void LoopRun::run_straight(const LoopProgram::Part& part) {
  Pointers<const Tensor*> feeds(part.feeds.size());
  for (size_t i = 0; i < part.feeds.size(); ++i) feeds[i] = &values_[part.feeds[i]];
  const size_t count = part.program->plan().fetches.size();
  results_.resize(count);
  // The body gives each variable a new value, which may have the memory of the old one.
  Pointers<char> given(at_ == At::body ? part.feeds.size() : 0);
  for (size_t i = 0; i < part.feeds.size() && at_ == At::body; ++i)
    given[i] = part.feeds[i] < loop_.variables();
  Pointers<Tensor*> fetches(count);
  for (size_t i = 0; i < count; ++i) fetches[i] = &results_[i];
  part.program->run_straight(feeds.span(), fetches.span(), is_traced_ ? &events_ : nullptr,
                             given.span());
}

// False if there is nothing more to run.
bool LoopRun::take_results() {
  if (at_ == At::last) return false;
  if (at_ == At::condition) {
    at_ = results_[loop_.condition().fetches[0]].item<bool>() ? At::body : At::last;
    return at_ == At::body || loop_.last() != nullptr;
  }
  at_ = At::condition;
  if (until_pinned_ > 0) --until_pinned_;
  const std::vector<int>& next = loop_.body().fetches;
  for (size_t v = 0; v < next.size(); ++v) {
    Tensor& result = results_[next[v]];
    const bool is_last_use = std::find(next.begin() + v + 1, next.end(), next[v]) == next.end();
    values_[v] = is_last_use ? std::move(result) : result;
  }
  if (loop_.done_edge() >= 0) rendezvous_->send(loop_.done_edge(), {}, false);
  return true;
}

void LoopRun::step_done(ProgramStep& step) {
  under_way_.store(nullptr, std::memory_order_relaxed);
  events_.insert(events_.end(), step.events().begin(), step.events().end());
  Status status = step.status();
  bool goes_on = false;
  try {
    if (status.is_ok()) {
      results_.resize(step.program().plan().fetches.size());
      for (size_t i = 0; i < results_.size(); ++i) results_[i] = step.fetch(static_cast<int>(i));
      goes_on = take_results();
    }
  } catch (...) {
    status = status_of_current_exception();
  }
  step.clear();
  if (!goes_on) return finish(status);
  advance();
}

void LoopRun::finish(const Status& status) {
  pinned_.reset();
  results_.clear();
  values_.resize(loop_.variables());  // what was captured is not needed any more
  const auto done = std::move(done_);
  done(status);
}

bool LoopRun::is_ending() const { return outer_.is_ending(); }

Status LoopRun::cancel_status() const {
  if (outer_.owner().is_ending()) return outer_.owner().cancel_status();
  return {Code::cancelled, "the step has ended", true};
}

Cancellation& LoopRun::cancellation() { return outer_.owner().cancellation(); }

void LoopRun::step_failed(const Status& status) { outer_.owner().step_failed(status); }

}  // namespace leat
