// ExtractGlimpse and ExtractGlimpseV2: a window of every image, around its own centre, with noise
// outside the image. As in TensorFlow, the noise has no seed.
#include <cmath>
#include <limits>
#include <random>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/random/random_stream.h"

namespace leat {
namespace {

enum class Noise { zero, uniform, gaussian };

Noise noise_of(const NodeView& node) {
  const auto& noise = node.attr<std::string>("noise");
  const bool is_uniform = node.attr<bool>("uniform_noise");
  check(!is_uniform || noise.empty() || noise == "uniform",
        "The uniform_noise and noise could not be specified at the same time");
  check(noise.empty() || noise == "uniform" || noise == "gaussian" || noise == "zero",
        "The noise could only be uniform, gaussian, or zero, got ", noise);
  if (noise == "zero") return Noise::zero;
  return noise == "uniform" || is_uniform ? Noise::uniform : Noise::gaussian;
}

// Along one axis: glimpse pixels [begin, end) are image pixels from `from` on.
struct Part {
  int64_t from, begin, end;
  bool is_whole;
};

// As in TensorFlow, a glimpse that ends with the image counts as one that lies partly outside, and
// one that begins before it shows the image's first pixels at its end, as many as exist.
Part part_of(int64_t offset, int64_t glimpse, int64_t image) {
  if (offset < 0) {
    const int64_t seen = std::max<int64_t>(0, glimpse + offset), begin = glimpse - seen;
    return {.from = 0, .begin = begin, .end = begin + std::min(image, seen), .is_whole = false};
  }
  const int64_t seen = offset + glimpse >= image ? std::max<int64_t>(0, image - offset) : glimpse;
  return {.from = offset, .begin = 0, .end = seen, .is_whole = offset + glimpse < image};
}

struct Glimpse {
  int64_t images, height, width, channels;  // of the images
  int64_t rows, columns;                    // of the glimpses
  bool is_centered, is_normalized, is_v1;
  Noise noise;

  Glimpse(const KernelRequest& r)
      : images(r.inputs[0].shape[0]),
        height(r.inputs[0].shape[1]),
        width(r.inputs[0].shape[2]),
        channels(r.inputs[0].shape[3]),
        rows(r.outputs[0].shape[1]),
        columns(r.outputs[0].shape[2]),
        is_centered(r.attr<bool>("centered")),
        is_normalized(r.attr<bool>("normalized")),
        is_v1(r.node.op == "ExtractGlimpse"),
        noise(noise_of(r.node)) {}

  // The pixel where the glimpse begins.
  int64_t place(float at, int64_t image, int64_t glimpse) const {
    const auto extent = static_cast<float>(image);
    if (is_normalized) at *= extent;
    if (is_centered && (is_v1 || is_normalized)) at /= 2;
    if (is_centered) at += extent / 2;
    if (is_v1 || (is_normalized && is_centered)) at -= static_cast<float>(glimpse) / 2;
    constexpr float far = 1e18F;
    return static_cast<int64_t>(std::isnan(at) ? -far : std::clamp(at, -far, far));
  }

  // Adds noise that is uniform between the smallest and the largest value of the image, or has the
  // mean and the deviation of each channel and is clipped to its values.
  void add_noise(const float* image, float* out, Philox& random) const {
    if (noise == Noise::zero) {
      std::fill_n(out, rows * columns * channels, 0.0F);
      return;
    }
    RandomWords words(random);
    random.skip((rows * columns * channels * 2 + 3) / 4);
    const int64_t pixels = height * width;
    if (noise == Noise::uniform) {
      const auto [least, largest] = std::minmax_element(image, image + pixels * channels);
      for (int64_t i = 0; i < rows * columns * channels; ++i)
        out[i] = *least + uniform(words.next()) * (*largest - *least);
      return;
    }
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0, squares = 0;
      float least = std::numeric_limits<float>::infinity(), largest = -least;
      for (int64_t i = c; i < pixels * channels; i += channels) {
        sum += image[i];
        least = std::min(least, image[i]);
        largest = std::max(largest, image[i]);
      }
      const double mean = sum / static_cast<double>(pixels);
      for (int64_t i = c; i < pixels * channels; i += channels)
        squares += (image[i] - mean) * (image[i] - mean);
      const double deviation = std::sqrt(squares / static_cast<double>(pixels));
      for (int64_t i = c; i < rows * columns * channels; i += channels) {
        const uint32_t first = words.next(), second = words.next();
        float normal[2];
        box_muller(first, second, normal);
        out[i] =
            std::max(least, std::min(largest, static_cast<float>(mean + deviation * normal[0])));
      }
    }
  }

  void operator()(const Arguments& a, Philox random) const {
    const int64_t in_row = width * channels, out_row = columns * channels;
    for (int64_t i = 0; i < images; ++i) {
      const float* image = a.input<float>(0) + i * height * in_row;
      const float* offset = a.input<float>(2) + 2 * i;
      float* out = a.output<float>() + i * rows * out_row;
      const Part y = part_of(place(offset[0], height, rows), rows, height),
                 x = part_of(place(offset[1], width, columns), columns, width);
      if (!y.is_whole || !x.is_whole) add_noise(image, out, random);
      for (int64_t row = y.begin; row < y.end && x.begin < x.end; ++row)
        std::copy_n(image + (y.from + row - y.begin) * in_row + x.from * channels,
                    (x.end - x.begin) * channels, out + row * out_row + x.begin * channels);
    }
  }
};

BoundKernel prepare(const KernelRequest& r) {
  const Glimpse glimpse(r);
  if (r.outputs[0].shape.elements() == 0) return {};
  check(glimpse.height > 0 && glimpse.width > 0, "input images must have pixels, got shape ",
        r.inputs[0].shape);
  if (!r.node_state) {
    std::random_device entropy;
    const auto word = [&] { return (uint64_t{entropy()} << 32) | entropy(); };
    r.node_state = std::make_shared<RandomStream>(Philox(word(), word()));
  }
  const int64_t blocks = r.outputs[0].shape.elements() + glimpse.images;
  return BoundKernel::of([=, stream = std::static_pointer_cast<RandomStream>(r.node_state)](
                             const Arguments& a) { glimpse(a, stream->take(blocks)); });
}

void infer(ShapeContext& c) {
  const Shape images = c.with_rank(0, 4), offsets = c.with_rank(2, 2), size = c.shape_from_value(1);
  check(!size.has_rank() || size.rank() == 2,
        "size must be a vector of size 2 (height, width), got ", size);
  check(offsets[1] == any || offsets[1] == 2,
        "second dimension of offsets should be of size 2 (y, x), got ", offsets);
  check(offsets[0] == any || images[0] == any || offsets[0] == images[0], "images of shape ",
        images, " do not match offsets of shape ", offsets);
  const auto extent = [&](int i) { return size.has_rank() ? size[i] : any; };
  c.set_output(0, {images[0], extent(0), extent(1), images[3]});
}

OpDef glimpse_op(bool is_v2) {
  return {
      .name = is_v2 ? "ExtractGlimpseV2" : "ExtractGlimpse",
      .doc = std::string("glimpse[i] = the pixels of input[i] in a window of the given size "
                         "[height, width] at offsets[i] = [y, x]; noise beyond the image. "
                         "normalized: offsets are parts of the image; centered: they count from "
                         "its centre, and are 1 at its border; ") +
             (is_v2 ? "with both, they are the window's centre, else its first pixel."
                    : "they are the window's centre."),
      .inputs = {"input: float", "size: int32", "offsets: float"},
      .outputs = {"glimpse: float"},
      .attrs = {"centered: bool = true", "normalized: bool = true", "uniform_noise: bool = true",
                "noise: string = 'uniform'"},
      .shape = infer,
      .kernels = {cpu_kernel(prepare)},
      .examples = {{.inputs = {floats({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), ints({2, 2}),
                               floats({1, 2}, {1.5F, 1.5F})},
                    .attrs = {{"centered", false},
                              {"normalized", false},
                              {"uniform_noise", false},
                              {"noise", "zero"}},
                    .outputs = {is_v2 ? floats({1, 2, 2, 1}, {5, 6, 8, 9})
                                      : floats({1, 2, 2, 1}, {1, 2, 4, 5})}}},
      .value_inputs = {1},
      .is_not_differentiable = true,
  };
}

const Op v1_op{glimpse_op(false)}, v2_op{glimpse_op(true)};

}  // namespace
}  // namespace leat
