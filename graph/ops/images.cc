#include "graph/ops/images.h"

#include "graph/ops/arrays.h"
#include "graph/ops/graph_of.h"
#include "graph/ops/math.h"
#include "graph/ops/reduce.h"

namespace leat {
namespace {

std::string_view name_of(ResizeMethod method) {
  switch (method) {
    case ResizeMethod::nearest:
      return "nearest";
    case ResizeMethod::bilinear:
      return "bilinear";
    case ResizeMethod::bicubic:
      return "bicubic";
    default:
      return "area";
  }
}

Output as_int32(const Dims& dims, Graph& graph, Location at) {
  const Output given = dims.in(graph, at);
  return given.dtype() == i32 ? given : op("Cast", {given}, {{"DstT", i32}}, at);
}

Output float_of(const Operand& number, Output x) { return number.as(x.graph(), f32); }

}  // namespace

Output resize_images(Output images, const Dims& size, const ResizeOptions& options, Location at) {
  const Output wanted = as_int32(size, graph_of(images, at), at);
  check(!(options.align_corners && options.half_pixel_centers), "resize_images (", at,
        "): align_corners excludes half_pixel_centers: set .half_pixel_centers = false");
  if (options.method == ResizeMethod::area)
    return op("ResizeArea", {images, wanted}, {{"align_corners", options.align_corners}}, at);
  const char* const name = options.method == ResizeMethod::nearest    ? "ResizeNearestNeighbor"
                           : options.method == ResizeMethod::bilinear ? "ResizeBilinear"
                                                                      : "ResizeBicubic";
  return op(name, {images, wanted},
            {{"align_corners", options.align_corners},
             {"half_pixel_centers", options.half_pixel_centers}},
            at);
}

Output crop_and_resize(Output images, Output boxes, Output box_images, const Dims& size,
                       const CropOptions& options, Location at) {
  const Output wanted = as_int32(size, graph_of(images, at), at);
  check(options.method == ResizeMethod::nearest || options.method == ResizeMethod::bilinear,
        "crop_and_resize (", at, "): the method must be nearest or bilinear, got ",
        name_of(options.method));
  return op("CropAndResize", {images, boxes, box_images, wanted},
            {{"method", name_of(options.method)},
             {"extrapolation_value", static_cast<float>(options.extrapolation)}},
            at);
}

Output space_to_depth(Output x, int64_t block_size, Location at) {
  return op("SpaceToDepth", {x}, {{"block_size", block_size}}, at);
}
Output depth_to_space(Output x, int64_t block_size, Location at) {
  return op("DepthToSpace", {x}, {{"block_size", block_size}}, at);
}
Output space_to_batch(Output x, const TensorLike& block_shape, const TensorLike& paddings,
                      Location at) {
  Graph& graph = graph_of(x, at);
  return op("SpaceToBatchND", {x, block_shape.in(graph), paddings.in(graph)}, {}, at);
}
Output batch_to_space(Output x, const TensorLike& block_shape, const TensorLike& crops,
                      Location at) {
  Graph& graph = graph_of(x, at);
  return op("BatchToSpaceND", {x, block_shape.in(graph), crops.in(graph)}, {}, at);
}

Output rgb_to_hsv(Output images, Location at) { return op("RGBToHSV", {images}, {}, at); }
Output hsv_to_rgb(Output images, Location at) { return op("HSVToRGB", {images}, {}, at); }
Output adjust_contrast(Output images, const Operand& factor, Location at) {
  graph_of(images, at);
  return op("AdjustContrastv2", {images, float_of(factor, images)}, {}, at);
}
Output adjust_hue(Output images, const Operand& delta, Location at) {
  graph_of(images, at);
  return op("AdjustHue", {images, float_of(delta, images)}, {}, at);
}
Output adjust_saturation(Output images, const Operand& scale, Location at) {
  graph_of(images, at);
  return op("AdjustSaturation", {images, float_of(scale, images)}, {}, at);
}

Output read_file(Output path, Location at) { return op("ReadFile", {path}, {}, at); }
Output decode_image(Output contents, const DecodeImageOptions& options, Location at) {
  graph_of(contents, at);
  return op(
      "DecodeImage", {contents},
      {{"channels", options.channels}, {"dtype", options.dtype}, {"expand_animations", false}}, at);
}
Output encode_png(Output image, Location at) { return op("EncodePng", {image}, {}, at); }
Output encode_jpeg(Output image, int64_t quality, Location at) {
  return op("EncodeJpeg", {image}, {{"quality", quality}}, at);
}
Output per_image_standardization(Output images, Location at) {
  graph_of(images, at);
  const Output x = images.dtype() == f32 ? images : cast(images, f32, at);
  const std::vector<int> axes = {-3, -2, -1};
  const Output spread = stddev(x, axes, {.keep_dims = true}, at);
  const Output count = prod(shape_of(x, i32, at)[Index(slice(-3, none), at)], Axes(), {}, at);
  const Output least = rsqrt(cast(count, f32, at), at);
  return (x - mean(x, axes, {.keep_dims = true}, at)) / maximum(spread, least);
}

}  // namespace leat
