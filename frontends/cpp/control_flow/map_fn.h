// Loops over the first axis: map_fn and scan, as in TensorFlow.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontends/cpp/control_flow/while_loop.h"

namespace leat {

struct MapOptions {
  std::string name = "map";
};
struct ScanOptions {
  bool reverse = false;  // from the last element to the first; results stay where they belong
  std::string name = "scan";
};

// y[i] = f(x[i]). With several x, of the same length, f gets an element of each. One iteration
// after the other: what works on whole tensors is faster. gradients() goes through.
Output map_fn(const std::function<Output(Output)>& f, Output x, const MapOptions& options = {},
              Location at = here());
std::vector<Output> map_fn(const std::function<std::vector<Output>(const std::vector<Output>&)>& f,
                           const std::vector<Output>& x, const MapOptions& options = {},
                           Location at = here());

// y[i] = f(y[i - 1], x[i]), y[-1] = initial: a sum of all before, a recurrent network. Of several
// states and inputs: f(states, elements) gives the states. gradients() goes through.
Output scan(const std::function<Output(Output, Output)>& f, Output x, Output initial,
            const ScanOptions& options = {}, Location at = here());
std::vector<Output> scan(const std::function<std::vector<Output>(const std::vector<Output>& states,
                                                                 const std::vector<Output>& x)>& f,
                         const std::vector<Output>& x, const std::vector<Output>& initial,
                         const ScanOptions& options = {}, Location at = here());

}  // namespace leat
