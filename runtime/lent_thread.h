// Threads lent for quick work only: the transport's threads, which receive nothing else meanwhile.
#pragma once

namespace leat {

class LentThread {
 public:
  // While a Scope is open, the thread does not begin work that is new and so may take long: it
  // throws TooLong, and the step goes on in the pool.
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
