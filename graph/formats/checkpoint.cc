#include "graph/formats/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "core/bools.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "graph/formats/checkpoint_strings.h"
#include "graph/formats/checkpoint_v1.h"

namespace leat {
namespace {

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool has_all_data(const std::string& prefix, const CheckpointIndex& index) {
  std::vector<int64_t> sizes(index.shards);
  for (const auto& [key, entry] : index.entries) {
    if (entry.shard >= index.shards) return false;
    sizes[entry.shard] = std::max(sizes[entry.shard], entry.offset + entry.size);
  }
  for (int shard = 0; shard < index.shards; ++shard) {
    std::error_code error;
    const auto size =
        std::filesystem::file_size(checkpoint_data_path(prefix, shard, index.shards), error);
    if (error || static_cast<int64_t>(size) < sizes[shard]) return false;
  }
  return true;
}

[[noreturn]] void fail_torn(const std::string& prefix, std::string_view what) {
  const std::string other = complete_checkpoint_beside(prefix);
  fail(Code::data_loss, what,
       other.empty() ? "; there is no other complete checkpoint in its directory"
                     : "; the newest complete checkpoint beside it is '" + other + "'");
}

// A file of a checkpoint that is something else than a file is as good as torn.
bool is_damage(const Error& error) {
  return error.code() == Code::data_loss || error.code() == Code::failed_precondition;
}

// The prefix of the checkpoint of which this is a file; "" if it is none.
std::string prefix_of_file(const std::string& path) {
  for (const std::string_view suffix : {".index", ".data-", ".meta"}) {
    const std::string prefix = path.substr(0, path.rfind(suffix));
    if (prefix != path && is_there(checkpoint_index_path(prefix))) return prefix;
  }
  return "";
}

// Why there may be no checkpoint of that prefix: it is the name of something else.
std::string what_is_there_instead(const std::string& prefix) {
  if (const std::string other = prefix_of_file(prefix); !other.empty())
    return "; the checkpoint's prefix is '" + other + "', without the rest of its files' names";
  std::error_code error;
  if (std::filesystem::is_directory(prefix, error)) {
    const std::string newest = complete_checkpoint_beside(prefix + "/");
    return newest.empty()
               ? "; it is a directory, without a complete checkpoint"
               : "; it is a directory, and '" + newest + "' the newest complete checkpoint there";
  }
  if (is_there(prefix)) return "; the file of that name is no checkpoint of format V1, or torn";
  return "";
}

}  // namespace

std::string checkpoint_index_path(std::string_view prefix) {
  return std::string(prefix) + ".index";
}

std::string checkpoint_data_path(std::string_view prefix, int shard, int shards) {
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, ".data-%05d-of-%05d", shard, shards);
  return std::string(prefix) + suffix;
}

// ---- Writing ----

CheckpointWriter::CheckpointWriter(const std::string& prefix)
    : prefix_(local_path(prefix)),
      data_path_(checkpoint_data_path(prefix_, 0, 1)),
      temporary_data_(temporary_name(data_path_)),
      temporary_index_(temporary_name(checkpoint_index_path(prefix_))) {
  make_directories(directory_of(prefix_));
  data_ = std::make_unique<FileWriter>(temporary_data_);
}

CheckpointWriter::~CheckpointWriter() {
  if (is_finished_) return;
  data_.reset();
  std::error_code ignored;  // an error is under way already
  std::filesystem::remove(temporary_data_, ignored);
  std::filesystem::remove(temporary_index_, ignored);
}

void CheckpointWriter::add(const std::string& name, const Tensor& tensor) {
  check(!name.empty(), "a variable of a checkpoint needs a name");
  add_entry(name, tensor);
}

void CheckpointWriter::add_entry(const std::string& key, const Tensor& tensor) {
  check(!index_.entries.contains(key), readable_key(key), " is saved twice");
  CheckpointEntry entry{.dtype = tensor.dtype(),
                        .shape = tensor.shape(),
                        .shard = 0,
                        .offset = static_cast<int64_t>(data_->bytes()),
                        .slices = {}};
  if (tensor.dtype() == DType::string) {
    const StringLengths lengths = string_lengths(tensor.span<std::string>());
    data_->append(lengths.bytes);
    uint32_t crc = lengths.crc;
    for (const std::string& text : tensor.span<std::string>()) {
      data_->append(text);
      crc = crc32c(text.data(), text.size(), crc);
    }
    entry.crc = masked_crc(crc);
  } else {
    data_->append(tensor.raw(), tensor.bytes());
    entry.crc = masked_crc(crc32c(tensor.raw(), tensor.bytes()));
  }
  entry.size = static_cast<int64_t>(data_->bytes()) - entry.offset;
  index_.entries.emplace(key, std::move(entry));
}

void CheckpointWriter::add_slice(const std::string& name, const Shape& full,
                                 const TensorSlice& slice, const Tensor& tensor) {
  check(slice.resolved(full).shape() == tensor.shape(), "the slice '", slice.to_string(), "' of '",
        name, "', ", full, ", is saved with the shape ", tensor.shape());
  if (slice.covers(full)) return add(name, tensor);
  const auto [it, is_new] = index_.entries.try_emplace(
      name, CheckpointEntry{.dtype = tensor.dtype(), .shape = full, .slices = {}});
  CheckpointEntry& whole = it->second;
  check(is_new || (!whole.slices.empty() && whole.shape == full && whole.dtype == tensor.dtype()),
        "'", name, "' is saved with different shapes or dtypes");
  whole.slices.push_back(slice);
  add_entry(slice_key(name, slice), tensor);
}

void CheckpointWriter::finish() {
  data_->sync();
  data_->close();
  index_.write(temporary_index_);
  rename_file(temporary_data_, data_path_);
  rename_file(temporary_index_, checkpoint_index_path(prefix_));
  sync_directory_of(prefix_);
  is_finished_ = true;
}

// ---- Reading ----

namespace {

// Null if there is none. A name of one of a V2 checkpoint's files is none, either.
std::unique_ptr<V1Checkpoint> open_v1(const std::string& prefix) {
  try {
    return prefix_of_file(prefix).empty() ? V1Checkpoint::open(prefix) : nullptr;
  } catch (const Error& error) {
    if (!is_damage(error)) throw;
    fail_torn(prefix, error.message());
  }
}

// Of format V2. The file has that many bytes.
Tensor read_data(const FileReader& file, const CheckpointEntry& entry) {
  Tensor out(entry.dtype, entry.shape);
  uint32_t crc = 0;
  if (entry.dtype == DType::string) {
    std::string bytes(static_cast<size_t>(entry.size), '\0');
    file.read(entry.offset, bytes.data(), bytes.size());
    crc = read_strings(bytes, out.span<std::string>());
  } else {
    file.read(entry.offset, out.raw(), out.bytes());
    crc = crc32c(out.raw(), out.bytes());
    normalise_bools(out);
  }
  if (masked_crc(crc) != entry.crc)
    fail(Code::data_loss, "its bytes have changed: the checksum is wrong");
  return out;
}

}  // namespace

CheckpointReader::CheckpointReader(const std::string& prefix) : prefix_(local_path(prefix)) {
  const std::string path = checkpoint_index_path(prefix_);
  try {
    index_ = CheckpointIndex::read(path);
  } catch (const Error& error) {
    if (is_damage(error)) fail_torn(prefix_, error.message());
    if (error.code() != Code::not_found) throw;
    v1_ = open_v1(prefix_);
    if (v1_) {
      index_ = v1_->take_index();
      return;
    }
    fail(Code::not_found, "Failed to find any matching files for ", prefix_, ": there is no file ",
         path, what_is_there_instead(prefix_));
  }
  shards_.resize(index_.shards);
}

CheckpointReader::~CheckpointReader() = default;

std::vector<CheckpointReader::Variable> CheckpointReader::variables() const {
  std::vector<Variable> out;
  for (const auto& [key, entry] : index_.entries) {
    if (key[0] != '\0') out.push_back({key, entry.dtype, entry.shape});
  }
  return out;
}

const CheckpointEntry& CheckpointReader::entry(const std::string& name) const {
  const auto found = index_.entries.find(name);
  if (found == index_.entries.end())
    fail(Code::not_found, "Key ", name, " not found in checkpoint ", prefix_);
  return found->second;
}

const FileReader& CheckpointReader::shard(int number) const {
  if (number >= index_.shards)
    fail_torn(prefix_, concat(checkpoint_index_path(prefix_), " names shard ", number, " of ",
                              index_.shards));
  std::unique_ptr<FileReader>& file = shards_[number];
  if (!file) {
    const std::string path = checkpoint_data_path(prefix_, number, index_.shards);
    try {
      file = std::make_unique<FileReader>(path);
    } catch (const Error& error) {
      if (error.code() == Code::not_found)
        fail_torn(prefix_, concat("the checkpoint ", prefix_, " has lost its file ", path));
      if (is_damage(error)) fail_torn(prefix_, error.message());
      throw;
    }
  }
  return *file;
}

void CheckpointReader::fail_entry(const std::string& key, const std::string& path,
                                  std::string_view what) const {
  fail_torn(prefix_, concat(readable_key(key), " in ", path, ": ", what));
}

const FileReader& CheckpointReader::file_of(const std::string& key,
                                            const CheckpointEntry& entry) const {
  const FileReader& file = shard(entry.shard);
  const auto end = static_cast<uint64_t>(entry.offset + entry.size);
  if (end > file.size())
    fail_entry(key, file.path(),
               concat("it ends at byte ", end, ", but the file at ", file.size()));
  const int64_t elements = entry.shape.elements();
  if (entry.dtype == DType::string) {
    if (elements > entry.size) fail_entry(key, file.path(), "it has fewer bytes than strings");
  } else if (elements > entry.size ||
             elements * static_cast<int64_t>(dtype_size(entry.dtype)) != entry.size) {
    fail_entry(key, file.path(),
               concat("it has ", entry.size, " bytes for ", entry.dtype, entry.shape));
  }
  return file;
}

Tensor CheckpointReader::read_entry(const std::string& key, const CheckpointEntry& entry) const {
  const FileReader* file = v1_ ? nullptr : &file_of(key, entry);
  try {
    return v1_ ? v1_->read(key, entry) : read_data(*file, entry);
  } catch (const Error& error) {
    if (error.code() != Code::data_loss) throw;
    fail_entry(key, v1_ ? v1_->path_of(entry) : file->path(), error.message());
  }
}

Tensor CheckpointReader::assemble(const std::string& name, const CheckpointEntry& entry,
                                  const TensorSlice& wanted) const {
  struct Part {
    const CheckpointEntry& stored;
    std::string key;
    TensorSlice slice;
  };
  std::vector<Part> parts;
  const auto add = [&](const CheckpointEntry& stored, std::string key, TensorSlice slice) {
    if (common_elements(slice, wanted) > 0) parts.push_back({stored, std::move(key), slice});
  };
  if (entry.slices.empty())
    add(entry, name, TensorSlice::whole(entry.shape.rank()).resolved(entry.shape));
  for (const TensorSlice& stored : entry.slices) {
    const TensorSlice slice = stored.resolved(entry.shape);
    std::string key = slice_key(name, stored);
    const auto found = index_.entries.find(key);
    const auto lost = [&](std::string_view what) {
      fail_torn(prefix_, concat("the slice '", stored.to_string(), "' of '", name, "' ", what,
                                " the index of ", prefix_));
    };
    if (found == index_.entries.end()) lost("is not in");
    const CheckpointEntry& part = found->second;
    if (part.dtype != entry.dtype || part.shape != slice.shape() || !part.slices.empty())
      lost("has another dtype or shape than it should have in");
    for (const Part& other : parts)
      if (common_elements(slice, other.slice) > 0) lost("overlaps another one in");
    add(part, std::move(key), slice);
  }
  // Counted before there is memory for them.
  const int64_t elements = wanted.shape().elements();
  int64_t stored = 0;
  for (const Part& part : parts) stored += common_elements(part.slice, wanted);
  check(stored == elements, "the checkpoint ", prefix_, " holds only ", stored, " of the ",
        elements, " elements of the slice '", wanted.to_string(), "' of '", name, "', ",
        entry.shape);
  if (!v1_) {
    for (const Part& part : parts) file_of(part.key, part.stored);
  }
  Tensor out(entry.dtype, wanted.shape());
  for (const Part& part : parts)
    copy_common(read_entry(part.key, part.stored), part.slice, out, wanted);
  return out;
}

Tensor CheckpointReader::read(const std::string& name) const {
  const CheckpointEntry& found = entry(name);
  if (found.slices.empty()) return read_entry(name, found);
  return assemble(name, found, TensorSlice::whole(found.shape.rank()).resolved(found.shape));
}

Tensor CheckpointReader::read_slice(const std::string& name, const Shape& full,
                                    const TensorSlice& slice) const {
  const CheckpointEntry& found = entry(name);
  check(found.shape == full, "'", name, "' has shape ", found.shape, " in the checkpoint ", prefix_,
        ", not ", full);
  return assemble(name, found, slice.resolved(full));
}

void CheckpointReader::verify() const {
  for (const auto& [key, entry] : index_.entries) {
    if (entry.slices.empty()) read_entry(key, entry);
  }
}

std::string complete_checkpoint_beside(const std::string& prefix) {
  std::string newest;
  std::filesystem::file_time_type newest_time;
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(directory_of(prefix), error)) {
    const std::string path = file.path().string();
    if (!path.ends_with(".index")) continue;
    const std::string other = path.substr(0, path.size() - std::string_view(".index").size());
    const auto time = file.last_write_time(error);
    if (error ||
        std::filesystem::path(other).filename() == std::filesystem::path(prefix).filename() ||
        (!newest.empty() && time <= newest_time))
      continue;
    try {
      if (!has_all_data(other, CheckpointIndex::read(path))) continue;
    } catch (const Error&) {
      continue;  // torn, too
    }
    newest = other;
    newest_time = time;
  }
  return newest;
}

void remove_checkpoint(const std::string& prefix) {
  // The index first: what is left is no checkpoint any more.
  int shards = 1;
  try {
    shards = CheckpointIndex::read(checkpoint_index_path(prefix)).shards;
  } catch (const Error&) {
    // Torn or gone: what a checkpoint of one shard would have is removed.
  }
  remove_file(checkpoint_index_path(prefix));
  for (int shard = 0; shard < shards; ++shard)
    remove_file(checkpoint_data_path(prefix, shard, shards));
}

// ---- Merging ----

namespace {

struct Part {
  std::string prefix;
  CheckpointIndex index;
};

// Those that are there, with all their files.
std::vector<Part> find_parts(const std::vector<std::string>& prefixes,
                             const std::string& destination, bool allow_missing) {
  std::vector<Part> out;
  for (size_t p = 0; p < prefixes.size(); ++p) {
    const auto fail_unseen = [&](const std::string& path) {
      fail(Code::not_found, "part ", p + 1, " of ", prefixes.size(), " of the checkpoint ",
           destination, " cannot be seen on this host: there is no file ", path,
           "; all tasks must save into one shared directory");
    };
    const std::string prefix = local_path(prefixes[p]), index = checkpoint_index_path(prefix);
    if (!is_there(index)) {
      if (allow_missing) continue;
      fail_unseen(index);
    }
    const Part& part = out.emplace_back(Part{prefix, CheckpointIndex::read(index)});
    for (int shard = 0; shard < part.index.shards; ++shard) {
      const std::string data = checkpoint_data_path(prefix, shard, part.index.shards);
      if (!is_there(data)) fail_unseen(data);
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
                       bool delete_old_directories, bool allow_missing) {
  const std::string destination = local_path(to);
  const std::vector<Part> parts = find_parts(prefixes, destination, allow_missing);
  const CheckpointIndex joined = joined_index(parts);
  make_directories(directory_of(destination));
  const std::string temporary = temporary_name(checkpoint_index_path(destination));
  try {
    joined.write(temporary);
    int next_shard = 0;
    for (const auto& [prefix, index] : parts) {
      for (int shard = 0; shard < index.shards; ++shard) {
        rename_file(checkpoint_data_path(prefix, shard, index.shards),
                    checkpoint_data_path(destination, next_shard++, joined.shards));
      }
    }
    rename_file(temporary, checkpoint_index_path(destination));
  } catch (...) {
    std::error_code ignored;  // an error is under way already
    std::filesystem::remove(temporary, ignored);
    throw;
  }
  sync_directory_of(destination);
  std::set<std::string> directories;
  for (const Part& part : parts) {
    remove_file(checkpoint_index_path(part.prefix));
    directories.insert(directory_of(part.prefix));
  }
  if (!delete_old_directories) return;
  for (const std::string& directory : directories) {
    std::error_code ignored;  // it is not empty
    if (directory != directory_of(destination)) std::filesystem::remove(directory, ignored);
  }
}

}  // namespace leat
