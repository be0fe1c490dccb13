// Images [batch, height, width, channels]: other sizes, parts and colours.
#pragma once

#include "graph/ops/operand.h"

namespace leat {

// ---- Sizes and parts ----
enum class ResizeMethod { nearest, bilinear, bicubic, area };
struct ResizeOptions {
  ResizeMethod method = ResizeMethod::bilinear;
  bool half_pixel_centers = true;  // not of area
  bool align_corners = false;      // the corner pixels' centers coincide; not of area
};
// Images of that size, {height, width}, as tf.image.resize: float32, of x's dtype with nearest.
Output resize_images(Output images, const Dims& size, const ResizeOptions& options = {},
                     Location at = here());
struct CropOptions {
  ResizeMethod method = ResizeMethod::bilinear;  // or nearest
  double extrapolation = 0;                      // the value outside of the image
};
// crops[b] is the part of images[box_images[b]] within boxes[b] = {y1, x1, y2, x2}, where 0 and 1
// are the first and the last pixel, resized to `size`. float32.
Output crop_and_resize(Output images, Output boxes, Output box_images, const Dims& size,
                       const CropOptions& options = {}, Location at = here());
// Squares of pixels become channels of one pixel, and back.
Output space_to_depth(Output x, int64_t block_size, Location at = here());
Output depth_to_space(Output x, int64_t block_size, Location at = here());
// Blocks of positions become examples of the batch, after padding, and back, before cropping.
// paddings, crops: {before, after} for each extent of the block.
Output space_to_batch(Output x, const TensorLike& block_shape, const TensorLike& paddings,
                      Location at = here());
Output batch_to_space(Output x, const TensorLike& block_shape, const TensorLike& crops,
                      Location at = here());

// ---- Files ----
Output read_file(Output path, Location at = here());  // the bytes, a string
struct DecodeImageOptions {
  int64_t channels = 3;  // 1 (gray), 3 (RGB), 4 (RGBA), or 0: as many as the file has
  DType dtype = u8;      // f32: from 0 to 1
};
// The pixels of a PNG, JPEG, BMP or GIF file (the first frame), [height, width, channels], from its
// bytes.
Output decode_image(Output contents, const DecodeImageOptions& options = {}, Location at = here());
// An image [height, width, channels], u8, as the bytes of a file; quality: 0 to 100.
Output encode_png(Output image, Location at = here());
Output encode_jpeg(Output image, int64_t quality = 95, Location at = here());

// ---- Colours: the last axis has 3 channels, floats ----
Output rgb_to_hsv(Output images, Location at = here());
Output hsv_to_rgb(Output images, Location at = here());
// (x - mean) · factor + mean, for each image and channel.
Output adjust_contrast(Output images, const Operand& factor, Location at = here());
// (x - mean) / max(stddev, 1 / √(number of elements)), for each image: float32.
Output per_image_standardization(Output images, Location at = here());
Output adjust_hue(Output images, const Operand& delta, Location at = here());
Output adjust_saturation(Output images, const Operand& scale, Location at = here());

}  // namespace leat
