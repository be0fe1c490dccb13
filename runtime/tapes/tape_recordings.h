// Stretches of a tape that a device repeats by one call each. For devices with a recorder
// (core/execution/work_recorder.h); a step there costs the host one call for each stretch, not one
// for each kernel.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/execution/work_recorder.h"
#include "runtime/tapes/tape.h"

namespace leat {

class TapeRecordings {
 public:
  // Instructions that follow each other. A result that leaves early (Tape::early_results) ends one.
  struct Stretch {
    size_t begin = 0, end = 0;
    bool is_recorded = false;
    std::span<const Tape::EarlyResult> early = {};
  };

  // Null if the device has no recorder, or nothing of the tape is worth it. Keeps references to
  // both.
  static std::unique_ptr<TapeRecordings> of(Device& device, const Tape& tape,
                                            const SegmentPlan& segment);

  const std::vector<Stretch>& stretches() const { return stretches_; }

  // Before each run: where its memory is. A recording holds for the addresses that it was made
  // with; it is made when they come for the second time, so that every kernel has run before.
  void use(std::vector<const void*> addresses);
  // The same addresses as for the last run.
  void use_again();

  // What stretch `s` recorded for these addresses. Records it by `enqueue`, which enqueues an
  // instruction, if it is time to. Null: run the instructions one by one.
  RecordedWork* work(size_t s, const std::function<void(size_t instruction)>& enqueue);

 private:
  struct Recording {
    std::vector<const void*> addresses;
    int uses = 0;                                      // at the first nothing is recorded
    std::vector<std::unique_ptr<RecordedWork>> works;  // by stretch
  };

  TapeRecordings(const Device& device, HasWorkRecorder& recorder, const Tape& tape,
                 std::vector<bool> is_repeatable);
  void divide();

  const Device& device_;
  HasWorkRecorder& recorder_;  // the device
  const Tape& tape_;
  std::vector<bool> is_repeatable_;  // by instruction: repeatable_instructions()
  std::vector<Stretch> stretches_;
  bool must_divide_ = false;  // at the next run: an instruction has turned out not to be repeatable
  std::vector<Recording> recordings_;  // the latest used first
  int dropped_ = 0;                    // that were recorded, and whose addresses did not come back
  bool has_given_up_ = false;
};

}  // namespace leat
