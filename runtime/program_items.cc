// What each kind of item does when it runs: send, receive, switch, merge, run a segment, a kernel
// or a loop, copy from and to a device. program_step.cc decides when.
#include <algorithm>
#include <functional>

#include "core/execution/side_stream.h"
#include "core/execution/thread_pool.h"
#include "core/flush_denormals.h"
#include "core/function.h"
#include "core/memory/memory_owner.h"
#include "runtime/functions.h"
#include "runtime/loop.h"
#include "runtime/node_error.h"
#include "runtime/pointers.h"
#include "runtime/program_step.h"
#include "runtime/trace.h"

namespace leat {
namespace {

// Adds a measured time to a running mean; 0 is one of nothing.
void average(std::atomic<int64_t>& mean, int64_t ns) {
  const int64_t before = mean.load(std::memory_order_relaxed);
  mean.store(before == 0 ? ns : (3 * before + ns) / 4, std::memory_order_relaxed);
}

}  // namespace

// What a kernel between segments sees.
class ProgramStep::Context : public ExecuteContext, public FunctionCompiler, public HasMarks {
 public:
  Context(ProgramStep& step, int index)
      : step_(step),
        index_(index),
        item_(step.plan_.items[index]),
        view_(item_.node->view()),
        outputs_(item_.outputs.size()) {}

  const NodeView& node() const override { return view_; }
  int num_inputs() const override { return static_cast<int>(item_.inputs.size()); }
  const Tensor& input(int i) const override { return step_.value_of(value_source(i)); }
  Tensor take_input(int i) override { return step_.take(value_source(i)); }
  Variable& variable(int i) const override {
    check(item_.inputs[i].variable >= 0, "input ", i, " is not a variable");
    return *step_.plan_.variables[item_.inputs[i].variable];
  }
  const std::shared_ptr<Resource>& resource(int i) const override {
    if (i < 0) {
      check_internal(item_.resource >= 0, item_.node->op->name, " has no state of its own");
      return step_.plan_.resources[item_.resource];
    }
    if (item_.inputs[i].slot >= 0) return resource_of(input(i));
    check(item_.inputs[i].resource >= 0, "input ", i, " is a variable, not a queue or the like");
    return step_.plan_.resources[item_.inputs[i].resource];
  }
  Cancellation& cancellation() override { return step_.owner_.cancellation(); }
  void set_output(int i, Tensor value) override { outputs_.at(i) = std::move(value); }
  Device& device() const override {
    const bool is_for_host = item_.kernel->device == DeviceType::cpu;
    return is_for_host ? *step_.plan_.host : *step_.plan_.device;
  }
  std::shared_ptr<const CallableFunction> compile(const WrittenFunction& function) override {
    return step_.plan_.functions->compiled(function);
  }

  std::shared_ptr<const StreamMark> mark(int i) const override {
    const int slot = item_.inputs[i].slot;
    return slot >= 0 && step_.is_marked_[slot] != 0 ? step_.marks_[slot] : nullptr;
  }

  int index() const { return index_; }
  // Hands the outputs to the step. Every output that somebody reads must have been set.
  void deliver() {
    for (size_t o = 0; o < outputs_.size(); ++o) {
      if (item_.outputs[o] < 0) continue;
      check_internal(outputs_[o].is_valid(), "the kernel set no output ", o);
      const DType declared = item_.node->outputs[o].dtype;
      check(outputs_[o].dtype() == declared, "output ", o, " is declared as ", declared,
            ", but the value is a tensor of ", outputs_[o].dtype());
      step_.set(item_.outputs[o], std::move(outputs_[o]));
    }
  }

 private:
  const ItemSource& value_source(int i) const {
    const ItemSource& source = item_.inputs[i];
    check(source.slot >= 0 || source.constant >= 0, "input ", i,
          " is a resource handle, not a value");
    return source;
  }

  ProgramStep& step_;
  const int index_;
  const Item& item_;
  NodeView view_;
  std::vector<Tensor> outputs_;
};

void ProgramStep::run_item(int index) {
  const Item& item = plan_.items[index];
  const bool is_dead_item = is_dead(item.dead_on);
  switch (item.kind) {
    case ItemKind::receive:  // a dead control input makes what arrives irrelevant, but it must be
                             // taken
      begin_wait(index);
      try {
        rendezvous_->recv(item.edge,
                          [this, index](const Status& status, Tensor value, bool is_dead) {
                            receive(index, status, std::move(value), is_dead);
                          });
      } catch (...) {
        arrive(index, status_of_item(index), {}, false);
      }
      return;
    case ItemKind::send:
      if (!is_sent_[index]) {
        send(index, is_dead_item || item.inputs.empty() ? Tensor() : take(item.inputs[0]),
             is_dead_item, events_);
      }
      return complete(index);
    case ItemKind::switch_:
      run_switch(item, is_dead_item);
      return complete(index);
    case ItemKind::merge:
      run_merge(item);
      return complete(index);
    default:
      break;
  }
  if (is_dead_item) return complete(index);
  switch (item.kind) {
    case ItemKind::segment:
      run_segment(index, events_);
      return complete(index);
    case ItemKind::execute: {
      Context context(*this, index);
      const int64_t start = trace_now_ns();
      const bool may_update =
          std::any_of(item.inputs.begin(), item.inputs.end(),
                      [](const ItemSource& input) { return input.variable >= 0; });
      // A variable is changed wholly, or not at all.
      const StepEnd::Scope scope(may_update ? nullptr : StepEnd::of_thread());
      const FlushDenormals flush;
      item.kernel->execute(context);
      context.deliver();
      const int64_t end = trace_now_ns();
      average(program_.kernel_costs_ns_[index], end - start);
      if (is_traced_) {
        events_.push_back(trace_event(*item.node, plan_.device->name().to_string(), start, end, 0));
      }
      return complete(index);
    }
    case ItemKind::execute_async:
      return run_kernel_async(index);
    case ItemKind::loop:
      return run_loop(index);
    case ItemKind::to_device:
      copy_to_device(item);
      return complete(index);
    case ItemKind::to_host:
      return copy_to_host(index);
    default:
      break;
  }
}

void ProgramStep::send(int index, Tensor value, bool is_dead, std::vector<TraceEvent>& events) {
  const Item& item = plan_.items[index];
  const auto bytes = static_cast<int64_t>(value.bytes());
  const int64_t start = is_traced_ ? trace_now_ns() : 0;
  rendezvous_->send(item.edge, std::move(value), is_dead);
  if (is_traced_) {
    events.push_back(
        trace_event(*item.node, plan_.device->name().to_string(), start, trace_now_ns(), bytes));
  }
}

void ProgramStep::run_segment(int index, std::vector<TraceEvent>& events) {
  const Item& item = plan_.items[index];
  Pointers<const Tensor*> inputs(item.inputs.size());
  Pointers<char> given(item.inputs.size());
  for (size_t i = 0; i < item.inputs.size(); ++i) {
    inputs[i] = &value_of(item.inputs[i]);
    const int slot = item.inputs[i].slot;
    given[i] = slot >= 0 && item.inputs[i].constant < 0 && uses_[slot] == 1;
  }
  Pointers<Tensor*> results(item.outputs.size());
  for (size_t r = 0; r < item.outputs.size(); ++r) results[r] = &slots_[item.outputs[r]];
  Segment& segment = *program_.segments_[item.segment];
  const SegmentPlan& plan = plan_.segments[item.segment];
  const auto use_now = [&](int r, const Tensor& value) {
    const SegmentPlan::Result& result = plan.results[static_cast<size_t>(r)];
    for (const int to : result.sends) {
      send(to, value, false, events);
      is_sent_[to] = 1;
    }
    if (result.is_marked) set_mark(item.outputs[static_cast<size_t>(r)]);
  };
  const ResultTaker early_user = std::cref(use_now);
  const ResultTaker* const taker = plan.has_early_uses ? &early_user : nullptr;
  const int64_t start = trace_now_ns();
  if (is_traced_) {
    std::vector<InstructionTimes> times;
    const auto tape = segment.run_traced(inputs.span(), results.span(), times, taker, given.span());
    program_.trace(*tape, times, events);
  } else {
    segment.run(inputs.span(), results.span(), taker, given.span());
  }
  average(program_.costs_ns_[item.segment], trace_now_ns() - start);
}

void ProgramStep::set_mark(int slot) {
  std::shared_ptr<StreamMark>& mark = marks_[slot];
  if (mark == nullptr) {
    auto* const with_marks = dynamic_cast<HasSideStreams*>(plan_.device);
    if (with_marks == nullptr) return;
    mark = with_marks->make_mark();
  }
  mark->set();
  is_marked_[slot] = 1;
}

void ProgramStep::run_switch(const Item& item, bool is_dead_item) {
  if (is_dead_item) {
    flags_[item.dead_flag] = flags_[item.dead_flag + 1] = true;
    return;
  }
  const int taken = value_of(item.inputs[1]).item<bool>() ? 1 : 0;
  flags_[item.dead_flag + 1 - taken] = true;
  if (item.outputs[taken] >= 0) set(item.outputs[taken], take(item.inputs[0]));
}

void ProgramStep::run_merge(const Item& item) {
  const int chosen = counters_[item.first_counter + static_cast<int>(item.inputs.size()) + 1] - 1;
  if (chosen < 0) {
    flags_[item.dead_flag] = true;
    return;
  }
  if (item.outputs[0] >= 0) set(item.outputs[0], take(item.inputs[chosen]));
  if (item.outputs.size() > 1 && item.outputs[1] >= 0)
    set(item.outputs[1], Tensor::scalar<int32_t>(chosen));
}

void ProgramStep::run_loop(int index) {
  const Item& item = plan_.items[index];
  std::unique_ptr<LoopRun>& loop = loops_[item.loop];
  if (!loop) loop = std::make_unique<LoopRun>(*program_.loops_[item.loop], *this, program_.pool_);
  std::vector<Tensor> inputs(item.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ItemSource& source = item.inputs[i];
    if (source.slot < 0 && source.constant < 0)
      continue;  // a variable: the body has its own handle
    const bool is_used_again =
        std::any_of(item.inputs.begin() + static_cast<std::ptrdiff_t>(i) + 1, item.inputs.end(),
                    [&](const ItemSource& other) { return other.slot == source.slot; });
    inputs[i] = is_used_again ? value_of(source) : take(source);
  }
  begin_wait(index);
  loop->start(std::move(inputs), rendezvous_, is_traced_,
              [this, index](const Status& status) { arrive(index, status, {}, false); });
}

void ProgramStep::deliver_from_loop(const Item& item) {
  LoopRun& loop = *loops_[item.loop];
  for (size_t o = 0; o < item.outputs.size(); ++o) {
    if (item.outputs[o] >= 0) set(item.outputs[o], std::move(loop.values()[o]));
  }
  loop.values().clear();
  events_.insert(events_.end(), loop.events().begin(), loop.events().end());
}

void ProgramStep::trace_wait(const Item& item, int64_t since_ns, const Tensor& value) {
  if (item.kind != ItemKind::receive && item.kind != ItemKind::execute_async) return;
  events_.push_back(trace_event(*item.node, plan_.device->name().to_string(), since_ns,
                                trace_now_ns(), static_cast<int64_t>(value.bytes())));
}

// A sender is another process, perhaps: what it sends is compared with what the edge was declared
// to carry.
Status ProgramStep::check_received(const Item& item, const Arrival& arrival) const {
  const Node& node = *item.node;
  const Tensor& value = arrival.value;
  const auto refuse = [&](const auto&... why) {
    return with_node(
        {Code::invalid_argument, concat("edge '", item.label, "' from ",
                                        node.attr<std::string>("send_device"), ' ', why...)},
        node.name);
  };
  if (arrival.is_dead) {
    if (item.dead_flag >= 0) return {};
    return refuse("brought a dead value, but has no Switch upstream");
  }
  if (node.outputs.empty()) {
    if (!value.is_valid()) return {};
    return refuse("is a control edge, but brought a tensor of ", value.dtype());
  }
  const OutputSpec& declared = node.outputs[0];
  if (!value.is_valid()) return refuse("carries ", declared.dtype, ", but brought no value");
  if (value.dtype() == declared.dtype && declared.shape.is_compatible(value.shape())) return {};
  return refuse("carries ", declared.dtype, declared.shape, ", but brought ", value.dtype(),
                value.shape());
}

// On any thread. A value in the memory of a GPU of this process comes to the host first; it goes
// straight to this program's GPU if nothing on the host reads it.
void ProgramStep::receive(int index, const Status& status, Tensor value, bool is_dead) {
  Device* const from = value.device();
  if (!status.is_ok() || is_dead || from == nullptr || from->type() == DeviceType::cpu)
    return arrive(index, status, std::move(value), is_dead);
  try {
    if (plan_.items[index].goes_to_device) {
      if (Tensor here = copy_from_peer(*from, value); here.is_valid())
        return arrive(index, {}, std::move(here), false);
    }
    Tensor copy(value.dtype(), value.shape());
    from->copy_to_host(
        value.raw(), copy.raw(), value.bytes(),
        [this, index, value, copy](const Status& copied) { arrive(index, copied, copy, false); });
  } catch (...) {  // no memory on the host: this node's failure, not the sender's
    arrive(index, status_of_item(index), {}, false);
  }
}

// In the memory of this device; invalid if the other cannot be read from here.
Tensor ProgramStep::copy_from_peer(Device& peer, const Tensor& value) const {
  Device& device = *plan_.device;
  if (&peer == &device) return value;
  if (device.type() == DeviceType::cpu) return {};
  const MemoryOwner owner(MemoryUse::copy);
  Tensor here(value.dtype(), value.shape(), device.allocate(value.bytes()));
  return device.copy_from_peer(peer, value.raw(), here.raw(), value.bytes()) ? here : Tensor();
}

void ProgramStep::run_kernel_async(int index) {
  const Item& item = plan_.items[index];
  auto context = std::make_shared<Context>(*this, index);
  begin_wait(index);
  const int64_t start = trace_now_ns();
  try {
    item.kernel->execute_async(*context, [this, index, context](Status status) {
      {
        const std::lock_guard lock(mutex_);
        finished_kernels_.push_back(context);
      }
      arrive(index, status, {}, false);
    });
  } catch (...) {
    arrive(index, status_of_item(index), {}, false);
  }
  average(program_.kernel_costs_ns_[index], trace_now_ns() - start);
}

Status ProgramStep::deliver_from_kernel(int index) {
  std::shared_ptr<Context> context;
  {
    const std::lock_guard lock(mutex_);
    for (auto it = finished_kernels_.begin(); it != finished_kernels_.end(); ++it) {
      if ((*it)->index() != index) continue;
      context = std::move(*it);
      finished_kernels_.erase(it);
      break;
    }
  }
  try {
    context->deliver();
  } catch (...) {
    return status_of_item(index);
  }
  return {};
}

void ProgramStep::copy_to_device(const Item& item) {
  const Tensor& host = value_of(item.inputs[0]);
  Device& device = *plan_.device;
  if (host.device() == &device) return set(item.outputs[0], host);  // received there
  check(host.dtype() != DType::string, "strings cannot be stored in the memory of ", device.name());
  const MemoryOwner owner(MemoryUse::copy);
  Tensor copy(host.dtype(), host.shape(), device.allocate(host.bytes()));
  // Copies and kernels of a device run in order: what is enqueued from now on finds the value
  // there.
  if (host.bytes() > 0)
    device.copy_from_host(host.raw(), copy.raw(), host.bytes(), [host, copy](const Status&) {});
  set(item.outputs[0], std::move(copy));
}

void ProgramStep::copy_to_host(int index) {
  const Item& item = plan_.items[index];
  const Tensor value = value_of(item.inputs[0]);
  begin_wait(index);
  receive(index, {}, value, false);
}

}  // namespace leat
