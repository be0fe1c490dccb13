#include "graph/formats/checkpoint_state.h"

#include <sstream>

#include "core/error.h"
#include "graph/formats/file.h"

namespace leat {
namespace {

constexpr std::string_view file_name = "/checkpoint";

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string relative(const std::string& path, const std::string& directory) {
  return path.starts_with(directory + "/") ? path.substr(directory.size() + 1) : path;
}

std::string absolute(const std::string& path, const std::string& directory) {
  return path.starts_with("/") ? path : directory + "/" + path;
}

}  // namespace

CheckpointState CheckpointState::read(const std::string& directory) {
  CheckpointState out;
  std::string text;
  try {
    text = read_file(directory + std::string(file_name));
  } catch (const Error& error) {
    if (error.code() == Code::not_found) return out;
    throw;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": \""), end = line.rfind('"');
    if (colon == line.npos || end <= colon + 2) continue;  // timestamps
    std::string value;
    for (size_t i = colon + 3; i < end; ++i) {
      if (line[i] == '\\' && i + 1 < end) ++i;
      value += line[i];
    }
    const std::string key = line.substr(0, colon);
    if (key == "model_checkpoint_path") out.model_checkpoint_path = absolute(value, directory);
    if (key == "all_model_checkpoint_paths")
      out.all_model_checkpoint_paths.push_back(absolute(value, directory));
  }
  return out;
}

void CheckpointState::write(const std::string& directory) const {
  std::string text =
      "model_checkpoint_path: " + quoted(relative(model_checkpoint_path, directory)) + "\n";
  for (const std::string& path : all_model_checkpoint_paths)
    text += "all_model_checkpoint_paths: " + quoted(relative(path, directory)) + "\n";
  replace_file(directory + std::string(file_name), text);
}

}  // namespace leat
