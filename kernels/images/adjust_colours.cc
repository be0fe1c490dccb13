// Colour changes of the pixels of images [height, width, channels] and batches of them: AdjustHue
// and AdjustSaturation. cuda/images/adjust_colours.cu has those of GPUs.
#include "kernels/images/adjust_colours.h"

#include "kernels/cpu.h"

namespace leat {
namespace {

template <class Change>
void change_pixels(const Change& change, const float* x, int64_t n, float* y) {
  vectorized([=]() LEAT_INLINE {
    LEAT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i) change_pixel(change, x, i, y);
  });
}

template <class Change>
void change_pixels(const Change& change, const half* x, int64_t n, half* y) {
  constexpr int64_t tile = 256;
  float values[3 * tile];
  for (int64_t at = 0; at < n; at += tile) {
    const int64_t count = std::min(tile, n - at);
    widen_row(x + 3 * at, 3 * count, values);
    change_pixels(change, values, count, values);
    narrow_row(values, 3 * count, y + 3 * at);
  }
}

template <class Change>
std::vector<Kernel> pixel_kernels() {
  return {cpu_kernel("T", Types<float, half>{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
    const int64_t pixels = r.inputs[0].shape.elements() / 3;
    if (pixels == 0) return BoundKernel{};
    BoundKernel kernel = BoundKernel::of([pixels](const Arguments& a) {
      const Change change(*a.input<float>(1));
      const T* const x = a.input<T>(0);
      T* const y = a.output<T>();
      a.stream->parallel_for(pixels, 5'000, [&](int64_t begin, int64_t end) {
        change_pixels(change, x + 3 * begin, end - begin, y + 3 * begin);
      });
    });
    kernel.cost_ns = 4 * static_cast<double>(pixels);
    return std::move(kernel).sharing(0, 0);
  })};
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
