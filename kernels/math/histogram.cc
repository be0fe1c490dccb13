// Assigns numbers to ranges: Bucketize and HistogramFixedWidth.
#include <algorithm>
#include <cmath>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using ValueTypes = Types<int32_t, int64_t, float, double>;
const char* const value_types = "T: {int32, int64, float, double}";

// ---- Bucketize

template <class T>
BoundKernel prepare_bucketize(TypeTag<T>, const KernelRequest& r) {
  const auto& boundaries = r.attr<std::vector<float>>("boundaries");
  check(std::is_sorted(boundaries.begin(), boundaries.end()), "Expected sorted boundaries");
  BoundKernel kernel =
      BoundKernel::of([boundaries, n = r.inputs[0].shape.elements()](const Arguments& a) {
        for (int64_t i = 0; i < n; ++i) {
          StepEnd::pace(16);
          const auto found =
              std::upper_bound(boundaries.begin(), boundaries.end(), a.input<T>(0)[i]);
          a.output<int32_t>()[i] = static_cast<int32_t>(found - boundaries.begin());
        }
      });
  kernel.cost_ns = 10.0 * static_cast<double>(r.inputs[0].shape.elements());
  return kernel;
}

const Op bucketize_op{{
    .name = "Bucketize",
    .doc = "output = the number of boundaries that are at most the input, elementwise.",
    .inputs = {"input: T"},
    .outputs = {"output: int32"},
    .attrs = {value_types, "boundaries: list(float)"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel(
        "T", ValueTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_bucketize(t, r); })},
    .examples = {{.inputs = {floats({-5, 10000, 150, 10})},
                  .attrs = {{"boundaries", std::vector<float>{0, 10, 100}}},
                  .outputs = {ints({0, 3, 3, 2})}}},
    .is_not_differentiable = true,
}};

// ---- HistogramFixedWidth

// The distance from `from` up to `to`: in T if that is a floating-point type, as TensorFlow
// computes it; for integers it may not fit into T.
template <class T>
double distance(T from, T to) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<double>(to) - static_cast<double>(from);
  else
    return static_cast<double>(to - from);
}

template <class T, class Count>
BoundKernel bind_histogram(const KernelRequest& r) {
  return BoundKernel::of(
      [n = r.inputs[0].shape.elements(), bins = r.outputs[0].shape[0]](const Arguments& a) {
        const T *values = a.input<T>(0), *range = a.input<T>(1);
        check(range[0] < range[1],
              "value_range should satisfy value_range[0] < value_range[1], but got '[", range[0],
              ", ", range[1], "]'");
        const double width = distance(range[0], range[1]) / static_cast<double>(bins);
        std::fill_n(a.output<Count>(), bins, Count(0));
        for (int64_t i = 0; i < n; ++i) {
          StepEnd::pace(8);
          check(values[i] == values[i], "Histogram values must not contain NaN");
          const auto above =
              static_cast<double>(std::max(values[i], range[0])) - static_cast<double>(range[0]);
          const double place = above / width;  // NaN if the range is infinite
          const int64_t bin = place >= static_cast<double>(bins - 1) ? bins - 1
                              : place > 0                            ? static_cast<int64_t>(place)
                                                                     : 0;
          ++a.output<Count>()[bin];
        }
      });
}

const Op histogram_op{{
    .name = "HistogramFixedWidth",
    .doc = "out[k] = the number of values in the k-th of nbins equal parts of value_range; those "
           "below it count in the first, those above in the last.",
    .inputs = {"values: T", "value_range: T", "nbins: int32"},
    .outputs = {"out: dtype"},
    .attrs = {value_types, "dtype: {int32, int64} = int32"},
    .shape =
        [](ShapeContext& c) {
          check(c.input(1).is_compatible({2}), "value_range should be a vector of 2 elements, got ",
                c.input(1));
          c.with_rank(2, 0);
          int64_t bins = any;
          if (const Tensor* value = c.value(2)) {
            bins = to_int64s(*value)[0];
            check(bins > 0, "Requires nbins > 0: ", bins);
          }
          c.set_output(0, {bins});
        },
    .kernels = {cpu_kernel("T", ValueTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return r.attr<DType>("dtype") == DType::i64
                                        ? bind_histogram<T, int64_t>(r)
                                        : bind_histogram<T, int32_t>(r);
                           })},
    .examples = {{.inputs = {floats({-1, 0, 1.5, 2, 5, 15}), floats({0, 5}), Tensor::scalar(5)},
                  .outputs = {ints({2, 1, 1, 0, 2})}}},
    .value_inputs = {2},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
