#include "frontends/cpp/examples/custom_op/swish.h"

#include <leat/custom_op.h>
#include <cmath>

using namespace leat;

namespace {

// Returns the kernel that a tape runs; reads attributes and shapes once, here.
BoundKernel prepare(const KernelRequest& request) {
  const int64_t count = request.inputs[0].shape.elements();
  const auto beta = request.attr<float>("beta");
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const auto* x = a.input<float>(0);
    auto* y = a.output<float>();
    a.stream->parallel_for(count, 10, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = x[i] / (1 + std::exp(-beta * x[i]));
    });
  });
  kernel.may_share = {{.output = 0, .input = 0}};  // y may be written over x
  return kernel;
}

// dy/dx = σ(βx) + β y (1 - σ(βx))
void gradient(Gradient& g) {
  const float beta = g.attr<float>("beta");
  const Output s = sigmoid(g.x() * beta);
  g.dx() = g.dy() * (s + beta * g.y() * (1 - s));
}

const Op op_swish{{
    .name = "Swish",
    .doc = "y = x / (1 + exp(-beta x)), elementwise.",
    .inputs = {"x: float"},
    .outputs = {"y: float"},
    .attrs = {"beta: float = 1.0"},
    .shape = shapes::same_as(0),
    .gradient = gradient,
    .kernels = {{.device = DeviceType::cpu, .prepare = prepare}},
}};

}  // namespace

Output swish(Output x, float beta, Location at) { return op("Swish", {x}, {{"beta", beta}}, at); }
