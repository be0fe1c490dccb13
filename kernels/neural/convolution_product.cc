// Convolutions of f32 as products of matrices.
#include <algorithm>
#include <cstring>

#include "core/execution/step_end.h"
#include "kernels/cpu.h"
#include "kernels/neural/convolution.h"

namespace leat {
namespace {

// The pixels of all images, as rows.
MatMul product_of(ConvolutionPass pass, const Convolution& c) {
  const int64_t places = c.y_elements() / c.out_channels,
                row = c.filter_elements() / c.out_channels;
  switch (pass) {
    case ConvolutionPass::forward:
      return {.m = places, .n = c.out_channels, .k = row};
    case ConvolutionPass::input_gradient:
      return {.m = places, .n = row, .k = c.out_channels, .transpose_b = true};
    case ConvolutionPass::filter_gradient:
      return {.m = row, .n = c.out_channels, .k = places, .transpose_a = true};
  }
  fail(Code::internal, "unknown pass of a convolution");
}

bool is_pointwise(const Convolution& c) {
  for (const Window& w : {c.planes, c.height, c.width})
    if (w.size != 1 || w.stride != 1 || w.in != w.out) return false;
  return true;
}

}  // namespace

bool ConvolutionProduct::is_possible(ConvolutionPass pass, const Convolution& c) {
  return c.groups == 1 && !c.channels_first &&
         (is_pointwise(c) || pass == ConvolutionPass::filter_gradient);
}

// Measured on one core and on two of a Xeon (Sapphire Rapids) with the pointwise layers of
// ResNet-50 and MobileNet: of few places, oneDNN's convolutions reach 60 to 90 GFLOP/s and scale
// badly, its product 110 to 150. Of many, its product of a filter's gradient does not scale.
bool ConvolutionProduct::is_faster(ConvolutionPass pass, const Convolution& c) {
  constexpr int64_t few = 512, some = 2048, many = 8192, large_filter = int64_t{1} << 18;
  if (!is_possible(pass, c)) return false;
  const int64_t places = c.y_elements() / c.out_channels;
  if (!is_pointwise(c)) {
    return places <= few && c.filter_elements() >= large_filter;
  }
  switch (pass) {
    case ConvolutionPass::forward:
      return places <= few || (places <= many && c.in_channels <= c.out_channels);
    case ConvolutionPass::input_gradient:
      return true;
    case ConvolutionPass::filter_gradient:
      return places <= some;
  }
  return false;
}

ConvolutionProduct::ConvolutionProduct(ConvolutionPass pass, const Convolution& c)
    : product_(product_of(pass, c)), c_(c), patches_(0) {
  if (!is_pointwise(c)) patches_ = product_of(pass, c).m * product_of(pass, c).k;
}

size_t ConvolutionProduct::workspace_bytes() const {
  return product_.workspace_bytes() + static_cast<size_t>(patches_) * sizeof(float);
}

// The inputs that each place of the output sees, one row per place.
void ConvolutionProduct::lay_out(Stream& stream, const float* x, float* patches) const {
  const int64_t row = c_.width.out * c_.taps() * c_.in_channels;
  stream.parallel_for(c_.batch * c_.planes.out * c_.height.out, 1 + (1 << 15) / row,
                      [&](int64_t begin, int64_t end) {
                        for (int64_t at = begin; at < end; ++at) {
                          StepEnd::pace(row);
                          lay_out_row(at, x, patches + at * row);
                        }
                      });
}

// Of row `at` of the output, through all images and planes.
void ConvolutionProduct::lay_out_row(int64_t at, const float* x, float* to) const {
  const Window &d = c_.planes, &h = c_.height, &w = c_.width;
  const int64_t oy = at % h.out, oz = at / h.out % d.out, image = at / h.out / d.out;
  const int64_t channels = c_.in_channels;
  const auto is_within = [](int64_t i, int64_t extent) { return i >= 0 && i < extent; };
  for (int64_t ox = 0; ox < w.out; ++ox) {
    for (int64_t tap = 0; tap < c_.taps(); ++tap, to += channels) {
      const int64_t z = d.input_of(oz, tap / w.size / h.size),
                    y = h.input_of(oy, tap / w.size % h.size), x_at = w.input_of(ox, tap % w.size);
      if (is_within(z, d.in) && is_within(y, h.in) && is_within(x_at, w.in)) {
        const int64_t pixel = ((image * d.in + z) * h.in + y) * w.in + x_at;
        std::memcpy(to, x + pixel * channels, channels * sizeof(float));
      } else {
        std::memset(to, 0, channels * sizeof(float));
      }
    }
  }
}

void ConvolutionProduct::operator()(Stream& stream, const float* a, const float* b, float* out,
                                    void* workspace) const {
  if (patches_ == 0) return product_.run(stream, a, b, out, workspace);
  auto* const patches = static_cast<float*>(workspace);
  lay_out(stream, a, patches);
  product_.run(stream, patches, b, out, patches + patches_);
}

}  // namespace leat
