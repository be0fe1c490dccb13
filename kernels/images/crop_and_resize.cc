// CropAndResize: boxes cut out of images and resized, and its gradients with respect to image and
// boxes.
#include <vector>

#include "core/execution/step_end.h"
#include "kernels/cpu.h"
#include "kernels/images/crop_places.h"

namespace leat {
namespace {

void check_images(const Crops& crops, const int32_t* box_image) {
  for (int64_t b = 0; b < crops.boxes; ++b) {
    if (crops.has(box_image[b])) continue;
    fail(Code::out_of_range, "box_index[", b, "] = ", box_image[b],
         " has values outside [0, batch_size), batch_size is ", crops.images);
  }
}

// f(box, i, j, what is around, the crop's pixel) for the pixels (i, j) of all crops that lie inside
// of the image.
template <class F>
void for_each_inside(const Crops& crops, const float* boxes, F f) {
  if (crops.channels == 0) return;
  int64_t to = 0;
  for (int64_t b = 0; b < crops.boxes; ++b) {
    for (int64_t i = 0; i < crops.rows.crop; ++i) {
      for (int64_t j = 0; j < crops.columns.crop; ++j, to += crops.channels) {
        StepEnd::pace(8 + 4 * crops.channels);
        const Around around(crops, boxes + 4 * b, i, j);
        if (around.is_inside) f(b, i, j, around, to);
      }
    }
  }
}

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
    check_images(crops, box_image);
    if (crops.channels == 0) return;
    // Of each column of a box: is it inside, where are the pixels around it, and how far is it.
    struct Column {
      bool is_inside;
      int64_t first, second;
      float lerp;
    };
    std::vector<Column> columns(crops.columns.crop);
    const int64_t row = crops.columns.crop * crops.channels;
    for (int64_t b = 0; b < crops.boxes; ++b) {
      const float* box = a.input<float>(1) + 4 * b;
      for (int64_t j = 0; j < crops.columns.crop; ++j) {
        StepEnd::pace(8);
        const Place x = crops.columns.place_of(j, box[1], box[3]);
        const Between at(x.is_inside ? x.at : 0, crops.is_nearest);
        columns[j] = {x.is_inside, at.first * crops.channels, at.second * crops.channels, at.lerp};
      }
      for (int64_t i = 0; i < crops.rows.crop; ++i) {
        StepEnd::pace(2 * row);
        float* to = out + (b * crops.rows.crop + i) * row;
        const Place y = crops.rows.place_of(i, box[0], box[2]);
        if (!y.is_inside) {
          std::fill_n(to, row, outside);
          continue;
        }
        const Between rows(y.at, crops.is_nearest);
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
            *to = Corners{at(top, column.first), at(top, column.second), at(bottom, column.first),
                          at(bottom, column.second)}
                      .between(rows.lerp, column.lerp);
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
        check_images(crops, box_image);
        std::fill_n(dx, crops.image_pixels() * crops.channels, T(0));
        for_each_inside(crops, a.input<float>(1),
                        [&](int64_t b, int64_t, int64_t, const Around& around, int64_t from) {
                          for (int corner = 0; corner < (crops.is_nearest ? 1 : 4); ++corner) {
                            T* to = dx + crops.pixel(box_image[b], around.row(corner),
                                                     around.column(corner));
                            const float weight = around.weight(corner);
                            for (int64_t c = 0; c < crops.channels; ++c)
                              to[c] = T(C(to[c]) + C(weight * dy[from + c]));
                          }
                        });
      });
}

template <class T>
BoundKernel prepare_box_gradient(TypeTag<T>, const KernelRequest& r) {
  return BoundKernel::of([crops = Crops(r.node, r.inputs[1].shape, r.inputs[0].shape)](
                             const Arguments& a) {
    const auto* dy = a.input<float>(0);
    const T* image = a.input<T>(1);
    const auto* box_image = a.input<int32_t>(3);
    float* dboxes = a.output<float>();
    check_images(crops, box_image);
    std::fill_n(dboxes, crops.boxes * 4, 0.0F);
    for_each_inside(
        crops, a.input<float>(2),
        [&](int64_t b, int64_t i, int64_t j, const Around& around, int64_t from) {
          float down = 0, right = 0;  // gradients with respect to y and x
          for (int64_t c = 0; c < crops.channels; ++c) {
            const auto at = [&](int corner) {
              return static_cast<float>(
                  image[crops.pixel(box_image[b], around.row(corner), around.column(corner)) + c]);
            };
            const Corners corners{at(0), at(1), at(2), at(3)};
            down += dy[from + c] * corners.down(around.columns.lerp);
            right += dy[from + c] * corners.right(around.rows.lerp);
          }
          float* box = dboxes + 4 * b;
          crops.rows.add_to_edges(i, down, box[0], box[2]);
          crops.columns.add_to_edges(j, right, box[1], box[3]);
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
