// What a step is doing now, in words: for errors of steps that do not end, and for `leat top`.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace leat {

struct StepActivity {
  std::string what;  // "runs TestGate node gate", "waits for tensor edge_7_w of node w",
                     // "waits in QueueDequeueV2 node q_Dequeue: FIFOQueue 'q' has 0 elements; …"
  std::string from;  // who owes it: "/job:ps/task:0"; empty: only the task itself
  int64_t ns = 0;    // duration; 0: none

  // "waits for tensor edge_7_w of node w from /job:ps/task:0, for 1.2 s"
  std::string to_string() const;
};

// "1.2 s"
std::string seconds_text(std::chrono::nanoseconds time);

}  // namespace leat
