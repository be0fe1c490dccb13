// Convolutions and pools of volumes [batch, planes, height, width, channels], without variables.
// Layers with variables are in frontends/cpp/nn/volumes.h.
#pragma once

#include "graph/ops/neural.h"

namespace leat {

// For planes, height and width: one number for all, or {z, y, x}.
struct Extents3d {
  int64_t z, y, x;
  Extents3d(int64_t all) : z(all), y(all), x(all) {}  // NOLINT: converts
  Extents3d(int64_t planes, int64_t height, int64_t width) : z(planes), y(height), x(width) {}
};

struct Convolution3dOptions {
  Extents3d strides = 1;
  Padding padding = same;  // or valid
  Extents3d dilations = 1;
};
// y[n, i, j, k, f] = Σ x[n, i·stride + u - before, j·stride + v - before, k·stride + w - before, c]
// filter[u, v, w, c, f]. filter: [planes, height, width, channels, filters]. f32, f64, f16 or bf16.
// tf.nn.conv3d.
Output conv3d(Output x, Output filter, const Convolution3dOptions& options = {},
              Location at = here());
// The reverse of the conv3d that makes x of a tensor of shape `dims`; result: of shape `dims`.
Output conv3d_transpose(Output x, Output filter, const Dims& dims,
                        const Convolution3dOptions& options = {}, Location at = here());

struct Pool3dOptions {
  Extents3d strides = 0;    // 0: as the size
  Padding padding = valid;  // or same
};
// The largest, or the mean, of each window of that size: max_pool3d(x, 2).
Output max_pool3d(Output x, Extents3d size = 2, const Pool3dOptions& options = {},
                  Location at = here());
Output avg_pool3d(Output x, Extents3d size = 2, const Pool3dOptions& options = {},
                  Location at = here());

}  // namespace leat
