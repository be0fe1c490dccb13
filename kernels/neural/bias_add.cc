// leat: fast-math-loops
// BiasAdd and its gradient: adds a vector over the channels, which are the last axis (NHWC) or axis
// 1 (NCHW).
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/reduction.h"
#include "kernels/wrapping.h"

namespace leat {
namespace {

// The tensor as [outer, channels, inner]; NHWC has inner = 1.
struct Extents {
  int64_t outer = 1, channels = 1, inner = 1;
};

int channel_axis(const NodeView& node, const Shape& shape) {
  return node.attr<std::string>("data_format") == "NCHW" ? 1 : shape.rank() - 1;
}

Extents extents_of(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const int axis = channel_axis(request.node, shape);
  Extents e;
  for (int i = 0; i < axis; ++i) e.outer *= shape[i];
  e.channels = shape[axis];
  for (int i = axis + 1; i < shape.rank(); ++i) e.inner *= shape[i];
  if (shape.elements() == 0) e.outer = 0;  // outer alone may be vast
  return e;
}

template <class T>
BoundKernel prepare_add(TypeTag<T>, const KernelRequest& request) {
  using C = ComputeType<T>;
  const Extents e = extents_of(request);
  const int64_t block = std::max<int64_t>(1, e.channels * e.inner);
  return BoundKernel::of([e, block](const Arguments& a) {
           const T *value = a.input<T>(0), *bias = a.input<T>(1);
           T* out = a.output<T>();
           a.stream->parallel_for(e.outer, 1 + 65536 / block, [&](int64_t begin, int64_t end) {
             vectorized([=]() LEAT_INLINE {
               for (int64_t o = begin; o < end; ++o) {
                 const T* x = value + o * block;
                 T* y = out + o * block;
                 if (e.inner == 1) {
                   LEAT_INDEPENDENT_ITERATIONS
                   for (int64_t c = 0; c < e.channels; ++c) y[c] = T(C(x[c]) + C(bias[c]));
                   continue;
                 }
                 for (int64_t c = 0; c < e.channels; ++c, x += e.inner, y += e.inner) {
                   const C b = bias[c];
                   LEAT_INDEPENDENT_ITERATIONS
                   for (int64_t i = 0; i < e.inner; ++i) y[i] = T(C(x[i]) + b);
                 }
               }
             });
           });
         })
      .sharing(0, 0);
}

struct SumReducer : Reducer {
  template <class T>
  LEAT_DEVICE static T identity() {
    return T(0);
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
  }
};

template <class T>
BoundKernel prepare_sum(TypeTag<T>, const KernelRequest& request) {
  const Extents e = extents_of(request);
  const Shape shape = {e.outer, e.channels, e.inner};
  return bind_reduction<SumReducer, T>(plan_reduction(shape, {true, false, true}));
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
    .kernels = {cpu_kernel(
        "T", NumberAndComplexTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_add(t, r); })},
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
    .kernels = {cpu_kernel(
        "T", NumberAndComplexTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_sum(t, r); })},
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4})}, .outputs = {floats({4, 6})}},
                 {.inputs = {floats({1, 2, 2}, {1, 2, 3, 4})},
                  .attrs = {{"data_format", "NCHW"}},
                  .outputs = {floats({3, 7})}}},
}};

}  // namespace
}  // namespace leat
