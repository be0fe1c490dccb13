#include "runtime/tapes/tape_recordings.h"

#include <algorithm>
#include <iostream>

#include "core/error.h"

namespace leat {
namespace {

// Feeds and results alternate between two places when steps overlap, or when somebody keeps a
// result. This many sets of addresses have a recording each.
constexpr size_t most_recordings = 4;
// A tape whose addresses keep changing is not recorded any more.
constexpr int most_dropped = 16;
// Recording fewer instructions saves nothing.
constexpr size_t fewest_instructions = 4;

enum class Place : uint8_t { nowhere, device, fixed_on_host, host };

Place place_of(const Address& address, const Tape& tape, const SegmentPlan& segment) {
  const auto of_memory = [](const Tape::Memory& memory) {
    return memory.on_host || memory.dtype == DType::string ? Place::host : Place::device;
  };
  switch (address.kind) {
    case Address::Kind::none:
      return Place::nowhere;
    case Address::Kind::arena:
    case Address::Kind::variable:
      return Place::device;
    case Address::Kind::constant:
      return tape.constants[address.index].device() == nullptr ? Place::fixed_on_host
                                                               : Place::device;
    case Address::Kind::input: {
      const SegmentPlan::Input& input = segment.inputs[address.index];
      if (!input.on_host) return Place::device;
      return input.is_by_value ? Place::fixed_on_host : Place::host;
    }
    case Address::Kind::result:
      return of_memory(tape.results_memory[address.index]);
    case Address::Kind::owned:
      return of_memory(tape.owned[address.index]);
  }
  return Place::host;
}

// By instruction: whether it enqueues the same whenever its addresses are the same. It does if all
// that it reads on the host is fixed.
std::vector<bool> repeatable_instructions(const Tape& tape, const SegmentPlan& segment) {
  std::vector<bool> out;
  const Address* address = tape.addresses.data();
  for (const Tape::Instruction& instruction : tape.instructions) {
    const Address* const end = address + instruction.inputs + instruction.outputs;
    bool is_on_device = false, is_on_host = false;
    for (; address != end; ++address) {
      const Place place = place_of(*address, tape, segment);
      is_on_device |= place == Place::device;
      is_on_host |= place == Place::host;
    }
    out.push_back(is_on_device && !is_on_host);
  }
  return out;
}

std::vector<TapeRecordings::Stretch> stretches_of(const Tape& tape,
                                                  const std::vector<bool>& is_repeatable) {
  std::vector<TapeRecordings::Stretch> out;
  std::span<const Tape::EarlyResult> early = tape.early_results;
  for (size_t i = 0; i < is_repeatable.size(); ++i) {
    if (out.empty() || out.back().is_recorded != is_repeatable[i] || !out.back().early.empty())
      out.push_back({i, i, is_repeatable[i]});
    out.back().end = i + 1;
    size_t leaving = 0;
    while (leaving < early.size() && early[leaving].instruction == i) ++leaving;
    out.back().early = early.first(leaving);
    early = early.subspan(leaving);
  }
  for (TapeRecordings::Stretch& stretch : out)
    stretch.is_recorded &= stretch.end - stretch.begin >= fewest_instructions;
  return out;
}

}  // namespace

std::unique_ptr<TapeRecordings> TapeRecordings::of(Device& device, const Tape& tape,
                                                   const SegmentPlan& segment) {
  auto* const recorder = dynamic_cast<HasWorkRecorder*>(&device);
  if (recorder == nullptr) return nullptr;
  std::unique_ptr<TapeRecordings> out(
      new TapeRecordings(device, *recorder, tape, repeatable_instructions(tape, segment)));
  if (std::none_of(out->stretches_.begin(), out->stretches_.end(),
                   [](const Stretch& stretch) { return stretch.is_recorded; }))
    return nullptr;
  return out;
}

TapeRecordings::TapeRecordings(const Device& device, HasWorkRecorder& recorder, const Tape& tape,
                               std::vector<bool> is_repeatable)
    : device_(device),
      recorder_(recorder),
      tape_(tape),
      is_repeatable_(std::move(is_repeatable)),
      stretches_(stretches_of(tape, is_repeatable_)) {}

void TapeRecordings::divide() {
  must_divide_ = false;
  stretches_ = stretches_of(tape_, is_repeatable_);
  for (Recording& recording : recordings_) {
    recording.works.clear();
    recording.works.resize(stretches_.size());
  }
}

void TapeRecordings::use(std::vector<const void*> addresses) {
  const auto known =
      std::find_if(recordings_.begin(), recordings_.end(),
                   [&](const Recording& each) { return each.addresses == addresses; });
  if (known != recordings_.end()) {
    std::rotate(recordings_.begin(), known, known + 1);
  } else {
    if (recordings_.size() == most_recordings) {
      dropped_ += recordings_.back().uses > 1 ? 1 : 0;
      recordings_.pop_back();
    }
    recordings_.insert(recordings_.begin(), {std::move(addresses)});
    recordings_.front().works.resize(stretches_.size());
  }
  use_again();
}

void TapeRecordings::use_again() {
  ++recordings_.front().uses;
  if (must_divide_) divide();
}

RecordedWork* TapeRecordings::work(size_t s,
                                   const std::function<void(size_t instruction)>& enqueue) {
  Recording& recording = recordings_.front();
  std::unique_ptr<RecordedWork>& work = recording.works[s];
  if (work != nullptr || !stretches_[s].is_recorded || recording.uses < 2 || has_given_up_ ||
      dropped_ > most_dropped)
    return work.get();
  try {
    const std::unique_ptr<WorkRecording> under_way = recorder_.start_recording();
    if (under_way == nullptr) {
      has_given_up_ = true;
      return nullptr;
    }
    bool is_whole = true;
    for (size_t i = stretches_[s].begin; i < stretches_[s].end; ++i) {
      try {
        enqueue(i);
      } catch (const NotRecordable&) {  // goes on, to find all that are so
        is_repeatable_[i] = false;
        is_whole = false;
      }
    }
    if (is_whole)
      work = under_way->end();
    else
      must_divide_ = true;
  } catch (const Error& error) {  // launched one by one, they may work
    has_given_up_ = true;
    const auto& [begin, end, is_recorded, early] = stretches_[s];
    std::cerr << concat("leat: ", device_.name(), ": the kernels from '",
                        tape_.instructions[begin].node->name, "' to '",
                        tape_.instructions[end - 1].node->name,
                        "' are launched one by one, because they cannot be recorded as a graph: ",
                        error.message())
              << std::endl;
  }
  return work.get();
}

}  // namespace leat
