// Convolutions where there is no cuDNN: plain loops, in stream order.
#include <algorithm>
#include <vector>

#include "core/visit_dtype.h"
#include "kernels/cuda/library_convolution.h"
#include "kernels/types.h"
#include "tests/support/cuda/include/cuda_runtime.h"
#include "tests/support/cuda/tensor_float.h"

namespace leat {
namespace {

// Calls f(x, filter, y) with the places of the three elements of every product.
template <class F>
void for_each_product(const LibraryConvolutionShape& s, const F& f) {
  const int64_t depth = s.in_channels / s.groups, filters = s.out_channels / s.groups;
  std::array<LibraryConvolutionShape::Axis, 3> axis = s.axis;
  if (s.axes == 2) axis = {LibraryConvolutionShape::Axis{}, s.axis[0], s.axis[1]};
  const auto place = [&](int64_t n, int64_t channel, int64_t channels, const int64_t* at,
                         const int64_t* extents) {
    const int64_t space = (at[0] * extents[1] + at[1]) * extents[2] + at[2];
    const int64_t all = extents[0] * extents[1] * extents[2];
    return s.channels_first ? (n * channels + channel) * all + space
                            : (n * all + space) * channels + channel;
  };
  const int64_t in[] = {axis[0].in, axis[1].in, axis[2].in};
  const int64_t out[] = {axis[0].out, axis[1].out, axis[2].out};
  const int64_t size[] = {axis[0].size, axis[1].size, axis[2].size};
  int64_t o[3], t[3], i[3];
  for (int64_t n = 0; n < s.batch; ++n)
    for (o[0] = 0; o[0] < out[0]; ++o[0])
      for (o[1] = 0; o[1] < out[1]; ++o[1])
        for (o[2] = 0; o[2] < out[2]; ++o[2])
          for (t[0] = 0; t[0] < size[0]; ++t[0])
            for (t[1] = 0; t[1] < size[1]; ++t[1])
              for (t[2] = 0; t[2] < size[2]; ++t[2]) {
                bool is_inside = true;
                for (int d = 0; d < 3; ++d) {
                  i[d] = o[d] * axis[d].stride - axis[d].padding + t[d] * axis[d].dilation;
                  is_inside = is_inside && i[d] >= 0 && i[d] < in[d];
                }
                if (!is_inside) continue;
                for (int64_t k = 0; k < s.out_channels; ++k) {
                  for (int64_t c = 0; c < depth; ++c) {
                    f(place(n, k / filters * depth + c, s.in_channels, i, in),
                      place(k, c, depth, t, size), place(n, k, s.out_channels, o, out));
                  }
                }
              }
}

int64_t product_of(const LibraryConvolutionShape& s,
                   int64_t LibraryConvolutionShape::Axis::*extent) {
  int64_t out = 1;
  for (int d = 0; d < s.axes; ++d) out *= s.axis[static_cast<size_t>(d)].*extent;
  return out;
}

template <class T>
void convolve(ConvolutionPass pass, const LibraryConvolutionShape& s, const void* a, const void* b,
              void* out) {
  using Axis = LibraryConvolutionShape::Axis;
  const int64_t x = s.batch * s.in_channels * product_of(s, &Axis::in),
                y = s.batch * s.out_channels * product_of(s, &Axis::out),
                filter = s.out_channels * s.in_channels / s.groups * product_of(s, &Axis::size);
  const int64_t count = pass == ConvolutionPass::forward          ? y
                        : pass == ConvolutionPass::input_gradient ? x
                                                                  : filter;
  std::vector<double> sums(static_cast<size_t>(count));
  const auto value = [&](const void* from, int64_t at) {
    return as_operand(static_cast<const T*>(from)[at], s.takes_tf32);
  };
  for_each_product(s, [&](int64_t x_at, int64_t filter_at, int64_t y_at) {
    switch (pass) {
      case ConvolutionPass::forward:
        sums[y_at] += value(a, x_at) * value(b, filter_at);
        break;
      case ConvolutionPass::input_gradient:
        sums[x_at] += value(a, y_at) * value(b, filter_at);
        break;
      case ConvolutionPass::filter_gradient:
        sums[filter_at] += value(a, x_at) * value(b, y_at);
        break;
    }
  });
  std::transform(sums.begin(), sums.end(), static_cast<T*>(out),
                 [](double sum) { return static_cast<T>(static_cast<ComputeType<T>>(sum)); });
}

class HostConvolution : public LibraryConvolution {
 public:
  HostConvolution(ConvolutionPass pass, const LibraryConvolutionShape& shape)
      : pass_(pass), shape_(shape) {
    for (int d = 0; d < shape.axes; ++d) {
      const LibraryConvolutionShape::Axis& axis = shape.axis[static_cast<size_t>(d)];
      const int64_t reach = (axis.size - 1) * axis.dilation + 1;
      check_internal((axis.in + 2 * axis.padding - reach) / axis.stride + 1 == axis.out,
                     "cuDNN would give another output than ", axis.out);
    }
  }

  // Unused, but there, so that callers are seen to provide it.
  size_t workspace_bytes() const override { return 64; }

  void run(const void* a, const void* b, void* out, void* workspace,
           Stream& stream) const override {
    check_internal(workspace != nullptr, "a convolution was given no workspace");
    const cudaError_t error =
        cuda_on_host::enqueue(static_cast<cudaStream_t>(stream.native()),
                              [pass = pass_, shape = shape_, a, b, out, workspace] {
                                std::fill_n(static_cast<unsigned char*>(workspace), 64, 0xff);
                                (void)visit_type(FloatTypes{}, shape.dtype, [&](auto tag) {
                                  convolve<typename decltype(tag)::type>(pass, shape, a, b, out);
                                  return 0;
                                });
                              });
    check_internal(error == cudaSuccess, "a convolution could not be enqueued");
  }

 private:
  const ConvolutionPass pass_;
  const LibraryConvolutionShape shape_;
};

}  // namespace

std::unique_ptr<LibraryConvolution> make_library_convolution(Device&, ConvolutionPass pass,
                                                             const LibraryConvolutionShape& shape) {
  return std::make_unique<HostConvolution>(pass, shape);
}

}  // namespace leat
