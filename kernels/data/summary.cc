// Summaries: values for event files, as serialized messages.
#include "graph/formats/summary.h"

#include <cmath>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

template <class T>
BoundKernel prepare_scalar(TypeTag<T>, const KernelRequest& request) {
  const Shape &tags = request.inputs[0].shape, &values = request.inputs[1].shape;
  check(tags == values, "tags and values are not the same shape: ", tags, " != ", values);
  return BoundKernel::of([n = values.elements()](const Arguments& a) {
    std::vector<std::pair<std::string, float>> out;
    for (int64_t i = 0; i < n; ++i) {
      out.emplace_back(a.input<std::string>(0)[i],
                       static_cast<float>(ComputeType<T>(a.input<T>(1)[i])));
    }
    *a.output<std::string>() = scalar_summary(out);
  });
}

template <class T>
BoundKernel prepare_histogram(TypeTag<T>, const KernelRequest& request) {
  return BoundKernel::of([n = request.inputs[1].shape.elements()](const Arguments& a) {
    const std::string& tag = *a.input<std::string>(0);
    Histogram histogram;
    for (int64_t i = 0; i < n; ++i) {
      const auto value = static_cast<double>(ComputeType<T>(a.input<T>(1)[i]));
      check(!std::isnan(value), "Nan in summary histogram for: ", tag, ", element ", i);
      check(!std::isinf(value), "Infinity in Histogram for: ", tag, ", element ", i);
      histogram.add(value);
    }
    *a.output<std::string>() = histogram.summary(tag);
  });
}

BoundKernel prepare_merge(const KernelRequest& request) {
  std::vector<int64_t> counts;
  for (const TensorSpec& input : request.inputs) counts.push_back(input.shape.elements());
  return BoundKernel::of([counts](const Arguments& a) {
    std::vector<std::string> all;
    for (size_t i = 0; i < counts.size(); ++i) {
      const auto* summaries = a.input<std::string>(static_cast<int>(i));
      all.insert(all.end(), summaries, summaries + counts[i]);
    }
    *a.output<std::string>() = merge_summaries(all);
  });
}

Tensor example_summary() {
  const std::pair<std::string, float> value("loss", 0.5f);
  return Tensor::scalar(scalar_summary({&value, 1}));
}

const Op scalar_summary_op{{
    .name = "ScalarSummary",
    .doc = "summary = a serialized Summary with a value for each tag.",
    .inputs = {"tags: string", "values: T"},
    .outputs = {"summary: string"},
    .attrs = {"T: realnumbertype"},
    .shape = shapes::scalar(),
    .kernels = {cpu_kernel(
        "T", NumberTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_scalar(t, r); })},
    .examples = {{.inputs = {Tensor::scalar("loss"), Tensor::scalar(0.5f)},
                  .outputs = {example_summary()}}},
    .is_not_differentiable = true,
}};

const Op histogram_summary_op{{
    .name = "HistogramSummary",
    .doc = "summary = a serialized Summary with the histogram of values. NaN and infinity are "
           "INVALID_ARGUMENT.",
    .inputs = {"tag: string", "values: T"},
    .outputs = {"summary: string"},
    .attrs = {"T: realnumbertype = float"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          c.set_output(0, {});
        },
    .kernels = {cpu_kernel(
        "T", NumberTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_histogram(t, r); })},
    .examples = {{.inputs = {Tensor::scalar("w"), floats({1, 2})}, .outputs = {[] {
                                                                     Histogram histogram;
                                                                     histogram.add(1);
                                                                     histogram.add(2);
                                                                     return Tensor::scalar(
                                                                         histogram.summary("w"));
                                                                   }()}}},
    .is_not_differentiable = true,
}};

const Op merge_summary_op{{
    .name = "MergeSummary",
    .doc = "summary = one serialized Summary with the values of all; a tag may occur only once.",
    .inputs = {"inputs: N * string"},
    .outputs = {"summary: string"},
    .attrs = {"N: int >= 1"},
    .shape = shapes::scalar(),
    .kernels = {cpu_kernel(prepare_merge)},
    .examples = {{.inputs = {example_summary()}, .outputs = {example_summary()}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
