// A progress line for training loops.
//   [worker:0] step  1200/10000 [====>               ] 12%  loss 0.231  18.4k samples/s
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace leat {

// On a terminal one line is redrawn at most 10 times a second; elsewhere a plain line is printed
// about 20 times in all, or every 2 seconds if that is more often. Writes to standard output. Not
// thread-safe.
class Progress {
 public:
  // Without the number of steps (0) it shows no bar, without the samples (0) steps per second.
  Progress(int64_t steps, int64_t samples_per_step);
  ~Progress();
  Progress(const Progress&) = delete;

  // Call it after each step, with its number from 1 on, and the loss. The first number may be
  // larger if training resumes: the rate counts steps since this object was made.
  // `more` follows the loss.
  void update(int64_t step, double loss, const std::string& more = "");
  // Ends the line.
  void finish();

 private:
  void draw(int64_t step, double loss, const std::string& more, bool is_last);

  const int64_t steps_, samples_per_step_;
  const bool is_terminal_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
  int64_t first_step_ = 0, drawn_step_ = 0;
  bool is_open_ = false;
};

}  // namespace leat
