#include "runtime/tapes/tape.h"

#include <algorithm>
#include <cstring>

#include "core/byte_size.h"
#include "core/execution/step_end.h"
#include "core/execution/work_clock.h"
#include "core/memory/memory_owner.h"
#include "runtime/node_error.h"
#include "runtime/tapes/tape_recordings.h"
#include "runtime/trace.h"

namespace leat {
namespace {

bool is_same_value(const Tensor& a, const Tensor& b) {
  if (a.raw() == b.raw()) return true;
  if (a.dtype() == DType::string) {
    return std::equal(a.span<std::string>().begin(), a.span<std::string>().end(),
                      b.span<std::string>().begin());
  }
  return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

Tensor allocate(const Tape::Memory& memory, Device& device, MemoryUse use) {
  if (memory.on_host || memory.dtype == DType::string) return Tensor(memory.dtype, memory.shape);
  const MemoryOwner owner(use);
  return Tensor(memory.dtype, memory.shape, device.allocate(byte_size(memory.dtype, memory.shape)));
}

std::unique_ptr<WorkClock> start_clock(Device& device) {
  auto* const with_clock = dynamic_cast<HasWorkClock*>(&device);
  return with_clock == nullptr ? nullptr : with_clock->start_clock();
}

// In long loops, kernels themselves ask whether the step has ended. A tape asks before kernels with
// large outputs, and once every so many instructions.
constexpr int64_t much = 32 << 10;  // bytes
constexpr size_t instructions_per_question = 64;

}  // namespace

bool Tape::Key::matches(std::span<const Tensor* const> now, const ProgramPlan& program,
                        const SegmentPlan& segment) const {
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i]->dtype() != dtypes[i] || !(now[i]->shape() == inputs[i])) return false;
    if (values[i].is_valid() && !is_same_value(*now[i], values[i])) return false;
  }
  for (size_t v = 0; v < variables.size(); ++v) {
    const int index = segment.variables[v].variable;
    const Variable& variable = *program.variables[index];
    if (program.variable_shapes[index].is_complete() && !variable.has_changed_shape()) continue;
    if (!variable.is_initialized() || !(variable.value().shape() == variables[v])) return false;
  }
  return true;
}

size_t Tape::bytes() const {
  constexpr size_t bound_kernel = 256;  // what it was prepared with, about
  return sizeof *this + instructions.size() * (2 * sizeof(Instruction) + bound_kernel) +
         addresses.size() * (sizeof(Address) + sizeof(void*));
}

TapeInstance::TapeInstance(std::shared_ptr<const Tape> tape, const ProgramPlan& program,
                           const SegmentPlan& segment)
    : tape_(std::move(tape)), program_(program), segment_(segment), device_(*program.device) {
  for (const Tape::Memory& memory : tape_->owned)
    owned_.push_back(allocate(memory, device_, MemoryUse::intermediate));
  result_buffers_.resize(tape_->results_memory.size());
  spares_.resize(tape_->results_memory.size());
  replaced_.resize(tape_->variables.size());
  inputs_.resize(segment.inputs.size());
  variables_.resize(tape_->variables.size());
  results_.resize(tape_->results_memory.size());

  pointers_.resize(tape_->addresses.size());
  instructions_.reserve(tape_->instructions.size());
  int position = 0;
  const auto at = [](void* memory, size_t available, const Address& address) -> void* {
    if (address.offset + address.bytes > available)
      fail_beyond(address.offset + address.bytes, available);
    return static_cast<char*>(memory) + address.offset;
  };
  const auto bind_next = [&] {
    const Address& address = tape_->addresses[position];
    switch (address.kind) {
      case Address::Kind::none:
        break;
      case Address::Kind::arena:
        in_arena_.add(position, address);
        break;
      case Address::Kind::constant: {
        const Tensor& constant = tape_->constants[address.index];
        pointers_[position] = at(constant.raw(), bytes_behind(constant), address);
        break;
      }
      case Address::Kind::owned: {
        const Tensor& owned = owned_[address.index];
        pointers_[position] = at(owned.raw(), bytes_behind(owned), address);
        break;
      }
      case Address::Kind::input:
        inputs_[address.index].add(position, address);
        break;
      case Address::Kind::variable:
        variables_[address.index].add(position, address);
        break;
      case Address::Kind::result:
        results_[address.index].add(position, address);
        break;
    }
    ++position;
  };
  for (size_t i = 0; i < tape_->instructions.size(); ++i) {
    const Tape::Instruction& instruction = tape_->instructions[i];
    Bound bound{instruction.function, tape_->arguments[i], {}};
    bound.arguments.inputs = pointers_.data() + position;
    for (int input = 0; input < instruction.inputs; ++input) bind_next();
    bound.arguments.outputs = pointers_.data() + position;
    for (int output = 0; output < instruction.outputs; ++output) bind_next();
    if (instruction.workspace.kind == Address::Kind::arena) {
      const auto& [kind, index, offset, bytes] = instruction.workspace;
      workspaces_.push_back({i, offset});
      in_arena_.bytes = std::max(in_arena_.bytes, offset + bytes);
    }
    bound.arguments.stream = &device_.stream();
    instructions_.push_back(bound);
  }
  wrap_instructions();
  recordings_ = TapeRecordings::of(device_, *tape_, segment_);
}

TapeInstance::~TapeInstance() = default;

void TapeInstance::use_arena(std::shared_ptr<Buffer> arena) {
  arena_ = std::move(arena);
  bind(in_arena_, arena_->data(), arena_->bytes());
  char* const memory = static_cast<char*>(arena_->data());
  for (const auto& [instruction, offset] : workspaces_)
    instructions_[instruction].arguments.workspace = memory + offset;
}

void TapeInstance::wrap_instructions() {
  const auto is_update = [&](size_t i) { return tape_->instructions[i].is_update; };
  const auto asks = [&](size_t i) {
    return i % instructions_per_question == instructions_per_question - 1 ||
           tape_->instructions[i].output_bytes >= much;
  };
  const auto early_after = [&](size_t i) {
    const auto [first, last] = std::equal_range(
        tape_->early_results.begin(), tape_->early_results.end(), Tape::EarlyResult{i, 0},
        [](const auto& a, const auto& b) { return a.instruction < b.instruction; });
    return std::span<const Tape::EarlyResult>(first, last);
  };
  const auto is_wrapped = [&](size_t i) {
    return is_update(i) || asks(i) || !early_after(i).empty();
  };
  size_t count = 0;
  for (size_t i = 0; i < instructions_.size(); ++i) count += is_wrapped(i) ? 1 : 0;
  wrapped_ = std::make_unique<Wrapped[]>(count);
  Wrapped* next = wrapped_.get();
  for (size_t i = 0; i < instructions_.size(); ++i) {
    if (!is_wrapped(i)) continue;
    Bound& instruction = instructions_[i];
    *next = {instruction.function, instruction.bound, this, early_after(i)};
    instruction.bound = next++;
    if (is_update(i)) {  // wholly, or not at all
      instruction.function = [](const void* self, const Arguments& arguments) {
        StepEnd::ask();
        const StepEnd::Scope to_its_end(nullptr);
        const auto& update = *static_cast<const Wrapped*>(self);
        update.function(update.bound, arguments);
      };
    } else if (!early_after(i).empty()) {
      instruction.function = [](const void* self, const Arguments& arguments) {
        StepEnd::ask();
        const auto& wrapped = *static_cast<const Wrapped*>(self);
        wrapped.function(wrapped.bound, arguments);
        for (const Tape::EarlyResult& early : wrapped.early) wrapped.self->hand_out(early);
      };
    } else {
      instruction.function = [](const void* self, const Arguments& arguments) {
        StepEnd::ask();
        const auto& wrapped = *static_cast<const Wrapped*>(self);
        wrapped.function(wrapped.bound, arguments);
      };
    }
  }
}

void TapeInstance::hand_out(const Tape::EarlyResult& early) const {
  if (taker_ == nullptr) return;
  const Tape::Result& result = tape_->results[static_cast<size_t>(early.result)];
  (*taker_)(early.result, as_result(result_buffers_[result.address.index], result));
}

Tensor TapeInstance::as_result(const Tensor& memory, const Tape::Result& result) {
  return memory.shape() == result.shape ? memory : memory.part(result.shape, result.address.offset);
}

void TapeInstance::fail_beyond(size_t wanted, size_t available) {
  fail(Code::internal, "a kernel would access ", wanted, " bytes of memory, but only ", available,
       " are available");
}

size_t TapeInstance::bytes() const {
  size_t out = arena_ == nullptr ? 0 : arena_->bytes();
  for (const Tensor& buffer : result_buffers_) out += buffer.bytes();
  for (const Tensor& spare : spares_) out += spare.bytes();
  return out;
}

void TapeInstance::run(std::span<const Tensor* const> inputs, std::span<Tensor* const> results,
                       std::vector<InstructionTimes>* times, const ResultTaker* taker,
                       std::span<const char> given) {
  was_used_ = true;
  taker_ = taker;
  bind_results(inputs, given);
  for (size_t i = 0; i < inputs_.size(); ++i) bind(inputs_[i], *inputs[i]);
  bind_variables();

  if (times != nullptr) {
    run_instructions<true>(times);
  } else if (recordings_ != nullptr) {
    run_recordings();
  } else {
    run_instructions<false>(nullptr);
  }

  for (size_t v = 0; v < tape_->variables.size(); ++v) {
    if (tape_->variables[v].is_written)
      program_.variables[segment_.variables[v].variable]->mark_written();
  }
  for (size_t r = 0; r < results.size(); ++r) {
    if (results[r] == nullptr) continue;
    const Tape::Result& result = tape_->results[r];
    const Tensor* value = nullptr;
    switch (result.address.kind) {
      case Address::Kind::input:
        value = inputs[result.address.index];
        break;
      case Address::Kind::constant:
        value = &tape_->constants[result.address.index];
        break;
      case Address::Kind::variable:
        value = &program_.variables[segment_.variables[result.address.index].variable]->value();
        break;
      default:
        value = &result_buffers_[result.address.index];
    }
    *results[r] = as_result(*value, result);
  }
  if (has_replaced_) forget_replaced();
}

template <bool traced>
void TapeInstance::run_instructions(std::vector<InstructionTimes>* times) {
  const Bound* instruction = instructions_.data();
  const Bound* const end = instruction + instructions_.size();
  std::unique_ptr<WorkClock> clock;  // of a device for which this thread only enqueues
  try {
    if constexpr (traced) clock = start_clock(device_);
    for (; instruction != end; ++instruction) {
      if constexpr (traced) {
        times->push_back({trace_now_ns(), 0});
        if (clock != nullptr) clock->mark();
      }
      instruction->function(instruction->bound, instruction->arguments);
      if constexpr (traced) times->back().end_ns = trace_now_ns();
    }
    if (clock != nullptr) {
      clock->mark();
      const std::vector<int64_t> marks = clock->times_ns();
      for (size_t i = 0; i < times->size(); ++i) (*times)[i] = {marks[i], marks[i + 1]};
    }
  } catch (...) {
    undo_assignments();
    throw Error(status_at(*tape_->instructions[instruction - instructions_.data()].node, device_));
  }
}

template void TapeInstance::run_instructions<false>(std::vector<InstructionTimes>*);

void TapeInstance::run_recordings() {
  size_t next = 0;  // instruction
  try {
    if (std::exchange(has_moved_, false)) {
      recordings_->use(device_addresses());
    } else {
      recordings_->use_again();
    }
    for (size_t s = 0; s < recordings_->stretches().size(); ++s) {
      const TapeRecordings::Stretch& stretch = recordings_->stretches()[s];
      next = stretch.begin;
      RecordedWork* const work = recordings_->work(s, [&](size_t i) {
        tape_->instructions[i].function(tape_->arguments[i], instructions_[i].arguments);
      });
      if (work != nullptr) {
        StepEnd::ask();
        work->run();
        for (const Tape::EarlyResult& each : stretch.early) hand_out(each);
        continue;
      }
      for (; next < stretch.end; ++next)
        instructions_[next].function(instructions_[next].bound, instructions_[next].arguments);
    }
  } catch (...) {
    undo_assignments();
    throw Error(status_at(*tape_->instructions[next].node, device_));
  }
}

// Of the memory that kernels use, and that may move.
std::vector<const void*> TapeInstance::device_addresses() const {
  std::vector<const void*> out{in_arena_.bound};
  const auto add = [&](const Outside& outside) {
    if (!outside.uses.empty()) out.push_back(outside.bound);
  };
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (!segment_.inputs[i].on_host) add(inputs_[i]);
  for (const Outside& variable : variables_) add(variable);
  for (size_t r = 0; r < results_.size(); ++r)
    if (!tape_->results_memory[r].on_host) add(results_[r]);
  return out;
}

// An Assign that lets any shape be is no part of a tape; what assigns a resource may change it.
void TapeInstance::check_shape_stays(const Variable& variable, const Tape::VariableUse& use) {
  if (!variable.is_initialized() || variable.value().shape() == use.shape ||
      !use.assigner->is("Assign"))
    return;
  fail_at(use.assigner->name, Code::invalid_argument,
          "Assign requires shapes of both tensors to match. lhs shape= ", variable.value().shape(),
          " rhs shape= ", use.shape);
}

// Programs share a variable by its name, on whatever device each of them wants it.
void TapeInstance::check_lies_here(const Variable& variable) const {
  const Device* const owner = variable.value().device();  // null: the host
  const bool is_here = owner == nullptr ? device_.type() == DeviceType::cpu : owner == &device_;
  if (is_here || variable.value().bytes() == 0) return;
  fail(Code::failed_precondition, "variable '", variable.name(), "' is in the memory of ",
       owner == nullptr ? "the host" : owner->name().to_string(),
       ", where another program placed it, but this program places it on ", device_.name(),
       ": use the same device in both programs");
}

void TapeInstance::bind_variables() {
  if (tape_->variables.empty()) return;
  for (size_t v = 0; v < tape_->variables.size(); ++v) {
    const Tape::VariableUse& use = tape_->variables[v];
    const Variable& variable = *program_.variables[segment_.variables[v].variable];
    if (use.is_assigned) {
      check_shape_stays(variable, use);
      continue;
    }
    if (!variable.is_initialized()) {
      check_internal(use.reader != nullptr, "no node reads variable '", variable.name(), "'");
      throw uninitialized(variable, *use.reader, device_);
    }
    check_lies_here(variable);
    if (!(variable.value().shape() == use.shape)) {
      const std::string what =
          concat("variable '", variable.name(), "' has shape ", variable.value().shape(),
                 " in its container, but the graph declares ", use.shape,
                 ": another program that shares it gave it this shape");
      if (use.reader != nullptr) fail_at(use.reader->name, Code::invalid_argument, what);
      fail(Code::invalid_argument, what);
    }
  }
  try {
    for (size_t v = 0; v < tape_->variables.size(); ++v) bind_variable(v);
  } catch (...) {  // no memory
    undo_assignments();
    throw;
  }
}

void TapeInstance::bind_variable(size_t v) {
  const Tape::VariableUse& use = tape_->variables[v];
  Variable& variable = *program_.variables[segment_.variables[v].variable];
  const Tensor* value = nullptr;
  if (use.is_assigned) {
    value = &variable.memory(use.shape, device_, &replaced_[v]);
    has_replaced_ = has_replaced_ || replaced_[v].is_valid();
  } else {
    value = use.is_written ? &variable.mutable_value() : &variable.value();
  }
  bind(variables_[v], *value);
}

Tensor TapeInstance::take_result(int buffer) {
  for (Tensor* memory : {&result_buffers_[buffer], &spares_[buffer]})
    if (memory->is_valid() && is_sole_handle(memory->buffer())) return std::exchange(*memory, {});
  return allocate(tape_->results_memory[buffer], device_, MemoryUse::result);
}

void TapeInstance::bind_results(std::span<const Tensor* const> inputs,
                                std::span<const char> given) {
  const auto is_free = [](const Tensor& buffer) {
    return buffer.is_valid() && is_sole_handle(buffer.buffer());
  };
  for (size_t r = 0; r < result_buffers_.size(); ++r) {
    Tensor& buffer = result_buffers_[r];
    if (!is_free(buffer) && !inherits(r, inputs, given)) {
      std::swap(buffer, spares_[r]);
      if (!is_free(buffer)) buffer = allocate(tape_->results_memory[r], device_, MemoryUse::result);
    }
    bind(results_[r], buffer);
  }
}

// In a loop, the buffer that the last run gave out comes back as an input. (Memory that came from
// elsewhere may be anybody's.)
bool TapeInstance::inherits(size_t result, std::span<const Tensor* const> inputs,
                            std::span<const char> given) {
  const int input = tape_->heirs[result];
  if (given.empty() || input < 0 || given[input] == 0) return false;
  const Tensor& value = *inputs[input];
  Tensor& buffer = result_buffers_[result];
  if (!buffer.is_valid() || buffer.buffer() != value.buffer() || buffer.raw() != value.raw())
    return false;
  buffer = Tensor();
  if (!is_sole_handle(value.buffer())) return false;
  const auto& [dtype, shape, on_host] = tape_->results_memory[result];
  buffer = Tensor(dtype, shape, value.buffer());
  return true;
}

// A tape that fails leaves variables that it was to assign, but could not yet, as they were.
void TapeInstance::undo_assignments() {
  for (size_t v = 0; v < tape_->variables.size();
       ++v) {  // and those without a value without memory
    Variable& variable = *program_.variables[segment_.variables[v].variable];
    if (tape_->variables[v].is_assigned && !variable.is_initialized()) variable.forget_value();
  }
  for (size_t v = 0; v < replaced_.size(); ++v) {
    if (replaced_[v].is_valid())
      program_.variables[segment_.variables[v].variable]->restore(std::move(replaced_[v]));
  }
  has_replaced_ = false;
}

void TapeInstance::forget_replaced() {
  for (Tensor& tensor : replaced_) tensor = Tensor();
  has_replaced_ = false;
}

}  // namespace leat
