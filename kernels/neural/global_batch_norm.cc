// BatchNormWithGlobalNormalization and its gradient, for graphs that predate FusedBatchNorm.
#include <cmath>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using NormalizedTypes = Types<half, float, double>;
const std::vector<std::string> attributes = {"T: numbertype", "variance_epsilon: float",
                                             "scale_after_normalization: bool"};

// The shape of input 0, an image of four dimensions; the vectors in inputs 1 to `last` may give the
// number of channels if it is unknown.
Shape image(ShapeContext& c, int last) {
  Shape out = c.with_rank(0, 4);
  for (int i = 1; i <= last; ++i) out = out.merged({any, any, any, c.with_rank(i, 1)[0]});
  return out;
}

// What the kernels need from a node; elements are numbered row by row, and a row has all channels.
struct Normalization {
  int64_t rows, channels;
  double epsilon;
  bool scales;

  explicit Normalization(const KernelRequest& r)
      : channels(r.inputs[0].shape[3]),
        epsilon(r.attr<float>("variance_epsilon")),
        scales(r.attr<bool>("scale_after_normalization")) {
    rows = channels == 0 ? 0 : r.inputs[0].shape.elements() / channels;
  }
};

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  using C = ComputeType<T>;
  const Normalization plan(r);
  if (plan.rows == 0) return {};
  BoundKernel kernel = BoundKernel::of([plan](const Arguments& a) {
    const T *x = a.input<T>(0), *mean = a.input<T>(1), *variance = a.input<T>(2),
            *beta = a.input<T>(3), *gamma = a.input<T>(4);
    C* factors = static_cast<C*>(a.workspace);
    for (int64_t c = 0; c < plan.channels; ++c) {
      factors[c] = 1 / std::sqrt(C(variance[c]) + static_cast<C>(plan.epsilon));
      if (plan.scales) factors[c] *= C(gamma[c]);
    }
    a.stream->parallel_for(plan.rows, 1 + 20'000 / plan.channels, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t c = 0, at = i * plan.channels; c < plan.channels; ++c, ++at)
          a.output<T>()[at] = T((C(x[at]) - C(mean[c])) * factors[c] + C(beta[c]));
      }
    });
  });
  kernel.workspace_bytes = static_cast<size_t>(plan.channels) * sizeof(C);
  kernel.cost_ns = static_cast<double>(plan.rows * plan.channels);
  return kernel;
}

template <class T>
BoundKernel prepare_gradient(TypeTag<T>, const KernelRequest& r) {
  const Normalization plan(r);
  BoundKernel kernel = BoundKernel::of([plan](const Arguments& a) {
    const T *x = a.input<T>(0), *mean = a.input<T>(1), *variance = a.input<T>(2),
            *gamma = a.input<T>(3), *dy = a.input<T>(4);
    double* sums = static_cast<double*>(a.workspace);  // of dy, and of dy (x - m)
    double *products = sums + plan.channels, *factors = products + plan.channels;
    std::fill_n(sums, 2 * plan.channels, 0.0);
    for (int64_t c = 0; c < plan.channels; ++c) {
      const double root = 1 / std::sqrt(static_cast<double>(variance[c]) + plan.epsilon);
      factors[c] = plan.scales ? root * static_cast<double>(gamma[c]) : root;
    }
    for (int64_t i = 0, at = 0; i < plan.rows; ++i) {
      for (int64_t c = 0; c < plan.channels; ++c, ++at) {
        const auto d = static_cast<double>(dy[at]);
        sums[c] += d;
        products[c] += d * (static_cast<double>(x[at]) - static_cast<double>(mean[c]));
        a.output<T>(0)[at] = T(static_cast<ComputeType<T>>(d * factors[c]));
      }
    }
    const auto write = [&](int output, int64_t c, double value) {
      a.output<T>(output)[c] = T(static_cast<ComputeType<T>>(value));
    };
    for (int64_t c = 0; c < plan.channels; ++c) {
      const double inner = static_cast<double>(variance[c]) + plan.epsilon;
      write(1, c, -sums[c] * factors[c]);
      write(2, c, products[c] * factors[c] * -0.5 / inner);
      write(3, c, sums[c]);
      write(4, c, plan.scales ? products[c] / std::sqrt(inner) : 0);
    }
  });
  kernel.workspace_bytes = static_cast<size_t>(3 * plan.channels) * sizeof(double);
  kernel.cost_ns = 3.0 * static_cast<double>(plan.rows * plan.channels);
  return kernel;
}

const Op norm_op{{
    .name = "BatchNormWithGlobalNormalization",
    .doc = "result = (t - m) / sqrt(v + variance_epsilon) gamma + beta along the last of four "
           "dimensions; without gamma unless scale_after_normalization.",
    .inputs = {"t: T", "m: T", "v: T", "beta: T", "gamma: T"},
    .outputs = {"result: T"},
    .attrs = attributes,
    .shape = [](ShapeContext& c) { c.set_output(0, image(c, 4)); },
    .gradient =
        [](Gradient& g) {
          const std::vector<Output> dx =
              op_outputs("BatchNormWithGlobalNormalizationGrad",
                         {g.x(0), g.x(1), g.x(2), g.x(4), g.dy()}, g.node().attrs);
          for (int i = 0; i < 5; ++i) g.dx(i) = dx[static_cast<size_t>(i)];
        },
    .kernels = {cpu_kernel(
        "T", NormalizedTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({1, 1, 2, 2}, {1, 2, 5, 8}), floats({1, 2}), floats({3, 0}),
                             floats({10, 20}), floats({2, 3})},
                  .attrs = {{"variance_epsilon", 1.0F}, {"scale_after_normalization", true}},
                  .outputs = {floats({1, 1, 2, 2}, {10, 20, 14, 38})}}},
}};

const Op gradient_op{{
    .name = "BatchNormWithGlobalNormalizationGrad",
    .doc = "The gradients of BatchNormWithGlobalNormalization with respect to its inputs, from the "
           "gradient backprop of its result; dg is 0 unless scale_after_normalization.",
    .inputs = {"t: T", "m: T", "v: T", "gamma: T", "backprop: T"},
    .outputs = {"dx: T", "dm: T", "dv: T", "db: T", "dg: T"},
    .attrs = attributes,
    .shape =
        [](ShapeContext& c) {
          const Shape dx = image(c, 3).merged(c.input(4));
          c.set_output(0, dx);
          for (int i = 1; i <= 4; ++i) c.set_output(i, {dx[3]});
        },
    .kernels = {cpu_kernel(
        "T", NormalizedTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_gradient(t, r); })},
    .examples = {{.inputs = {floats({1, 1, 2, 2}, {1, 2, 5, 8}), floats({1, 2}), floats({3, 0}),
                             floats({2, 3}), floats({1, 1, 2, 2}, {1, 1, 1, 2})},
                  .attrs = {{"variance_epsilon", 1.0F}, {"scale_after_normalization", true}},
                  .outputs = {floats({1, 1, 2, 2}, {1, 3, 1, 6}), floats({-2, -9}),
                              floats({-0.5F, -18}), floats({2, 3}), floats({2, 12})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
