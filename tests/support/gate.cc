#include "tests/support/gate.h"

#include <map>
#include <mutex>
#include <vector>

#include "graph/op_def.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "tests/support/eventually.h"

namespace leat {
namespace {

struct Gates {
  std::mutex mutex;
  std::map<std::string, std::vector<std::function<void()>>> waiting;
};

Gates& gates() {
  static Gates* all = new Gates;  // steps may stand there when the process ends
  return *all;
}

Kernel gate_kernel() {
  Kernel kernel;
  kernel.execute_async = [](ExecuteContext& context, std::function<void(Status)> done) {
    std::lock_guard lock(gates().mutex);
    gates().waiting[context.node().attr<std::string>("gate")].push_back(
        [&context, done = std::move(done)] {
          context.set_output(0, context.input(0));
          done({});
        });
  };
  return kernel;
}

const Op gate_op{{
    .name = "TestGate",
    .doc = "y = x, when the test says so.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = {"T: type", "gate: string"},
    .shape = [](ShapeContext& context) { context.set_output(0, context.input(0)); },
    .kernels = {gate_kernel()},
    .is_stateful = true,
}};

}  // namespace

Output gate(Output x, const std::string& name) { return op("TestGate", {x}, {{"gate", name}}); }

bool wait_at_gate(const std::string& name, std::chrono::milliseconds limit) {
  return eventually(
      [&] {
        std::lock_guard lock(gates().mutex);
        return !gates().waiting[name].empty();
      },
      limit);
}

void open_gate(const std::string& name) {
  std::vector<std::function<void()>> waiting;
  {
    std::lock_guard lock(gates().mutex);
    waiting.swap(gates().waiting[name]);
  }
  for (const auto& go : waiting) go();
}

}  // namespace leat
