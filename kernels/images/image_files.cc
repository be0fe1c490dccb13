// Image files: DecodePng, DecodeJpeg, DecodeAndCropJpeg, DecodeBmp, DecodeGif, DecodeImage,
// ExtractJpegShape, EncodePng, EncodeJpeg, EncodeJpegVariableQuality.
#include "graph/formats/gif_file.h"
#include "graph/formats/image_file.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/moves/copy_elements.h"

namespace leat {
namespace {

// ---- Decoding

template <class T, class F>
Tensor converted(const Image& image, F convert) {
  Tensor out(dtype_of<T>, {image.height, image.width, image.channels});
  T* const to = out.data<T>();
  for (int64_t i = 0; i < out.elements(); ++i) to[i] = convert(i);
  return out;
}

// Floats are from 0 to 1; eight bits become the upper ones of sixteen, as in TensorFlow (from PNG
// they come as both).
Tensor tensor_of(const Image& image, DType dtype) {
  const uint8_t* bytes = image.contents.data();
  const auto wide = [bytes](int64_t i) {
    uint16_t value = 0;
    std::memcpy(&value, bytes + 2 * i, sizeof value);
    return value;
  };
  const bool is_wide = image.bytes_per_value == 2;
  switch (dtype) {
    case DType::u16:
      return is_wide ? converted<uint16_t>(image, wide)
                     : converted<uint16_t>(
                           image, [=](int64_t i) { return static_cast<uint16_t>(bytes[i] << 8); });
    case DType::f32:
      return is_wide ? converted<float>(image, [=](int64_t i) { return wide(i) * (1.0F / 65535); })
                     : converted<float>(image, [=](int64_t i) { return bytes[i] * (1.0F / 255); });
    default:
      return Tensor::of<uint8_t>({image.height, image.width, image.channels}, image.contents);
  }
}

DecodeOptions options_of(const NodeView& node) {
  DecodeOptions out;
  const auto channels = node.has("channels") ? node.attr<int64_t>("channels") : 3;
  check(channels == 0 || channels == 1 || channels == 3 || channels == 4,
        "`channels` must be 0, 1, 3 or 4 but got ", channels);
  out.channels = static_cast<int>(channels);
  if (!node.has("ratio")) return out;
  const auto ratio = node.attr<int64_t>("ratio");
  check(ratio == 1 || ratio == 2 || ratio == 4 || ratio == 8, "ratio must be 1, 2, 4, or 8, got ",
        ratio);
  const auto& dct = node.attr<std::string>("dct_method");
  check(dct.empty() || dct == "INTEGER_FAST" || dct == "INTEGER_ACCURATE",
        "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}, got ", dct);
  out.ratio = static_cast<int>(ratio);
  out.fancy_upscaling = node.attr<bool>("fancy_upscaling");
  out.try_recover_truncated = node.attr<bool>("try_recover_truncated");
  out.accurate_dct = dct == "INTEGER_ACCURATE";
  return out;
}

DecodeOptions::Crop crop_of(const Tensor& window) {
  check(window.shape() == Shape{4}, "crop_window must be 1-D with four elements, got shape ",
        window.shape());
  const auto* at = window.data<int32_t>();
  return {.top = at[0], .left = at[1], .height = at[2], .width = at[3]};
}

// TensorFlow's rules for the other formats in an op that is named for one format.
void check_format(std::string_view op, ImageFormat format, int channels) {
  if (format == ImageFormat::unknown) return;  // an error of its own
  const bool is_bmp = format == ImageFormat::bmp;
  check(op != "DecodeBmp" || is_bmp,
        "Trying to decode another format than BMP using DecodeBmp op. Use DecodeImage instead.");
  check(op != "DecodeAndCropJpeg" || format == ImageFormat::jpeg,
        "DecodeAndCropJpeg operation can run on JPEG only, but detected another format.");
  check(!is_bmp || op == "DecodeBmp" || op == "DecodeImage",
        "Trying to decode BMP format using a wrong op. Use DecodeBmp or DecodeImage instead. Op "
        "used: ",
        op);
  check(format != ImageFormat::gif || channels == 0 || channels == 3,
        "channels must be 0 or 3 for GIF, got ", channels);
}

const std::string& file_of(const Tensor& contents) {
  check(contents.shape().rank() == 0, "`contents` must be scalar but got shape ", contents.shape());
  return *contents.data<std::string>();
}

// [height, width, 3] of one frame, for ops that support only stills; else [frames, height, width,
// 3].
Tensor decode_frames(const std::string& file, const NodeView& node, DType dtype) {
  const bool expands = !node.has("expand_animations") || node.attr<bool>("expand_animations");
  const bool is_still = !expands || node.op == "DecodePng" || node.op == "DecodeJpeg";
  const Animation animation = decode_gif(file, !expands);
  check(!is_still || animation.frames == 1, "Got ", animation.frames,
        " frames, but animated gifs can only be decoded by DecodeGif or DecodeImage");
  const Tensor out = tensor_of(animation.image, dtype);
  if (is_still) return out;
  return out.reshaped({animation.frames, out.shape()[0] / animation.frames, out.shape()[1], 3});
}

void decode(ExecuteContext& c) {
  const NodeView& node = c.node();
  const std::string& file = file_of(c.input(0));
  DecodeOptions options = options_of(node);
  const ImageFormat format = image_format(file);
  check_format(node.op, format, options.channels);
  if (c.num_inputs() > 1) options.crop = crop_of(c.input(1));
  const DType dtype = node.has("dtype") ? node.attr<DType>("dtype") : DType::u8;
  if (dtype != DType::u8) options.bytes_per_value = 2;
  if (format == ImageFormat::gif) {
    c.set_output(0, decode_frames(file, node, dtype));
    return;
  }
  Tensor out = tensor_of(decode_image(file, options), dtype);
  if (node.op == "DecodeGif") {
    const Shape& shape = out.shape();
    out = out.reshaped({1, shape[0], shape[1], shape[2]});
  }
  c.set_output(0, std::move(out));
}

void infer_decoded(ShapeContext& c) {
  c.with_rank(0, 0);
  if (c.node().has("expand_animations") && c.attr<bool>("expand_animations")) {
    c.set_output(0, Shape::unknown());
    return;
  }
  const auto channels = c.attr<int64_t>("channels");
  c.set_output(0, {any, any, channels == 0 ? any : channels});
}

// ---- Encoding

Image image_of(const Tensor& tensor, std::span<const int> channels) {
  const Shape& shape = tensor.shape();
  check(shape.rank() == 3, "image must be 3-dimensional, got ", shape);
  const bool fits = std::find(channels.begin(), channels.end(), shape[2]) != channels.end();
  check(fits, "image must have 1", channels.size() > 2 ? ", 2, 3, or 4" : " or 3",
        " channels, got ", shape[2]);
  constexpr int64_t most = 65535;  // of either side
  check(shape[0] > 0 && shape[1] > 0 && shape[0] <= most && shape[1] <= most,
        "image must have 1 to ", most, " rows and columns, got ", shape);
  const auto* begin = static_cast<const uint8_t*>(tensor.raw());
  return {.height = shape[0],
          .width = shape[1],
          .channels = static_cast<int>(shape[2]),
          .bytes_per_value = tensor.dtype() == DType::u16 ? 2 : 1,
          .contents = {begin, begin + tensor.bytes()}};
}

void encode_as_png(ExecuteContext& c) {
  const auto compression = c.node().attr<int64_t>("compression");
  check(compression >= -1 && compression <= 9, "compression should be in [-1,9], got ",
        compression);
  constexpr int channels[] = {1, 2, 3, 4};
  const Tensor& images = c.input(0);
  const Shape& shape = images.shape();
  check(shape.rank() >= 3, "images must be at least 3-dimensional, got ", shape);
  const Shape batch(shape.dims().first(shape.rank() - 3)), one(shape.dims().last(3));
  Tensor contents(DType::string, batch), image(images.dtype(), one);
  for (int64_t i = 0; i < contents.elements(); ++i) {
    copy_elements(images, i * one.elements(), image, 0, one.elements());
    contents.data<std::string>()[i] =
        encode_png(image_of(image, channels), static_cast<int>(compression));
  }
  c.set_output(0, std::move(contents));
}

void encode_as_jpeg(ExecuteContext& c) {
  const NodeView& node = c.node();
  JpegOptions options;
  const auto& format = node.attr<std::string>("format");
  const auto& unit = node.attr<std::string>("density_unit");
  const auto quality = node.attr<int64_t>("quality"), x = node.attr<int64_t>("x_density"),
             y = node.attr<int64_t>("y_density");
  constexpr int channels[] = {1, 3};
  const Image image = image_of(c.input(0), channels);
  check(format.empty() || (format == "grayscale" && image.channels == 1) ||
            (format == "rgb" && image.channels == 3),
        "format '", format, "' does not fit an image of ", image.channels, " channels");
  check(quality >= 0 && quality <= 100, "quality must be in [0,100], got ", quality);
  check(unit == "in" || unit == "cm", "Invalid density_unit '", unit, "'");
  check(x >= 0 && x <= 65535 && y >= 0 && y <= 65535, "densities must be in [0,65535], got ", x,
        " and ", y);
  check(node.attr<std::string>("xmp_metadata").empty(), "xmp_metadata is not supported");
  options.quality = static_cast<int>(quality);
  options.progressive = node.attr<bool>("progressive");
  options.optimize_size = node.attr<bool>("optimize_size");
  options.chroma_downsampling = node.attr<bool>("chroma_downsampling");
  options.is_in_cm = unit == "cm";
  options.x_density = static_cast<int>(x);
  options.y_density = static_cast<int>(y);
  c.set_output(0, Tensor::scalar(encode_jpeg(image, options)));
}

void encode_as_jpeg_of_quality(ExecuteContext& c) {
  constexpr int channels[] = {1, 3};
  const Image image = image_of(c.input(0), channels);
  check(c.input(1).shape().rank() == 0, "quality must be scalar, got shape ", c.input(1).shape());
  const auto quality = c.input(1).item<int32_t>();
  check(quality >= 0 && quality <= 100, "quality must be in [0,100], got ", quality);
  c.set_output(0, Tensor::scalar(encode_jpeg(image, {.quality = quality})));
}

// ---- Ops

// 1 x 2 pixels of one channel.
Tensor example_pixels() {
  Tensor out(DType::u8, {1, 2, 1});
  out.data<uint8_t>()[0] = 3;
  out.data<uint8_t>()[1] = 200;
  return out;
}
Tensor example_png() {
  return Tensor::scalar(encode_png({.height = 1, .width = 2, .channels = 1, .contents = {3, 200}}));
}

std::string example_bmp() {
  std::string file(32, '\0');
  file.replace(0, 2, "BM");
  for (const auto& [place, value] : {std::pair(10, 32), {18, 2}, {22, 1}, {28, 8}})
    file[place] = static_cast<char>(value);
  return file + "\3\310  ";
}
// 8 x 8 gray pixels.
std::string example_jpeg() {
  return encode_jpeg(
      {.height = 8, .width = 8, .channels = 1, .contents = std::vector<uint8_t>(64, 130)}, {});
}

OpDef decode_op(std::string name, std::string what, std::vector<std::string> attrs) {
  attrs.insert(attrs.begin(), "channels: int = 0");
  const bool has_dtype = name == "DecodePng" || name == "DecodeImage";
  return {
      .name = std::move(name),
      .doc = "image[row, column, channel] = the pixels of the file `contents`, " + std::move(what) +
             "; `channels` is 1 (gray), 3 (RGB), 4 (RGBA), or 0 for what the file has.",
      .inputs = {"contents: string"},
      .outputs = {has_dtype ? "image: dtype" : "image: uint8"},
      .attrs = std::move(attrs),
      .shape = infer_decoded,
      .kernels = {{.execute = decode}},
      .examples = {{.inputs = {example_png()}, .outputs = {example_pixels()}}},
      .has_data_dependent_shape = true,
      .is_not_differentiable = true,
  };
}

const Op decode_png_op{decode_op("DecodePng", "PNG or JPEG", {"dtype: {uint8, uint16} = uint8"})};
const std::vector<std::string> jpeg_attrs = {
    "ratio: int = 1", "fancy_upscaling: bool = true", "try_recover_truncated: bool = false",
    "acceptable_fraction: float = 1", "dct_method: string = ''"};
const Op decode_jpeg_op{
    decode_op("DecodeJpeg", "JPEG (or PNG), each side divided by `ratio`", jpeg_attrs)};
const Op decode_bmp_op{[] {
  OpDef op = decode_op("DecodeBmp", "BMP", {});
  op.examples = {{.inputs = {Tensor::scalar(example_bmp())}, .outputs = {example_pixels()}}};
  return op;
}()};
const Op decode_gif_op{[] {
  OpDef op = decode_op("DecodeGif", "GIF", {});
  op.doc =
      "image[frame, row, column, channel] = the RGB pixels of the file `contents`, GIF (or, as "
      "one frame, PNG or JPEG).";
  op.attrs = {};
  op.shape = [](ShapeContext& c) {
    c.with_rank(0, 0);
    c.set_output(0, {any, any, any, 3});
  };
  Tensor pixels(DType::u8, {1, 1, 2, 3});
  std::fill_n(pixels.data<uint8_t>(), 3, 3);
  std::fill_n(pixels.data<uint8_t>() + 3, 3, 200);
  // Two pixels in two colours: codes of 3 bits, which mean clear, 0, 1, end.
  const std::string_view file(
      "GIF89a\2\0\1\0\x80\0\0\3\3\3\310\310\310,\0\0\0\0\2\0\1\0\0\2\2\x44\12\0;", 35);
  op.examples = {{.inputs = {Tensor::scalar(std::string(file))}, .outputs = {pixels}}};
  return op;
}()};
const Op decode_crop_op{[] {
  OpDef op = decode_op("DecodeAndCropJpeg",
                       "JPEG, each side divided by `ratio`, of which only the "
                       "part crop_window = [y, x, height, width] is decoded",
                       jpeg_attrs);
  op.inputs.emplace_back("crop_window: int32");
  op.shape = [](ShapeContext& c) {
    infer_decoded(c);
    Shape window = c.with_rank(1, 1);
    check(window[0] == any || window[0] == 4, "crop_window must have four elements, got shape ",
          window);
    const auto channels = c.attr<int64_t>("channels");
    window = c.partial_value(1);
    const auto extent = [&](int i) {
      return window.has_rank() && window.rank() == 4 ? window[i] : any;
    };
    c.set_output(0, {extent(2), extent(3), channels == 0 ? any : channels});
  };
  Tensor one(DType::u8, {1, 1, 1});
  one.data<uint8_t>()[0] = 130;
  op.examples = {
      {.inputs = {Tensor::scalar(example_jpeg()), ints({1, 2, 1, 1})}, .outputs = {one}}};
  return op;
}()};
const Op decode_image_op{decode_op(
    "DecodeImage",
    "PNG, JPEG, BMP or GIF (then with frames before the rows, unless expand_animations is off: "
    "the first); of float from 0 to 1",
    {"dtype: {uint8, uint16, float} = uint8", "expand_animations: bool = true"})};

const Op encode_png_op{{
    .name = "EncodePng",
    .doc = "contents = each image as a PNG file; compression from 0 to 9, -1 is zlib's default.",
    .inputs = {"image: T"},
    .outputs = {"contents: string"},
    .attrs = {"compression: int = -1", "T: {uint8, uint16} = uint8"},
    .shape =
        [](ShapeContext& c) {
          const Shape images = c.with_rank_at_least(0, 3);
          c.set_output(0, images.has_rank() ? Shape(images.dims().first(images.rank() - 3))
                                            : Shape::unknown());
        },
    .kernels = {{.types = {{"T", {DType::u8, DType::u16}}}, .execute = encode_as_png}},
    .examples = {{.inputs = {example_pixels()}, .outputs = {example_png()}}},
    .is_not_differentiable = true,
}};

const Op encode_jpeg_op{{
    .name = "EncodeJpeg",
    .doc = "contents = the image, gray or RGB, as a JPEG file of this quality, 0 to 100.",
    .inputs = {"image: uint8"},
    .outputs = {"contents: string"},
    .attrs = {"format: {'', 'grayscale', 'rgb'} = ''", "quality: int = 95",
              "progressive: bool = false", "optimize_size: bool = false",
              "chroma_downsampling: bool = true", "density_unit: {'in', 'cm'} = 'in'",
              "x_density: int = 300", "y_density: int = 300", "xmp_metadata: string = ''"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 3);
          c.set_output(0, {});
        },
    .kernels = {{.execute = encode_as_jpeg}},
    .examples = {{.inputs = {example_pixels()},
                  .outputs = {Tensor::scalar(encode_jpeg(
                      {.height = 1, .width = 2, .channels = 1, .contents = {3, 200}}, {}))}}},
    .is_not_differentiable = true,
}};

const Op encode_quality_op{{
    .name = "EncodeJpegVariableQuality",
    .doc = "contents = the image, gray or RGB, as a JPEG file of this quality, 0 to 100.",
    .inputs = {"images: uint8", "quality: int32"},
    .outputs = {"contents: string"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 3);
          c.with_rank(1, 0);
          c.set_output(0, {});
        },
    .kernels = {{.execute = encode_as_jpeg_of_quality}},
    .examples = {{.inputs = {example_pixels(), Tensor::scalar(50)},
                  .outputs = {Tensor::scalar(
                      encode_jpeg({.height = 1, .width = 2, .channels = 1, .contents = {3, 200}},
                                  {.quality = 50}))}}},
    .is_not_differentiable = true,
}};

const Op jpeg_shape_op{{
    .name = "ExtractJpegShape",
    .doc = "image_shape = [height, width, channels] of a JPEG file, by its header.",
    .inputs = {"contents: string"},
    .outputs = {"image_shape: output_type"},
    .attrs = {"output_type: {int32, int64} = int32"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          c.set_output(0, {3});
        },
    .kernels = {execute_kernel("output_type", Types<int32_t, int64_t>{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) {
                                 const auto shape = jpeg_shape(file_of(c.input(0)));
                                 Tensor out(dtype_of<T>, {3});
                                 std::copy(shape.begin(), shape.end(), out.data<T>());
                                 c.set_output(0, std::move(out));
                               })},
    .examples = {{.inputs = {Tensor::scalar(example_jpeg())}, .outputs = {ints({8, 8, 1})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
