// leat: cpu+cuda
// BiasAdd and its gradient: adds a vector over the channels, which are the last axis (NHWC) or axis
// 1 (NCHW).
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/math/functors.h"
#include "kernels/sum_reducer.h"

namespace leat {
namespace {

int channel_axis(const NodeView& node, const Shape& shape) {
  return node.attr<std::string>("data_format") == "NCHW" ? 1 : shape.rank() - 1;
}

// The tensor as [outer, channels, inner]; NHWC has inner = 1.
Shape by_channel(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const int channels = channel_axis(request.node, shape);
  if (shape.elements() == 0) return {0, shape[channels], 1};  // the other extents may be vast
  Shape out = {1, shape[channels], 1};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis == channels) continue;
    const int to = axis < channels ? 0 : 2;
    out.set(to, out[to] * shape[axis]);
  }
  return out;
}

struct PrepareAdd {
  template <class T>
  BoundKernel operator()(TypeTag<T>, const KernelRequest& request) const {
    const Shape shape = by_channel(request);
    const Shape inputs[] = {shape, {shape[1], 1}};
    BoundKernel bound = bind_elementwise<Add, T, T, T>({}, plan_broadcast(shape, inputs));
    bound.may_share = {{0, 0}};
    return bound;
  }
};

struct PrepareSum {
  template <class T>
  BoundKernel operator()(TypeTag<T>, const KernelRequest& request) const {
    return bind_reduction<SumReducer, T>(plan_reduction(by_channel(request), {true, false, true}));
  }
};

template <class Supported, class Prepare>
Kernel kernel_for() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"T", Supported::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    return visit_type(Supported{}, request.inputs[0].dtype,
                      [&](auto type) { return Prepare{}(type, request); });
  };
  return kernel;
}

// On the CPU also for complex numbers.
template <class Prepare>
std::vector<Kernel> kernels() {
  std::vector<Kernel> out = {kernel_for<NumberTypes, Prepare>()};
  if constexpr (has_host_types) out.push_back(kernel_for<ComplexTypes, Prepare>());
  return out;
}

void infer_add(ShapeContext& c) {
  const Shape bias = c.with_rank(1, 1);
  const bool nchw = c.attr<std::string>("data_format") == "NCHW";
  Shape value = c.with_rank_at_least(0, 2);
  if (value.has_rank()) {
    const int axis = channel_axis(c.node(), value);
    check(value[axis] == any || bias[0] == any || value[axis] == bias[0], "value ", value, " has ",
          value[axis], " channels (", nchw ? "NCHW" : "NHWC", "), bias has ", bias[0]);
    if (value[axis] == any) value.set(axis, bias[0]);
  }
  c.set_output(0, value);
}

void infer_sum(ShapeContext& c) {
  const Shape value = c.with_rank_at_least(0, 2);
  c.set_output(0, Shape{value.has_rank() ? value[channel_axis(c.node(), value)] : any});
}

const char* const types = "T: numbertype";
const char* const data_format = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";

const Op bias_add_op{{
    .name = "BiasAdd",
    .doc = "output[…, c] = value[…, c] + bias[c]; with NCHW the channel c is axis 1.",
    .inputs = {"value: T", "bias: T"},
    .outputs = {"output: T"},
    .attrs = {types, data_format},
    .shape = infer_add,
    .gradient =
        [](Gradient& g) {
          g.dx(0) = g.dy();
          g.dx(1) = bias_add_grad(g.dy(), g.attr<std::string>("data_format"));
        },
    .kernels = kernels<PrepareAdd>(),
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), floats({10, 20})},
                  .outputs = {floats({2, 2}, {11, 22, 13, 24})}},
                 {.inputs = {floats({1, 2, 2}, {1, 2, 3, 4}), floats({10, 20})},
                  .attrs = {{"data_format", "NCHW"}},
                  .outputs = {floats({1, 2, 2}, {11, 12, 23, 24})}}},
}};

const Op bias_add_grad_op{{
    .name = "BiasAddGrad",
    .doc = "output[c] = the sum of out_backprop over all axes except the channel axis.",
    .inputs = {"out_backprop: T"},
    .outputs = {"output: T"},
    .attrs = {types, data_format},
    .shape = infer_sum,
    .gradient =
        [](Gradient& g) {
          // Broadcasts dy back over all axes; with NCHW, axes of extent 1 stand for those after the
          // channels.
          Output dy = g.dy();
          const int rank = g.x(0).shape().rank();
          const bool nchw = g.attr<std::string>("data_format") == "NCHW";
          check(!nchw || rank >= 0, "the gradient of BiasAddGrad with NCHW needs a known rank");
          for (int axis = 2; nchw && axis < rank; ++axis) dy = expand_dims(dy, -1);
          g.dx(0) = broadcast_to(dy, shape_of(g.x(0)));
        },
    .kernels = kernels<PrepareSum>(),
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4})}, .outputs = {floats({4, 6})}},
                 {.inputs = {floats({1, 2, 2}, {1, 2, 3, 4})},
                  .attrs = {{"data_format", "NCHW"}},
                  .outputs = {floats({3, 7})}}},
}};

}  // namespace
}  // namespace leat
