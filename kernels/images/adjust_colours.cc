// leat: cpu+cuda
// Colour changes of the pixels of images [height, width, channels] and batches of them: AdjustHue
// and AdjustSaturation.
#include <algorithm>
#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/images/pixels.h"

namespace leat {
namespace {

// A pixel as the place of its colour on the circle red, yellow, green, cyan, blue, magenta, in [0,
// 6), and its smallest and largest value.
struct Pixel {
  float place = 0, least, largest;

  LEAT_DEVICE explicit Pixel(const float* rgb)
      : least(std::min({rgb[0], rgb[1], rgb[2]})), largest(std::max({rgb[0], rgb[1], rgb[2]})) {
    const float range = largest - least;
    if (range == 0) return;
    place = rgb[0] == largest   ? (rgb[1] - rgb[2]) / range
            : rgb[1] == largest ? (rgb[2] - rgb[0]) / range + 2
                                : (rgb[0] - rgb[1]) / range + 4;
    if (place < 0) place += 6;
  }

  LEAT_DEVICE void write(float* rgb) const {
    const float full[3] = {std::abs(place - 3) - 1, 2 - std::abs(place - 2),
                           2 - std::abs(place - 4)};
    for (int i = 0; i < 3; ++i)
      rgb[i] = least + (largest - least) * std::clamp(full[i], 0.0F, 1.0F);
  }
};

struct Hue {
  LEAT_DEVICE static void adjust(Pixel& pixel, float delta) {
    pixel.place = std::fmod(pixel.place + 6 * delta, 6.0F);
    if (pixel.place < 0) pixel.place += 6;
  }
};

struct Saturation {
  LEAT_DEVICE static void adjust(Pixel& pixel, float scale) {
    if (pixel.largest <= 0) return;
    const float saturation = (pixel.largest - pixel.least) / pixel.largest;
    pixel.least = pixel.largest * (1 - std::clamp(saturation * scale, 0.0F, 1.0F));
  }
};

template <class Change, class T>
struct ChangePixel {
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    float rgb[3];
    read_pixel(p.input<T>(0), i, rgb);
    Pixel pixel(rgb);
    Change::adjust(pixel, *p.input<float>(1));
    pixel.write(rgb);
    write_pixel(rgb, i, p.output<T>());
  }
};

template <class Change>
std::vector<Kernel> pixel_kernels() {
  return typed_kernels("T", Types<float, half>{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
    return bind_indexed(r, r.inputs[0].shape.elements() / 3, 150, ChangePixel<Change, T>{})
        .sharing(0, 0);
  });
}

template <class Change>
OpDef pixel_op(std::string name, std::string doc, std::string how_much, float by, Tensor expected) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {"images: T", std::move(how_much)},
      .outputs = {"output: T"},
      .attrs = {"T: {half, float} = float"},
      .shape =
          [](ShapeContext& c) {
            const Shape images = c.with_rank_at_least(0, 3);
            c.with_rank(1, 0);
            if (images.has_rank()) {
              const int64_t channels = images[images.rank() - 1];
              check(channels == any || channels == 3, "input must have 3 channels but instead has ",
                    channels, " channels.");
            }
            c.set_output(0, images);
          },
      .kernels = pixel_kernels<Change>(),
      .examples = {{.inputs = {floats({1, 2, 3}, {0, 0.5, 0, 0.5, 0.25, 0.5}), Tensor::scalar(by)},
                    .outputs = {std::move(expected)}}},
  };
}

const Op hue_op{pixel_op<Hue>(
    "AdjustHue", "The hue of each pixel [red, green, blue] is moved by delta around the circle.",
    "delta: float", 1.0F / 3, floats({1, 2, 3}, {0, 0, 0.5, 0.5, 0.5, 0.25}))};
const Op saturation_op{pixel_op<Saturation>(
    "AdjustSaturation",
    "The saturation of each pixel [red, green, blue] times scale, at most 1 and at least 0.",
    "scale: float", 0.5F, floats({1, 2, 3}, {0.25, 0.5, 0.25, 0.5, 0.375, 0.5}))};

}  // namespace
}  // namespace leat
