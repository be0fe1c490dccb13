// ExtractImagePatches: the windows over images as the channels of an image.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/window.h"

namespace leat {
namespace {

struct Windows {
  Window rows, columns;

  Windows(const NodeView& node, const Shape& images) {
    const std::vector<int64_t>& sizes = image_steps(node, "ksizes");
    rows = window_along(node, 1, images[1], sizes[1]);
    columns = window_along(node, 2, images[2], sizes[2]);
  }
};

void infer(ShapeContext& c) {
  const Shape images = c.with_rank(0, 4);
  const Windows windows(c.node(), images);
  const int64_t taps = product_of_extents(windows.rows.size, windows.columns.size);
  c.set_output(0, {images[0], windows.rows.out, windows.columns.out,
                   images[3] == any ? any : product_of_extents(images[3], taps)});
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  for (const char* const attr : {"ksizes", "strides", "rates"}) check_spatial_steps(r.node, attr);
  const Shape& images = r.inputs[0].shape;
  if (r.outputs[0].shape.elements() == 0) return {};
  BoundKernel kernel =
      BoundKernel::of([images, windows = Windows(r.node, images)](const Arguments& a) {
        const auto& [rows, columns] = windows;
        const int64_t channels = images[3];
        T* to = a.output<T>();
        for (int64_t b = 0; b < images[0]; ++b) {
          const T* image = a.input<T>(0) + b * images[1] * images[2] * channels;
          for (int64_t y = 0; y < rows.out; ++y) {
            for (int64_t x = 0; x < columns.out; ++x) {
              StepEnd::pace(rows.size * columns.size * channels);
              for (int64_t tap_y = 0; tap_y < rows.size; ++tap_y) {
                for (int64_t tap_x = 0; tap_x < columns.size; ++tap_x, to += channels) {
                  const int64_t at_y = rows.input_of(y, tap_y), at_x = columns.input_of(x, tap_x);
                  if (at_y >= 0 && at_y < images[1] && at_x >= 0 && at_x < images[2]) {
                    std::copy_n(image + (at_y * images[2] + at_x) * channels, channels, to);
                  } else {
                    std::fill_n(to, channels, T{});
                  }
                }
              }
            }
          }
        }
      });
  kernel.cost_ns = 1.0 * static_cast<double>(r.outputs[0].shape.elements());
  return kernel;
}

const Op patches_op{{
    .name = "ExtractImagePatches",
    .doc =
        "patches[b, y, x, :] = the pixels of images[b] under the window at y, x, row by row with "
        "all channels; 0 beyond the image.",
    .inputs = {"images: T"},
    .outputs = {"patches: T"},
    .attrs = {"ksizes: list(int) >= 4", "strides: list(int) >= 4", "rates: list(int) >= 4",
              "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, "
              "uint32, uint64, complex64, complex128, bool}",
              "padding: {'SAME', 'VALID'}"},
    .shape = infer,
    .kernels = {cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({1, 2, 2, 1}, {1, 2, 3, 4})},
                  .attrs = {{"ksizes", std::vector<int64_t>{1, 2, 2, 1}},
                            {"strides", std::vector<int64_t>{1, 1, 1, 1}},
                            {"rates", std::vector<int64_t>{1, 1, 1, 1}},
                            {"padding", "SAME"}},
                  .outputs = {floats({1, 2, 2, 4},
                                     {1, 2, 3, 4, 2, 0, 4, 0, 3, 4, 0, 0, 4, 0, 0, 0})}}},
}};

}  // namespace
}  // namespace leat
