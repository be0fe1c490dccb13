// Where the pixels of crops lie in their images: CropAndResize and its gradients, on both devices.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "kernels/elementwise.h"

namespace leat {
namespace {

// A place along one axis of an image, in pixels.
struct Place {
  bool is_inside;
  float at;
};

// The pixels around a place on one axis, and how far it is from the first.
struct Between {
  int64_t first, second;
  float lerp;

  LEAT_DEVICE Between(float at, bool is_nearest) {
    if (is_nearest) {
      first = second = static_cast<int64_t>(std::round(at));
      lerp = 0;
    } else {
      first = static_cast<int64_t>(std::floor(at));
      second = static_cast<int64_t>(std::ceil(at));
      lerp = at - std::floor(at);
    }
  }
};

// One axis of images and of crops.
struct CropAxis {
  int64_t pixels, crop;
  float last;  // of the image's pixels
  bool divides_first;

  CropAxis(int64_t of_image, int64_t of_crop, bool divides)
      : pixels(of_image),
        crop(of_crop),
        last(static_cast<float>(of_image - 1)),
        divides_first(divides) {
    if (last > 0x1p24F) last = std::nextafter(last, 0.0F);  // it may have been rounded up
  }
  // The place of crop pixel i in a box from `begin` to `end` (0 is the first pixel, 1 the last).
  // The distance between crop pixels is (end - begin) * last / (crop - 1), which TensorFlow divides
  // first for the gradient of the boxes and last for all else.
  LEAT_DEVICE Place place_of(int64_t i, float begin, float end) const {
    const float steps = static_cast<float>(crop - 1);
    const float step =
        divides_first ? (end - begin) * (last / steps) : (end - begin) * last / steps;
    const float at =
        crop > 1 ? begin * last + static_cast<float>(i) * step : 0.5F * (begin + end) * last;
    return {at >= 0 && at <= last, at};
  }
  // Adds how far the place of crop pixel i moves with the begin and the end of the box, times
  // `dplace`.
  LEAT_DEVICE void add_to_edges(int64_t i, float dplace, float& begin, float& end) const {
    const auto last_pixel = static_cast<float>(pixels - 1);
    const float by_end = crop > 1
                             ? static_cast<float>(i) * (last_pixel / static_cast<float>(crop - 1))
                             : 0.5F * last_pixel;
    begin += dplace * (last_pixel - by_end);
    end += dplace * by_end;
  }
};

struct Crops {
  int64_t images, channels, boxes;
  CropAxis rows, columns;
  bool is_nearest;

  Crops(const NodeView& node, const Shape& image, const Shape& crops)
      : images(image[0]),
        channels(image[3]),
        boxes(crops[0]),
        rows(image[1], crops[1], node.op == "CropAndResizeGradBoxes"),
        columns(image[2], crops[2], node.op == "CropAndResizeGradBoxes"),
        is_nearest(node.attr<std::string>("method") == "nearest") {
    check(rows.pixels > 0 && columns.pixels > 0, "image dimensions must be positive, got shape ",
          image);
    check(rows.crop > 0 && columns.crop > 0, "crop dimensions must be positive, got shape ", crops);
  }

  constexpr int64_t image_pixels() const { return images * rows.pixels * columns.pixels; }
  constexpr int64_t box_pixels() const { return rows.crop * columns.crop; }
  constexpr bool has(int64_t image) const { return image >= 0 && image < images; }
  // The number of a pixel, and its first element.
  constexpr int64_t pixel_number(int64_t image, int64_t y, int64_t x) const {
    return (image * rows.pixels + y) * columns.pixels + x;
  }
  constexpr int64_t pixel(int64_t image, int64_t y, int64_t x) const {
    return pixel_number(image, y, x) * channels;
  }
};

// The pixels around a place on both axes.
struct Around {
  bool is_inside;
  Between rows, columns;

  // Of pixel (i, j) of the crop of a box [y1, x1, y2, x2].
  LEAT_DEVICE Around(const Crops& crops, const float* box, int64_t i, int64_t j)
      : Around(crops.rows.place_of(i, box[0], box[2]), crops.columns.place_of(j, box[1], box[3]),
               crops.is_nearest) {}

  LEAT_DEVICE Around(const Place& y, const Place& x, bool is_nearest)
      : is_inside(y.is_inside && x.is_inside),
        rows(y.is_inside ? y.at : 0, is_nearest),
        columns(x.is_inside ? x.at : 0, is_nearest) {}

  // The corners are top left, top right, bottom left, bottom right.
  LEAT_DEVICE int64_t row(int corner) const { return corner < 2 ? rows.first : rows.second; }
  LEAT_DEVICE int64_t column(int corner) const {
    return corner % 2 == 0 ? columns.first : columns.second;
  }
  LEAT_DEVICE float weight(int corner) const {
    return (corner < 2 ? 1 - rows.lerp : rows.lerp) *
           (corner % 2 == 0 ? 1 - columns.lerp : columns.lerp);
  }
};

// What is at a place between four pixels.
struct Corners {
  float top_left, top_right, bottom_left, bottom_right;

  LEAT_DEVICE float between(float row_lerp, float column_lerp) const {
    const float upper = top_left + (top_right - top_left) * column_lerp,
                lower = bottom_left + (bottom_right - bottom_left) * column_lerp;
    return upper + (lower - upper) * row_lerp;
  }
  // How it changes with the row, and with the column.
  LEAT_DEVICE float down(float column_lerp) const {
    return (1 - column_lerp) * (bottom_left - top_left) + column_lerp * (bottom_right - top_right);
  }
  LEAT_DEVICE float right(float row_lerp) const {
    return (1 - row_lerp) * (top_right - top_left) + row_lerp * (bottom_right - bottom_left);
  }
};

}  // namespace
}  // namespace leat
