// Chooses the kernel of a convolution; has the loops for f64 and int32.
#include "kernels/neural/convolution.h"

#include "core/execution/step_end.h"
#include "kernels/cpu.h"
#include "kernels/types.h"

namespace leat {
namespace {

// One pass in loops over every tap of every window; only the innermost loop, over output channels,
// is meant to be fast. Signed integers wrap around: they are computed as unsigned ones.
template <class T>
struct LoopConvolution {
  ConvolutionPass pass;
  Convolution c;

  // f(input pixel, output pixel, tap) for the images [begin, end).
  template <class F>
  LEAT_INLINE void for_each_tap(int64_t begin, int64_t end, F f) const {
    const Window& d = c.planes;
    for (int64_t n = begin; n < end; ++n) {
      for (int64_t oz = 0; oz < d.out; ++oz) {
        const Window::Range planes = d.taps(oz);
        for (int64_t kz = planes.begin; kz < planes.end; ++kz) {
          StepEnd::ask();
          for_each_tap_of_plane(n * d.in + d.input_of(oz, kz), n * d.out + oz, kz, f);
        }
      }
    }
  }

  // The same for one plane of the input, one of the output, and one of the filter.
  template <class F>
  LEAT_INLINE void for_each_tap_of_plane(int64_t in, int64_t out, int64_t kz, F f) const {
    const Window &h = c.height, &w = c.width;
    for (int64_t oy = 0; oy < h.out; ++oy) {
      const Window::Range rows = h.taps(oy);
      for (int64_t ox = 0; ox < w.out; ++ox) {
        const Window::Range columns = w.taps(ox);
        StepEnd::pace((rows.end - rows.begin) * (columns.end - columns.begin) * c.in_channels *
                      (c.out_channels / c.groups));
        for (int64_t ky = rows.begin; ky < rows.end; ++ky) {
          const int64_t row = (in * h.in + h.input_of(oy, ky)) * w.in;
          for (int64_t kx = columns.begin; kx < columns.end; ++kx) {
            f(row + w.input_of(ox, kx), (out * h.out + oy) * w.out + ox,
              (kz * h.size + ky) * w.size + kx);
          }
        }
      }
    }
  }

  // f(input channel, first output channel of its group, row of the tap's filter) for all input
  // channels.
  template <class F>
  LEAT_INLINE void for_each_channel(F f) const {
    for (int64_t i = 0; i < c.in_channels; ++i) {
      f(i, i / c.depth() * (c.out_channels / c.groups), i % c.depth());
    }
  }

  void operator()(Stream& stream, const T* a, const T* b, T* out, void*) const {
    const int64_t per_group = c.out_channels / c.groups, tap_elements = c.depth() * c.out_channels;
    const int64_t grain = 1 + static_cast<int64_t>(1e6 / (1 + c.flops() / c.batch));
    switch (pass) {
      case ConvolutionPass::forward:
        std::fill_n(out, c.y_elements(), T(0));
        return stream.parallel_for(c.batch, grain, [&](int64_t begin, int64_t end) {
          vectorized([=, this]() LEAT_INLINE {
            for_each_tap(begin, end, [=, this](int64_t in, int64_t at, int64_t tap) LEAT_INLINE {
              for_each_channel([=, this](int64_t i, int64_t group, int64_t row) LEAT_INLINE {
                const T x = a[in * c.in_channels + i];
                const T* filter = b + tap * tap_elements + row * c.out_channels + group;
                T* y = out + at * c.out_channels + group;
                for (int64_t o = 0; o < per_group; ++o) y[o] += x * filter[o];
              });
            });
          });
        });
      case ConvolutionPass::input_gradient:
        std::fill_n(out, c.x_elements(), T(0));
        return stream.parallel_for(c.batch, grain, [&](int64_t begin, int64_t end) {
          vectorized([=, this]() LEAT_INLINE {
            for_each_tap(begin, end, [=, this](int64_t in, int64_t at, int64_t tap) LEAT_INLINE {
              for_each_channel([=, this](int64_t i, int64_t group, int64_t row) LEAT_INLINE {
                const T* dy = a + at * c.out_channels + group;
                const T* filter = b + tap * tap_elements + row * c.out_channels + group;
                T sum = 0;
                for (int64_t o = 0; o < per_group; ++o) sum += dy[o] * filter[o];
                out[in * c.in_channels + i] += sum;
              });
            });
          });
        });
      case ConvolutionPass::filter_gradient:
        std::fill_n(out, c.filter_elements(), T(0));
        return vectorized([=, this]() LEAT_INLINE {
          for_each_tap(0, c.batch, [=, this](int64_t in, int64_t at, int64_t tap) LEAT_INLINE {
            for_each_channel([=, this](int64_t i, int64_t group, int64_t row) LEAT_INLINE {
              const T x = a[in * c.in_channels + i];
              const T* dy = b + at * c.out_channels + group;
              T* filter = out + tap * tap_elements + row * c.out_channels + group;
              for (int64_t o = 0; o < per_group; ++o) filter[o] += x * dy[o];
            });
          });
        });
    }
  }
  size_t workspace_bytes() const { return 0; }
};

struct Sizes {
  int64_t a, b, out;
};

Sizes sizes_of(ConvolutionPass pass, const Convolution& c) {
  const int64_t x = c.x_elements(), y = c.y_elements(), filter = c.filter_elements();
  switch (pass) {
    case ConvolutionPass::forward:
      return {x, filter, y};
    case ConvolutionPass::input_gradient:
      return {y, filter, x};
    case ConvolutionPass::filter_gradient:
      return {x, y, filter};
  }
  fail(Code::internal, "unknown pass of a convolution");
}

template <class T, class Run>
BoundKernel bind(Run run, int a, int b) {
  const size_t workspace = run.workspace_bytes();
  return BoundKernel::of([run = std::move(run), a, b](const Arguments& args) {
           run(*args.stream, args.input<T>(a), args.input<T>(b), args.output<T>(), args.workspace);
         })
      .with_workspace(workspace);
}

// 16-bit floats are computed as f32, in the workspace.
template <class T, class Run>
BoundKernel bind_through_floats(Run run, const Sizes& sizes, int a, int b) {
  const size_t own = (run.workspace_bytes() + 63) / 64 * 64;
  const auto aligned = [](int64_t n) { return (n + 15) / 16 * 16; };
  const int64_t at_b = aligned(sizes.a), at_out = at_b + aligned(sizes.b);
  return BoundKernel::of([=](const Arguments& args) {
           float* const wide = reinterpret_cast<float*>(static_cast<char*>(args.workspace) + own);
           float *wide_b = wide + at_b, *wide_out = wide + at_out;
           const T *narrow_a = args.input<T>(a), *narrow_b = args.input<T>(b);
           T* out = args.output<T>();
           vectorized([=]() LEAT_INLINE {
             for (int64_t i = 0; i < sizes.a; ++i) wide[i] = narrow_a[i];
             for (int64_t i = 0; i < sizes.b; ++i) wide_b[i] = narrow_b[i];
           });
           run(*args.stream, wide, wide_b, wide_out, args.workspace);
           vectorized([=]() LEAT_INLINE {
             for (int64_t i = 0; i < sizes.out; ++i) out[i] = T(wide_out[i]);
           });
         })
      .with_workspace(own + (at_out + sizes.out) * sizeof(float));
}

template <class Run>
BoundKernel bind_floats(Run run, const Sizes& sizes, DType dtype, int a, int b) {
  if (dtype == DType::f16) return bind_through_floats<half>(std::move(run), sizes, a, b);
  if (dtype == DType::bf16) return bind_through_floats<bfloat16>(std::move(run), sizes, a, b);
  return bind<float>(std::move(run), a, b);
}

}  // namespace

BoundKernel bind_convolution(ConvolutionPass pass, const Convolution& c, DType dtype, int a,
                             int b) {
  const Sizes sizes = sizes_of(pass, c);
  if (sizes.out == 0) return {};
  if (sizes.a == 0 || sizes.b == 0) {
    return BoundKernel::of([bytes = sizes.out * dtype_size(dtype)](const Arguments& args) {
      std::memset(args.outputs[0], 0, bytes);
    });
  }
  if (c.channels_first && (dtype == f64 || dtype == i32)) {
    fail(Code::unimplemented, "convolutions of ", dtype,
         " need the channels last on a CPU: transpose the images");
  }
  BoundKernel kernel;
  switch (dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      kernel = ConvolutionProduct::is_faster(pass, c)
                   ? bind_floats(ConvolutionProduct(pass, c), sizes, dtype, a, b)
                   : bind_floats(FloatConvolution(pass, c), sizes, dtype, a, b);
      break;
    case DType::f64:
      kernel = bind<double>(LoopConvolution<double>{pass, c}, a, b);
      break;
    default:
      kernel = bind<uint32_t>(LoopConvolution<uint32_t>{pass, c}, a, b);
  }
  kernel.cost_ns = 2000 + c.flops() / (dtype == f64 || dtype == i32 ? 4 : 60);
  return kernel;
}

}  // namespace leat
