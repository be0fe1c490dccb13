// Pixels of three channels, for the loops of both devices: number i of an image.
#pragma once

#include "kernels/elementwise.h"

namespace leat {
namespace {

template <class T, class C>
LEAT_DEVICE void read_pixel(const T* image, int64_t i, C* channels) {
  for (int c = 0; c < 3; ++c) channels[c] = static_cast<C>(image[3 * i + c]);
}

template <class C, class T>
LEAT_DEVICE void write_pixel(const C* channels, int64_t i, T* image) {
  for (int c = 0; c < 3; ++c) image[3 * i + c] = static_cast<T>(channels[c]);
}

}  // namespace
}  // namespace leat
