// What a cluster does while a training runs, looked at many times a second as `leat top` does:
// how many bytes its tasks have sent each other, and who is waited for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "distributed/cluster_view.h"
#include "tools/leat/compare/training_record.h"

namespace leat {

// Who owes what this activity waits for; "" if it does not wait.
//   "waits for tensor edge_7_w of node w", from "/job:ps/task:0"         → "ps:0"
//   "waits in ClockWait node c: clock 'c': member 0, at 7, waits for member 2, at 5"
//                                                                        → "clock 'c' member 2"
//   "waits in QueueDequeueV2 node q: FIFOQueue 'tokens' has 0 elements"  → "FIFOQueue 'tokens'"
// Of accumulators only the kind is kept: there is one per variable.
std::vector<std::string> owners_of(const StepActivity& activity);

// Not thread-safe.
class ClusterSamples {
 public:
  // `time`: seconds since 1970.
  void add(double time, const ClusterView& view);
  // Forgets the looks before `time`: what the next one saw beyond them was sent since then.
  void begin(double time);

  bool is_empty() const { return bytes_.empty(); }
  // Bytes sent between tasks before `time`: linear between two looks; after the last one, at the
  // mean rate since the first. NaN without a look.
  double bytes_at(double time) const;
  // Each owner's share of the waits of steps that were seen, 0 to 1; the largest first.
  std::vector<std::pair<std::string, double>> waits() const;
  const std::vector<std::pair<double, double>>& bytes() const { return bytes_; }

 private:
  std::vector<std::pair<double, double>> bytes_;  // time, bytes so far
  std::map<std::string, int64_t> waits_;          // by owner
};

// Sets the bytes of each point: those since the training began.
void add_bytes(ClusterSamples samples, TrainingCurve& curve);

}  // namespace leat
