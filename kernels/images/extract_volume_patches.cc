// ExtractVolumePatches: the windows over volumes as the channels of a volume.
#include <array>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/window.h"

namespace leat {
namespace {

std::array<Window, 3> windows_over(const NodeView& node, const Shape& volumes) {
  const std::vector<int64_t>& sizes = image_steps(node, "ksizes");
  std::array<Window, 3> out;
  for (int i = 0; i < 3; ++i) {
    Window& w = out[i];
    w = window_along(node, i + 1, volumes[i + 1], sizes[i + 1]);
    // Windows of TensorFlow that leave out the last voxels leave out the same number at the other
    // end.
    const int64_t needed = (w.out - 1) * w.stride + w.size - w.in;
    if (node.attr<std::string>("padding") == "SAME" && w.in != any && needed < 0)
      w.before = needed / 2;
  }
  return out;
}

void infer(ShapeContext& c) {
  const Shape volumes = c.with_rank(0, 5);
  const auto [planes, rows, columns] = windows_over(c.node(), volumes);
  // At most (2^31)^3 taps: the product may overflow.
  const Shape patch{planes.size, rows.size, columns.size, volumes[4] == any ? 1 : volumes[4]};
  const int64_t size = patch.elements();
  c.set_output(0, {volumes[0], planes.out, rows.out, columns.out, volumes[4] == any ? any : size});
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  for (const char* const attr : {"ksizes", "strides"}) check_spatial_steps(r.node, attr);
  const Shape& volumes = r.inputs[0].shape;
  if (r.outputs[0].shape.elements() == 0) return {};
  BoundKernel kernel =
      BoundKernel::of([volumes, windows = windows_over(r.node, volumes)](const Arguments& a) {
        const auto &planes = windows[0], &rows = windows[1], &columns = windows[2];
        const int64_t channels = volumes[4];
        T* to = a.output<T>();
        // One row of taps of one window.
        const auto copy_row = [&](const T* plane_row, bool is_inside, int64_t x) {
          for (int64_t tap = 0; tap < columns.size; ++tap, to += channels) {
            const int64_t at = columns.input_of(x, tap);
            if (is_inside && at >= 0 && at < volumes[3]) {
              std::copy_n(plane_row + at * channels, channels, to);
            } else {
              std::fill_n(to, channels, T{});
            }
          }
        };
        const auto copy_window = [&](const T* volume, int64_t z, int64_t y, int64_t x) {
          for (int64_t tap_z = 0; tap_z < planes.size; ++tap_z) {
            for (int64_t tap_y = 0; tap_y < rows.size; ++tap_y) {
              const int64_t at_z = planes.input_of(z, tap_z), at_y = rows.input_of(y, tap_y);
              const bool is_inside =
                  at_z >= 0 && at_z < volumes[1] && at_y >= 0 && at_y < volumes[2];
              const int64_t row = is_inside ? at_z * volumes[2] + at_y : 0;
              copy_row(volume + row * volumes[3] * channels, is_inside, x);
            }
          }
        };
        for (int64_t b = 0; b < volumes[0]; ++b) {
          const T* volume = a.input<T>(0) + b * volumes[1] * volumes[2] * volumes[3] * channels;
          for (int64_t z = 0; z < planes.out; ++z) {
            for (int64_t y = 0; y < rows.out; ++y) {
              for (int64_t x = 0; x < columns.out; ++x) {
                StepEnd::pace(planes.size * rows.size * columns.size * channels);
                copy_window(volume, z, y, x);
              }
            }
          }
        }
      });
  kernel.cost_ns = 1.0 * static_cast<double>(r.outputs[0].shape.elements());
  return kernel;
}

// Every voxel gets the sum of the gradients of the patch elements with its number; number 0 is
// outside.
void gradient(Gradient& g) {
  Graph& graph = g.graph();
  const auto numbers = [&](std::initializer_list<int32_t> x) { return constant(graph, ints(x)); };
  const Output shape = shape_of(g.x()), one = constant(graph, Tensor::scalar(1));
  const auto part = [&](int32_t begin, int32_t end) {
    return strided_slice(shape, numbers({begin}), numbers({end}), numbers({1}));
  };
  const auto swapped = [&](Output x) { return op("Transpose", {x, numbers({1, 0, 2})}); };
  const Output extents = part(1, 4), numbered = op("Prod", {extents, numbers({0})}) + one;
  const Output volume = reshape(op("Range", {one, numbered, one}),
                                concatenate({numbers({1}), extents, numbers({1})}, 0));
  const Output ids = reshape(op("ExtractVolumePatches", {volume},
                                {{"ksizes", g.attr<std::vector<int64_t>>("ksizes")},
                                 {"strides", g.attr<std::vector<int64_t>>("strides")},
                                 {"padding", g.attr<std::string>("padding")}}),
                             numbers({-1}));
  const Output count = reshape(op("Size", {ids}), numbers({1}));
  const Output dy = reshape(g.dy(), concatenate({part(0, 1), count, part(4, 5)}, 0));
  const Output sums = op("UnsortedSegmentSum", {swapped(dy), ids, numbered});
  const Output inside =
      strided_slice(sums, numbers({1}), numbers({0}), numbers({1}), {{"end_mask", int64_t{1}}});
  g.dx() = reshape(swapped(inside), shape);
}

const Op patches_op{{
    .name = "ExtractVolumePatches",
    .doc = "patches[b, z, y, x, :] = the voxels of input[b] under the window at z, y, x, row by "
           "row with all channels; 0 beyond the volume.",
    .inputs = {"input: T"},
    .outputs = {"patches: T"},
    .attrs = {"ksizes: list(int) >= 5", "strides: list(int) >= 5",
              "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
              "uint32, uint64}",
              "padding: {'SAME', 'VALID'}"},
    .shape = infer,
    .gradient = gradient,
    .kernels = {cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({1, 1, 2, 2, 1}, {1, 2, 3, 4})},
                  .attrs = {{"ksizes", std::vector<int64_t>{1, 1, 2, 2, 1}},
                            {"strides", std::vector<int64_t>{1, 1, 1, 1, 1}},
                            {"padding", "SAME"}},
                  .outputs = {floats({1, 1, 2, 2, 4},
                                     {1, 2, 3, 4, 2, 0, 4, 0, 3, 4, 0, 0, 4, 0, 0, 0})}}},
}};

}  // namespace
}  // namespace leat
