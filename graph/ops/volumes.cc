#include "graph/ops/volumes.h"

#include "graph/ops/graph_of.h"

namespace leat {
namespace {

std::vector<int64_t> of_volumes(Extents3d extents) {
  return {1, extents.z, extents.y, extents.x, 1};
}

// Errors of both kinds of op, before the op's own.
void check_volume(std::string_view what, Output x, const Padding& padding, Location at) {
  graph_of(x, at);
  check(!x.shape().has_rank() || x.shape().rank() == 5, what, " (", at,
        "): the input must be [batch, planes, height, width, channels], got ", x.name(), " ",
        x.dtype(), x.shape());
  check(padding.name() != "EXPLICIT", what, " (", at, "): the padding must be `same` or `valid`; ",
        "pad(x, widths) adds other borders");
}

AttrMap attrs_of(const Convolution3dOptions& options) {
  return {{"strides", of_volumes(options.strides)},
          {"padding", options.padding.name()},
          {"dilations", of_volumes(options.dilations)}};
}

Output pool(std::string_view name, std::string_view what, Output x, Extents3d size,
            const Pool3dOptions& options, Location at) {
  check_volume(what, x, options.padding, at);
  check(size.z > 0 && size.y > 0 && size.x > 0, what, " (", at,
        "): the size must be positive, got ", size.z, " x ", size.y, " x ", size.x);
  const auto stride = [](int64_t given, int64_t window) { return given == 0 ? window : given; };
  const Extents3d strides{stride(options.strides.z, size.z), stride(options.strides.y, size.y),
                          stride(options.strides.x, size.x)};
  return op(name, {x},
            {{"ksize", of_volumes(size)},
             {"strides", of_volumes(strides)},
             {"padding", options.padding.name()}},
            at);
}

}  // namespace

Output conv3d(Output x, Output filter, const Convolution3dOptions& options, Location at) {
  graph_of(filter, at);
  check_volume("conv3d", x, options.padding, at);
  return op("Conv3D", {x, filter}, attrs_of(options), at);
}
Output conv3d_transpose(Output x, Output filter, const Dims& dims,
                        const Convolution3dOptions& options, Location at) {
  graph_of(filter, at);
  check_volume("conv3d_transpose", x, options.padding, at);
  return op("Conv3DBackpropInputV2", {dims.in(x.graph(), at), filter, x}, attrs_of(options), at);
}
Output max_pool3d(Output x, Extents3d size, const Pool3dOptions& options, Location at) {
  return pool("MaxPool3D", "max_pool3d", x, size, options, at);
}
Output avg_pool3d(Output x, Extents3d size, const Pool3dOptions& options, Location at) {
  return pool("AvgPool3D", "avg_pool3d", x, size, options, at);
}

}  // namespace leat
