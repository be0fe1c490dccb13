// Convolutions of volumes [batch, planes, height, width, channels] with variables of their own.
// Pools are in graph/ops/volumes.h: max_pool3d(x, 2).
#pragma once

#include "frontends/cpp/nn/activation.h"
#include "frontends/cpp/variables.h"
#include "graph/ops/volumes.h"

namespace leat::nn {

using leat::avg_pool3d;
using leat::max_pool3d;

struct Conv3dOptions {
  Extents3d strides = 1;
  Padding padding = same;  // or valid
  Extents3d dilations = 1;
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = initializers::glorot_uniform();
  Initializer bias_initializer = initializers::zeros();
  std::string name = "conv3d";
};
// y = activation(x * kernel + bias): variables `name`/kernel [planes, height, width, channels,
// filters] and `name`/bias [filters] of x's dtype; y: [batch, planes', height', width', filters].
// The channels of x must be known. Ji et al., "3D convolutional neural networks for human action
// recognition", TPAMI 2013.
//   Output h = nn::conv3d(images, 16, 3, {.strides = 2, .activation = relu});
Output conv3d(Output x, int64_t filters, Extents3d size, const Conv3dOptions& options = {},
              Location at = here());
// The reverse of a conv3d from a larger volume to x: kernel [planes, height, width, filters,
// channels]. An extent of the result is extent · stride (same), or (extent - 1) · stride + size
// (valid); planes, height and width must be known.
Output conv3d_transpose(Output x, int64_t filters, Extents3d size,
                        const Conv3dOptions& options = {.name = "conv3d_transpose"},
                        Location at = here());

}  // namespace leat::nn
