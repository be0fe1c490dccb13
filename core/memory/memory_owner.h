// What the memory of a device is for, so that an error about too little of it says who has it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace leat {

enum class MemoryUse : uint8_t {
  variable,
  constant,
  intermediate,  // values within a step
  result,        // values that leave a segment: fetches, and what other devices read
  copy,          // of fed and received values: other streams than the compute stream write them
  other,
};
inline constexpr int memory_uses = static_cast<int>(MemoryUse::other) + 1;

constexpr std::string_view memory_use_name(MemoryUse use) {
  constexpr std::array<std::string_view, memory_uses> names = {"variables",
                                                               "constants",
                                                               "values within steps",
                                                               "results of steps",
                                                               "fed and received values",
                                                               "others"};
  return names[static_cast<size_t>(use)];
}

// While one lives, what its thread allocates on a device is for this; the innermost counts.
class MemoryOwner {
 public:
  // `name` is kept by reference: of a variable, a node.
  explicit MemoryOwner(MemoryUse use, std::string_view name = {});
  ~MemoryOwner();
  MemoryOwner(const MemoryOwner&) = delete;

  MemoryUse use() const { return use_; }
  std::string_view name() const { return name_; }
  // This thread's; null if there is none.
  static const MemoryOwner* current();

 private:
  const MemoryUse use_;
  const std::string_view name_;
  const MemoryOwner* const outer_;
};

}  // namespace leat
