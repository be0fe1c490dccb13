#include "graph/formats/image_file.h"

#include <jpeglib.h>
#include <png.h>

#include <csetjmp>
#include <cstring>
#include <exception>
#include <new>

#include "core/error.h"
#include "core/execution/step_end.h"
#include "graph/formats/bmp_file.h"

namespace leat {
namespace {

constexpr int64_t most_values = int64_t{1} << 29;

void check_size(int64_t height, int64_t width, int channels) {
  if (height > 0 && width > most_values / channels / height) {
    fail(Code::resource_exhausted, "an image of ", height, " x ", width, " pixels in ", channels,
         " channels exceeds the limit of ", most_values, " decoded values");
  }
}

// ---- PNG. libpng reports errors by longjmp: between setjmp and that no object may be made.

[[noreturn]] void on_png_error(png_structp png, png_const_charp) { png_longjmp(png, 1); }
void on_png_warning(png_structp, png_const_charp) {}

struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view left;

  explicit PngReader(std::string_view file) : left(file) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, on_png_error, on_png_warning);
    info = png == nullptr ? nullptr : png_create_info_struct(png);
    if (info == nullptr) fail(Code::resource_exhausted, "no memory to decode a PNG with");
    png_set_read_fn(png, this, [](png_structp from, png_bytep to, size_t bytes) {
      auto* self = static_cast<PngReader*>(png_get_io_ptr(from));
      if (bytes > self->left.size()) png_error(from, "truncated");
      if (StepEnd::has_come()) png_error(from, "the step has ended");
      std::memcpy(to, self->left.data(), bytes);
      self->left.remove_prefix(bytes);
    });
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;

  bool read_header() {
    if (setjmp(png_jmpbuf(png))) return false;
    png_read_info(png, info);
    return true;
  }

  // Tells libpng what to make of the file's colours, as TensorFlow does.
  bool transform(int channels, int bytes_per_value) {
    if (setjmp(png_jmpbuf(png))) return false;
    const int color = png_get_color_type(png, info), bits = png_get_bit_depth(png, info);
    const bool has_alpha = (color & PNG_COLOR_MASK_ALPHA) != 0;
    const bool has_transparency = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
    if (channels % 2 == 0) {
      if (!has_alpha && has_transparency) png_set_tRNS_to_alpha(png);
      if (!has_alpha && !has_transparency)
        png_set_add_alpha(png, (1U << bits) - 1, PNG_FILLER_AFTER);
    } else if (has_alpha || has_transparency) {
      png_set_strip_alpha(png);
    }
    if (bits > 8 && bytes_per_value == 1) png_set_strip_16(png);
    png_set_packing(png);
    if (bits > 8 && bytes_per_value == 2) png_set_swap(png);  // files are big-endian
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    const bool is_gray = (color & PNG_COLOR_MASK_COLOR) == 0;
    if (is_gray && bits < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (channels < 3 && !is_gray) png_set_rgb_to_gray(png, 1, 0.299, 0.587);
    if (channels >= 3 && is_gray) png_set_gray_to_rgb(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return true;
  }

  bool read_rows(png_bytep* rows) {
    if (setjmp(png_jmpbuf(png))) return false;
    png_read_image(png, rows);
    png_read_end(png, info);
    return true;
  }
};

Image decode_png(std::string_view file, const DecodeOptions& options) {
  const auto damaged = [&] {
    StepEnd::ask();
    fail(Code::invalid_argument, "Invalid PNG data, size ", file.size());
  };
  PngReader reader(file);
  if (!reader.read_header()) damaged();
  Image out{.height = png_get_image_height(reader.png, reader.info),
            .width = png_get_image_width(reader.png, reader.info),
            .channels = options.channels,
            .bytes_per_value = options.bytes_per_value,
            .contents = {}};
  if (out.channels == 0) {
    const bool is_palette = png_get_color_type(reader.png, reader.info) == PNG_COLOR_TYPE_PALETTE;
    out.channels = !is_palette ? png_get_channels(reader.png, reader.info)
                   : png_get_valid(reader.png, reader.info, PNG_INFO_tRNS) != 0 ? 4
                                                                                : 3;
  }
  check_size(out.height, out.width, out.channels);
  const bool is_widened =
      options.bytes_per_value == 2 && png_get_bit_depth(reader.png, reader.info) <= 8;
  if (!reader.transform(out.channels, options.bytes_per_value)) damaged();
  const int64_t values = out.width * out.channels;  // of a row
  const auto row_bytes = static_cast<size_t>(values * (is_widened ? 1 : out.bytes_per_value));
  if (png_get_rowbytes(reader.png, reader.info) != row_bytes) damaged();
  out.contents.resize(out.height * row_bytes);
  std::vector<png_bytep> rows(out.height);
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = out.contents.data() + y * row_bytes;
  if (!reader.read_rows(rows.data())) damaged();
  if (is_widened) {
    std::vector<uint8_t> wide(2 * out.contents.size());
    for (size_t i = 0; i < wide.size(); ++i) wide[i] = out.contents[i / 2];  // times 257
    out.contents = std::move(wide);
  }
  return out;
}

struct PngWriter {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string out;

  PngWriter() {
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, on_png_error, on_png_warning);
    info = png == nullptr ? nullptr : png_create_info_struct(png);
    if (info == nullptr) fail(Code::resource_exhausted, "no memory to encode a PNG with");
    const auto write = [](png_structp to, png_bytep data, size_t bytes) {
      if (StepEnd::has_come()) png_error(to, "the step has ended");
      static_cast<PngWriter*>(png_get_io_ptr(to))->out.append(reinterpret_cast<char*>(data), bytes);
    };
    png_set_write_fn(png, this, write, [](png_structp) {});
  }
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
  PngWriter(const PngWriter&) = delete;

  bool write(const Image& image, int compression, png_bytep* rows) {
    constexpr int colors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                              PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_compression_level(png, compression);
    png_set_IHDR(png, info, static_cast<png_uint_32>(image.width),
                 static_cast<png_uint_32>(image.height), 8 * image.bytes_per_value,
                 colors[image.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    if (image.bytes_per_value == 2) png_set_swap(png);
    png_write_image(png, rows);
    png_write_end(png, info);
    return true;
  }
};

// ---- JPEG. As libpng.

struct JpegErrors : jpeg_error_mgr {
  jmp_buf jump;
  jpeg_progress_mgr progress{};

  JpegErrors() {
    jpeg_std_error(this);
    error_exit = [](j_common_ptr c) { std::longjmp(static_cast<JpegErrors*>(c->err)->jump, 1); };
    output_message = [](j_common_ptr) {};
    progress.progress_monitor = [](j_common_ptr c) {
      if (StepEnd::has_come()) c->err->error_exit(c);
    };
  }
};

struct JpegReader {
  JpegErrors errors;
  jpeg_decompress_struct c{};

  JpegReader() { c.err = &errors; }
  ~JpegReader() { jpeg_destroy_decompress(&c); }
  JpegReader(const JpegReader&) = delete;

  bool read_header(std::string_view file) {
    if (setjmp(errors.jump)) return false;
    jpeg_create_decompress(&c);
    c.progress = &errors.progress;
    jpeg_mem_src(&c, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    c.client_data = this;
    c.src->fill_input_buffer = [](j_decompress_ptr at_end) -> boolean {
      static constexpr JOCTET end_of_image[] = {0xff, JPEG_EOI};
      static_cast<JpegReader*>(at_end->client_data)->is_truncated = true;
      at_end->src->next_input_byte = end_of_image;
      at_end->src->bytes_in_buffer = sizeof end_of_image;
      return TRUE;
    };
    jpeg_read_header(&c, TRUE);
    jpeg_calc_output_dimensions(&c);
    return true;
  }
  bool choose(const DecodeOptions& options) {
    if (setjmp(errors.jump)) return false;
    const int channels = options.channels != 0 ? options.channels : c.num_components;
    is_cmyk = c.jpeg_color_space == JCS_CMYK || c.jpeg_color_space == JCS_YCCK;
    if (is_cmyk) return false;  // of which this library makes neither gray nor RGB
    c.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    c.do_fancy_upsampling = options.fancy_upscaling ? TRUE : FALSE;
    c.scale_num = 1;
    c.scale_denom = static_cast<unsigned>(options.ratio);
    c.dct_method = options.accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
    jpeg_calc_output_dimensions(&c);
    return true;
  }
  bool start() {
    if (setjmp(errors.jump)) return false;
    return jpeg_start_decompress(&c) == TRUE;
  }
  // Pixels come in blocks, so that lines may begin somewhat left of the crop: at `left`.
  bool skip_to(const DecodeOptions::Crop& crop) {
    if (setjmp(errors.jump)) return false;
    auto width = static_cast<JDIMENSION>(crop.width);
    left = static_cast<JDIMENSION>(crop.left);
    jpeg_crop_scanline(&c, &left, &width);
    const auto top = static_cast<JDIMENSION>(crop.top);
    return jpeg_skip_scanlines(&c, top) == top;
  }
  bool read_lines(uint8_t* to, size_t bytes_per_line) {
    if (setjmp(errors.jump)) return false;
    while (c.output_scanline < c.output_height) {
      JSAMPROW row = to + c.output_scanline * bytes_per_line;
      jpeg_read_scanlines(&c, &row, 1);
    }
    jpeg_finish_decompress(&c);
    return true;
  }
  // By way of `line`, which has room for all that is decoded of one.
  bool read_crop(const DecodeOptions::Crop& crop, uint8_t* line, uint8_t* to,
                 size_t bytes_per_line) {
    if (setjmp(errors.jump)) return false;
    const size_t before = (crop.left - left) * c.output_components;
    for (int64_t i = 0; i < crop.height; ++i) {
      JSAMPROW row = line;
      if (jpeg_read_scanlines(&c, &row, 1) != 1) return false;
      std::memcpy(to + i * bytes_per_line, line + before, bytes_per_line);
    }
    if (c.output_scanline < c.output_height)
      jpeg_skip_scanlines(&c, c.output_height - c.output_scanline);
    jpeg_finish_decompress(&c);
    return true;
  }

  bool is_cmyk = false, is_truncated = false;
  JDIMENSION left = 0;
};

Image decode_jpeg(std::string_view file, const DecodeOptions& options) {
  const auto damaged = [&] {
    StepEnd::ask();
    fail(Code::invalid_argument, "Invalid JPEG data or crop window, data size ", file.size());
  };
  check(options.channels != 2 && options.channels != 4,
        "channels must be 0, 1, or 3 for JPEG, got ", options.channels);
  JpegReader reader;
  const bool is_header_good = reader.read_header(file) && reader.choose(options);
  check(!reader.is_cmyk, "a JPEG of CMYK colours is not supported: convert it to RGB");
  if (!is_header_good) damaged();
  Image out{.height = reader.c.output_height,
            .width = reader.c.output_width,
            .channels = reader.c.out_color_space == JCS_GRAYSCALE ? 1 : 3,
            .bytes_per_value = 1,
            .contents = {}};
  check_size(out.height, out.width, out.channels);
  if (options.crop) {
    const DecodeOptions::Crop& crop = *options.crop;
    check(crop.height > 0 && crop.width > 0 && crop.top >= 0 && crop.left >= 0 &&
              crop.top + crop.height <= out.height && crop.left + crop.width <= out.width,
          "Invalid crop window: ", crop.height, " x ", crop.width, " pixels at ", crop.top, ", ",
          crop.left, " of an image of ", out.height, " x ", out.width);
    out.height = crop.height;
    out.width = crop.width;
  }
  if (!reader.start()) damaged();
  const auto bytes_per_line = static_cast<size_t>(out.width * out.channels);
  out.contents.resize(out.height * bytes_per_line);
  if (options.crop) {
    if (!reader.skip_to(*options.crop)) damaged();
    std::vector<uint8_t> line(size_t{reader.c.output_width} * out.channels);
    if (!reader.read_crop(*options.crop, line.data(), out.contents.data(), bytes_per_line))
      damaged();
  } else if (!reader.read_lines(out.contents.data(), bytes_per_line)) {
    damaged();
  }
  if (reader.is_truncated && !options.try_recover_truncated) damaged();
  return out;
}

// Where libjpeg writes. Its own jpeg_mem_dest frees a buffer that it outgrows and tells so only at
// the end, which a step that ends meanwhile never reaches.
struct JpegBytes : jpeg_destination_mgr {
  static constexpr size_t block = size_t{64} << 10;
  std::string bytes;
  bool has_no_memory = false;

  JpegBytes() : jpeg_destination_mgr{} {
    init_destination = grow;
    empty_output_buffer = [](j_compress_ptr c) -> boolean {
      grow(c);
      return TRUE;
    };
    term_destination = [](j_compress_ptr c) {
      JpegBytes& self = of(c);
      self.bytes.resize(self.bytes.size() - self.free_in_buffer);
    };
  }

 private:
  static JpegBytes& of(j_compress_ptr c) { return *static_cast<JpegBytes*>(c->dest); }
  // No exception passes through libjpeg.
  static void grow(j_compress_ptr c) {
    JpegBytes& self = of(c);
    const size_t size = self.bytes.size();
    try {
      self.bytes.resize(size + std::max(block, size / 2));
    } catch (const std::exception&) {
      self.has_no_memory = true;
    }
    if (self.has_no_memory) c->err->error_exit(reinterpret_cast<j_common_ptr>(c));
    self.next_output_byte = reinterpret_cast<JOCTET*>(self.bytes.data()) + size;
    self.free_in_buffer = self.bytes.size() - size;
  }
};

struct JpegWriter {
  JpegErrors errors;
  JpegBytes to;
  jpeg_compress_struct c{};

  JpegWriter() { c.err = &errors; }
  ~JpegWriter() { jpeg_destroy_compress(&c); }
  JpegWriter(const JpegWriter&) = delete;

  bool write(const Image& image, const JpegOptions& options) {
    if (setjmp(errors.jump)) return false;
    jpeg_create_compress(&c);
    c.progress = &errors.progress;
    c.dest = &to;
    c.image_width = static_cast<JDIMENSION>(image.width);
    c.image_height = static_cast<JDIMENSION>(image.height);
    c.input_components = image.channels;
    c.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    if (options.optimize_size) c.optimize_coding = TRUE;
    c.density_unit = options.is_in_cm ? 2 : 1;
    c.X_density = static_cast<UINT16>(options.x_density);
    c.Y_density = static_cast<UINT16>(options.y_density);
    jpeg_set_quality(&c, options.quality, TRUE);
    if (options.progressive) jpeg_simple_progression(&c);
    if (!options.chroma_downsampling) {
      for (int i = 0; i < c.num_components; ++i)
        c.comp_info[i].h_samp_factor = c.comp_info[i].v_samp_factor = 1;
    }
    jpeg_start_compress(&c, TRUE);
    const auto bytes_per_line = static_cast<size_t>(image.width * image.channels);
    while (c.next_scanline < c.image_height) {
      auto* row = const_cast<uint8_t*>(image.contents.data() + c.next_scanline * bytes_per_line);
      jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    return true;
  }
};

}  // namespace

ImageFormat image_format(std::string_view file) {
  if (file.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::png;
  if (file.starts_with("\xff\xd8\xff")) return ImageFormat::jpeg;
  if (file.starts_with("GIF8")) return ImageFormat::gif;
  return file.starts_with("BM") ? ImageFormat::bmp : ImageFormat::unknown;
}

Image decode_image(std::string_view file, const DecodeOptions& options) {
  switch (image_format(file)) {
    case ImageFormat::png:
      return decode_png(file, options);
    case ImageFormat::jpeg:
      return decode_jpeg(file, options);
    case ImageFormat::bmp:
      return decode_bmp(file, options.channels);
    case ImageFormat::gif:
    case ImageFormat::unknown:
      break;
  }
  fail(Code::invalid_argument, "Unknown image file format. One of JPEG, PNG, BMP required.");
}

std::array<int64_t, 3> jpeg_shape(std::string_view file) {
  JpegReader reader;
  if (!reader.read_header(file))
    fail(Code::invalid_argument, "Invalid JPEG data, size ", file.size());
  return {reader.c.output_height, reader.c.output_width, reader.c.output_components};
}

std::string encode_png(const Image& image, int compression) {
  const auto row_bytes = static_cast<size_t>(image.width * image.channels * image.bytes_per_value);
  std::vector<png_bytep> rows(image.height);
  for (size_t y = 0; y < rows.size(); ++y)
    rows[y] = const_cast<png_bytep>(image.contents.data() + y * row_bytes);
  PngWriter writer;
  check(writer.write(image, compression, rows.data()), "cannot encode ", image.height, " x ",
        image.width, " pixels as PNG");
  return std::move(writer.out);
}

std::string encode_jpeg(const Image& image, const JpegOptions& options) {
  JpegWriter writer;
  const bool is_written = writer.write(image, options);
  StepEnd::ask();
  if (writer.to.has_no_memory) throw std::bad_alloc();
  check(is_written, "JPEG encoding of ", image.height, " x ", image.width, " pixels failed");
  return std::move(writer.to.bytes);
}

}  // namespace leat
