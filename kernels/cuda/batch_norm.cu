// FusedBatchNorm and its gradient on the GPU, all versions. Sums over the pixels of a channel are
// made in chunks, whose results a block per channel adds up in a fixed order.
#include <limits>

#include "graph/op_def.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/row_reduce.cuh"
#include "kernels/cuda_launch.cuh"

namespace leat {
namespace {

using cuda::threads_per_block;

constexpr int finish_threads = 128;

// The elements of x: pixel r of channel c.
struct Pixels {
  int64_t channels, count;  // pixels of all images
  int64_t per_image;        // apart from each other by 1 if the channels are first, else 0
  int64_t chunks, per_chunk;

  Pixels(const KernelRequest& r, const Shape& x) {
    const bool is_first = r.attr<std::string>("data_format")[1] == 'C';
    channels = x[is_first ? 1 : x.rank() - 1];
    count = channels == 0 ? 0 : x.elements() / channels;
    per_image = is_first && x[0] > 0 ? count / x[0] : 0;
    constexpr int64_t wanted_threads = 1 << 16, least_per_thread = 16;
    const int64_t for_width = wanted_threads / std::max<int64_t>(1, channels);
    chunks = std::clamp<int64_t>(std::min(for_width, count / least_per_thread), 1, 1024);
    per_chunk = (count + chunks - 1) / chunks;
  }
  int64_t elements() const { return count * channels; }
  LEAT_DEVICE int64_t offset(int64_t r, int64_t c) const {
    if (per_image == 0) return r * channels + c;
    return (r / per_image * channels + c) * per_image + r % per_image;
  }
  LEAT_DEVICE int64_t channel_of(int64_t offset) const {
    return per_image == 0 ? offset % channels : offset / per_image % channels;
  }
};

// partial[sum][channel][chunk] = `sums` sums over a chunk of f(pixel, channel, sums). As on the
// CPU, floats are exact enough for 64 terms.
template <int sums, class F>
__global__ void __launch_bounds__(threads_per_block)
    sum_chunks_kernel(Pixels pixels, F f, double* partial) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= pixels.channels * pixels.chunks) return;
  const int64_t channel = i % pixels.channels, chunk = i / pixels.channels;
  const int64_t begin = chunk * pixels.per_chunk;
  const int64_t end =
      begin + pixels.per_chunk < pixels.count ? begin + pixels.per_chunk : pixels.count;
  double totals[sums] = {};
  for (int64_t first = begin; first < end; first += 64) {
    float block[sums] = {};
    for (int64_t r = first; r < end && r < first + 64; ++r)
      f(pixels.offset(r, channel), channel, block);
    for (int s = 0; s < sums; ++s) totals[s] += block[s];
  }
  for (int s = 0; s < sums; ++s)
    partial[(s * pixels.channels + channel) * pixels.chunks + chunk] = totals[s];
}

// The total of sum `s` for the block's channel; for all threads.
LEAT_DEVICE double total_of(const Pixels& pixels, const double* partial, int s, double* shared) {
  const double* from = partial + (s * pixels.channels + blockIdx.x) * pixels.chunks;
  double total = 0;
  for (int64_t k = threadIdx.x; k < pixels.chunks; k += blockDim.x) total += from[k];
  return cuda::reduce_block(total, shared, [](double a, double b) { return a + b; });
}

template <int sums, class F>
void enqueue_sums(cudaStream_t stream, const Pixels& pixels, F f, double* partial) {
  cuda::launch(sum_chunks_kernel<sums, F>, cuda::blocks_for(pixels.channels * pixels.chunks),
               threads_per_block, 0, stream, pixels, f, partial);
}

size_t bytes_of_sums(const Pixels& pixels, int sums) {
  return static_cast<size_t>(sums * pixels.channels * pixels.chunks) * sizeof(double);
}

// ---- Forward

template <class T>
struct Values {
  const T* x;
  LEAT_DEVICE void operator()(int64_t at, int64_t, float* sum) const {
    sum[0] += cuda::widened(x[at]);
  }
};

template <class T>
struct SquaredDistances {
  const T* x;
  const float* mean;
  LEAT_DEVICE void operator()(int64_t at, int64_t channel, float* sum) const {
    const float distance = cuda::widened(x[at]) - mean[channel];
    sum[0] += distance * distance;
  }
};

// A block per channel.
__global__ void __launch_bounds__(finish_threads)
    mean_kernel(Pixels pixels, const double* partial, float* mean) {
  __shared__ double shared[finish_threads];
  const double total = total_of(pixels, partial, 0, shared);
  if (threadIdx.x == 0)
    mean[blockIdx.x] = static_cast<float>(total / static_cast<double>(pixels.count));
}

struct Moments {
  const float *old_mean, *old_variance;  // null where they are not used
  float *batch_mean, *batch_variance, *saved_mean, *saved_variance;
  float factor;
};

// The running variance is that of the population, of which the batch is a sample.
__global__ void __launch_bounds__(finish_threads)
    variance_kernel(Pixels pixels, const double* partial, Moments m) {
  __shared__ double shared[finish_threads];
  const double total = total_of(pixels, partial, 0, shared);
  if (threadIdx.x != 0) return;
  const int64_t c = blockIdx.x;
  const float variance = static_cast<float>(total / static_cast<double>(pixels.count));
  const float sample = static_cast<float>(pixels.count) /
                       static_cast<float>(pixels.count > 1 ? pixels.count - 1 : 1);
  m.saved_variance[c] = variance;
  if (m.factor == 1) {
    m.batch_mean[c] = m.saved_mean[c];
    m.batch_variance[c] = variance * sample;
  } else {
    m.batch_mean[c] = (1 - m.factor) * m.old_mean[c] + m.factor * m.saved_mean[c];
    m.batch_variance[c] = (1 - m.factor) * m.old_variance[c] + m.factor * variance * sample;
  }
}

// The moments without training, or of no pixels: given ones, or numbers.
__global__ void __launch_bounds__(threads_per_block)
    given_moments_kernel(int64_t channels, bool has_pixels, Moments m) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (c >= channels) return;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  m.batch_mean[c] = has_pixels ? m.old_mean[c] : nan;
  m.batch_variance[c] = has_pixels ? m.old_variance[c] : nan;
  m.saved_mean[c] = has_pixels ? m.old_mean[c] : 0;
  m.saved_variance[c] = has_pixels ? m.old_variance[c] : 0;
}

template <class T>
__global__ void __launch_bounds__(threads_per_block)
    normalise_kernel(Pixels pixels, const T* x, const float* scales, const float* offsets,
                     const float* mean, const float* variance, float epsilon, T* y) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= pixels.count * pixels.channels) return;
  const int64_t c = pixels.channel_of(i);
  const float scale = scales[c] / std::sqrt(variance[c] + epsilon);
  const float shift = offsets[c] - mean[c] * scale;
  y[i] = static_cast<T>(cuda::widened(x[i]) * scale + shift);
}

template <class T>
BoundKernel prepare(const KernelRequest& r) {
  const Pixels pixels(r, r.inputs[0].shape);
  const bool training = r.attr<bool>("is_training");
  const float epsilon = r.attr<float>("epsilon"), factor = r.attr<float>("exponential_avg_factor");
  if (!training || factor != 1) {
    for (int i : {3, 4}) {
      check(r.inputs[i].shape == Shape{pixels.channels},
            training ? "With exponential_avg_factor" : "When is_training=false", ", ",
            i == 3 ? "mean" : "variance",
            " must have the same number of elements as the channels of x, got ", r.inputs[i].shape,
            " and ", pixels.channels);
    }
  }
  if (pixels.channels == 0) return {};
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const cudaStream_t stream = cuda_stream(a);
    const Moments m{.old_mean = a.input<float>(3),
                    .old_variance = a.input<float>(4),
                    .batch_mean = a.output<float>(1),
                    .batch_variance = a.output<float>(2),
                    .saved_mean = a.output<float>(3),
                    .saved_variance = a.output<float>(4),
                    .factor = factor};
    const T* x = a.input<T>(0);
    double* const partial = static_cast<double*>(a.workspace);
    const unsigned channels = cuda::as_blocks(pixels.channels);
    if (pixels.count == 0 || !training) {
      cuda::launch(given_moments_kernel, cuda::blocks_for(pixels.channels), threads_per_block, 0,
                   stream, pixels.channels, pixels.count > 0, m);
    } else {
      enqueue_sums<1>(stream, pixels, Values<T>{x}, partial);
      cuda::launch(mean_kernel, channels, finish_threads, 0, stream, pixels, partial, m.saved_mean);
      enqueue_sums<1>(stream, pixels, SquaredDistances<T>{x, m.saved_mean}, partial);
      cuda::launch(variance_kernel, channels, finish_threads, 0, stream, pixels, partial, m);
    }
    if (pixels.count == 0) return;
    cuda::launch(normalise_kernel<T>, cuda::blocks_for(pixels.elements()), threads_per_block, 0,
                 stream, pixels, x, a.input<float>(1), a.input<float>(2), m.saved_mean,
                 m.saved_variance, epsilon, a.output<T>(0));
  });
  if (training) kernel.workspace_bytes = bytes_of_sums(pixels, 1);
  return kernel;
}

// ---- Gradient: dx = dy * by_dy + x * by_x + rest, per channel (kernels/neural/batch_norm.cc)

template <class T>
struct GradientSums {
  const T *dy, *x;
  const float* mean;
  LEAT_DEVICE void operator()(int64_t at, int64_t channel, float* sums) const {
    const float of_y = cuda::widened(dy[at]);
    sums[0] += of_y;
    sums[1] += of_y * (cuda::widened(x[at]) - mean[channel]);
  }
};

struct Factors {
  float *by_dy, *by_x, *rest;
};

__global__ void __launch_bounds__(finish_threads)
    factors_kernel(Pixels pixels, const double* partial, const float* scale, const float* mean,
                   const float* variance, float epsilon, bool training, float* scale_gradient,
                   float* offset_gradient, Factors factors) {
  __shared__ double shared[finish_threads];
  const double of_dy = total_of(pixels, partial, 0, shared);
  const double of_product = total_of(pixels, partial, 1, shared);
  if (threadIdx.x != 0) return;
  const int64_t c = blockIdx.x;
  const double n = static_cast<double>(pixels.count);
  const double inverse = 1 / std::sqrt(static_cast<double>(variance[c]) + epsilon);
  offset_gradient[c] = static_cast<float>(of_dy);
  scale_gradient[c] = static_cast<float>(of_product * inverse);
  const double factor = scale[c] * inverse;
  const double slope = training ? -factor * of_product * inverse * inverse / n : 0;
  factors.by_dy[c] = static_cast<float>(factor);
  factors.by_x[c] = static_cast<float>(slope);
  factors.rest[c] = static_cast<float>(training ? -factor * of_dy / n - slope * mean[c] : 0);
}

template <class T>
__global__ void __launch_bounds__(threads_per_block)
    gradient_kernel(Pixels pixels, const T* dy, const T* x, Factors factors, T* dx) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= pixels.count * pixels.channels) return;
  const int64_t c = pixels.channel_of(i);
  dx[i] = static_cast<T>(cuda::widened(dy[i]) * factors.by_dy[c] +
                         cuda::widened(x[i]) * factors.by_x[c] + factors.rest[c]);
}

template <class T>
BoundKernel prepare_gradient(const KernelRequest& r) {
  const Pixels pixels(r, r.inputs[1].shape);
  const bool training = r.attr<bool>("is_training");
  const float epsilon = r.attr<float>("epsilon");
  const size_t sums = bytes_of_sums(pixels, 2);
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const cudaStream_t stream = cuda_stream(a);
    const auto clear = [&](int output, int64_t n) {
      cuda::check_cuda(cudaMemsetAsync(a.outputs[output], 0, n * sizeof(float), stream), "memset");
    };
    for (int i : {3, 4}) clear(i, 1);
    if (pixels.channels == 0) return;
    if (pixels.count == 0) {
      for (int i : {1, 2}) clear(i, pixels.channels);
      return;
    }
    const T *dy = a.input<T>(0), *x = a.input<T>(1);
    const float *scale = a.input<float>(2), *mean = a.input<float>(3),
                *variance = a.input<float>(4);
    double* const partial = static_cast<double*>(a.workspace);
    float* const by_dy = reinterpret_cast<float*>(static_cast<char*>(a.workspace) + sums);
    const Factors factors{by_dy, by_dy + pixels.channels, by_dy + 2 * pixels.channels};
    enqueue_sums<2>(stream, pixels, GradientSums<T>{dy, x, mean}, partial);
    cuda::launch(factors_kernel, cuda::as_blocks(pixels.channels), finish_threads, 0, stream,
                 pixels, partial, scale, mean, variance, epsilon, training, a.output<float>(1),
                 a.output<float>(2), factors);
    cuda::launch(gradient_kernel<T>, cuda::blocks_for(pixels.elements()), threads_per_block, 0,
                 stream, pixels, dy, x, factors, a.output<T>(0));
  });
  kernel.workspace_bytes = sums + 3 * static_cast<size_t>(pixels.channels) * sizeof(float);
  return kernel;
}

// ---- Registration

using BatchNormTypes = Types<float, half, bfloat16>;

BoundKernel prepare_any(const KernelRequest& r) {
  return visit_type(BatchNormTypes{}, r.inputs[0].dtype,
                    [&](auto tag) { return prepare<typename decltype(tag)::type>(r); });
}
BoundKernel prepare_any_gradient(const KernelRequest& r) {
  return visit_type(BatchNormTypes{}, r.inputs[0].dtype,
                    [&](auto tag) { return prepare_gradient<typename decltype(tag)::type>(r); });
}

// Means and variances are floats, whatever x is; in the first version x is one, too.
std::vector<Kernel> kernels(bool has_two_types, BoundKernel (*prepare)(const KernelRequest&)) {
  std::vector<TypeConstraint> types = {{"T", {DType::f32}}};
  if (has_two_types) types = {{"T", BatchNormTypes::list()}, {"U", {DType::f32}}};
  return {{.device = DeviceType::gpu, .types = std::move(types), .prepare = prepare}};
}

const OpKernels v1{"FusedBatchNorm", kernels(false, prepare_any)};
const OpKernels v2{"FusedBatchNormV2", kernels(true, prepare_any)};
const OpKernels v3{"FusedBatchNormV3", kernels(true, prepare_any)};
const OpKernels v1_grad{"FusedBatchNormGrad", kernels(false, prepare_any_gradient)};
const OpKernels v2_grad{"FusedBatchNormGradV2", kernels(true, prepare_any_gradient)};
const OpKernels v3_grad{"FusedBatchNormGradV3", kernels(true, prepare_any_gradient)};

}  // namespace
}  // namespace leat
