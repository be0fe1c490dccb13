// CropAndResize: boxes cut out of images and resized, and its gradients with respect to image and
// boxes.
#include <cmath>
#include <optional>
#include <vector>

#include "core/work/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// Along one axis of a box from `begin` to `end` (0 is the first pixel, 1 the last): the place of
// crop pixel i among n image pixels. None if it is outside of the image. The distance between crop
// pixels is (end - begin) * last / (crop - 1), which TensorFlow divides first for the gradient of
// the boxes and last for all else.
std::optional<float> place_of(int64_t i, int64_t crop, int64_t n, float begin, float end,
                              bool divides_first) {
  auto last = static_cast<float>(n - 1);
  if (last > 0x1p24F) last = std::nextafter(last, 0.0F);  // it may have been rounded up
  const float steps = static_cast<float>(crop - 1);
  const float step = divides_first ? (end - begin) * (last / steps) : (end - begin) * last / steps;
  const float at =
      crop > 1 ? begin * last + static_cast<float>(i) * step : 0.5F * (begin + end) * last;
  if (!(at >= 0 && at <= last)) return {};
  return at;
}

// The pixels around a place on one axis, and how far it is from the first.
struct Between {
  int64_t first, second;
  float lerp;

  Between(float at, bool is_nearest) {
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

struct Crops {
  int64_t images, height, width, channels;  // of the image
  int64_t boxes, crop_height, crop_width;
  bool is_nearest, divides_first;

  Crops(const NodeView& node, const Shape& image, const Shape& crops)
      : images(image[0]),
        height(image[1]),
        width(image[2]),
        channels(image[3]),
        boxes(crops[0]),
        crop_height(crops[1]),
        crop_width(crops[2]),
        is_nearest(node.attr<std::string>("method") == "nearest"),
        divides_first(node.op == "CropAndResizeGradBoxes") {
    check(height > 0 && width > 0, "image dimensions must be positive, got shape ", image);
    check(crop_height > 0 && crop_width > 0, "crop dimensions must be positive, got shape ", crops);
  }

  int64_t image_elements() const { return images * height * width * channels; }
  int64_t crop_pixels() const { return boxes * crop_height * crop_width; }
  int64_t pixel(int64_t image, int64_t y, int64_t x) const {
    return ((image * height + y) * width + x) * channels;
  }

  void check_images(const int32_t* box_image) const {
    for (int64_t b = 0; b < boxes; ++b) {
      if (box_image[b] >= 0 && box_image[b] < images) continue;
      fail(Code::out_of_range, "box_index[", b, "] = ", box_image[b],
           " has values outside [0, batch_size), batch_size is ", images);
    }
  }

  // f(box, y, x, the crop's pixel) for all; y and x are none where the pixel lies outside.
  template <class F>
  void for_each(const float* boxes_at, F f) const {
    if (channels == 0) return;
    int64_t to = 0;
    for (int64_t b = 0; b < boxes; ++b, boxes_at += 4) {
      for (int64_t i = 0; i < crop_height; ++i) {
        const std::optional<float> y =
            place_of(i, crop_height, height, boxes_at[0], boxes_at[2], divides_first);
        for (int64_t j = 0; j < crop_width; ++j, to += channels) {
          StepEnd::pace(8 + 4 * channels);
          f(b, i, j, y, place_of(j, crop_width, width, boxes_at[1], boxes_at[3], divides_first),
            to);
        }
      }
    }
  }
};

void check_boxes(ShapeContext& c, int boxes, int box_image) {
  const Shape b = c.with_rank(boxes, 2), images = c.with_rank(box_image, 1);
  check(b[1] == any || b[1] == 4, "boxes must have 4 columns, got ", b);
  check(b[0] == any || images[0] == any || b[0] == images[0],
        "box_index has incompatible shape: ", images, " for boxes ", b);
}

// grads, input 0, has one crop for each box, with the channels of the image.
void check_crops(ShapeContext& c, const Shape& boxes, const Shape& image) {
  const Shape grads = c.with_rank(0, 4);
  check(grads[0] == any || boxes[0] == any || grads[0] == boxes[0],
        "boxes and grads have incompatible shape: ", boxes, " and ", grads);
  check(!image.has_rank() || grads[3] == any || image[3] == any || grads[3] == image[3],
        "image and grads are incompatible in their channels: ", image, " and ", grads);
}

void infer(ShapeContext& c) {
  const Shape image = c.with_rank(0, 4);
  check_boxes(c, 1, 2);
  c.with_rank(3, 1);
  const Shape size = c.partial_value(3);
  if (size.has_rank()) check(size.rank() == 2, "crop_size must have two elements, got ", size);
  c.set_output(0, {c.with_rank(1, 2)[0], size.has_rank() ? size[0] : any,
                   size.has_rank() ? size[1] : any, image[3]});
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  return BoundKernel::of([crops = Crops(r.node, r.inputs[0].shape, r.outputs[0].shape),
                          outside = r.attr<float>("extrapolation_value")](const Arguments& a) {
    const T* image = a.input<T>(0);
    const auto* box_image = a.input<int32_t>(2);
    float* out = a.output<float>();
    crops.check_images(box_image);
    if (crops.channels == 0) return;
    // Of each column of a box: is it inside, where are the pixels around it, and how far is it.
    struct Column {
      bool is_inside;
      int64_t first, second;
      float lerp;
    };
    std::vector<Column> columns(crops.crop_width);
    const int64_t row = crops.crop_width * crops.channels;
    for (int64_t b = 0; b < crops.boxes; ++b) {
      const float* box = a.input<float>(1) + 4 * b;
      for (int64_t j = 0; j < crops.crop_width; ++j) {
        StepEnd::pace(8);
        const auto x = place_of(j, crops.crop_width, crops.width, box[1], box[3], false);
        const Between at(x.value_or(0), crops.is_nearest);
        columns[j] = {x.has_value(), at.first * crops.channels, at.second * crops.channels,
                      at.lerp};
      }
      for (int64_t i = 0; i < crops.crop_height; ++i) {
        StepEnd::pace(2 * row);
        float* to = out + (b * crops.crop_height + i) * row;
        const auto y = place_of(i, crops.crop_height, crops.height, box[0], box[2], false);
        if (!y) {
          std::fill_n(to, row, outside);
          continue;
        }
        const Between rows(*y, crops.is_nearest);
        const T *top = image + crops.pixel(box_image[b], rows.first, 0),
                *bottom = image + crops.pixel(box_image[b], rows.second, 0);
        for (const Column& column : columns) {
          for (int64_t c = 0; c < crops.channels; ++c, ++to) {
            if (!column.is_inside) {
              *to = outside;
              continue;
            }
            const auto at = [c](const T* line, int64_t pixel) {
              return static_cast<float>(line[pixel + c]);
            };
            const float above = at(top, column.first), below = at(bottom, column.first),
                        upper = above + (at(top, column.second) - above) * column.lerp,
                        lower = below + (at(bottom, column.second) - below) * column.lerp;
            *to = upper + (lower - upper) * rows.lerp;
          }
        }
      }
    }
  });
}

template <class T>
BoundKernel prepare_image_gradient(TypeTag<T>, const KernelRequest& r) {
  using C = ComputeType<T>;
  return BoundKernel::of(
      [crops = Crops(r.node, r.outputs[0].shape, r.inputs[0].shape)](const Arguments& a) {
        const auto* dy = a.input<float>(0);
        const auto* box_image = a.input<int32_t>(2);
        T* dx = a.output<T>();
        crops.check_images(box_image);
        std::fill_n(dx, crops.image_elements(), T(0));
        crops.for_each(a.input<float>(1), [&](int64_t b, int64_t, int64_t, std::optional<float> y,
                                              std::optional<float> x, int64_t from) {
          if (!y || !x) return;
          const Between rows(*y, crops.is_nearest), columns(*x, crops.is_nearest);
          const auto add = [&](int64_t row, int64_t column, float weight) {
            T* to = dx + crops.pixel(box_image[b], row, column);
            for (int64_t c = 0; c < crops.channels; ++c)
              to[c] = T(C(to[c]) + C(weight * dy[from + c]));
          };
          add(rows.first, columns.first, (1 - rows.lerp) * (1 - columns.lerp));
          if (crops.is_nearest) return;
          add(rows.first, columns.second, (1 - rows.lerp) * columns.lerp);
          add(rows.second, columns.first, rows.lerp * (1 - columns.lerp));
          add(rows.second, columns.second, rows.lerp * columns.lerp);
        });
      });
}

// Adds, in pixels, how far the place of crop pixel i of n moves with the begin and the end of the
// box.
void add_to_edges(int64_t i, int64_t n, int64_t pixels, float dplace, float* begin, float* end) {
  const auto last = static_cast<float>(pixels - 1);
  const float by_end =
      n > 1 ? static_cast<float>(i) * (last / static_cast<float>(n - 1)) : 0.5F * last;
  *begin += dplace * (last - by_end);
  *end += dplace * by_end;
}

template <class T>
BoundKernel prepare_box_gradient(TypeTag<T>, const KernelRequest& r) {
  return BoundKernel::of([crops = Crops(r.node, r.inputs[1].shape, r.inputs[0].shape)](
                             const Arguments& a) {
    const auto* dy = a.input<float>(0);
    const T* image = a.input<T>(1);
    const auto* box_image = a.input<int32_t>(3);
    float* dboxes = a.output<float>();
    crops.check_images(box_image);
    std::fill_n(dboxes, crops.boxes * 4, 0.0F);
    crops.for_each(a.input<float>(2), [&](int64_t b, int64_t i, int64_t j, std::optional<float> y,
                                          std::optional<float> x, int64_t from) {
      if (!y || !x) return;
      const Between rows(*y, false), columns(*x, false);
      float down = 0, right = 0;  // gradients with respect to y and x
      for (int64_t c = 0; c < crops.channels; ++c) {
        const auto at = [&](int64_t row, int64_t column) {
          return static_cast<float>(image[crops.pixel(box_image[b], row, column) + c]);
        };
        const float top_left = at(rows.first, columns.first),
                    top_right = at(rows.first, columns.second),
                    bottom_left = at(rows.second, columns.first),
                    bottom_right = at(rows.second, columns.second);
        down += dy[from + c] * ((1 - columns.lerp) * (bottom_left - top_left) +
                                columns.lerp * (bottom_right - top_right));
        right += dy[from + c] * ((1 - rows.lerp) * (top_right - top_left) +
                                 rows.lerp * (bottom_right - bottom_left));
      }
      float* box = dboxes + 4 * b;
      add_to_edges(i, crops.crop_height, crops.height, down, box, box + 2);
      add_to_edges(j, crops.crop_width, crops.width, right, box + 1, box + 3);
    });
  });
}

void gradient(Gradient& g) {
  const std::string& method = g.attr<std::string>("method");
  g.dx(0) = op("CropAndResizeGradImage", {g.dy(), g.x(1), g.x(2), shape_of(g.x(0))},
               {{"T", g.x(0).dtype()}, {"method", method}});
  // As in TensorFlow, the gradient of the boxes always assumes bilinear interpolation.
  g.dx(1) = op("CropAndResizeGradBoxes", {g.dy(), g.x(0), g.x(1), g.x(2)});
}

const std::string image_types =
    "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}";
using ImageTypes = Types<float, double, half, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>;

const Tensor image() { return floats({1, 2, 2, 1}, {1, 2, 3, 4}); }

const Op crop_op{{
    .name = "CropAndResize",
    .doc = "crops[b] = the part of image[box_ind[b]] within boxes[b] = [y1, x1, y2, x2] (1 is the "
           "image's last pixel), resized to crop_size; extrapolation_value outside of the image.",
    .inputs = {"image: T", "boxes: float", "box_ind: int32", "crop_size: int32"},
    .outputs = {"crops: float"},
    .attrs = {image_types, "method: {'bilinear', 'nearest'} = 'bilinear'",
              "extrapolation_value: float = 0"},
    .shape = infer,
    .gradient = gradient,
    .kernels = {cpu_kernel(
        "T", ImageTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {image(), floats({1, 4}, {0, 0.5, 1, 2}), ints({0}), ints({2, 2})},
                  .attrs = {{"extrapolation_value", -1.0F}},
                  .outputs = {floats({1, 2, 2, 1}, {1.5, -1, 3.5, -1})}}},
    .value_inputs = {3},
}};

const Op image_gradient_op{{
    .name = "CropAndResizeGradImage",
    .doc = "output = d(sum(CropAndResize(image, boxes, box_ind) * grads)) / d(image), of the shape "
           "image_size.",
    .inputs = {"grads: float", "boxes: float", "box_ind: int32", "image_size: int32"},
    .outputs = {"output: T"},
    .attrs = {"T: {float, half, double}", "method: {'bilinear', 'nearest'} = 'bilinear'"},
    .shape =
        [](ShapeContext& c) {
          check_boxes(c, 1, 2);
          const Shape image = c.shape_from_value(3);
          check(!image.has_rank() || image.rank() == 4, "image_size must have 4 elements, got ",
                image);
          check_crops(c, c.with_rank(1, 2), image);
          c.set_output(0, image.has_rank() ? image : Shape::of_rank(4));
        },
    .kernels = {cpu_kernel("T", Types<float, half, double>{},
                           []<class T>(TypeTag<T> t, const KernelRequest& r) {
                             return prepare_image_gradient(t, r);
                           })},
    .examples = {{.inputs = {floats({1, 1, 1, 1}, {8}), floats({1, 4}, {0, 0.5, 1, 0.5}), ints({0}),
                             ints({1, 2, 2, 1})},
                  .attrs = {{"T", f32}},
                  .outputs = {floats({1, 2, 2, 1}, {2, 2, 2, 2})}}},
    .value_inputs = {3},
}};

const Op box_gradient_op{{
    .name = "CropAndResizeGradBoxes",
    .doc = "output = d(sum(CropAndResize(image, boxes, box_ind) * grads)) / d(boxes).",
    .inputs = {"grads: float", "image: T", "boxes: float", "box_ind: int32"},
    .outputs = {"output: float"},
    .attrs = {image_types, "method: {'bilinear'} = 'bilinear'"},
    .shape =
        [](ShapeContext& c) {
          check_boxes(c, 2, 3);
          check_crops(c, c.with_rank(2, 2), c.with_rank(1, 4));
          c.set_output(0, c.with_rank(2, 2));
        },
    .kernels = {cpu_kernel(
        "T", ImageTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_box_gradient(t, r); })},
    .examples = {{.inputs = {floats({1, 1, 1, 1}, {8}), image(), floats({1, 4}, {0, 0.5, 1, 0.5}),
                             ints({0})},
                  .outputs = {floats({1, 4}, {8, 4, 8, 4})}}},
}};

}  // namespace
}  // namespace leat
