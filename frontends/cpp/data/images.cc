// Pictures in folders as a dataset.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "frontends/cpp/data/dataset.h"

namespace leat::datasets {
namespace {

namespace fs = std::filesystem;

bool is_picture(const fs::path& path) {
  std::string end = path.extension().string();
  std::transform(end.begin(), end.end(), end.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return end == ".jpg" || end == ".jpeg" || end == ".png" || end == ".bmp" || end == ".gif";
}

// The names of what is in a directory, sorted.
template <class Wanted>
std::vector<std::string> names_in(const fs::path& directory, Location at, const Wanted& wanted) {
  std::vector<std::string> out;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (wanted(*entry)) out.push_back(entry->path().filename().string());
  }
  if (error) {
    fail(Code::not_found, "images (", at, "): cannot list ", directory.string(), ": ",
         error.message());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<std::string> image_classes(const std::string& directory, Location at) {
  return names_in(directory, at, [](const fs::directory_entry& e) { return e.is_directory(); });
}

Dataset images(const std::string& directory, const ImageOptions& options, Location at) {
  const std::vector<int64_t>& size = options.size;
  check(size.empty() || (size.size() == 2 && size[0] > 0 && size[1] > 0), "images (", at,
        "): the size must be {height, width}, both positive, or left out");
  check(options.channels == 1 || options.channels == 3 || options.channels == 4, "images (", at,
        "): channels must be 1, 3 or 4, got ", options.channels);
  std::vector<std::string> paths;
  std::vector<int32_t> labels;
  int32_t label = 0;
  for (const std::string& name : image_classes(directory, at)) {
    const fs::path folder = fs::path(directory) / name;
    for (const std::string& file :
         names_in(folder, at, [](const fs::directory_entry& e) { return is_picture(e.path()); })) {
      paths.push_back((folder / file).string());
      labels.push_back(label);
    }
    ++label;
  }
  if (paths.empty()) {
    fail(Code::not_found, "images (", at, "): ", directory, " has no folders with pictures ",
         "(.jpg, .jpeg, .png, .bmp, .gif): expected ", directory, "/CLASS/PICTURE");
  }
  const auto count = static_cast<int64_t>(paths.size());
  Tensor files(DType::string, {count}), classes(i32, {count});
  std::copy(paths.begin(), paths.end(), files.span<std::string>().begin());
  std::copy(labels.begin(), labels.end(), classes.data<int32_t>());
  const auto read = [size, channels = options.channels, at](Output path, Output label) {
    Output image = op("DecodeImage", {op("ReadFile", {path}, {}, at)},
                      {{"channels", channels}, {"dtype", f32}, {"expand_animations", false}}, at);
    if (!size.empty()) {
      Tensor extents =
          Tensor::of<int32_t>({2}, {static_cast<int32_t>(size[0]), static_cast<int32_t>(size[1])});
      const Output wanted = constant(path.graph(), std::move(extents), "size", at);
      image = squeeze(resize_images(expand_dims(image, 0, at), wanted, {}, at), {0}, at);
    }
    return std::tuple{image, label};
  };
  return from_tensor_slices({files, classes}, at).map(read, at).named({"image", "label"}, at);
}

}  // namespace leat::datasets
