// Values with many holders and few writers.
#pragma once

#include <atomic>
#include <ostream>
#include <utility>

namespace leat {

// A T that copies share until one of them is written. It is as small and as cheap to copy as a
// pointer. A default Shared is T(). Copies may belong to different threads.
template <class T>
class Shared {
 public:
  Shared() = default;
  Shared(T value) : held_(new Held(std::move(value))) {}  // NOLINT: values convert
  Shared(const Shared& other) : held_(other.held_) {
    if (held_ != nullptr) held_->users.fetch_add(1, std::memory_order_relaxed);
  }
  Shared(Shared&& other) noexcept : held_(std::exchange(other.held_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Shared() {
    if (held_ != nullptr && held_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete held_;
  }

  const T& operator*() const { return held_ == nullptr ? nothing() : held_->value; }
  const T* operator->() const { return &**this; }
  operator const T&() const { return **this; }  // NOLINT: it is a T

  // A private copy for writing: the other copies do not see the changes.
  T& write() {
    if (held_ == nullptr || held_->users.load(std::memory_order_acquire) > 1)
      *this = Shared(**this);
    return held_->value;
  }

  // Cheap if they share one value.
  friend bool operator==(const Shared& a, const Shared& b) {
    return a.held_ == b.held_ || *a == *b;
  }
  friend bool operator==(const Shared& a, const T& b) { return *a == b; }
  friend std::ostream& operator<<(std::ostream& out, const Shared& shared) {
    return out << *shared;
  }

 private:
  struct Held {
    explicit Held(T initial) : value(std::move(initial)) {}
    std::atomic<int> users{1};
    T value;
  };

  static const T& nothing() {
    static const T value{};
    return value;
  }

  Held* held_ = nullptr;
};

}  // namespace leat
