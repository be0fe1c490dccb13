// State per session and node: kernels' own state, such as counters of random generators, and
// resources that no other session can have, such as iterators.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>

namespace leat {

class NodeStates {
 public:
  NodeStates();
  ~NodeStates();
  // Hold it while kernels are prepared and programs planned: only then are the states touched.
  std::mutex& mutex();
  // The node's state; empty until its kernel creates it. The address is stable.
  std::shared_ptr<void>& of(std::string_view node);

 private:
  struct Table;
  std::unique_ptr<Table> table_;
};

}  // namespace leat
