// Files as values: ReadFile, WriteFile, MatchingFiles. They wait for the disk.
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>

#include "graph/formats/file.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/blocking.h"
#include "kernels/examples.h"

namespace leat {
namespace {

const std::string& scalar(const ExecuteContext& c, int input, const char* what) {
  check(c.input(input).shape().rank() == 0, what,
        " tensor must be scalar, but had shape: ", c.input(input).shape());
  return *c.input(input).data<std::string>();
}

void read(ExecuteContext& c) {
  const std::string& path = scalar(c, 0, "Input filename");
  std::error_code ignored;
  if (std::filesystem::is_directory(local_path(path), ignored))
    fail(Code::failed_precondition, path, "; Is a directory");
  c.set_output(0, Tensor::scalar(read_file(path)));
}

void write(ExecuteContext& c) {
  const std::string &path = scalar(c, 0, "Input filename"), &contents = scalar(c, 1, "Contents");
  make_directories(directory_of(local_path(path)));
  FileWriter writer(path);
  writer.append(contents);
  writer.close();
}

// All files whose names fit, part by part; `*` takes what is hidden too, as in TensorFlow.
void add_matches(const std::filesystem::path& directory, const std::vector<std::string>& parts,
                 size_t part, std::vector<std::string>& found) {
  namespace fs = std::filesystem;
  std::error_code error;
  const bool is_last = part + 1 == parts.size();
  const auto add = [&](const fs::path& path) {
    if (is_last) {
      found.push_back(path.string());
    } else if (fs::is_directory(path, error)) {
      add_matches(path, parts, part + 1, found);
    }
  };
  if (parts[part].find_first_of("*?[\\") == std::string::npos) {
    const fs::path path = directory / parts[part];
    if (fs::exists(fs::symlink_status(path, error))) add(path);
    return;
  }
  for (fs::directory_iterator at(directory.empty() ? "." : directory, error), end;
       !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (::fnmatch(parts[part].c_str(), name.c_str(), 0) == 0) add(directory / name);
  }
}

void match(ExecuteContext& c) {
  check(c.input(0).shape().rank() <= 1,
        "Input patterns tensor must be scalar or vector, got shape ", c.input(0).shape());
  std::vector<std::string> found;
  for (const std::string& given : c.input(0).span<std::string>()) {
    const std::string pattern = local_path(given);
    std::vector<std::string> parts, matches;
    for (size_t begin = 0; begin < pattern.size();) {
      const size_t end = std::min(pattern.find('/', begin), pattern.size());
      if (end > begin) parts.push_back(pattern.substr(begin, end - begin));
      begin = end + 1;
    }
    if (!parts.empty()) add_matches(pattern[0] == '/' ? "/" : "", parts, 0, matches);
    const std::string_view scheme =
        std::string_view(given).substr(0, given.size() - pattern.size());
    for (const std::string& path : matches) found.push_back(concat(scheme, path));
  }
  std::sort(found.begin(), found.end());
  Tensor out(DType::string, {static_cast<int64_t>(found.size())});
  std::move(found.begin(), found.end(), out.data<std::string>());
  c.set_output(0, std::move(out));
}

const Op read_op{{
    .name = "ReadFile",
    .doc = "contents = the bytes of the file.",
    .inputs = {"filename: string"},
    .outputs = {"contents: string"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          c.set_output(0, {});
        },
    .kernels = {{.execute_async = blocking(read)}},
    .is_stateful = true,  // the file may change
    .is_not_differentiable = true,
}};

const Op write_op{{
    .name = "WriteFile",
    .doc = "Makes the file, and the directories it is in, or replaces what it holds.",
    .inputs = {"filename: string", "contents: string"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          c.with_rank(1, 0);
        },
    .kernels = {{.execute_async = blocking(write)}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op match_op{{
    .name = "MatchingFiles",
    .doc =
        "filenames = all files that any of the patterns matches, sorted: in each part of a path * "
        "is any text, ? any letter, [ab] one of a and b.",
    .inputs = {"pattern: string"},
    .outputs = {"filenames: string"},
    .shape = [](ShapeContext& c) { c.set_output(0, {any}); },
    .kernels = {{.execute_async = blocking(match)}},
    .is_stateful = true,
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
