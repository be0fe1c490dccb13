// Rounding to the values that a few bits represent, for training, on the GPU: FakeQuantWithMinMax…
// and QuantizeAndDequantize…. A range lies in the GPU's memory, or is looked for in the tensor
// itself. Sums and extremes of a channel are those of its parts, in a fixed order.
#include <algorithm>
#include <limits>

#include "graph/op_def.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/typed_kernel.cuh"
#include "kernels/cuda_launch.cuh"
#include "kernels/neural/fake_quant.h"
#include "kernels/neural/quantize_range.h"
#include "kernels/types.h"

namespace leat {
namespace {

using cuda::threads_per_block;

constexpr int64_t most_parts = 1024;

LEAT_DEVICE int64_t thread_number() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// ---- FakeQuantWithMinMax…

namespace fake {

using fake_quant::Bounds;
using fake_quant::Levels;
using fake_quant::Range;

// The range of an element: that of the attributes, or of its channel, which is the last axis.
struct GivenRange {
  Levels levels;
  Bounds bounds;

  explicit GivenRange(const KernelRequest& r) : levels(r), bounds(r) {}
  LEAT_DEVICE Range of(const Pointers&, int64_t) const {
    return Range::of(levels, bounds.min, bounds.max);
  }
};
struct RangeOfChannel {
  Levels levels;
  int min;  // the input; the next one is max
  int64_t channels;

  RangeOfChannel(const KernelRequest& r, int min)
      : levels(r), min(min), channels(r.inputs[min].shape.elements()) {}
  LEAT_DEVICE Range of(const Pointers& p, int64_t i) const {
    const int64_t c = i % channels;
    return Range::of(levels, p.input<float>(min)[c], p.input<float>(min + 1)[c]);
  }
};

template <class Ranges>
struct Round {
  Ranges ranges;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    p.output<float>()[i] = ranges.of(p, i).rounded(p.input<float>(0)[i]);
  }
};

template <class Ranges>
struct Backward {
  Ranges ranges;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const float dy = p.input<float>(0)[i];
    p.output<float>(0)[i] = ranges.of(p, i).has(p.input<float>(1)[i]) ? dy : 0;
  }
};

// Of the gradients below and above the range of a channel: the sums of those in each part.
struct Sums {
  double below, above;
};
__global__ void __launch_bounds__(threads_per_block)
    sums_kernel(int64_t rows, int64_t parts, RangeOfChannel ranges, Pointers p, Sums* sums) {
  const int64_t t = thread_number(), channels = ranges.channels;
  if (t >= parts * channels) return;
  const int64_t c = t % channels;
  const Range range = ranges.of(p, c);
  Sums own{0, 0};
  for (int64_t row = t / channels; row < rows; row += parts) {
    const double dy = static_cast<double>(p.input<float>(0)[row * channels + c]);
    const float x = p.input<float>(1)[row * channels + c];
    if (range.is_below(x)) own.below += dy;
    if (range.is_above(x)) own.above += dy;
  }
  sums[t] = own;
}
__global__ void __launch_bounds__(threads_per_block)
    add_sums_kernel(int64_t parts, int64_t channels, const Sums* sums, float* d_min, float* d_max) {
  const int64_t c = thread_number();
  if (c >= channels) return;
  Sums all{0, 0};
  for (int64_t part = 0; part < parts; ++part) {
    all.below += sums[part * channels + c].below;
    all.above += sums[part * channels + c].above;
  }
  d_min[c] = static_cast<float>(all.below);
  d_max[c] = static_cast<float>(all.above);
}

template <class F>
std::vector<Kernel> kernels(F prepare) {
  return {{.device = DeviceType::gpu, .prepare = prepare}};
}

BoundKernel prepare_ranges(const KernelRequest& r) {
  const RangeOfChannel ranges(r, 1);
  return bind_indexed(r, r.inputs[0].shape.elements(), 0, Round<RangeOfChannel>{ranges})
      .sharing(0, 0);
}

BoundKernel prepare_gradient_of_ranges(const KernelRequest& r) {
  const RangeOfChannel ranges(r, 2);
  const int64_t n = r.inputs[0].shape.elements(), channels = ranges.channels;
  if (channels == 0) return {};
  const int64_t rows = n / channels, parts = std::min(rows, most_parts);
  return BoundKernel::of([=](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           const Pointers pointers = cuda::copy_pointers(a, 4, 3);
           auto* const sums = static_cast<Sums*>(a.workspace);
           if (n > 0) {
             cuda::launch(cuda::indexed_kernel<Backward<RangeOfChannel>>, cuda::blocks_for(n),
                          threads_per_block, 0, stream, n, Backward<RangeOfChannel>{ranges},
                          pointers);
             cuda::launch(sums_kernel, cuda::blocks_for(parts * channels), threads_per_block, 0,
                          stream, rows, parts, ranges, pointers, sums);
           }
           cuda::launch(add_sums_kernel, cuda::blocks_for(channels), threads_per_block, 0, stream,
                        parts, channels, sums, a.output<float>(1), a.output<float>(2));
         })
      .with_workspace(static_cast<size_t>(parts * channels) * sizeof(Sums));
}

const OpKernels args{"FakeQuantWithMinMaxArgs", kernels([](const KernelRequest& r) {
                       const GivenRange range(r);
                       return bind_indexed(r, r.inputs[0].shape.elements(), 0,
                                           Round<GivenRange>{range})
                           .sharing(0, 0);
                     })};
const OpKernels args_gradient{
    "FakeQuantWithMinMaxArgsGradient", kernels([](const KernelRequest& r) {
      const GivenRange range(r);
      return bind_indexed(r, r.inputs[0].shape.elements(), 0, Backward<GivenRange>{range});
    })};
const OpKernels vars{"FakeQuantWithMinMaxVars", kernels(prepare_ranges)};
const OpKernels channels{"FakeQuantWithMinMaxVarsPerChannel", kernels(prepare_ranges)};
const OpKernels vars_gradient{"FakeQuantWithMinMaxVarsGradient",
                              kernels(prepare_gradient_of_ranges)};
const OpKernels channels_gradient{"FakeQuantWithMinMaxVarsPerChannelGradient",
                                  kernels(prepare_gradient_of_ranges)};

}  // namespace fake

// ---- QuantizeAndDequantize…

namespace scaled {

using quantize::Extents;
using quantize::Options;
using quantize::Range;

template <class C>
struct Extremes {
  C low, high;

  LEAT_DEVICE static Extremes none() {
    return {std::numeric_limits<C>::infinity(), -std::numeric_limits<C>::infinity()};
  }
  LEAT_DEVICE void include(C smaller, C larger) {  // NaN is left out
    low = smaller < low ? smaller : low;
    high = high < larger ? larger : high;
  }
};

// Of each part of a channel; part 0 then gets those of all.
template <class T, class C = ComputeType<T>>
__global__ void __launch_bounds__(threads_per_block)
    extremes_kernel(Extents extents, int64_t parts, const T* x, Extremes<C>* extremes) {
  const int64_t t = thread_number();
  if (t >= extents.depth * parts) return;
  const int64_t c = t / parts, count = extents.outer * extents.inner;
  Extremes<C> own = Extremes<C>::none();
  for (int64_t k = t % parts; k < count; k += parts) {
    const C value = cuda::widened(x[extents.at(c, k)]);
    own.include(value, value);
  }
  extremes[t] = own;
}
template <class C>
__global__ void __launch_bounds__(threads_per_block)
    join_kernel(int64_t channels, int64_t parts, Extremes<C>* extremes) {
  const int64_t c = thread_number();
  if (c >= channels) return;
  Extremes<C> all = extremes[c * parts];
  for (int64_t part = 1; part < parts; ++part) {
    const Extremes<C> more = extremes[c * parts + part];
    all.include(more.low, more.high);
  }
  extremes[c * parts] = all;
}

// A range whose ends are exchanged, an error on the CPU, is none here: a kernel cannot report it.
template <class T>
struct Round {
  using C = ComputeType<T>;
  Options options;
  Extents extents;
  int64_t parts;
  const Extremes<C>* extremes;  // null: inputs 1 and 2 are the range

  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const int64_t c = extents.channel_of(i);
    const Extremes<C> ends = extremes != nullptr ? extremes[c * parts]
                                                 : Extremes<C>{cuda::widened(p.input<T>(1)[c]),
                                                               cuda::widened(p.input<T>(2)[c])};
    const auto range = Range<C>::of(options, ends.low, ends.high);
    p.output<T>()[i] = static_cast<T>(range.rounded(cuda::widened(p.input<T>(0)[i]), options));
  }
};

template <class T>
BoundKernel bind(const KernelRequest& r, const Options& options) {
  using C = ComputeType<T>;
  const Extents extents(r.inputs[0].shape, options.axis);
  const int64_t n = extents.elements();
  if (n == 0) return {};
  const int64_t parts = options.has_range ? 0 : std::min(n / extents.depth, most_parts);
  return BoundKernel::of([=](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           Extremes<C>* extremes = nullptr;
           if (!options.has_range) {
             extremes = static_cast<Extremes<C>*>(a.workspace);
             cuda::launch(extremes_kernel<T>, cuda::blocks_for(extents.depth * parts),
                          threads_per_block, 0, stream, extents, parts, a.input<T>(0), extremes);
             cuda::launch(join_kernel<C>, cuda::blocks_for(extents.depth), threads_per_block, 0,
                          stream, extents.depth, parts, extremes);
           }
           cuda::launch(cuda::indexed_kernel<Round<T>>, cuda::blocks_for(n), threads_per_block, 0,
                        stream, n, Round<T>{options, extents, parts, extremes},
                        cuda::copy_pointers(a, 3, 1));
         })
      .with_workspace(static_cast<size_t>(extents.depth * parts) * sizeof(Extremes<C>));
}

template <class T>
struct Backward {
  Extents extents;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const int64_t c = extents.channel_of(i);
    const auto x = cuda::widened(p.input<T>(1)[i]);
    const bool is_inside =
        x >= cuda::widened(p.input<T>(2)[c]) && x <= cuda::widened(p.input<T>(3)[c]);
    p.output<T>(0)[i] = is_inside ? p.input<T>(0)[i] : static_cast<T>(ComputeType<T>(0));
  }
};

template <class T>
BoundKernel bind_gradient(const KernelRequest& r) {
  const Extents extents(r.inputs[1].shape, static_cast<int>(r.attr<int64_t>("axis")));
  const int64_t ranges = r.inputs[2].shape.elements(), n = extents.elements();
  check(ranges == extents.depth && r.inputs[3].shape.elements() == ranges,
        "input_min and input_max must have ", extents.depth, " elements, got ", r.inputs[2].shape,
        " and ", r.inputs[3].shape);
  return BoundKernel::of([=](const Arguments& a) {
    const cudaStream_t stream = cuda_stream(a);
    if (n > 0) {
      cuda::launch(cuda::indexed_kernel<Backward<T>>, cuda::blocks_for(n), threads_per_block, 0,
                   stream, n, Backward<T>{extents}, cuda::copy_pointers(a, 4, 3));
    }
    for (int i = 1; i < 3 && ranges > 0; ++i) {
      cuda::check_cuda(
          cudaMemsetAsync(a.outputs[i], 0, static_cast<size_t>(ranges) * sizeof(T), stream),
          "cudaMemsetAsync");
    }
  });
}

template <class F>
std::vector<Kernel> kernels(F prepare) {
  return {cuda::kernel_for("T", FloatTypes{}, prepare)};
}

std::vector<Kernel> kernels_with_bits() {
  return kernels([]<class T>(TypeTag<T>, const KernelRequest& r) {
    return bind<T>(r, Options(r, r.attr<int64_t>("num_bits")));
  });
}

const OpKernels v2{"QuantizeAndDequantizeV2", kernels_with_bits()};
const OpKernels v4{"QuantizeAndDequantizeV4", kernels_with_bits()};
const OpKernels v3{"QuantizeAndDequantizeV3",
                   kernels([]<class T>(TypeTag<T>, const KernelRequest& r) {
                     return bind<T>(r, Options(r, r.inputs[3].value->item<int32_t>()));
                   })};
const OpKernels v4_gradient{
    "QuantizeAndDequantizeV4Grad",
    kernels([]<class T>(TypeTag<T>, const KernelRequest& r) { return bind_gradient<T>(r); })};

}  // namespace scaled

}  // namespace
}  // namespace leat
