// Threads that are lent for quick work only: those of the transport, on which nothing else arrives
// meanwhile.
#pragma once

namespace leat {

class LentThread {
 public:
  // While one is open, what turns out to be new, and so may take long, is not begun on the thread:
  // TooLong is thrown, and the step goes on in the pool.
  class Scope {
   public:
    Scope() { ++depth_; }
    ~Scope() { --depth_; }
    Scope(const Scope&) = delete;
  };
  struct TooLong {};

  static bool is_this_one() { return depth_ > 0; }

 private:
  static inline thread_local constinit int depth_ = 0;
};

}  // namespace leat
