// Convolutions of images [batch, height, width, channels] with variables of their own. Pooling is
// in graph/ops/neural.h: max_pool(x, {.size = 2}).
#pragma once

#include <memory>

#include "frontends/cpp/nn/activation.h"
#include "frontends/cpp/variables.h"

namespace leat::nn {

struct Conv2dOptions {
  Extents2d strides = 1;
  Padding padding = same;
  Extents2d dilations = 1;
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = initializers::glorot_uniform();
  Initializer bias_initializer = initializers::zeros();
  DType dtype = f32;  // of a Conv2d; conv2d() takes that of x
  std::string name = "conv2d";
};

// A convolution, y = activation(x * kernel + bias), with variables `name`/kernel [height, width,
// channels, filters] and `name`/bias [filters], made once like those of Dense. x: [batch, height,
// width, channels], y: [batch, height', width', filters]. `size`: that of the kernel.
class Conv2d {
 public:
  // The first call makes the variables, for as many channels as its x has.
  Conv2d(Graph& graph, int64_t filters, Extents2d size, Conv2dOptions options = {},
         Location at = here());
  // For that many channels. The size is a number or an Extents2d, not a list in braces.
  template <std::convertible_to<Extents2d> Size>
  Conv2d(Graph& graph, int64_t channels, int64_t filters, Size size, Conv2dOptions options = {},
         Location at = here())
      : Conv2d(graph, filters, Extents2d(size), std::move(options), at) {
    make(graph, channels, at);
  }
  Output operator()(Output x, Location at = here()) const;

  Output kernel() const { return made_->kernel; }  // none before they are made
  Output bias() const { return made_->bias; }      // and without use_bias

 private:
  struct Variables {
    Output kernel, bias;
  };
  void make(Graph& graph, int64_t channels, Location at) const;

  Conv2dOptions options_;
  int64_t filters_;
  Extents2d size_;
  std::string scope_;  // where its variables are, and its nodes go: "outer/name_1/"
  std::shared_ptr<Variables> made_ = std::make_shared<Variables>();
};

// The layer used once: the channels of x must be known.
Output conv2d(Output x, int64_t filters, Extents2d size, const Conv2dOptions& options = {},
              Location at = here());
// Each channel with `multiplier` filters of its own: kernel [height, width, channels, multiplier].
Output depthwise_conv2d(Output x, Extents2d size, int64_t multiplier = 1,
                        const Conv2dOptions& options = {.name = "depthwise_conv2d"},
                        Location at = here());
// A depthwise_conv2d, then a conv2d of size 1 to `filters` channels, without an activation between
// them: kernels `name`/depthwise_kernel [height, width, channels, multiplier] and
// `name`/pointwise_kernel [1, 1, channels · multiplier, filters], `name`/bias [filters]. Chollet,
// CVPR 2017.
Output separable_conv2d(Output x, int64_t filters, Extents2d size, int64_t multiplier = 1,
                        const Conv2dOptions& options = {.name = "separable_conv2d"},
                        Location at = here());

struct Conv1dOptions {
  int64_t strides = 1;
  Padding padding = same;
  int64_t dilations = 1;
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = initializers::glorot_uniform();
  Initializer bias_initializer = initializers::zeros();
  std::string name = "conv1d";
};
// A convolution of sequences [batch, length, channels], channels known: variables `name`/kernel
// [size, channels, filters] and `name`/bias [filters]; y: [batch, length', filters]. The padding is
// `same` or `valid`.
//   Output words = nn::embedding(ids, 10'000, 64);
//   Output features = max(nn::conv1d(words, 128, 5, {.activation = relu}), 1);
Output conv1d(Output x, int64_t filters, int64_t size, const Conv1dOptions& options = {},
              Location at = here());

// The reverse of a conv2d from a larger image to x: kernel [height, width, filters, channels]. The
// height of the result is height · stride (same), or (height - 1) · stride + size (valid); height
// and width must be known.
Output conv2d_transpose(Output x, int64_t filters, Extents2d size,
                        const Conv2dOptions& options = {.name = "conv2d_transpose"},
                        Location at = here());

// The mean over height and width: [batch, channels].
Output global_average_pool(Output x, Location at = here());
// The largest over height and width: [batch, channels].
Output global_max_pool(Output x, Location at = here());

}  // namespace leat::nn
