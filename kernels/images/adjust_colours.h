// What AdjustHue and AdjustSaturation do to a pixel, on both devices.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/images/pixels.h"

namespace leat {
namespace {

// In all these functions values are chosen, without branches: the CPU's loop becomes vector
// instructions. The colours of an image follow no pattern, so that every other branch would be
// mispredicted.

LEAT_DEVICE float within_0_and_1(float x) {
  const float most = 1 < x ? 1 : x;
  return most < 0 ? 0 : most;
}

// A pixel as the place of its colour on the circle red, yellow, green, cyan, blue, magenta, in [0,
// 6], and its smallest and largest value.
struct Pixel {
  float place, least, largest;

  LEAT_DEVICE explicit Pixel(const float* rgb)
      : least(std::min(std::min(rgb[0], rgb[1]), rgb[2])),
        largest(std::max(std::max(rgb[0], rgb[1]), rgb[2])) {
    const float range = largest - least;
    const bool is_red = rgb[0] == largest, is_green = rgb[1] == largest;
    const float difference = is_red     ? rgb[1] - rgb[2]
                             : is_green ? rgb[2] - rgb[0]
                                        : rgb[0] - rgb[1];
    const float around = difference / range + (is_red ? 0.0F : is_green ? 2.0F : 4.0F);
    const float positive = around < 0 ? around + 6 : around;
    place = range == 0 ? 0 : positive;
  }

  LEAT_DEVICE void write(float* rgb) const {
    const float full[3] = {std::abs(place - 3) - 1, 2 - std::abs(place - 2),
                           2 - std::abs(place - 4)};
    for (int i = 0; i < 3; ++i) rgb[i] = least + (largest - least) * within_0_and_1(full[i]);
  }
};

struct Hue {
  float turn;  // in (-6, 6)

  LEAT_DEVICE explicit Hue(float delta) : turn(std::fmod(6 * delta, 6.0F)) {}
  LEAT_DEVICE void adjust(Pixel& pixel) const {
    const float turned = pixel.place + turn;
    const float below = turned >= 6 ? turned - 6 : turned;
    pixel.place = below < 0 ? below + 6 : below;
  }
};

struct Saturation {
  float scale;

  LEAT_DEVICE explicit Saturation(float by) : scale(by) {}
  LEAT_DEVICE void adjust(Pixel& pixel) const {
    const float saturation = (pixel.largest - pixel.least) / pixel.largest;
    const float least = pixel.largest * (1 - within_0_and_1(saturation * scale));
    pixel.least = pixel.largest <= 0 ? pixel.least : least;
  }
};

// Pixel number i of x, changed, as that of y.
template <class Change, class T>
LEAT_DEVICE void change_pixel(const Change& change, const T* x, int64_t i, T* y) {
  float rgb[3];
  read_pixel(x, i, rgb);
  Pixel pixel(rgb);
  change.adjust(pixel);
  pixel.write(rgb);
  write_pixel(rgb, i, y);
}

}  // namespace
}  // namespace leat
