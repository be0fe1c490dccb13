// Kernels that wait: for the disk, or for others.
#pragma once

#include "core/execution/blocking_work.h"
#include "core/execution/step_end.h"
#include "core/kernel.h"

namespace leat {

// An execute_async that calls `work(context)` through `run`, on a thread that may wait. An
// exception from `work` becomes the kernel's status. The kernel's inputs, and the context for its
// outputs, live until then.
template <class Work>
ExecuteAsync elsewhere(void (*run)(std::function<void()>), Work work) {
  return [run, work](ExecuteContext& context, std::function<void(Status)> done) {
    run([work, &context, end = StepEnd::of_thread(), done = std::move(done)] {
      Status status;
      try {
        const StepEnd::Scope scope(end);
        work(context);
      } catch (...) {
        status = status_of_current_exception();
      }
      done(std::move(status));
    });
  };
}

// `work` waits for the disk.
template <class Work>
ExecuteAsync blocking(Work work) {
  return elsewhere(run_blocking, std::move(work));
}
// `work` waits for other work that waits for the disk.
template <class Work>
ExecuteAsync waiting(Work work) {
  return elsewhere(run_waiting, std::move(work));
}

}  // namespace leat
