// Kernels that wait for the disk.
#pragma once

#include "core/blocking_work.h"
#include "core/kernel.h"

namespace leat {

// An execute_async that does `work(context)` on a thread that may wait; what it throws is the
// kernel's status. The kernel's inputs, and the context for its outputs, live until then.
template <class Work>
ExecuteAsync blocking(Work work) {
  return [work](ExecuteContext& context, std::function<void(Status)> done) {
    run_blocking([work, &context, done = std::move(done)] {
      Status status;
      try {
        work(context);
      } catch (...) {
        status = status_of_current_exception();
      }
      done(std::move(status));
    });
  };
}

}  // namespace leat
