// What a client asks a step for: the key of compiled programs.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

namespace leat {

// What one step computes. Order does not matter and is normalised. Feeds and fetches are
// "node:index", targets "node".
struct StepSignature {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  // to → from, "node:index" both: users of `to` get the value of `from` instead.
  std::map<std::string, std::string> connections = {};
  // Feeds are given, and fetches taken, while the step runs (defer).
  bool is_partial = false;

  // Sorted, without duplicates, ":0" appended where missing.
  StepSignature normalised() const;
  bool operator==(const StepSignature&) const = default;
  auto operator<=>(const StepSignature&) const = default;
  std::string to_string() const;
};

}  // namespace leat
