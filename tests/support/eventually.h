// Waiting in tests: for a condition, with a deadline far beyond the expected time.
#pragma once

#include <chrono>
#include <thread>

namespace leat {

// True as soon as `condition` is; false if it has not become true within `limit`.
template <class Condition>
bool eventually(Condition&& condition, std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace leat
