// An array of pointers, on the stack up to the size that nearly all segments need.
#pragma once

#include <array>
#include <span>
#include <vector>

namespace leat {

template <class T>
class Pointers {
 public:
  explicit Pointers(size_t count) : count_(count) {
    if (count > few_.size()) many_.resize(count);
  }
  T& operator[](size_t i) { return count_ > few_.size() ? many_[i] : few_[i]; }
  std::span<const T> span() const {
    return {count_ > few_.size() ? many_.data() : few_.data(), count_};
  }

 private:
  const size_t count_;
  std::array<T, 32> few_;
  std::vector<T> many_;
};

}  // namespace leat
