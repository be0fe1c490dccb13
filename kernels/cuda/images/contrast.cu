// AdjustContrastv2 on the GPU: sums of the pixels of a channel in parts, the means of these, and a
// thread for each element. Sums are doubles in a fixed order.
#include "graph/op_def.h"
#include "kernels/cuda/row_reduce.cuh"
#include "kernels/cuda/workspace.cuh"
#include "kernels/elementwise.h"

namespace leat {
namespace cuda {
namespace {

// Images [images, pixels, channels], the pixels of which are added up in `parts`.
struct Contrast {
  int64_t images, pixels, channels, parts;

  explicit Contrast(const Shape& shape) {
    const int rank = shape.rank();
    channels = shape[rank - 1];
    pixels = shape[rank - 2] * shape[rank - 3];
    images = shape.elements() / (pixels * channels);
    // Some hundred thousand threads have work.
    constexpr int64_t wanted = 1 << 17, fewest_pixels = 16;
    parts = std::clamp<int64_t>(std::min(wanted / (images * channels), pixels / fewest_pixels), 1,
                                8192);
  }
  constexpr int64_t elements() const { return images * pixels * channels; }
  constexpr int64_t means() const { return images * channels; }
};

// sums[image, part, channel] of the pixels part, part + parts, …: neighbouring threads read
// neighbouring elements.
template <class T>
__global__ void __launch_bounds__(threads_per_block)
    sum_parts_kernel(Contrast of, const T* x, double* sums) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= of.means() * of.parts) return;
  const int64_t channel = i % of.channels, part = i / of.channels % of.parts;
  const T* const image = x + i / of.channels / of.parts * of.pixels * of.channels + channel;
  double sum = 0;
  for (int64_t pixel = part; pixel < of.pixels; pixel += of.parts)
    sum += static_cast<double>(widened(image[pixel * of.channels]));
  sums[i] = sum;
}

// means[image, channel]. One block for each.
__global__ void __launch_bounds__(max_row_threads)
    means_kernel(Contrast of, const double* sums, float* means) {
  __shared__ double shared[max_row_threads];
  const int64_t mean = blockIdx.x, image = mean / of.channels, channel = mean % of.channels;
  double sum = 0;
  for (int64_t part = threadIdx.x; part < of.parts; part += blockDim.x)
    sum += sums[(image * of.parts + part) * of.channels + channel];
  sum = reduce_block(sum, shared, [](double a, double b) { return a + b; });
  if (threadIdx.x == 0) means[mean] = static_cast<float>(sum / static_cast<double>(of.pixels));
}

template <class T>
__global__ void __launch_bounds__(threads_per_block)
    stretch_kernel(Contrast of, const T* x, const float* factor, const float* means, T* y) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= of.elements()) return;
  const float mean = means[i / (of.pixels * of.channels) * of.channels + i % of.channels];
  y[i] = static_cast<T>((widened(x[i]) - mean) * *factor + mean);
}

template <class T>
BoundKernel bind(const Contrast& of) {
  const size_t sums_bytes = aligned(static_cast<size_t>(of.means() * of.parts) * sizeof(double));
  return BoundKernel::of([of, sums_bytes](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           auto* const sums = static_cast<double*>(a.workspace);
           auto* const means =
               reinterpret_cast<float*>(static_cast<char*>(a.workspace) + sums_bytes);
           launch(sum_parts_kernel<T>, blocks_for(of.means() * of.parts), threads_per_block, 0,
                  stream, of, a.input<T>(0), sums);
           launch(means_kernel, as_blocks(of.means()), row_threads(of.parts), 0, stream, of,
                  static_cast<const double*>(sums), means);
           launch(stretch_kernel<T>, blocks_for(of.elements()), threads_per_block, 0, stream, of,
                  a.input<T>(0), a.input<float>(1), static_cast<const float*>(means),
                  a.output<T>());
         })
      .with_workspace(sums_bytes + static_cast<size_t>(of.means()) * sizeof(float))
      .sharing(0, 0);
}

const OpKernels contrast{
    "AdjustContrastv2",
    typed_kernels("T", Types<float, half>{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
      const Shape& shape = r.inputs[0].shape;
      return shape.elements() == 0 ? BoundKernel{} : bind<T>(Contrast(shape));
    })};

}  // namespace
}  // namespace cuda
}  // namespace leat
