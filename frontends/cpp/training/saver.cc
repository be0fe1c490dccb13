#include "frontends/cpp/training/saver.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>

#include "graph/formats/checkpoint.h"
#include "graph/formats/checkpoint_state.h"
#include "graph/variable_node.h"

namespace leat {
namespace {

Output texts(Graph& graph, const std::vector<std::string>& values, std::string_view name) {
  return constant(graph,
                  Tensor::of<std::string>({static_cast<int64_t>(values.size())},
                                          std::span<const std::string>(values)),
                  name);
}

// The variables that one task writes.
struct Shard {
  std::vector<std::string> names, slices;  // in the checkpoint
  std::vector<Output> variables;

  void add(const std::string& name, const Output& variable) {
    const auto part = part_of(variable);
    names.push_back(name);
    slices.push_back(part ? part->text() : "");
    variables.push_back(variable);
  }
  std::vector<DType> dtypes() const {
    std::vector<DType> out;
    for (const Output& variable : variables) out.push_back(variable.dtype());
    return out;
  }
};

constexpr std::string_view name_in_directory = "model.ckpt", parts_suffix = "_temp",
                           state_file = "checkpoint";

// Tasks may have started in other directories. Without a slash at the end.
std::string absolute(const std::string& given) {
  const std::string path = local_path(given);
  check(!path.empty(), "the path of checkpoints is \"\": use \".\" for the current directory");
  std::error_code error;
  std::filesystem::path out = std::filesystem::absolute(path, error);
  check(!error, "cannot use the path of checkpoints '", path, "': ", error.message());
  out = out.lexically_normal();
  return (out.has_filename() ? out : out.parent_path()).string();
}

// Where checkpoints go: <directory>/<name>-<step>.
struct Place {
  std::string directory, name;
  bool is_directory = false;  // all of the directory are meant

  explicit Place(const std::string& given) {
    const std::filesystem::path path = absolute(given);
    std::error_code ignored;
    is_directory = given.ends_with('/') || std::filesystem::is_directory(path, ignored);
    directory = (is_directory ? path : path.parent_path()).string();
    name = is_directory ? std::string(name_in_directory) : path.filename().string();
  }
  std::string prefix(std::optional<int64_t> step) const {
    const std::string path = (std::filesystem::path(directory) / name).string();
    return step ? concat(path, '-', *step) : path;
  }
  bool has(const std::string& checkpoint) const {
    const std::string path = prefix({});
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    return is_directory || checkpoint == path ||
           (checkpoint.starts_with(path + "-") &&
            std::all_of(checkpoint.begin() + path.size() + 1, checkpoint.end(), is_digit));
  }
};

// What the directory has so far. A torn state is of no use: it is written anew.
CheckpointState state_before_save(const std::string& directory) {
  try {
    return CheckpointState::read(directory);
  } catch (const Error& error) {
    if (error.code() != Code::data_loss) throw;
    std::cerr << "leat: " << error.message() << "; writing a new one" << std::endl;
    return {};
  }
}

// What the tasks have written of a checkpoint that was not joined.
void remove_parts(const std::string& prefix) {
  std::error_code ignored;
  std::filesystem::remove_all(prefix + std::string(parts_suffix), ignored);
}

// Of those saved there, the last one first, then the others, newest first.
std::vector<std::string> prefixes_to_try(const Place& place) {
  const CheckpointState state = CheckpointState::read(place.directory);
  std::vector<std::string> out = state.all_model_checkpoint_paths;
  std::erase(out, state.model_checkpoint_path);
  if (!state.model_checkpoint_path.empty()) out.push_back(state.model_checkpoint_path);
  std::reverse(out.begin(), out.end());
  std::erase_if(out, [&](const std::string& each) { return !place.has(each); });
  return out;
}

// Adds the updates of the variables' copies, after those of the variables.
void copy_restored(Graph& graph, std::vector<Output>& restored) {
  std::map<const Node*, Output> of_variable;
  for (const Output& update : restored) of_variable[variable_node(update)] = update;
  for (const Output& initializer : graph.collection("copy_initializers")) {
    const Output copy = initializer.node->inputs[0];
    // Not what a resource variable's copy began with, which was read after an initialiser.
    const Output variable = variable_handle(initializer.node->inputs[1]);
    const auto update = of_variable.find(variable_node(variable));
    if (update == of_variable.end()) continue;
    const ColocationScope beside(graph, {copy});
    const ControlScope after(graph, {update->second});
    restored.push_back(assign(copy, read_variable(variable)));
  }
}

}  // namespace

Saver::Saver(Graph& graph, std::initializer_list<Output> variables, Location at)
    : Saver(
          graph,
          [&] {
            Options options;
            for (const Output& each : variables)
              options.variables.emplace(checkpoint_name(each), each);
            return options;
          }(),
          at) {}

Saver::Saver(Graph& graph, Options options, Location at)
    : max_to_keep_(options.max_to_keep), tensors_(saved_tensors(graph, options.variables)) {
  check(max_to_keep_ >= 0, "a Saver cannot keep ", max_to_keep_,
        " checkpoints; 0 keeps all of them");
  std::map<std::string, Shard> shards;  // by the device that was asked for
  for (const SavedTensor& tensor : tensors_) {
    for (const Output& variable : tensor.variables)
      shards[variable_node(variable)->requested_device->task_name().to_string()].add(tensor.name,
                                                                                     variable);
  }

  const NameScope scope(graph, "save");
  const LocationScope line(graph, at);
  prefix_ = placeholder(graph, "prefix", DType::string, {});
  std::vector<Output> parts, restored;
  std::vector<Node*> saved;
  int index = 0;
  for (const auto& [device, shard] : shards) {
    // Where its variables are: with the first of them.
    const ColocationScope with(graph, {shard.variables.front()});
    Output part = prefix_;
    if (shards.size() > 1) {
      const auto number = [&](size_t n) {
        return constant(graph, Tensor::scalar(static_cast<int32_t>(n)));
      };
      part = op("ShardedFilename",
                {op("StringJoin",
                    {prefix_, constant(graph, Tensor::scalar(concat(parts_suffix, "/part")))}),
                 number(index++), number(shards.size())});
      parts.push_back(part);
    }
    const Output names = texts(graph, shard.names, "tensor_names"),
                 slices = texts(graph, shard.slices, "shape_and_slices");
    std::vector<Output> inputs = {part, names, slices};
    inputs.insert(inputs.end(), shard.variables.begin(), shard.variables.end());
    saved.push_back(&op_node(graph, "SaveV2", inputs, {{"dtypes", shard.dtypes()}}));
    const std::vector<Output> values =
        op_outputs("RestoreV2", {prefix_, names, slices}, {{"dtypes", shard.dtypes()}});
    for (size_t i = 0; i < values.size(); ++i) {
      const ColocationScope beside(graph, {shard.variables[i]});
      restored.push_back(assign(shard.variables[i], values[i]));
    }
  }
  copy_restored(graph, restored);
  if (shards.size() > 1) {
    const ControlScope after(graph, saved);
    save_ = &op_node(graph, "MergeV2Checkpoints", {stack(parts), prefix_});
  } else {
    save_ = saved.front();
  }
  restore_ = &group(graph, restored, "restore_all");
}

std::string Saver::save(Session& session, const std::string& path, std::optional<int64_t> step) {
  const Place place(path);
  const std::string directory = place.directory, prefix = place.prefix(step);
  try {
    session.run({{prefix_, Tensor::scalar(prefix)}}, {*save_});
  } catch (...) {
    remove_parts(prefix);  // the disk may be full, and what was written helps nobody
    throw;
  }
  CheckpointState state = state_before_save(directory);
  std::erase(torn_, prefix);  // it is whole now
  for (const std::string& torn : torn_) std::erase(state.all_model_checkpoint_paths, torn);
  std::erase(state.all_model_checkpoint_paths, prefix);
  state.all_model_checkpoint_paths.push_back(prefix);
  state.model_checkpoint_path = prefix;
  std::vector<std::string> old;
  while (max_to_keep_ > 0 && std::ssize(state.all_model_checkpoint_paths) > max_to_keep_) {
    old.push_back(state.all_model_checkpoint_paths.front());
    state.all_model_checkpoint_paths.erase(state.all_model_checkpoint_paths.begin());
  }
  state.write(directory);
  for (const std::string& gone : old) {
    // A state that was copied may name the checkpoints of another training.
    if (directory_of(gone) == directory) remove_checkpoint(gone);
  }
  return prefix;
}

void Saver::restore(Session& session, const std::string& where) const {
  if (where.empty())
    fail(Code::not_found, "there is no checkpoint to restore: the path is \"\", which ",
         "latest_checkpoint() returns if the directory has none; check its result, or call ",
         "restore_latest()");
  const std::string prefix = absolute(where);
  std::optional<CheckpointReader> reader;
  try {
    reader.emplace(prefix);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;  // the tasks may see it
  }
  // Reports all that differs before a variable has changed.
  if (reader) check_fits(*reader, prefix, tensors_);
  session.run({{prefix_, Tensor::scalar(prefix)}}, {*restore_});
}

std::string Saver::restore_latest(Session& session, const std::string& path) {
  const std::vector<std::string> prefixes = prefixes_to_try(Place(path));
  Status torn;
  torn_.clear();
  for (const std::string& prefix : prefixes) {
    try {
      const CheckpointReader reader(prefix);
      reader.verify();  // here, before a variable has changed
      check_fits(reader, prefix, tensors_);
      session.run({{prefix_, Tensor::scalar(prefix)}}, {*restore_});
      return prefix;
    } catch (const Error& error) {
      if (error.code() != Code::data_loss && error.code() != Code::not_found) throw;
      // Missing variables are no damage: another program's checkpoint.
      if (error.code() == Code::not_found &&
          error.message().find("Failed to find") == std::string::npos)
        throw;
      std::cerr << "leat: skipping the checkpoint " << prefix << ": " << error.message()
                << std::endl;
      torn = error.status();
      torn_.push_back(prefix);
    }
  }
  if (!torn.is_ok())
    fail(Code::data_loss, "none of the ", prefixes.size(), " checkpoints of ", path,
         " can be read; the last one tried is ", torn_.back(), ": ", torn.message);
  return "";
}

void Saver::remove_remains(const std::string& where) {
  const std::string directory = absolute(where);
  std::vector<std::filesystem::path> remains;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_ours = name.starts_with(name_in_directory) || name.starts_with(state_file);
    if (is_ours && (name.ends_with(parts_suffix) || is_temporary_name(name)))
      remains.push_back(entry.path());
  }
  for (const std::filesystem::path& path : remains) std::filesystem::remove_all(path, ignored);
}

std::string latest_checkpoint(const std::string& given) {
  const std::string path = absolute(given);
  std::error_code ignored;
  const bool is_prefix = std::filesystem::exists(path + ".index", ignored);
  check(!is_prefix, "latest_checkpoint: ", path, " is a checkpoint, not a directory of them: give ",
        "it to restore(), or give its directory to latest_checkpoint()");
  check(!std::filesystem::is_regular_file(path, ignored), "latest_checkpoint: ", path,
        " is a file; give the directory that it is in");
  const std::vector<std::string> prefixes = prefixes_to_try(Place(given));
  return prefixes.empty() ? "" : prefixes.front();
}

}  // namespace leat
