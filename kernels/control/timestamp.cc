// Timestamp: the clock of the task that runs the node.
#include <chrono>

#include "graph/op_def.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"

namespace leat {
namespace {

const Op timestamp_op{{
    .name = "Timestamp",
    .doc = "ts = the seconds since the beginning of 1970 (UTC) when the node runs.",
    .outputs = {"ts: float64"},
    .shape = shapes::scalar(),
    .kernels = {cpu_kernel([](const KernelRequest&) {
      return BoundKernel::of([](const Arguments& a) {
        const std::chrono::duration<double> now =
            std::chrono::system_clock::now().time_since_epoch();
        *a.output<double>() = now.count();
      });
    })},
    .is_stateful = true,
}};

}  // namespace
}  // namespace leat
