// idx files and the MNIST directory. zlib reads plain files too, so one path serves both.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iomanip>
#include <memory>

#include "frontends/cpp/data/data.h"

namespace leat::data {
namespace {

struct GzipCloser {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

class IdxFile {
 public:
  explicit IdxFile(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_) fail(Code::not_found, "cannot open ", path, ": ", std::strerror(errno));
  }

  // Fills `bytes` or says what was being read and how much of it there was.
  void read(void* to, size_t bytes, std::string_view what) {
    size_t got = 0;
    while (got < bytes) {
      const auto want = static_cast<unsigned>(std::min<size_t>(bytes - got, size_t{1} << 30));
      const int n = gzread(file_.get(), static_cast<char*>(to) + got, want);
      if (n < 0)
        damaged(concat("its gzip stream is broken while reading ", what, ": ", gzip_error()));
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    if (got < bytes) damaged(concat("it ends after ", got, " of the ", bytes, " bytes of ", what));
  }

  void expect_end() {
    char extra = 0;
    const int n = gzread(file_.get(), &extra, 1);
    if (n < 0) damaged(concat("its gzip stream is broken at the end: ", gzip_error()));
    if (n > 0) damaged("it has more bytes after the last element");
    int code = 0;
    gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) damaged("its gzip stream ends before its checksum");
  }

  [[noreturn]] void damaged(const std::string& why) const {
    fail(Code::data_loss, path_, " is not a valid idx file: ", why);
  }

 private:
  std::string gzip_error() const {
    int code = 0;
    const char* text = gzerror(file_.get(), &code);
    return code == Z_ERRNO ? std::strerror(errno) : text;
  }

  const std::string path_;
  std::unique_ptr<gzFile_s, GzipCloser> file_;
};

DType dtype_of_code(const IdxFile& file, const std::array<uint8_t, 4>& magic) {
  switch (magic[2]) {
    case 0x08:
      return u8;
    case 0x09:
      return i8;
    case 0x0B:
      return i16;
    case 0x0C:
      return i32;
    case 0x0D:
      return f32;
    case 0x0E:
      return f64;
    default:
      break;
  }
  std::ostringstream hex;
  for (uint8_t byte : magic)
    hex << ' ' << std::hex << std::setw(2) << std::setfill('0') << static_cast<int>(byte);
  file.damaged("it starts with" + hex.str() +
               "; expected 00 00, a type (08 to 0e) and the number of dimensions");
}

IdxHeader read_header(IdxFile& file) {
  std::array<uint8_t, 4> magic{};
  file.read(magic.data(), magic.size(), "the magic number");
  if (magic[0] != 0 || magic[1] != 0) magic[2] = 0;  // reported by dtype_of_code
  IdxHeader out{dtype_of_code(file, magic), {}};
  if (magic[3] > Shape::max_rank)
    file.damaged(concat("it has ", int{magic[3]}, " dimensions; at most ", Shape::max_rank,
                        " are supported"));
  for (int axis = 0; axis < magic[3]; ++axis) {
    std::array<uint8_t, 4> dim{};
    file.read(dim.data(), dim.size(), concat("dimension ", axis));
    out.shape.push_back(int64_t{dim[0]} << 24 | dim[1] << 16 | dim[2] << 8 | dim[3]);
  }
  return out;
}

void swap_bytes(Tensor& tensor) {
  const size_t size = dtype_size(tensor.dtype());
  auto* bytes = static_cast<char*>(tensor.raw());
  for (int64_t i = 0; i < tensor.elements() && size > 1; ++i)
    std::reverse(bytes + i * size, bytes + (i + 1) * size);
}

// The one of the accepted spellings that exists.
std::string find_file(const std::string& directory, const std::string& stem,
                      const std::string& kind) {
  std::string tried;
  for (const std::string separator : {"-", "."}) {
    for (const std::string ending : {"", ".gz"}) {
      const std::string name = stem + separator + kind + ending;
      const std::filesystem::path path = std::filesystem::path(directory) / name;
      if (std::filesystem::exists(path)) return path.string();
      tried += (tried.empty() ? "" : ", ") + name;
    }
  }
  fail(Code::not_found, "no ", stem, " file in '", directory, "'; looked for ", tried);
}

Labelled load_pair(const std::string& directory, const std::string& prefix) {
  const std::string image_path = find_file(directory, prefix + "-images", "idx3-ubyte");
  const std::string label_path = find_file(directory, prefix + "-labels", "idx1-ubyte");
  const Tensor pixels = read_idx(image_path);
  const Tensor classes = read_idx(label_path);
  if (pixels.dtype() != u8 || pixels.shape().rank() != 3) {
    fail(Code::data_loss, image_path, " holds ", pixels.dtype(), pixels.shape(),
         "; expected uint8 images [n, rows, columns]");
  }
  if (classes.dtype() != u8 || classes.shape().rank() != 1 ||
      classes.shape()[0] != pixels.shape()[0]) {
    fail(Code::data_loss, label_path, " holds ", classes.dtype(), classes.shape(),
         "; expected uint8 labels [", pixels.shape()[0], "], one for each image of ", image_path);
  }
  const int64_t count = pixels.shape()[0];
  Labelled out{Tensor(f32, {count, pixels.shape()[1] * pixels.shape()[2]}), Tensor(i32, {count})};
  for (int64_t i = 0; i < pixels.elements(); ++i)
    out.images.data<float>()[i] = static_cast<float>(pixels.data<uint8_t>()[i]) / 255.0F;
  for (int64_t i = 0; i < count; ++i) {
    const int label = classes.data<uint8_t>()[i];
    if (label > 9)
      fail(Code::data_loss, label_path, ": label ", i, " is ", label, "; digits are 0 to 9");
    out.labels.data<int32_t>()[i] = label;
  }
  return out;
}

}  // namespace

IdxHeader read_idx_header(const std::string& path) {
  IdxFile file(path);
  return read_header(file);
}

Tensor read_idx(const std::string& path) {
  IdxFile file(path);
  const auto [dtype, shape] = read_header(file);
  // Claimed sizes are not believed: memory grows only as data arrives.
  constexpr int64_t block = int64_t{1} << 24;
  const int64_t size = static_cast<int64_t>(dtype_size(dtype));
  if (shape.elements() > (int64_t{1} << 40) / size)
    file.damaged(concat("it claims shape ", shape, ", more than 1 TiB"));
  const int64_t total = shape.elements() * size;
  std::vector<char> content;
  for (int64_t at = 0; at < total; at += block) {
    const int64_t part = std::min(block, total - at);
    content.resize(static_cast<size_t>(at + part));
    file.read(content.data() + at, static_cast<size_t>(part),
              concat("the elements of shape ", shape, " from byte ", at));
  }
  file.expect_end();
  Tensor out(dtype, shape);
  if (total > 0) std::memcpy(out.raw(), content.data(), content.size());
  if constexpr (std::endian::native == std::endian::little) swap_bytes(out);
  return out;
}

namespace {
void check_directory(const std::string& directory) {
  if (std::filesystem::is_directory(directory)) return;
  fail(Code::not_found, "'", directory,
       "' is not a directory; expected one with the four MNIST files "
       "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, "
       "t10k-labels-idx1-ubyte (each may end in .gz)");
}
}  // namespace

MnistFiles mnist_files(const std::string& directory, bool train) {
  check_directory(directory);
  const std::string prefix = train ? "train" : "t10k";
  return {find_file(directory, prefix + "-images", "idx3-ubyte"),
          find_file(directory, prefix + "-labels", "idx1-ubyte")};
}

Digits load_mnist(const std::string& directory) {
  check_directory(directory);
  return {load_pair(directory, "train"), load_pair(directory, "t10k")};
}

}  // namespace leat::data
