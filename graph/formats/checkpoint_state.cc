#include "graph/formats/checkpoint_state.h"

#include <google/protobuf/text_format.h>

#include "core/error.h"
#include "graph/formats/checkpoint.h"
#include "graph/formats/file.h"
#include "graph/formats/proto/checkpoint_state.pb.h"
#include "graph/import/proto_codec.h"

namespace leat {
namespace {

constexpr std::string_view file_name = "/checkpoint";

std::string relative(const std::string& path, const std::string& directory) {
  return path.starts_with(directory + "/") ? path.substr(directory.size() + 1) : path;
}

std::string absolute(const std::string& path, const std::string& directory) {
  return path.starts_with("/") ? path : directory + "/" + path;
}

[[noreturn]] void fail_torn(const std::string& path, const std::string& what,
                            const FileRoots& roots) {
  const std::string newest = complete_checkpoint_beside(path, roots);
  fail(Code::data_loss, path, " is torn or changed: ", what,
       newest.empty() ? "; there is no complete checkpoint beside it"
                      : "; the newest complete checkpoint beside it is '" + newest + "'",
       "; write the line `model_checkpoint_path: \"…\"` into it, or remove it to start over");
}

}  // namespace

CheckpointState CheckpointState::read(const std::string& directory, const FileRoots& roots) {
  CheckpointState out;
  const std::string path = directory + std::string(file_name);
  std::string text;
  try {
    text = read_file(path, roots);
  } catch (const Error& error) {
    if (error.code() == Code::not_found) return out;
    throw;
  }
  tensorflow::CheckpointState state;
  const std::string mistake = parse_text(text, state);
  if (!mistake.empty()) fail_torn(path, mistake, roots);
  if (state.model_checkpoint_path().empty()) fail_torn(path, "it names no checkpoint", roots);
  out.model_checkpoint_path = absolute(state.model_checkpoint_path(), directory);
  for (const std::string& listed : state.all_model_checkpoint_paths())
    out.all_model_checkpoint_paths.push_back(absolute(listed, directory));
  return out;
}

void CheckpointState::write(const std::string& directory, const FileRoots& roots) const {
  tensorflow::CheckpointState state;
  state.set_model_checkpoint_path(relative(model_checkpoint_path, directory));
  for (const std::string& path : all_model_checkpoint_paths)
    state.add_all_model_checkpoint_paths(relative(path, directory));
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseUtf8StringEscaping(true);
  std::string text;
  check_internal(printer.PrintToString(state, &text), "the state of checkpoints has no text");
  replace_file(directory + std::string(file_name), text, roots);
}

}  // namespace leat
