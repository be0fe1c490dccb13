#include "runtime/program.h"

#include "runtime/functions.h"
#include "runtime/loop.h"
#include "runtime/pointers.h"
#include "runtime/trace.h"

namespace leat {
namespace {

std::string made_at(const Location& location) {
  return location.is_known() ? concat(" (made at ", location, ")") : std::string();
}

}  // namespace

Program::Program(Graph partition, const std::vector<std::string>& fetches, Device& device,
                 Device& host, Containers& containers, NodeStates& node_states, ThreadPool& pool,
                 const PartPlaces* part)
    : plan_(
          plan_program(std::move(partition), fetches, device, host, containers, node_states, part)),
      pool_(pool),
      costs_ns_(plan_.segments.size()),
      kernel_costs_ns_(plan_.items.size()) {
  plan_.functions = std::make_shared<Functions>(containers, host, pool);
  for (const SegmentPlan& segment : plan_.segments)
    segments_.push_back(std::make_unique<Segment>(plan_, segment, node_states));
  for (const Item& item : plan_.items) {
    has_edges_ = has_edges_ || item.kind == ItemKind::send || item.kind == ItemKind::receive;
    if (item.kind != ItemKind::loop) continue;
    loops_.push_back(
        std::make_unique<LoopProgram>(*item.node, device, host, containers, node_states, pool));
    has_edges_ = has_edges_ || loops_.back()->has_edges();
  }
  if (!plan_.is_straight) return;
  const auto feed_of = [&](int slot) {
    for (size_t feed = 0; feed < plan_.feeds.size(); ++feed) {
      if (plan_.feeds[feed].slot == slot) return static_cast<int>(feed);
    }
    return -1;
  };
  std::vector<int> fetch_of(plan_.slots, -1);
  for (size_t f = 0; f < plan_.fetches.size(); ++f) {
    const ItemSource& source = plan_.fetches[f].source;
    const int fetch = static_cast<int>(f);
    if (source.constant >= 0) {
      straight_.constants.emplace_back(fetch, source.constant);
    } else if (const int feed = feed_of(source.slot); feed >= 0) {
      straight_.feeds.emplace_back(fetch, feed);
    } else {
      fetch_of[source.slot] = fetch;
    }
  }
  if (plan_.items.empty()) return;
  for (const ItemSource& source : plan_.items[0].inputs) {
    straight_.inputs.push_back(feed_of(source.slot));
  }
  for (int slot : plan_.items[0].outputs) straight_.results.push_back(fetch_of[slot]);
}

Program::~Program() = default;

void Program::drop_unused() {
  for (const auto& segment : segments_) segment->drop_unused();
  for (const auto& loop : loops_) loop->drop_unused();
}

void Program::drop_large() {
  for (const auto& segment : segments_) segment->drop_large();
  for (const auto& loop : loops_) loop->drop_large();
}

void Program::check_feed(int feed, const Tensor& tensor) const {
  const ProgramPlan::Feed& expected = plan_.feeds[feed];
  if (tensor.dtype() != expected.dtype) {
    fail(Code::invalid_argument, "the value fed for '", expected.name, "' has dtype ",
         tensor.dtype(), " and shape ", tensor.shape(), ", but the graph needs dtype ",
         expected.dtype, " and shape ", expected.shape, made_at(expected.location));
  }
  if (!expected.shape.is_compatible(tensor.shape())) {
    fail(Code::invalid_argument, "the value fed for '", expected.name, "' has shape ",
         tensor.shape(), ", which does not fit shape ", expected.shape, made_at(expected.location));
  }
}

void Program::run_straight(std::span<const Tensor* const> feeds, std::span<Tensor* const> fetches,
                           std::vector<TraceEvent>* events, std::span<const char> given) {
  std::vector<Tensor> passed_on;  // held, so that nobody else gets their memory
  if (!given.empty()) {
    for (const auto& [fetch, feed] : straight_.feeds) passed_on.push_back(*feeds[feed]);
  }
  if (!plan_.items.empty()) {
    Pointers<const Tensor*> inputs(straight_.inputs.size());
    for (size_t i = 0; i < straight_.inputs.size(); ++i) inputs[i] = feeds[straight_.inputs[i]];
    Pointers<char> given_inputs(given.empty() ? 0 : straight_.inputs.size());
    for (size_t i = 0; i < straight_.inputs.size() && !given.empty(); ++i)
      given_inputs[i] = given[straight_.inputs[i]];
    Pointers<Tensor*> results(straight_.results.size());
    for (size_t r = 0; r < straight_.results.size(); ++r)
      results[r] = fetches[straight_.results[r]];
    if (events == nullptr) {
      segments_[0]->run(inputs.span(), results.span(), nullptr, given_inputs.span());
    } else {
      std::vector<InstructionTimes> times;
      const auto tape = segments_[0]->run_traced(inputs.span(), results.span(), times, nullptr,
                                                 given_inputs.span());
      trace(*tape, times, *events);
    }
  }
  for (const auto& [fetch, constant] : straight_.constants) {
    if (fetches[fetch] != nullptr) *fetches[fetch] = plan_.constants[constant];
  }
  for (const auto& [fetch, feed] : straight_.feeds) {
    if (fetches[fetch] != nullptr) *fetches[fetch] = *feeds[feed];
  }
}

void Program::trace(const Tape& tape, const std::vector<InstructionTimes>& times,
                    std::vector<TraceEvent>& events) const {
  const std::string device = plan_.device->name().to_string();
  for (size_t i = 0; i < times.size(); ++i) {
    const Node& node = *tape.instructions[i].node;
    events.push_back(trace_event(node, device, times[i].start_ns, times[i].end_ns,
                                 tape.instructions[i].output_bytes));
  }
}

}  // namespace leat
