// A stack to run on, and switches between stacks of one thread of the system. CUDA's threads of a
// block are such fibers.
#pragma once

#include <cstddef>

namespace cuda_on_host {

class Fiber {
 public:
  // The stack that the calling thread already runs on: the one to switch from first.
  Fiber();
  // A stack of its own. The first switch to it calls entry(argument), which must never return.
  Fiber(void (*entry)(void*), void* argument);
  ~Fiber();  // not while it runs; objects on its stack are forgotten, not destroyed
  Fiber(const Fiber&) = delete;

  // Leaves this fiber, which must be the running one, until another switches to it.
  void switch_to(Fiber& next);

  // As the first thing of `entry`: tells the sanitizer that the switch has happened.
  void begin();

  void (*entry)(void*) = nullptr;
  void* argument = nullptr;

 private:
  void arrive();

  void* context_ = nullptr;       // the stack pointer while it does not run; or a ucontext_t
  char* stack_ = nullptr;         // null: the thread's own
  const void* bottom_ = nullptr;  // of the stack, whosever it is
  size_t bytes_ = 0;
  void* sanitizer_ = nullptr;   // ThreadSanitizer's fiber; AddressSanitizer's fake stack
  Fiber* came_from_ = nullptr;  // the fiber that switched to this one
};

}  // namespace cuda_on_host
