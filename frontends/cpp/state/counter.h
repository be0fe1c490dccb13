// Counters: an int64 variable that steps increase.
//   Counter seen(g, "seen");
//   Output total = seen.increment(batch_size);
#pragma once

#include <string>
#include <string_view>

#include "frontends/cpp/variables.h"

namespace leat {

struct CounterOptions {
  int64_t start = 0;
  std::string container = {};    // "" = the task's default container
  std::string shared_name = {};  // "" = the node's name: programs with the same graph share it
};

// A variable, so that initialize_variables() starts it and checkpoints have it; not trainable.
// Increments of steps that run at the same time all count. Valid as long as its graph.
class Counter {
 public:
  Counter(Graph& graph, std::string_view name, const CounterOptions& options = {},
          Location at = here());

  // Adds `by`, an integer scalar. The Output is the new value.
  Output increment(const Operand& by = 1, Location at = here()) const;
  // 0, 1, … limit - 1, one in each step; then OUT_OF_RANGE. TensorFlow's count_up_to.
  Output count_up_to(int64_t limit, Location at = here()) const;
  Output value(Location at = here()) const;

  Output variable() const { return variable_; }  // for a Saver, or as a global_step

 private:
  std::string name_;
  Output variable_;
};

}  // namespace leat
