// One step of a Program: dependency counts, dead flags, arrivals, and the thread that runs it.
// "Life of a step" in program.h has the order; program_items.cc has what each kind of item does.
#include <algorithm>

#include "core/execution/thread_pool.h"
#include "runtime/lent_thread.h"
#include "runtime/loop.h"
#include "runtime/node_error.h"
#include "runtime/program_step.h"
#include "runtime/trace.h"

namespace leat {
namespace {

constexpr int64_t slow_ns =
    50'000;  // a segment that takes longer is worth a hand-off (5 to 50 µs) to another thread
constexpr size_t quick_bytes =
    16'384;  // so much a kernel handles at once, whatever it does with it

// The steps that the thread at hand has still to run. A step that is woken by one that runs here
// waits its turn here: that is cheaper than waking another thread, unless the present one has long
// work before it.
thread_local std::vector<ProgramStep*>* woken_here = nullptr;

}  // namespace

ProgramStep::ProgramStep(Program& program, Owner& owner)
    : program_(program),
      plan_(program.plan()),
      owner_(owner),
      slots_(plan_.slots),
      marks_(plan_.slots),
      loops_(plan_.loops),
      waiting_since_(std::make_unique<std::atomic<int64_t>[]>(plan_.items.size())) {}

ProgramStep::~ProgramStep() = default;

void ProgramStep::start(std::vector<Tensor> feeds, Rendezvous* rendezvous, bool is_traced) {
  rendezvous_ = rendezvous;
  is_traced_ = is_traced;
  source_ = WorkSource::of_thread();
  is_running_ = true;
  is_drained_ = plan_.is_part || plan_.device->type() == DeviceType::cpu;
  status_ = {};
  has_failed_ = false;
  events_.clear();
  handed_out_events_.clear();
  finished_kernels_.clear();
  ready_boundary_.clear();  // a step that failed may have left some
  ready_segments_.clear();
  under_way_ = 0;
  unfinished_ = static_cast<int>(plan_.items.size());
  uses_ = plan_.slot_uses;
  flags_.assign(plan_.flags, 0);
  counters_.assign(plan_.counters, 0);
  is_sent_.assign(plan_.items.size(), 0);
  is_marked_.assign(plan_.slots, 0);
  pending_.resize(plan_.items.size());
  for (size_t i = 0; i < feeds.size(); ++i) {
    if (plan_.feeds[i].slot >= 0) slots_[plan_.feeds[i].slot] = std::move(feeds[i]);
  }
  for (size_t i = 0; i < plan_.items.size(); ++i) pending_[i] = plan_.items[i].dependencies;
  for (size_t i = 0; i < plan_.items.size(); ++i) {
    const Item& item = plan_.items[i];
    if (item.kind != ItemKind::merge) {
      if (pending_[i] == 0) make_ready(static_cast<int>(i));
      continue;
    }
    for (size_t input = 0; input < item.inputs.size(); ++input)
      counters_[item.first_counter + input] = item.inputs[input].arrivals;
    for (size_t input = 0; input < item.inputs.size(); ++input) {
      if (item.inputs[input].arrivals == 0)
        merge_input_arrived(static_cast<int>(i), static_cast<int>(input));
    }
  }
}

// Does `first`, then runs the steps that it woke, and those that they woke.
template <class F>
void ProgramStep::in_turn(F&& first) {
  if (woken_here != nullptr) return first();
  thread_local std::vector<ProgramStep*> queue;
  woken_here = &queue;
  first();
  while (!queue.empty()) {
    ProgramStep* step = queue.front();
    queue.erase(queue.begin());
    step->work();
  }
  woken_here = nullptr;
}

void ProgramStep::run_in_turn(const std::function<void()>& first) {
  in_turn([&] { first(); });
}

void ProgramStep::drive(std::span<ProgramStep* const> steps) {
  in_turn([&] { woken_here->insert(woken_here->end(), steps.begin(), steps.end()); });
}

// What is ready, and what becomes ready by that. False if the step goes on in the pool.
bool ProgramStep::run_ready() {
  const StepEnd::Scope scope(&owner_.step_end());
  const WorkSource::Scope source(source_);
  while (status_.is_ok() && !(ready_boundary_.empty() && ready_segments_.empty())) {
    if (owner_.is_ending()) {
      fail_step(owner_.cancel_status());
      break;
    }
    // Boundary nodes first: they are short, and others wait for them.
    if (ready_boundary_.empty()) {
      try {
        hand_out_slow_segments();
      } catch (...) {
        fail_step(status_of_current_exception());
        break;
      }
    }
    std::vector<int>& ready = ready_boundary_.empty() ? ready_segments_ : ready_boundary_;
    const int next = ready.back();
    ready.pop_back();
    running_item_.store(next, std::memory_order_relaxed);
    try {
      if (LentThread::is_this_one() && may_take_long(next)) throw LentThread::TooLong();
      run_item(next);
    } catch (const LentThread::TooLong&) {
      ready.push_back(next);
      running_item_.store(-1, std::memory_order_relaxed);
      go_on_in_pool();
      return false;
    } catch (...) {
      fail_step(status_of_item(next));
    }
  }
  running_item_.store(-1, std::memory_order_relaxed);
  return true;
}

// Runs until nothing is ready. At its end the step may be gone: somebody else may run it, or it is
// done.
void ProgramStep::work() {
  running_since_.store(trace_now_ns(), std::memory_order_relaxed);
  for (;;) {
    if (!run_ready()) return;
    {
      std::unique_lock lock(mutex_);
      arrivals_.swap(inbox_);
      if (arrivals_.empty() && under_way_ > 0) {
        is_running_ = false;
        return;
      }
    }
    if (arrivals_.empty() && is_drained_) break;
    if (arrivals_.empty()) drain();
    for (Arrival& arrival : arrivals_) process(arrival);
    arrivals_.clear();
  }
  if (status_.is_ok() && unfinished_ > 0) {
    status_ = {Code::internal, concat(unfinished_, " items of a step on ", plan_.device->name(),
                                      " never became ready")};
  }
  events_.insert(events_.end(), handed_out_events_.begin(), handed_out_events_.end());
  owner_.step_done(*this);
}

// The last wait of a step on a device that runs behind us.
void ProgramStep::drain() {
  is_drained_ = true;
  ++under_way_;
  try {
    plan_.device->when_finished([this](const Status& status) { arrive(-1, status, {}, false); });
  } catch (...) {  // a device that takes no more work: nothing will arrive from it
    arrive(-1, status_of_current_exception(), {}, false);
  }
}

// Of the exception being handled. What a segment throws names its node already.
Status ProgramStep::status_of_item(int index) const {
  const Item& item = plan_.items[index];
  if (owner_.is_ending()) return owner_.cancel_status();
  if (Status status = status_of_current_exception(); status.derived) return status;
  return item.node != nullptr ? status_at(*item.node, *plan_.device)
                              : status_of_current_exception();
}

// What a kernel says that has waited gets its node's name, unless it only hands on why the step
// ended.
Status ProgramStep::status_of_arrival(Arrival arrival) const {
  const bool is_kernel =
      arrival.item >= 0 && plan_.items[arrival.item].kind == ItemKind::execute_async;
  if (!is_kernel || arrival.status.derived || owner_.is_ending()) return std::move(arrival.status);
  return status_at(*plan_.items[arrival.item].node, *plan_.device, std::move(arrival.status));
}

void ProgramStep::fail_step(Status status) {
  if (!status_.is_ok()) return;
  status_ = status;
  has_failed_ = true;
  ready_boundary_.clear();
  ready_segments_.clear();
  status.derived = true;
  if (rendezvous_ != nullptr) rendezvous_->abort(status);
  owner_.step_failed(status);
}

// ---- Arrivals: the only part that other threads enter ----

void ProgramStep::arrive(int item, const Status& status, Tensor value, bool is_dead) {
  {
    const std::lock_guard lock(mutex_);
    inbox_.push_back({item, status, std::move(value), is_dead});
    if (is_running_) return;
    is_running_ = true;
  }
  wake();
}

// This thread may run the step now. It does so in its turn, unless it is a stranger (a network
// thread) and the step has long work to do.
void ProgramStep::wake() {
  if (woken_here == nullptr && has_slow_work()) {
    go_on_in_pool();
  } else {
    ProgramStep* self = this;
    drive({&self, 1});
  }
}

// By the thread that runs it: goes on as such on a thread of the pool.
void ProgramStep::go_on_in_pool() {
  const WorkSource::Scope source(source_);
  program_.pool_.schedule([this] {
    ProgramStep* self = this;
    drive({&self, 1});
  });
}

void ProgramStep::process(Arrival& arrival) {
  --under_way_;
  if (arrival.item >= 0) {
    const int64_t since = waiting_since_[arrival.item].exchange(0, std::memory_order_relaxed);
    if (is_traced_ && since > 0) trace_wait(plan_.items[arrival.item], since, arrival.value);
  }
  if (!arrival.status.is_ok()) return fail_step(status_of_arrival(std::move(arrival)));
  if (!status_.is_ok() || arrival.item < 0) return;
  const Item& item = plan_.items[arrival.item];
  if (item.kind == ItemKind::receive) {
    if (Status status = check_received(item, arrival); !status.is_ok())
      return fail_step(std::move(status));
  }
  if (item.kind == ItemKind::execute_async) {
    if (const Status status = deliver_from_kernel(arrival.item); !status.is_ok())
      return fail_step(status);
  } else if (item.kind == ItemKind::loop) {
    deliver_from_loop(item);
  } else if (arrival.is_dead || is_dead(item.dead_on)) {
    if (item.dead_flag >= 0) flags_[item.dead_flag] = true;
  } else if (arrival.value.is_valid() && !item.outputs.empty() && item.outputs[0] >= 0) {
    set(item.outputs[0], std::move(arrival.value));
  }
  complete(arrival.item);
}

std::vector<ProgramStep::Busy> ProgramStep::busy() const {
  std::vector<Busy> out;
  const int64_t now = trace_now_ns();
  for (size_t i = 0; i < plan_.items.size(); ++i) {
    const int64_t since = waiting_since_[i].load(std::memory_order_acquire);
    if (since == 0) continue;
    const Item& item = plan_.items[i];
    const ProgramStep* part =
        item.kind == ItemKind::loop ? loops_[item.loop]->under_way() : nullptr;
    const std::vector<Busy> inner = part != nullptr ? part->busy() : std::vector<Busy>();
    out.insert(out.end(), inner.begin(), inner.end());
    if (inner.empty()) out.push_back({&item, &plan_, now - since});
  }
  if (const int running = running_item_.load(std::memory_order_relaxed); running >= 0)
    out.push_back(
        {&plan_.items[running], &plan_, now - running_since_.load(std::memory_order_relaxed)});
  return out;
}

void ProgramStep::begin_wait(int index) {
  ++under_way_;
  waiting_since_[index].store(trace_now_ns(), std::memory_order_release);
}

// ---- Values ----

const Tensor& ProgramStep::value_of(const ItemSource& source) const {
  if (source.constant < 0) return slots_[source.slot];
  return source.is_on_device ? plan_.device_constants[source.constant]
                             : plan_.constants[source.constant];
}

// The value, for its last reader the very handle.
Tensor ProgramStep::take(const ItemSource& source) {
  if (source.constant < 0 && uses_[source.slot] == 1) return std::move(slots_[source.slot]);
  return value_of(source);
}

void ProgramStep::set(int slot, Tensor value) { slots_[slot] = std::move(value); }

bool ProgramStep::is_dead(const std::vector<int>& flags) const {
  for (int flag : flags) {
    if (flags_[flag]) return true;
  }
  return false;
}

Tensor ProgramStep::fetch(int i) const {
  const ProgramPlan::Fetch& fetch = plan_.fetches[i];
  if (is_dead(fetch.source.dead_on))
    fail(Code::invalid_argument, "The tensor returned for ", fetch.name, " was not valid.");
  return value_of(fetch.source);
}

void ProgramStep::clear() {
  for (Tensor& slot : slots_) {
    if (slot.is_valid()) slot = Tensor();
  }
  for (const auto& loop : loops_) {
    if (loop != nullptr) loop->values().clear();
  }
  rendezvous_ = nullptr;
}

// ---- Dependencies ----

void ProgramStep::make_ready(int index) {
  if (!status_.is_ok()) return;
  (plan_.items[index].kind == ItemKind::segment ? ready_segments_ : ready_boundary_)
      .push_back(index);
}

// The item has run, or was dead.
void ProgramStep::complete(int index) {
  const Item& item = plan_.items[index];
  --unfinished_;
  for (int slot : item.releases) {
    if (--uses_[slot] == 0) slots_[slot] = Tensor();
  }
  for (const Successor& successor : item.successors) {
    if (successor.merge_input >= 0) {
      if (--counters_[plan_.items[successor.item].first_counter + successor.merge_input] == 0) {
        merge_input_arrived(successor.item, successor.merge_input);
      }
    } else if (--pending_[successor.item] == 0) {
      const Item& next = plan_.items[successor.item];
      if (next.kind != ItemKind::merge || is_merge_decided(next)) make_ready(successor.item);
    }
  }
}

// After the inputs' counters a Merge has two more: how many inputs arrived, and which live one came
// first, plus one.
bool ProgramStep::is_merge_decided(const Item& item) const {
  const int* counters = &counters_[item.first_counter];
  const size_t inputs = item.inputs.size();
  return counters[inputs + 1] > 0 || counters[inputs] == static_cast<int>(inputs);
}

void ProgramStep::merge_input_arrived(int index, int input) {
  const Item& item = plan_.items[index];
  int* counters = &counters_[item.first_counter];
  const size_t inputs = item.inputs.size();
  const bool was_decided = is_merge_decided(item);
  ++counters[inputs];
  if (!is_dead(item.inputs[input].dead_on)) {
    if (counters[inputs + 1] > 0) {
      return fail_step(
          with_node({Code::internal, concat("inputs ", counters[inputs + 1] - 1, " and ", input,
                                            " of a Merge are both live")},
                    item.node->name));
    }
    counters[inputs + 1] = input + 1;
  }
  if (!was_decided && pending_[index] == 0 && is_merge_decided(item)) make_ready(index);
}

// ---- Who runs it ----

bool ProgramStep::is_slow(int index) const {
  const Item& item = plan_.items[index];
  return item.kind == ItemKind::segment &&
         program_.costs_ns_[item.segment].load(std::memory_order_relaxed) > slow_ns;
}

// An arrival may make any segment ready: what the slowest one takes is what the thread that brings
// it must expect.
bool ProgramStep::has_slow_work() const {
  if (!program_.loops_.empty()) return true;
  for (const std::atomic<int64_t>& cost : program_.costs_ns_) {
    const int64_t ns = cost.load(std::memory_order_relaxed);
    if (ns == 0 || ns > slow_ns) return true;
  }
  return false;
}

// Or nobody has measured it: a kernel's loops over its values, a loop's iterations. (Segments tell
// by themselves what is new to them. Kernels that wait for a disk do it elsewhere.)
bool ProgramStep::may_take_long(int index) const {
  const Item& item = plan_.items[index];
  if (item.kind == ItemKind::segment) return is_slow(index);
  if (item.kind == ItemKind::loop) return true;
  if (item.kind != ItemKind::execute && item.kind != ItemKind::execute_async) return false;
  const int64_t ns = program_.kernel_costs_ns_[index].load(std::memory_order_relaxed);
  if (ns == 0 || ns > slow_ns) return true;
  size_t bytes = 0;
  for (const ItemSource& input : item.inputs) {
    if (input.constant >= 0 || input.slot >= 0) bytes += value_of(input).bytes();
  }
  return bytes > quick_bytes;
}

// Before long work: steps that wait for this thread, and all but one of the slow segments, go to
// the pool.
void ProgramStep::hand_out_slow_segments() {
  ThreadPool& pool = program_.pool_;
  if (pool.threads() <= 1 || !is_slow(ready_segments_.back())) return;
  if (woken_here != nullptr) {
    for (; !woken_here->empty(); woken_here->pop_back())
      pool.schedule([step = woken_here->back()] { drive({&step, 1}); });
  }
  for (size_t i = 0; i + 1 < ready_segments_.size();) {
    const int index = ready_segments_[i];
    if (!is_slow(index) || is_dead(plan_.items[index].dead_on)) {
      ++i;
      continue;
    }
    ready_segments_.erase(ready_segments_.begin() + static_cast<std::ptrdiff_t>(i));
    begin_wait(index);
    try {
      pool.schedule([this, index] { in_turn([&] { run_handed_out(index); }); });
    } catch (...) {
      arrive(index, status_of_item(index), {}, false);
    }
  }
}

void ProgramStep::run_handed_out(int index) {
  const StepEnd::Scope scope(&owner_.step_end());
  std::vector<TraceEvent> events;
  Status status;
  try {
    run_segment(index, events);
  } catch (...) {
    status = status_of_item(index);
  }
  if (!events.empty()) {
    const std::lock_guard lock(mutex_);
    handed_out_events_.insert(handed_out_events_.end(), events.begin(), events.end());
  }
  arrive(index, status, {}, false);
}

}  // namespace leat
