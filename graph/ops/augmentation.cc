#include "graph/ops/augmentation.h"

#include <cmath>

#include "graph/ops/arrays.h"
#include "graph/ops/graph_of.h"
#include "graph/ops/linear_algebra.h"
#include "graph/ops/math.h"

namespace leat {
namespace {

void check_images(std::string_view what, Output x, Location at) {
  graph_of(x, at);
  check(x.shape().rank() == 3 || x.shape().rank() == 4, what, " (", at,
        "): images must be [height, width, channels] or [batch, height, width, channels], got '",
        x.name(), "' ", x.dtype(), x.shape());
}
void check_floating(std::string_view what, Output x, Location at) {
  graph_of(x, at);
  check(is_floating(x.dtype()), what, " (", at, "): images must be floating-point numbers, got '",
        x.name(), "' ", x.dtype(), "; convert them: cast(x, f32) / 255");
}

// What central_crop() leaves of an axis of that length.
Slice middle(Output x, int axis, double fraction, Location at) {
  const auto cut = [&](double extent) {
    return static_cast<int64_t>((extent - extent * fraction) / 2);
  };
  if (const int64_t extent = x.shape()[axis]; extent != any) {
    const int64_t begin = cut(static_cast<double>(extent));
    return slice(begin, extent - begin);
  }
  const Output extent = shape_of(x, i32, at)[axis], number = cast(extent, f64, at);
  const Output begin = cast((number - number * fraction) / 2, i32, at);
  return slice(begin, extent - begin);
}

}  // namespace

Output central_crop(Output images, double fraction, Location at) {
  check_images("central_crop", images, at);
  check(fraction > 0 && fraction <= 1, "central_crop (", at, "): the fraction must be in (0, 1], ",
        "got ", fraction);
  const LocationScope line(images.graph(), at);
  const int height = images.shape().rank() - 3;
  const Slice rows = middle(images, height, fraction, at);
  const Slice columns = middle(images, height + 1, fraction, at);
  return images[{ellipsis, rows, columns, Slice{}}];
}

Output rgb_to_grayscale(Output images, Location at) {
  check_floating("rgb_to_grayscale", images, at);
  const Shape& shape = images.shape();
  check(shape.rank() > 0 && Shape{3}.is_compatible(Shape{shape[shape.rank() - 1]}),
        "rgb_to_grayscale (", at, "): the last axis must have 3 channels, got '", images.name(),
        "' ", shape);
  const Output weights =
      constant(images.graph(), {{0.2989}, {0.587}, {0.114}}, images.dtype(), "weights", at);
  return tensordot(images, weights, 1, at);
}

namespace random {
namespace {

Output flipped(std::string_view what, Output images, int axis, SeedOptions options, Location at) {
  check_images(what, images, at);
  const bool is_batch = images.shape().rank() == 4;
  const LocationScope line(images.graph(), at);
  const Dims each = is_batch ? Dims{shape_of(images, i32, at)[0], 1, 1, 1} : Dims(Shape{});
  const Output number = uniform(images.graph(), each, {.seed = options.seed}, at);
  return where(number < 0.5, flip(images, axis, at), images, at);
}

}  // namespace

Output flip_left_right(Output images, SeedOptions options, Location at) {
  return flipped("random::flip_left_right", images, -2, options, at);
}
Output flip_up_down(Output images, SeedOptions options, Location at) {
  return flipped("random::flip_up_down", images, -3, options, at);
}
Output brightness(Output images, double maximum, SeedOptions options, Location at) {
  check_floating("random::brightness", images, at);
  check(maximum >= 0 && std::isfinite(maximum), "random::brightness (", at,
        "): the maximum must be finite and not negative, got ", maximum);
  if (maximum == 0) return images;
  const LocationScope line(images.graph(), at);
  return images +
         uniform(images.graph(), Shape{},
                 {.low = -maximum, .high = maximum, .dtype = images.dtype(), .seed = options.seed},
                 at);
}
Output contrast(Output images, double low, double high, SeedOptions options, Location at) {
  check_floating("random::contrast", images, at);
  check(low >= 0 && low < high, "random::contrast (", at,
        "): low must not be negative and below high, got ", low, " and ", high);
  return adjust_contrast(
      images,
      Operand(uniform(images.graph(), Shape{},
                      {.low = low, .high = high, .dtype = f32, .seed = options.seed}, at),
              at),
      at);
}

}  // namespace random
}  // namespace leat
