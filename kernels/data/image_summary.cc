// Summaries of images, and of tensors with metadata (texts), for TensorBoard: ImageSummary,
// TensorSummaryV2.
#include <cmath>

#include "graph/formats/image_file.h"
#include "graph/formats/summary.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using Color = std::vector<uint8_t>;

// Maps values to 0 to 255: from 0 to the largest if none is negative, else 0 becomes 128 and the
// value farthest from it 1 or 255. A pixel that is not finite gets `bad`.
template <class T>
void normalise(const T* pixels, int64_t count, int channels, const Color& bad, uint8_t* out) {
  using C = ComputeType<T>;
  const auto is_finite = [&](int64_t pixel) {
    return std::all_of(pixels + pixel * channels, pixels + (pixel + 1) * channels,
                       [](T x) { return std::isfinite(static_cast<float>(C(x))); });
  };
  float least = std::numeric_limits<float>::infinity(), largest = -least;
  for (int64_t pixel = 0; pixel < count; ++pixel) {
    if (!is_finite(pixel)) continue;
    for (int64_t i = pixel * channels; i < (pixel + 1) * channels; ++i) {
      least = std::min(least, static_cast<float>(C(pixels[i])));
      largest = std::max(largest, static_cast<float>(C(pixels[i])));
    }
  }
  constexpr float nothing = 1e-6F;
  const bool has_negative = least < 0;
  const float range = has_negative ? std::max(std::abs(least), std::abs(largest)) : largest;
  // Computed in T, as TensorFlow does.
  const T scale(static_cast<C>(range < nothing ? 0.0F : (has_negative ? 127.0F : 255.0F) / range));
  const T offset(static_cast<C>(has_negative ? 128.0F : 0.0F));
  for (int64_t pixel = 0; pixel < count; ++pixel) {
    const bool is_good = is_finite(pixel);
    for (int k = 0; k < channels; ++k) {
      const int64_t i = pixel * channels + k;
      out[i] =
          is_good ? static_cast<uint8_t>(C(T(C(T(C(pixels[i]) * C(scale))) + C(offset)))) : bad[k];
    }
  }
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& r) {
  const Shape& shape = r.inputs[1].shape;
  const auto most = r.attr<int64_t>("max_images");
  check(most > 0, "max_images must be > 0, got ", most);
  check(shape.rank() == 4 && (shape[3] == 1 || shape[3] == 3 || shape[3] == 4),
        "Tensor must be 4-D with last dim 1, 3, or 4, not ", shape);
  check(shape[0] == 0 || shape.elements() > 0, "images must have pixels, got shape ", shape);
  const auto& bad = r.attr<Tensor>("bad_color");
  check(bad.dtype() == DType::u8 && bad.shape().rank() == 1,
        "bad_color must be a vector of uint8, got ", bad.dtype(), bad.shape());
  const int channels = static_cast<int>(shape[3]);
  check(bad.elements() >= channels, "expected depth <= bad_color.size, got depth = ", channels,
        ", bad_color.size = ", bad.elements());
  const Color color(bad.data<uint8_t>(), bad.data<uint8_t>() + bad.elements());
  BoundKernel kernel = BoundKernel::of([=, images = std::min(most, shape[0]), height = shape[1],
                                        width = shape[2]](const Arguments& a) {
    const int64_t pixels = height * width;
    std::vector<Image> out(images);
    for (int64_t i = 0; i < images; ++i) {
      out[i] = {.height = height, .width = width, .channels = channels, .contents = {}};
      out[i].contents.resize(pixels * channels);
      const T* from = a.input<T>(1) + i * pixels * channels;
      if constexpr (std::is_same_v<T, uint8_t>)
        std::copy_n(from, pixels * channels, out[i].contents.data());
      else
        normalise(from, pixels, channels, color, out[i].contents.data());
    }
    *a.output<std::string>() = image_summary(*a.input<std::string>(0), most > 1, out);
  });
  kernel.cost_ns = 20.0 * static_cast<double>(shape.elements());
  return kernel;
}

const Op image_summary_op{{
    .name = "ImageSummary",
    .doc = "summary = a serialized Summary with the first max_images images of [image, row, "
           "column, channel] as PNG, called \"TAG/image/0\" and so on; floats are scaled to 0 to "
           "255, pixels that are not finite get bad_color.",
    .inputs = {"tag: string", "tensor: T"},
    .outputs = {"summary: string"},
    .attrs = {"max_images: int >= 1 = 3", "T: {uint8, float, half, double} = float",
              "bad_color: tensor = uint8[4] [255, 0, 0, 255]"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          c.with_rank(1, 4);
          c.set_output(0, {});
        },
    .kernels = {cpu_kernel(
        "T", Types<uint8_t, float, half, double>{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {Tensor::scalar("x"), floats({1, 1, 2, 1}, {1, 2})},
                  .outputs = {Tensor::scalar(image_summary(
                      "x", true,
                      std::vector<Image>{
                          {.height = 1, .width = 2, .channels = 1, .contents = {127, 255}}}))}}},
    .is_not_differentiable = true,
}};

const Op tensor_summary_op{{
    .name = "TensorSummaryV2",
    .doc = "summary = a serialized Summary with the tensor and its metadata, a serialized "
           "SummaryMetadata: TensorBoard shows texts that are written like this.",
    .inputs = {"tag: string", "tensor: T", "serialized_summary_metadata: string"},
    .outputs = {"summary: string"},
    .attrs = {"T: type"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          c.with_rank(2, 0);
          c.set_output(0, {});
        },
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       for (const int i : {0, 2})
                         check(c.input(i).shape().rank() == 0, i == 0 ? "tag" : "metadata",
                               " must be scalar, got shape ", c.input(i).shape());
                       c.set_output(0, Tensor::scalar(tensor_summary(
                                           *c.input(0).data<std::string>(), c.input(1),
                                           *c.input(2).data<std::string>())));
                     }}},
    .examples = {{.inputs = {Tensor::scalar("x"), Tensor::scalar("text"), Tensor::scalar("")},
                  .outputs = {Tensor::scalar(tensor_summary("x", Tensor::scalar("text"), ""))}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
