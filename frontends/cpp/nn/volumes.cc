#include "frontends/cpp/nn/volumes.h"

namespace leat::nn {
namespace {

std::string checked_title(std::string_view kind, const Output& x, int64_t filters, Extents3d size,
                          const Conv3dOptions& options, Location at) {
  std::string title = concat(kind, " layer '", options.name, "' (", at, ")");
  check(bool{x}, title, ": its input is an empty Output");
  const Shape& shape = x.shape();
  check(shape.rank() == 5 && shape[4] > 0, title,
        ": the input must be [batch, planes, height, width, channels] with channels known, got ",
        x.name(), " ", x.dtype(), shape);
  check(filters > 0 && size.z > 0 && size.y > 0 && size.x > 0, title,
        ": filters and size must be positive, got ", filters, " and ", size.z, " x ", size.y, " x ",
        size.x);
  check(options.padding.name() != "EXPLICIT", title, ": the padding must be `same` or `valid`");
  return title;
}

Convolution3dOptions how(const Conv3dOptions& options) {
  return {.strides = options.strides, .padding = options.padding, .dilations = options.dilations};
}

Output finished(Output y, int64_t filters, const Conv3dOptions& options, Location at) {
  if (options.use_bias)
    y = y + variable(y.graph(), "bias", {filters}, options.bias_initializer, y.dtype(), {}, at);
  return options.activation(y, at);
}

}  // namespace

Output conv3d(Output x, int64_t filters, Extents3d size, const Conv3dOptions& options,
              Location at) {
  checked_title("conv3d", x, filters, size, options, at);
  const NameScope scope(x.graph(), options.name);
  const LocationScope line(x.graph(), at);
  const Output kernel =
      variable(x.graph(), "kernel", {size.z, size.y, size.x, x.shape()[4], filters},
               options.kernel_initializer, x.dtype(), {}, at);
  return finished(leat::conv3d(x, kernel, how(options), at), filters, options, at);
}

Output conv3d_transpose(Output x, int64_t filters, Extents3d size, const Conv3dOptions& options,
                        Location at) {
  const std::string title = checked_title("conv3d_transpose", x, filters, size, options, at);
  const Shape& shape = x.shape();
  check(shape[1] != any && shape[2] != any && shape[3] != any, title,
        ": planes, height and width must be known, got ", x.name(), " ", shape);
  const NameScope scope(x.graph(), options.name);
  const LocationScope line(x.graph(), at);
  const Output kernel = variable(x.graph(), "kernel", {size.z, size.y, size.x, filters, shape[4]},
                                 options.kernel_initializer, x.dtype(), {}, at);
  const bool is_same = options.padding.name() == "SAME";
  const auto extent = [&](int64_t in, int64_t stride, int64_t window) {
    return is_same ? in * stride : (in - 1) * stride + window;
  };
  const Extent batch = shape[0] == any ? Extent(shape_of(x, i32, at)[0]) : Extent(shape[0]);
  const Output y = leat::conv3d_transpose(x, kernel,
                                          {batch, extent(shape[1], options.strides.z, size.z),
                                           extent(shape[2], options.strides.y, size.y),
                                           extent(shape[3], options.strides.x, size.x), filters},
                                          how(options), at);
  return finished(y, filters, options, at);
}

}  // namespace leat::nn
