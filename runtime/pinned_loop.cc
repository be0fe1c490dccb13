#include "runtime/pinned_loop.h"

#include <algorithm>

#include "core/execution/step_end.h"
#include "core/flush_denormals.h"
#include "core/sole_handle.h"

namespace leat {
namespace {

bool is_one_tape(const LoopProgram::Part& part) {
  Program& program = *part.program;
  return program.is_straight() && program.plan().items.size() == 1 &&
         program.straight().constants.empty() && !program.segment(0).has_variables();
}

// The buffer that is the result, and nothing else; -1 if there is none.
int whole_buffer(const Tape& tape, size_t result) {
  const Tape::Result& r = tape.results[result];
  const bool is_whole = r.address.kind == Address::Kind::result && r.address.offset == 0 &&
                        tape.results_memory[r.address.index].shape == r.shape;
  return is_whole ? r.address.index : -1;
}

}  // namespace

PinnedLoop::Part::Part(const LoopProgram::Part& part, const std::vector<Tensor>& values)
    : part_(part), segment_(part.program->segment(0)) {
  std::vector<const Tensor*> all;
  for (size_t i = 0; i < inputs(); ++i) all.push_back(&values[source(i)]);
  instance_ = segment_.take(all);
}

PinnedLoop::Part::~Part() { segment_.give_back(std::move(instance_)); }

// False if the tape is for certain elements of a variable.
bool PinnedLoop::Part::bind_inputs(const std::vector<Tensor>& values, int variables) const {
  for (size_t i = 0; i < inputs(); ++i) {
    if (source(i) < variables && tape().key.values[i].is_valid()) return false;
    instance_->bind_input(static_cast<int>(i), values[source(i)]);
  }
  return true;
}

std::unique_ptr<PinnedLoop> PinnedLoop::make(const LoopProgram& loop, std::vector<Tensor>& values) {
  if (loop.done_edge() >= 0 || !is_one_tape(loop.condition()) || !is_one_tape(loop.body()) ||
      !loop.condition().program->straight().feeds.empty())
    return nullptr;
  std::unique_ptr<PinnedLoop> out(new PinnedLoop(loop, values));
  return out->pin(values) ? std::move(out) : nullptr;
}

bool PinnedLoop::pin(std::vector<Tensor>& values) {
  const int variables = loop_.variables();
  if (!condition_->can_run_bound() || !body_->can_run_bound() ||
      !condition_.bind_inputs(values, variables) || !body_.bind_inputs(values, variables) ||
      !pin_condition())
    return false;
  places_.reserve(static_cast<size_t>(variables));  // they keep their addresses
  for (int v = 0; v < variables; ++v)
    if (!pin_variable(v, values[v])) return false;
  return true;
}

bool PinnedLoop::pin_condition() {
  const int buffer = whole_buffer(condition_.tape(), 0);
  if (buffer < 0) return false;
  is_going_on_ = condition_->take_result(buffer);
  condition_->bind_result(buffer, is_going_on_);
  return true;
}

bool PinnedLoop::pin_variable(int v, Tensor& value) {
  const Program::Straight& plan = loop_.body().program->straight();
  const std::vector<int>& next = loop_.body().fetches;
  for (const auto& [fetch, feed] : plan.feeds)
    if (fetch == next[v]) return loop_.body().feeds[feed] == v;  // it stays what it is
  const auto result = std::find(plan.results.begin(), plan.results.end(), next[v]);
  if (result == plan.results.end() || std::count(next.begin(), next.end(), next[v]) > 1)
    return false;
  const Tape& tape = body_.tape();
  const auto number = static_cast<size_t>(result - plan.results.begin());
  const Tape::Result& next_value = tape.results[number];
  if (next_value.address.kind == Address::Kind::input) {
    return body_.source(static_cast<size_t>(next_value.address.index)) == v &&
           next_value.shape == value.shape();
  }
  const int buffer = whole_buffer(tape, number);
  if (buffer < 0) return false;
  const Tape::Memory& memory = tape.results_memory[buffer];
  const bool is_plain = value.bytes() > 0 && value.raw() == value.buffer()->data() &&
                        memory.dtype == value.dtype() && memory.shape == value.shape() &&
                        memory.dtype != DType::string && memory.dtype != DType::variant;
  if (!is_plain) return false;
  body_->forget_result(buffer);
  if (!is_sole_handle(value.buffer())) return false;

  Place& place = places_.emplace_back(Place{&value, buffer, value});
  const int heir = tape.heirs[buffer];
  if (heir >= 0 && body_.source(static_cast<size_t>(heir)) == v) {
    body_->bind_result(buffer, place.here);
    return true;
  }
  place.next = body_->take_result(buffer);
  body_->bind_result(buffer, place.next);
  const auto readers = [v](const Part& part) {
    std::vector<int> out;
    for (size_t i = 0; i < part.inputs(); ++i)
      if (part.source(i) == v) out.push_back(static_cast<int>(i));
    return out;
  };
  place.in_condition = readers(condition_);
  place.in_body = readers(body_);
  alternating_.push_back(&place);
  return true;
}

PinnedLoop::~PinnedLoop() {
  for (Place& place : places_) {
    *place.value = place.here;
    body_->keep_result(place.buffer, std::move(place.here));
  }
}

void PinnedLoop::alternate(Place& place) {
  std::swap(place.here, place.next);
  for (const int input : place.in_condition) condition_->bind_input(input, place.here);
  for (const int input : place.in_body) body_->bind_input(input, place.here);
  body_->bind_result(place.buffer, place.next);
}

bool PinnedLoop::run(int most) {
  const FlushDenormals flush;
  const bool& is_going_on = *is_going_on_.data<bool>();
  for (int i = 0; i < most; ++i) {
    if (StepEnd::has_come()) return false;
    condition_->run_bound();
    if (!is_going_on) return true;
    body_->run_bound();
    for (Place* place : alternating_) alternate(*place);
  }
  return false;
}

}  // namespace leat
