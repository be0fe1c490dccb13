#include "kernels/window.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "graph/gradient.h"
#include "kernels/extents.h"

namespace leat {
namespace {

// Larger steps and borders are mistakes, and values computed from them would overflow.
constexpr int64_t largest_step = std::numeric_limits<int32_t>::max();

const std::string& format_of(const NodeView& node) {
  static const std::string images = "NHWC", volumes = "NDHWC";
  if (node.has("data_format")) return node.attr<std::string>("data_format");
  return node.op == "ExtractVolumePatches" ? volumes : images;
}

}  // namespace

ImageAxes image_axes(const NodeView& node) {
  const std::string& format = format_of(node);
  if (format == "NCHW") return {.batch = 0, .height = 2, .width = 3, .channels = 1};
  if (format == "NDHWC") return {.batch = 0, .planes = 1, .height = 2, .width = 3, .channels = 4};
  if (format == "NCDHW") return {.batch = 0, .planes = 2, .height = 3, .width = 4, .channels = 1};
  if (format != "NHWC") {
    fail(Code::unimplemented, node.op, " has no CPU kernel for data_format ", format,
         ": use NHWC or NCHW");
  }
  return {};
}

const std::vector<int64_t>& image_steps(const NodeView& node, std::string_view attr) {
  const std::vector<int64_t>& steps = node.attr<std::vector<int64_t>>(attr);
  const int rank = image_axes(node).rank();
  check(static_cast<int>(steps.size()) == rank, "Sliding window ", attr, " field must specify ",
        rank, " dimensions, got ", steps.size());
  for (int64_t step : steps) {
    check(step > 0 && step <= largest_step, attr, " should be larger than 0 (and at most ",
          largest_step, "), got ", step);
  }
  return steps;
}

void check_spatial_steps(const NodeView& node, std::string_view attr) {
  const ImageAxes axes = image_axes(node);
  const std::vector<int64_t>& steps = image_steps(node, attr);
  if (steps[axes.batch] != 1 || steps[axes.channels] != 1) {
    fail(Code::unimplemented, "Current implementation does not yet support ", attr,
         " in the batch and depth dimensions.");
  }
}

Window window_along(const NodeView& node, int axis, int64_t in, int64_t size) {
  Window w{.in = in, .size = size, .stride = image_steps(node, "strides")[axis]};
  for (const char* name : {"dilations", "rates"}) {
    if (node.has(name)) w.dilation = image_steps(node, name)[axis];
  }
  const std::string& padding = node.attr<std::string>("padding");
  const bool has_explicit = node.has("explicit_paddings");
  const std::vector<int64_t> none;
  const std::vector<int64_t>& pads =
      has_explicit ? node.attr<std::vector<int64_t>>("explicit_paddings") : none;
  if (padding == "EXPLICIT") {
    check(
        pads.size() == 8,
        "explicit_paddings attribute must contain 8 values, before and after each axis, but got: ",
        pads.size());
    const ImageAxes axes = image_axes(node);
    for (int64_t pad : pads) {
      check(pad >= 0 && pad <= largest_step,
            "All elements of explicit_paddings must be nonnegative (and at most ", largest_step,
            "), got ", pad);
    }
    for (int a : {axes.batch, axes.channels}) {
      check(pads[2 * a] == 0 && pads[2 * a + 1] == 0,
            "Nonzero explicit padding in the batch or depth dimensions is not supported");
    }
    w.before = pads[2 * axis];
    w.after = pads[2 * axis + 1];
  } else {
    check(pads.empty(),
          "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  }
  if (in == any || size == any) return w;
  // Inputs from the first to the last tap.
  const int64_t reach = sum_of_extents(product_of_extents(size - 1, w.dilation), 1);
  if (padding == "SAME") {
    w.out = in / w.stride + (in % w.stride != 0 ? 1 : 0);
    const int64_t needed = std::max<int64_t>(0, sum_of_extents((w.out - 1) * w.stride - in, reach));
    w.before = needed / 2;
    w.after = needed - w.before;
    return w;
  }
  const int64_t padded = sum_of_extents(in, w.before + w.after);
  // A window that is too large by less than two strides leaves an empty output, as in TensorFlow.
  check(padded - reach > -2 * w.stride, "Computed output size would be negative: a window of ",
        reach, " does not fit into an input of ", padded, " [input_size: ", in,
        ", effective_filter_size: ", reach, ", stride: ", w.stride, "]");
  w.out = padded < reach ? 0 : (padded - reach) / w.stride + 1;
  return w;
}

AttrMap window_attrs(const Gradient& g) {
  AttrMap attrs;
  for (const char* name : {"ksize", "strides", "padding", "explicit_paddings", "data_format",
                           "dilations", "include_batch_in_index"}) {
    const auto attr = g.node().attrs.find(name);
    if (attr != g.node().attrs.end()) attrs[name] = attr->second;
  }
  return attrs;
}

}  // namespace leat
