// Files as values: ReadFile, WriteFile, MatchingFiles. They wait for the disk.
#include <algorithm>

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
  const FileRoots& roots = files_of(c.device());
  if (const std::optional<FileStatus> status = file_status(path, roots);
      status && status->is_directory)
    fail(Code::failed_precondition, path, "; Is a directory");
  c.set_output(0, Tensor::scalar(read_file(path, roots)));
}

void write(ExecuteContext& c) {
  const std::string &path = scalar(c, 0, "Input filename"), &contents = scalar(c, 1, "Contents");
  const FileRoots& roots = files_of(c.device());
  make_directories(directory_of(local_path(path)), roots);
  FileWriter writer(path, FileWriter::Mode::create, roots);
  writer.append(contents);
  writer.close();
}

void match(ExecuteContext& c) {
  check(c.input(0).shape().rank() <= 1,
        "Input patterns tensor must be scalar or vector, got shape ", c.input(0).shape());
  std::vector<std::string> found;
  for (const std::string& given : c.input(0).span<std::string>()) {
    const std::string_view scheme =
        std::string_view(given).substr(0, given.size() - local_path(given).size());
    for (const std::string& path : matching_files(given, files_of(c.device())))
      found.push_back(concat(scheme, path));
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
    .doc = "Writes the file; makes it and its directories if they are not there.",
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
