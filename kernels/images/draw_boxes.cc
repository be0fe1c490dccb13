// DrawBoundingBoxes and DrawBoundingBoxesV2: the borders of boxes, one pixel wide, on images.
#include <algorithm>
#include <array>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using Colour = std::array<float, 4>;  // red, green, blue, opacity

// Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia.
const std::vector<Colour> default_colours = {
    {1, 1, 0, 1},       {0, 0, 1, 1},    {1, 0, 0, 1},    {0, 1, 0, 1}, {0.5F, 0, 0.5F, 1},
    {0.5F, 0.5F, 0, 1}, {0.5F, 0, 0, 1}, {0, 0, 0.5F, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  const Shape images = r.inputs[0].shape;
  if (images.elements() == 0) return {};
  const int64_t boxes = r.inputs[1].shape[1];
  const Shape table = r.inputs.size() > 2 ? r.inputs[2].shape : Shape{0, 0};
  BoundKernel kernel = BoundKernel::of([=](const Arguments& a) {
    const int64_t height = images[1], width = images[2], channels = images[3];
    T* out = a.output<T>();
    if (out != a.input<T>(0)) std::copy_n(a.input<T>(0), images.elements(), out);
    std::vector<Colour> colours = default_colours;
    if (table[0] > 0) {
      colours.assign(table[0], Colour{0, 0, 0, 1});
      for (int64_t i = 0; i < table[0]; ++i)
        std::copy_n(a.input<float>(2) + i * table[1], std::min<int64_t>(4, table[1]),
                    colours[i].begin());
    }
    if (channels == 1 && table[0] == 0) {
      for (Colour& colour : colours) colour[0] = 1;
    }
    for (int64_t image = 0; image < images[0]; ++image) {
      T* const pixels = out + image * height * width * channels;
      for (int64_t i = 0; i < boxes; ++i) {
        const float* box = a.input<float>(1) + (image * boxes + i) * 4;
        const Colour& colour = colours[i % colours.size()];
        const auto place = [](float part, int64_t extent) {
          const float at = part * static_cast<float>(extent - 1);
          return static_cast<int64_t>(std::min(1e9F, std::max(-1e9F, at)));  // also of NaN
        };
        const int64_t top = place(box[0], height), left = place(box[1], width),
                      bottom = place(box[2], height), right = place(box[3], width);
        if (top > bottom || left > right || top >= height || left >= width || bottom < 0 ||
            right < 0)
          continue;
        const auto paint = [&](int64_t y, int64_t x) {
          for (int64_t c = 0; c < channels; ++c)
            pixels[(y * width + x) * channels + c] = T(colour[c]);
        };
        for (int64_t x = std::max<int64_t>(left, 0); x <= std::min(right, width - 1); ++x) {
          if (top >= 0) paint(top, x);
          if (bottom < height) paint(bottom, x);
        }
        for (int64_t y = std::max<int64_t>(top, 0); y <= std::min(bottom, height - 1); ++y) {
          if (left >= 0) paint(y, left);
          if (right < width) paint(y, right);
        }
      }
    }
  });
  return std::move(kernel).sharing(0, 0);
}

void infer(ShapeContext& c) {
  const Shape images = c.with_rank(0, 4), boxes = c.with_rank(1, 3);
  check(images[3] == any || images[3] == 1 || images[3] == 3 || images[3] == 4,
        "Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), got ", images);
  check(boxes[0] == any || images[0] == any || boxes[0] == images[0],
        "The batch sizes should be the same: ", images, " and ", boxes);
  check(boxes[2] == any || boxes[2] == 4, "boxes must have 4 columns, got ", boxes);
  if (c.num_inputs() > 2) {
    const Shape colours = c.with_rank(2, 2);
    check(images[3] == any || colours[1] == any || colours[1] >= images[3],
          "colors must have at least one column per channel: ", colours, " for ", images);
  }
  c.set_output(0, images);
}

OpDef draw_op(bool has_colours) {
  OpDef op{
      .name = has_colours ? "DrawBoundingBoxesV2" : "DrawBoundingBoxes",
      .doc = std::string("output = the images, and on each the borders of its boxes [y1, x1, y2, "
                         "x2], which are parts of the image's height and width; in ") +
             (has_colours ? "the given colours."
                          : "yellow, blue, red, lime, …; 1 in an image of one channel."),
      .inputs = {"images: T", "boxes: float"},
      .outputs = {"output: T"},
      .attrs = {"T: {float, half} = float"},
      .shape = infer,
      .kernels = {cpu_kernel(
          "T", Types<float, half>{},
          []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
      .examples = {{.inputs = {floats({1, 3, 3, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 0}),
                               floats({1, 1, 4}, {0, 0, 0.5F, 1})},
                    .outputs = {floats({1, 3, 3, 1}, {1, 1, 1, 1, 1, 1, 0, 0, 0})}}},
      .is_not_differentiable = true,
  };
  if (has_colours) {
    op.inputs.push_back("colors: float");
    op.examples[0].inputs.push_back(floats({1, 1}, {1}));
  }
  return op;
}

const Op v1_op{draw_op(false)}, v2_op{draw_op(true)};

}  // namespace
}  // namespace leat
