// AdjustContrastv2 of images [height, width, channels] and batches of them.
#include <algorithm>
#include <vector>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

template <class T>
BoundKernel prepare_contrast(TypeTag<T>, const KernelRequest& r) {
  const Shape& images = r.inputs[0].shape;
  const int64_t channels = images[images.rank() - 1],
                pixels = images[images.rank() - 2] * images[images.rank() - 3],
                n = images.elements();
  if (n == 0) return {};
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const float factor = *a.input<float>(1);
    // Some pixels at a time, so that vectors are full: number i is of channel i % channels.
    const int64_t piece = channels * std::max<int64_t>(1, 64 / channels);
    const int64_t block = piece * std::max<int64_t>(1, 8192 / piece);
    std::vector<double> sums(piece);
    std::vector<float> means(piece);
    for (int64_t first = 0; first < n; first += pixels * channels) {
      std::fill(sums.begin(), sums.end(), 0.0);
      const T* x = a.input<T>(0) + first;
      T* y = a.output<T>() + first;
      for (int64_t begin = 0; begin < pixels * channels; begin += block) {
        const int64_t end = std::min(begin + block, pixels * channels);
        StepEnd::pace(end - begin);
        vectorized([=, sum = sums.data()]() LEAT_INLINE {
          for (int64_t i = begin; i < end; i += piece) {
            const int64_t size = std::min(piece, end - i);
            for (int64_t k = 0; k < size; ++k)
              sum[k] += static_cast<double>(ComputeType<T>(x[i + k]));
          }
        });
      }
      for (int64_t k = channels; k < piece; ++k) sums[k % channels] += sums[k];
      for (int64_t k = 0; k < piece; ++k)
        means[k] = static_cast<float>(sums[k % channels] / static_cast<double>(pixels));
      for (int64_t begin = 0; begin < pixels * channels; begin += block) {
        const int64_t end = std::min(begin + block, pixels * channels);
        StepEnd::pace(end - begin);
        vectorized([=, mean = means.data()]() LEAT_INLINE {
          for (int64_t i = begin; i < end; i += piece) {
            const int64_t size = std::min(piece, end - i);
            LEAT_INDEPENDENT_ITERATIONS
            for (int64_t k = 0; k < size; ++k) {
              const auto value = static_cast<float>(ComputeType<T>(x[i + k]));
              y[i + k] = T((value - mean[k]) * factor + mean[k]);
            }
          }
        });
      }
    }
  });
  kernel.cost_ns = 2.0 * static_cast<double>(n);
  return std::move(kernel).sharing(0, 0);
}

const Op contrast_op{{
    .name = "AdjustContrastv2",
    .doc = "output = (x - mean) * contrast_factor + mean; the mean is that of the channel in the "
           "image [height, width, channels].",
    .inputs = {"images: T", "contrast_factor: float"},
    .outputs = {"output: T"},
    .attrs = {"T: {half, float} = float"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          c.set_output(0, c.with_rank_at_least(0, 3));
        },
    .kernels = {cpu_kernel(
        "T", Types<float, half>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_contrast(t, r); })},
    .examples = {{.inputs = {floats({1, 2, 2}, {1, 10, 3, 30}), Tensor::scalar(2.0F)},
                  .outputs = {floats({1, 2, 2}, {0, 0, 4, 40})}}},
}};

}  // namespace
}  // namespace leat
