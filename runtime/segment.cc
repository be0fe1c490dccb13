#include "runtime/segment.h"

#include <algorithm>

#include "core/flush_denormals.h"
#include "core/memory/block_memory.h"
#include "core/memory/memory_owner.h"
#include "runtime/lent_thread.h"
#include "runtime/node_error.h"

namespace leat {
namespace {

constexpr size_t large_bytes = size_t{1} << 20;
constexpr size_t most_doubled_bytes = size_t{64} << 20;  // of an arena that is outgrown

// Rethrows the exception being handled; an out-of-memory error names the node with the largest
// outputs.
[[noreturn]] void rethrow_with_node(const Tape& tape, const Device& device) {
  try {
    throw;
  } catch (const Error& error) {
    const auto largest = std::max_element(
        tape.instructions.begin(), tape.instructions.end(),
        [](const auto& a, const auto& b) { return a.output_bytes < b.output_bytes; });
    if (error.code() != Code::resource_exhausted || largest == tape.instructions.end()) throw;
    throw Error(status_at(*largest->node, device));
  }
}

}  // namespace

// The variables of a segment, readers together, writers alone.
class Segment::VariableLocks {
 public:
  explicit VariableLocks(const std::vector<Lock>& locks) : locks_(locks) {
    for (const Lock& lock : locks_)
      lock.is_exclusive ? lock.variable->mutex().lock() : lock.variable->mutex().lock_shared();
  }
  ~VariableLocks() {
    for (const Lock& lock : locks_)
      lock.is_exclusive ? lock.variable->mutex().unlock() : lock.variable->mutex().unlock_shared();
  }
  VariableLocks(const VariableLocks&) = delete;

 private:
  const std::vector<Lock>& locks_;
};

Segment::Segment(const ProgramPlan& program, const SegmentPlan& plan, NodeStates& node_states,
                 size_t kept_bytes)
    : program_(program), plan_(plan), node_states_(node_states), kept_bytes_(kept_bytes) {
  for (const SegmentPlan::VariableUse& use : plan.variables) {
    locks_.push_back({program.variables[use.variable].get(), use.is_written});
  }
  std::sort(locks_.begin(), locks_.end(),
            [](const Lock& a, const Lock& b) { return std::less<>()(a.variable, b.variable); });
}

Segment::~Segment() { delete hot_.load(); }

std::shared_ptr<const Tape> Segment::run(std::span<const Tensor* const> inputs,
                                         std::span<Tensor* const> results,
                                         std::vector<InstructionTimes>* times,
                                         const ResultTaker* taker, std::span<const char> given) {
  const VariableLocks locks(locks_);
  const FlushDenormals flush;
  std::unique_ptr<TapeInstance> instance = acquire(inputs);
  std::shared_ptr<const Tape> tape;
  if (times != nullptr) tape = instance->shared_tape();
  try {
    instance->run(inputs, results, times, taker, given);
  } catch (...) {
    const auto failed = instance->shared_tape();
    release(std::move(instance));
    rethrow_with_node(*failed, *program_.device);
  }
  release(std::move(instance));
  return tape;
}

bool Segment::matches(const Tape& tape, std::span<const Tensor* const> inputs) const {
  return tape.key.matches(inputs, program_, plan_);
}

std::unique_ptr<TapeInstance> Segment::acquire(std::span<const Tensor* const> inputs) {
  std::unique_ptr<TapeInstance> hot(hot_.exchange(nullptr, std::memory_order_acq_rel));
  if (hot && matches(hot->tape(), inputs)) return hot;
  if (LentThread::is_this_one()) refuse(std::move(hot));

  const auto find = [&] {
    return std::find_if(tapes_.begin(), tapes_.end(),
                        [&](const Entry& entry) { return matches(*entry.tape, inputs); });
  };
  std::shared_ptr<const Tape> tape;
  std::unique_ptr<TapeInstance> idle;
  {
    std::lock_guard lock(mutex_);
    if (hot) park(std::move(hot));
    if (const auto found = find(); found != tapes_.end()) {
      tapes_.splice(tapes_.begin(), tapes_, found);
      if (!found->idle.empty()) {
        idle = std::move(found->idle.back());
        found->idle.pop_back();
      }
      tape = found->tape;
    }
  }
  if (idle) return with_arena(std::move(idle));
  if (!tape) {
    tape = compile_tape(program_, plan_, inputs, node_states_, hints_);
    std::list<Entry> dropped;  // dies outside the lock
    std::lock_guard lock(mutex_);
    ++counts_.compilations;
    if (const auto found = find(); found != tapes_.end()) {
      tape = found->tape;  // another step was faster
    } else {
      tapes_.push_front({tape, {}});
      forget_tapes(dropped);
    }
  }
  std::unique_ptr<TapeInstance> instance;
  try {
    instance = std::make_unique<TapeInstance>(tape, program_, plan_);
  } catch (...) {
    rethrow_with_node(*tape, *program_.device);
  }
  {
    std::lock_guard lock(mutex_);
    ++counts_.instances;
  }
  return with_arena(std::move(instance));
}

// The least recently used ones. Call with the lock held.
void Segment::forget_tapes(std::list<Entry>& dropped) {
  size_t bytes = 0, count = 0;
  for (auto entry = tapes_.begin(); entry != tapes_.end(); ++entry, ++count) {
    bytes += entry->tape->bytes();
    for (const auto& instance : entry->idle) bytes += instance->bytes();
    if (count == 0 || (bytes <= kept_bytes_ && count < most_tapes)) continue;
    return dropped.splice(dropped.begin(), tapes_, entry, tapes_.end());
  }
}

// Shapes that have grown may grow on: they get more, if there is more. What is never used of it
// takes no memory.
std::shared_ptr<Buffer> Segment::new_arena(size_t bytes, bool has_grown) const {
  const MemoryOwner owner(MemoryUse::intermediate);
  if (has_grown) {
    try {
      return program_.device->allocate(bytes + (bytes <= most_doubled_bytes ? bytes : bytes / 4));
    } catch (const Error& error) {
      if (error.code() != Code::resource_exhausted) throw;
    }
  }
  return program_.device->allocate(bytes);
}

// Shapes take turns on one arena, as large as the largest of them needs.
std::unique_ptr<TapeInstance> Segment::with_arena(std::unique_ptr<TapeInstance> instance) {
  if (instance->has_arena()) return instance;
  const size_t bytes = instance->tape().arena_bytes;
  std::shared_ptr<Buffer> arena, outgrown;  // that one dies outside the lock
  {
    std::lock_guard lock(mutex_);
    const auto largest = std::ranges::max_element(
        arenas_, {}, [](const Arena& idle) { return idle.memory->bytes(); });
    if (largest != arenas_.end()) {
      (largest->memory->bytes() >= bytes ? arena : outgrown) = std::move(largest->memory);
      arenas_.erase(largest);
    }
  }
  if (!arena) {
    const bool has_grown = outgrown != nullptr;
    outgrown = nullptr;
    try {
      arena = new_arena(bytes, has_grown);
    } catch (...) {
      rethrow_with_node(instance->tape(), *program_.device);
    }
    const std::lock_guard lock(mutex_);
    ++counts_.arenas;
  }
  instance->use_arena(std::move(arena));
  return instance;
}

// Other shapes than last time: nobody knows how long they take.
void Segment::refuse(std::unique_ptr<TapeInstance> hot) {
  if (hot) release(std::move(hot));
  throw LentThread::TooLong();
}

void Segment::release(std::unique_ptr<TapeInstance> instance) {
  std::unique_ptr<TapeInstance> displaced(
      hot_.exchange(instance.release(), std::memory_order_acq_rel));
  if (!displaced) return;
  std::lock_guard lock(mutex_);
  park(std::move(displaced));
}

// Back to its tape, if that is still kept, without its arena. Call with the lock held.
void Segment::park(std::unique_ptr<TapeInstance> instance) {
  arenas_.push_back({instance->take_arena()});
  for (auto entry = tapes_.begin(); entry != tapes_.end(); ++entry) {
    if (entry->tape != instance->shared_tape()) continue;
    entry->idle.push_back(std::move(instance));
    return tapes_.splice(tapes_.begin(), tapes_, entry);
  }
}

void Segment::drop_unused() {
  drop_idle(
      [](TapeInstance& instance) {
        return !instance.take_was_used() && instance.bytes() >= BlockMemory::least;
      },
      [](Arena& arena) {
        return !std::exchange(arena.was_used, false) && arena.memory->bytes() >= BlockMemory::least;
      });
}

void Segment::drop_large() {
  drop_idle([](TapeInstance& instance) { return instance.bytes() >= large_bytes; },
            [](Arena& arena) { return arena.memory->bytes() >= large_bytes; });
}

template <class IsDropped, class IsArenaDropped>
void Segment::drop_idle(IsDropped is_dropped, IsArenaDropped is_arena_dropped) {
  std::vector<std::unique_ptr<TapeInstance>> dropped;  // these two die outside the lock
  std::vector<std::shared_ptr<Buffer>> dropped_arenas;
  std::unique_ptr<TapeInstance> hot(hot_.exchange(nullptr, std::memory_order_acq_rel));
  if (hot && is_dropped(*hot)) dropped.push_back(std::move(hot));
  if (hot) release(std::move(hot));
  std::lock_guard lock(mutex_);
  for (Entry& entry : tapes_) {
    for (auto& instance : entry.idle) {
      if (is_dropped(*instance)) dropped.push_back(std::move(instance));
    }
    std::erase(entry.idle, nullptr);
  }
  for (Arena& arena : arenas_) {
    if (is_arena_dropped(arena)) dropped_arenas.push_back(std::move(arena.memory));
  }
  std::erase_if(arenas_, [](const Arena& arena) { return arena.memory == nullptr; });
}

Segment::Counts Segment::counts() const {
  std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.tapes = tapes_.size();
  if (!tapes_.empty()) {
    counts.arena_bytes = tapes_.front().tape->arena_bytes;
    counts.max_live_bytes = tapes_.front().tape->max_live_bytes;
    counts.instructions = tapes_.front().tape->instructions.size();
  }
  return counts;
}

}  // namespace leat
