#include "core/execution/step_end.h"

#include "core/error.h"

namespace leat {

thread_local constinit const StepEnd::Flag* StepEnd::flag_ = nullptr;
thread_local constinit int64_t StepEnd::left_ = 0;

void StepEnd::stop() { throw Error(Status{Code::cancelled, "the step has ended", true}); }

}  // namespace leat
