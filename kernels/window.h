// Windows that slide over images, or over volumes (images in several planes): shared by
// convolutions and poolings. Extents that are not known yet are `any`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/attr.h"
#include "core/shape.h"

namespace leat {

class Gradient;

// The roles of an image tensor's axes: attribute data_format. Only volumes have planes.
struct ImageAxes {
  int batch = 0, planes = -1, height = 1, width = 2, channels = 3;
  bool channels_first() const { return channels == 1; }
  bool has_planes() const { return planes >= 0; }
  int rank() const { return has_planes() ? 5 : 4; }
  std::vector<int> spatial() const {
    return has_planes() ? std::vector<int>{planes, height, width} : std::vector<int>{height, width};
  }
};
// UNIMPLEMENTED unless NHWC or NCHW, for volumes NDHWC or NCDHW.
ImageAxes image_axes(const NodeView& node);

// One spatial axis. Output o sees the inputs o * stride - before + tap * dilation, for tap in [0,
// size).
struct Window {
  int64_t in = any, out = any;
  int64_t size = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding; 0 if `in` is unknown

  struct Range {
    int64_t begin, end;
  };
  constexpr int64_t input_of(int64_t output, int64_t tap) const {
    return output * stride - before + tap * dilation;
  }
  // How many taps begin before that distance. Most windows are spared the division.
  constexpr int64_t taps_within(int64_t distance) const {
    return dilation == 1 ? distance : (distance + dilation - 1) / dilation;
  }
  // The taps of an output that lie within the input.
  constexpr Range taps(int64_t output) const {
    const int64_t first = output * stride - before;
    const int64_t begin = first < 0 ? taps_within(-first) : 0;
    const int64_t end = first >= in ? 0 : taps_within(in - first);
    return {begin < size ? begin : size, end < begin ? begin : end < size ? end : size};
  }
};

// The window along `axis` of the image, from the attributes strides, padding and, if the op has
// them, dilations (or rates) and explicit_paddings. INVALID_ARGUMENT if it exceeds the padded image
// by two strides or more; if by less, `out` is 0.
Window window_along(const NodeView& node, int axis, int64_t in, int64_t size);

// The entries of strides, dilations or ksize, one per axis; INVALID_ARGUMENT unless all are
// positive.
const std::vector<int64_t>& image_steps(const NodeView& node, std::string_view attr);

// For `prepare`: UNIMPLEMENTED unless the entries for batch and channels are 1. (TensorFlow accepts
// graphs with others, and fails to run them.)
void check_spatial_steps(const NodeView& node, std::string_view attr);

// The attributes of the node that determine how its window slides. Its gradient ops have the same
// attributes.
AttrMap window_attrs(const Gradient& g);

}  // namespace leat
