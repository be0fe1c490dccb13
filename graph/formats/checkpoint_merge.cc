// merge_checkpoints() of checkpoint.h.
#include <set>

#include "core/error.h"
#include "graph/formats/checkpoint.h"
#include "graph/formats/checkpoint_overwrite.h"

namespace leat {
namespace {

struct Part {
  std::string prefix;
  CheckpointIndex index;
};

// Those that are there, with all their files.
std::vector<Part> find_parts(const std::vector<std::string>& prefixes,
                             const std::string& destination, bool allow_missing,
                             const FileRoots& roots) {
  std::vector<Part> out;
  for (size_t p = 0; p < prefixes.size(); ++p) {
    const auto fail_unseen = [&](const std::string& path) {
      fail(Code::not_found, "part ", p + 1, " of ", prefixes.size(), " of the checkpoint ",
           destination, " cannot be seen on this host: there is no file ", path,
           "; all tasks must save into one shared directory");
    };
    const std::string prefix = local_path(prefixes[p]), index = checkpoint_index_path(prefix);
    if (!is_file_there(index, roots)) {
      if (allow_missing) continue;
      fail_unseen(index);
    }
    const Part& part = out.emplace_back(Part{prefix, CheckpointIndex::read(index, roots)});
    for (int shard = 0; shard < part.index.shards; ++shard) {
      const std::string data = checkpoint_data_path(prefix, shard, part.index.shards);
      if (!is_file_there(data, roots)) fail_unseen(data);
    }
  }
  check(!out.empty(), "there are no checkpoints to merge into ", destination);
  return out;
}

// The shards of all parts, one after the other.
CheckpointIndex joined_index(const std::vector<Part>& parts) {
  CheckpointIndex out;
  out.shards = 0;
  for (const Part& part : parts) {
    for (const auto& [key, entry] : part.index.entries) {
      const auto [it, is_new] = out.entries.emplace(key, entry);
      CheckpointEntry& known = it->second;
      if (is_new) {
        known.shard += out.shards;
        continue;
      }
      check(!known.slices.empty() && !entry.slices.empty() && known.shape == entry.shape &&
                known.dtype == entry.dtype,
            readable_key(key), " is saved by two tasks; prefix ", part.prefix);
      known.slices.insert(known.slices.end(), entry.slices.begin(), entry.slices.end());
    }
    out.shards += part.index.shards;
  }
  return out;
}

}  // namespace

void merge_checkpoints(const std::vector<std::string>& prefixes, const std::string& to,
                       bool delete_old_directories, bool allow_missing, const FileRoots& roots) {
  const std::string destination = local_path(to), path = checkpoint_index_path(destination);
  const std::vector<Part> parts = find_parts(prefixes, destination, allow_missing, roots);
  const CheckpointIndex joined = joined_index(parts);
  make_directories(directory_of(destination), roots);
  remove_stale_temporaries(path, roots);
  TemporaryFile temporary(path, roots);
  joined.write(temporary.path(), roots);
  keep_checkpoint(destination, roots);
  int next_shard = 0;
  for (const auto& [prefix, index] : parts) {
    for (int shard = 0; shard < index.shards; ++shard) {
      rename_file(checkpoint_data_path(prefix, shard, index.shards),
                  checkpoint_data_path(destination, next_shard++, joined.shards), roots);
    }
  }
  temporary.rename_to_target();
  sync_directory_of(destination, roots);
  drop_kept_checkpoint(destination, roots);
  std::set<std::string> directories;
  for (const Part& part : parts) {
    remove_file(checkpoint_index_path(part.prefix), roots);
    directories.insert(directory_of(part.prefix));
  }
  if (!delete_old_directories) return;
  for (const std::string& directory : directories) {
    if (directory == directory_of(destination)) continue;
    try {
      remove_empty_directory(directory, roots);
    } catch (const Error&) {
      // It is not empty.
    }
  }
}

}  // namespace leat
