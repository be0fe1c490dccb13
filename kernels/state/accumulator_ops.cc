// Accumulators of dense gradients. The ops exist on references (TensorFlow 1) and on resources.
#include <array>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/named_resource.h"
#include "kernels/state/accumulator.h"

namespace leat {
namespace {

class DenseAccumulator : public GradientAccumulator {
 public:
  using GradientAccumulator::GradientAccumulator;

 private:
  void check_gradient(const Gradient& gradient) const override {
    check(gradient[0].dtype() == dtype(), "Attempt to apply a gradient of ", gradient[0].dtype(),
          " to the accumulator '", name(), "' of ", dtype());
    check(shape().is_compatible(gradient[0].shape()), "Attempt to apply a gradient of shape ",
          gradient[0].shape(), " to the accumulator '", name(), "' of shape ", shape());
  }

  void add(const Gradient& gradient, bool is_first) override {
    if (is_first) {
      sum_ = gradient[0].elements() > 0 ? gradient[0].clone() : gradient[0];
      return;
    }
    check(sum_.shape() == gradient[0].shape(), "Attempt to apply a gradient of shape ",
          gradient[0].shape(), " to the accumulator '", name(), "', which holds ", sum_.shape());
    visit_type(NumberAndComplexTypes{}, dtype(), [&]<class T>(TypeTag<T>) {
      using C = ComputeType<T>;
      T* sum = sum_.data<T>();
      const T* value = gradient[0].data<T>();
      const int64_t n = sum_.elements();
      vectorized([=]() LEAT_INLINE {
        for (int64_t i = 0; i < n; ++i) sum[i] = T(C(sum[i]) + C(value[i]));
      });
      return true;
    });
  }

  Gradient result(int64_t count) override {
    if (is_mean() && count > 1) {
      visit_type(NumberAndComplexTypes{}, dtype(), [&]<class T>(TypeTag<T>) {
        using C = ComputeType<T>;
        T* sum = sum_.data<T>();
        const C divisor = static_cast<C>(count);
        const int64_t n = sum_.elements();
        vectorized([=]() LEAT_INLINE {
          for (int64_t i = 0; i < n; ++i) sum[i] = T(C(sum[i]) / divisor);
        });
        return true;
      });
    }
    return {std::move(sum_)};
  }

  Tensor sum_;
};

void apply(ExecuteContext& c) {
  accumulator_of(c).apply(c.input(1).item<int64_t>(), {c.input(2)});
}

void set_step(ExecuteContext& c) { accumulator_of(c).set_step(c.input(1).item<int64_t>()); }

void count(ExecuteContext& c) {
  c.set_output(0, Tensor::scalar(static_cast<int32_t>(accumulator_of(c).count())));
}

// ---- Ops

const char* const dtype = "dtype: numbertype";

// Each op on a reference and on a resource.
std::array<Op, 2> both(OpDef op, const std::string& name, Kernel kernel) {
  op.kernels = {std::move(kernel)};
  op.is_stateful = true;
  op.is_not_differentiable = true;
  OpDef on_resource = op;
  op.name = name;
  on_resource.name = "Resource" + name;
  if (op.make_resource) {
    op.outputs = {"handle: Ref(string)"};
    on_resource.outputs = {"handle: resource"};
  } else {
    op.inputs.insert(op.inputs.begin(), "handle: Ref(string)");
    on_resource.inputs.insert(on_resource.inputs.begin(), "handle: resource");
  }
  return {Op(std::move(op)), Op(std::move(on_resource))};
}

const auto accumulator_ops = both(
    {
        .doc =
            "handle = the accumulator called shared_name in `container`, or the session's own, for "
            "gradients of this dtype and shape.",
        .attrs = {dtype, "shape: shape", "container: string = ''", "shared_name: string = ''",
                  "reduction_type: {'MEAN', 'SUM'} = 'MEAN'"},
        .make_resource =
            [](const NodeView& node) {
              return std::make_shared<DenseAccumulator>(resource_name(node), node);
            },
        .is_private_resource = true,
    },
    "ConditionalAccumulator", cpu_kernel([](const KernelRequest&) { return BoundKernel{}; }));

const auto apply_ops =
    both({.doc = "Adds gradient to the sum, unless local_step is before the accumulator's step.",
          .inputs = {"local_step: int64", "gradient: dtype"},
          .attrs = {dtype},
          .shape = [](ShapeContext& c) { c.with_rank(1, 0); }},
         "AccumulatorApplyGradient",
         {.types = {{"dtype", NumberAndComplexTypes::list()}}, .execute = apply});

const auto take_ops =
    both({.doc = "Waits for num_required gradients. average = the mean (or sum) of all that have "
                 "come; then the accumulator is empty, and one step further.",
          .inputs = {"num_required: int32"},
          .outputs = {"average: dtype"},
          .attrs = {dtype},
          .shape = [](ShapeContext& c) { c.with_rank(1, 0); }},
         "AccumulatorTakeGradient",
         {.types = {{"dtype", NumberAndComplexTypes::list()}}, .execute_async = take_gradient});

const auto set_step_ops = both({.doc = "Sets the accumulator's step.",
                                .inputs = {"new_global_step: int64"},
                                .shape = [](ShapeContext& c) { c.with_rank(1, 0); }},
                               "AccumulatorSetGlobalStep", {.execute = set_step});

const auto count_ops = both({.doc = "num_accumulated = the number of gradients in the sum.",
                             .outputs = {"num_accumulated: int32"},
                             .shape = shapes::scalar()},
                            "AccumulatorNumAccumulated", {.execute = count});

}  // namespace
}  // namespace leat
