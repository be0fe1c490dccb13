#include "graph/formats/checkpoint_overwrite.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "graph/formats/checkpoint.h"

namespace leat {
namespace {

constexpr size_t piece_bytes = 1 << 22;

// Where a file cannot have two names.
void copy_file(const std::string& from, const std::string& to, const FileRoots& roots) {
  const FileReader reader(from, roots);
  TemporaryFile temporary(to, roots);
  FileWriter writer(temporary.path(), FileWriter::Mode::create, roots);
  std::vector<char> piece(piece_bytes);
  for (uint64_t at = 0; at < reader.size();) {
    const size_t bytes = std::min<uint64_t>(piece.size(), reader.size() - at);
    reader.read(at, piece.data(), bytes);
    writer.append(piece.data(), bytes);
    at += bytes;
  }
  writer.sync();
  writer.close();
  temporary.rename_to_target();
}

void keep_file(const std::string& from, const std::string& to, const FileRoots& roots) {
  if (!link_file(from, to, roots)) copy_file(from, to, roots);
}

// Nothing if there is no whole checkpoint of that prefix and no other.
std::optional<CheckpointIndex> whole_index(const std::string& prefix, const FileRoots& roots) {
  try {
    const CheckpointReader reader(prefix, roots);
    if (reader.prefix() != prefix || !is_file_there(checkpoint_index_path(prefix), roots))
      return std::nullopt;
    CheckpointIndex index = CheckpointIndex::read(checkpoint_index_path(prefix), roots);
    if (!has_all_data(prefix, index, roots)) return std::nullopt;
    return index;
  } catch (const Error& error) {
    const bool is_none = error.code() == Code::not_found || error.code() == Code::data_loss ||
                         error.code() == Code::failed_precondition;
    if (!is_none) throw;
    return std::nullopt;
  }
}

}  // namespace

std::string kept_prefix(std::string_view prefix) {
  return std::string(prefix) + ".before-overwrite";
}

void keep_checkpoint(const std::string& prefix, const FileRoots& roots) {
  const std::optional<CheckpointIndex> index = whole_index(prefix, roots);
  if (!index) return;
  drop_kept_checkpoint(prefix, roots);
  const std::string kept = kept_prefix(prefix);
  // The index last: where it is, its data is.
  for (int shard = 0; shard < index->shards; ++shard) {
    keep_file(checkpoint_data_path(prefix, shard, index->shards),
              checkpoint_data_path(kept, shard, index->shards), roots);
  }
  keep_file(checkpoint_index_path(prefix), checkpoint_index_path(kept), roots);
  sync_directory_of(prefix, roots);
}

void drop_kept_checkpoint(const std::string& prefix, const FileRoots& roots) {
  const std::string kept = kept_prefix(prefix), directory = directory_of(prefix);
  remove_file(checkpoint_index_path(kept), roots);
  const std::string data = kept.substr(kept.rfind('/') + 1) + ".data-";
  for (const std::string& name : names_in(directory, roots))
    if (name.starts_with(data)) remove_file(directory + "/" + name, roots);
}

bool has_all_data(const std::string& prefix, const CheckpointIndex& index, const FileRoots& roots) {
  std::vector<int64_t> sizes(index.shards);
  for (const auto& [key, entry] : index.entries) {
    if (entry.shard >= index.shards) return false;
    sizes[entry.shard] = std::max(sizes[entry.shard], entry.offset + entry.size);
  }
  for (int shard = 0; shard < index.shards; ++shard) {
    const std::optional<FileStatus> file =
        file_status(checkpoint_data_path(prefix, shard, index.shards), roots);
    if (!file || static_cast<int64_t>(file->size) < sizes[shard]) return false;
  }
  return true;
}

}  // namespace leat
