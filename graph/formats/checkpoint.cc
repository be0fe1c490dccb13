#include "graph/formats/checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "core/bools.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "graph/formats/checkpoint_overwrite.h"
#include "graph/formats/checkpoint_strings.h"
#include "graph/formats/checkpoint_v1.h"

namespace leat {
namespace {

[[noreturn]] void fail_torn(const std::string& prefix, std::string_view what,
                            const FileRoots& roots) {
  const std::string other = complete_checkpoint_beside(prefix, roots);
  fail(Code::data_loss, what,
       other.empty() ? "; there is no other complete checkpoint in its directory"
                     : "; the newest complete checkpoint beside it is '" + other + "'");
}

// A file of a checkpoint that is something else than a file is as good as torn.
bool is_damage(const Error& error) {
  return error.code() == Code::data_loss || error.code() == Code::failed_precondition;
}

// The prefix of the checkpoint of which this is a file; "" if it is none.
std::string prefix_of_file(const std::string& path, const FileRoots& roots) {
  for (const std::string_view suffix : {".index", ".data-", ".meta"}) {
    const std::string prefix = path.substr(0, path.rfind(suffix));
    if (prefix != path && is_file_there(checkpoint_index_path(prefix), roots)) return prefix;
  }
  return "";
}

// Why there may be no checkpoint of that prefix: it is the name of something else.
std::string what_is_there_instead(const std::string& prefix, const FileRoots& roots) {
  if (const std::string other = prefix_of_file(prefix, roots); !other.empty())
    return "; use the checkpoint's prefix '" + other + "' instead of the name of one of its files";
  const std::optional<FileStatus> status = file_status(prefix, roots);
  if (status && status->is_directory) {
    const std::string newest = complete_checkpoint_beside(prefix + "/", roots);
    return newest.empty()
               ? "; it is a directory without a complete checkpoint"
               : "; it is a directory, and its newest complete checkpoint is '" + newest + "'";
  }
  if (status) return "; the file of that name is torn or not a checkpoint of format V1";
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

CheckpointWriter::CheckpointWriter(const std::string& prefix, const FileRoots& roots)
    : prefix_(local_path(prefix)), roots_(roots) {
  const std::string data = checkpoint_data_path(prefix_, 0, 1),
                    index = checkpoint_index_path(prefix_);
  make_directories(directory_of(prefix_), roots_);
  for (const std::string& target : {data, index}) remove_stale_temporaries(target, roots_);
  temporary_data_ = std::make_unique<TemporaryFile>(data, roots_);
  temporary_index_ = std::make_unique<TemporaryFile>(index, roots_);
  data_ = std::make_unique<FileWriter>(temporary_data_->path(), FileWriter::Mode::create, roots_);
}

CheckpointWriter::~CheckpointWriter() = default;

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

// The two files are renamed one directly behind the other: in between there is no pair for other
// programs' readers.
void CheckpointWriter::finish() {
  data_->sync();
  data_->close();
  index_.write(temporary_index_->path(), roots_);
  keep_checkpoint(prefix_, roots_);
  temporary_data_->rename_to_target();
  temporary_index_->rename_to_target();
  sync_directory_of(prefix_, roots_);
  drop_kept_checkpoint(prefix_, roots_);
}

// ---- Reading ----

namespace {

constexpr int most_attempts = 4;

// Null if there is none. A name of one of a V2 checkpoint's files is none, either.
std::unique_ptr<V1Checkpoint> open_v1(const std::string& prefix, const FileRoots& roots) {
  try {
    return prefix_of_file(prefix, roots).empty() ? V1Checkpoint::open(prefix, roots) : nullptr;
  } catch (const Error& error) {
    if (!is_damage(error)) throw;
    fail_torn(prefix, error.message(), roots);
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

CheckpointReader::CheckpointReader(const std::string& prefix, const FileRoots& roots)
    : prefix_(local_path(prefix)), roots_(roots) {
  const std::string path = checkpoint_index_path(prefix_);
  const std::string kept = checkpoint_index_path(kept_prefix(prefix_));
  std::optional<Error> damage;
  bool has_index = false;
  // Again if a writer has come to its end meanwhile.
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    damage.reset();
    try {
      has_index = read_index();
    } catch (const Error& error) {
      if (!is_damage(error)) throw;
      damage = error;
      has_index = false;
    }
    if (!is_file_there(kept, roots_) || take_kept(has_index)) break;
  }
  if (damage && prefix_ == local_path(prefix)) fail_torn(prefix_, damage->message(), roots_);
  if (has_index || v1_ != nullptr || prefix_ != local_path(prefix)) return;
  v1_ = open_v1(prefix_, roots_);
  if (v1_ == nullptr)
    fail(Code::not_found, "Failed to find any matching files for ", prefix_, ": there is no file ",
         path, what_is_there_instead(prefix_, roots_));
  index_ = v1_->take_index();
}

// False if there is none of format V2.
bool CheckpointReader::read_index() {
  try {
    index_ = CheckpointIndex::read(checkpoint_index_path(prefix_), roots_);
  } catch (const Error& error) {
    if (error.code() != Code::not_found) throw;
    return false;
  }
  shards_.clear();
  shards_.resize(index_.shards);
  return true;
}

// A writer has died, or is at work. The kept one is taken where the index is still its own: the
// data beside that may be the next one's. Where the index is new, the data must be, too. False if
// the kept one has gone meanwhile.
bool CheckpointReader::take_kept(bool has_index) {
  const std::string path = checkpoint_index_path(prefix_), prefix = kept_prefix(prefix_);
  try {
    const std::string kept_index = read_file(checkpoint_index_path(prefix), roots_);
    if (has_index && read_file(path, roots_) != kept_index) {
      try {
        verify();
        return true;
      } catch (const Error& error) {
        if (!is_damage(error)) throw;
      }
    }
    CheckpointReader kept(prefix, roots_);
    bool is_same = has_index;
    for (int shard = 0; shard < kept.index_.shards; ++shard) {
      const auto mine = file_status(kept.shard(shard).path(), roots_);
      const auto other =
          file_status(checkpoint_data_path(prefix_, shard, kept.index_.shards), roots_);
      is_same = is_same && mine && other && mine->disk == other->disk && mine->file == other->file;
    }
    if (!is_same) {
      std::cerr << concat("leat: the writer of the checkpoint ", prefix_,
                          " died while it overwrote an older one: reading the older one, ", prefix,
                          "\n")
                << std::flush;
    }
    prefix_ = prefix;
    index_ = std::move(kept.index_);
    shards_ = std::move(kept.shards_);
    return true;
  } catch (const Error& error) {
    if (error.code() == Code::not_found || is_damage(error)) return false;
    throw;
  }
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
    fail_torn(
        prefix_,
        concat(checkpoint_index_path(prefix_), " names shard ", number, " of ", index_.shards),
        roots_);
  std::unique_ptr<FileReader>& file = shards_[number];
  if (!file) {
    const std::string path = checkpoint_data_path(prefix_, number, index_.shards);
    try {
      file = std::make_unique<FileReader>(path, roots_);
    } catch (const Error& error) {
      if (error.code() == Code::not_found)
        fail_torn(prefix_, concat("the checkpoint ", prefix_, " lacks its file ", path), roots_);
      if (is_damage(error)) fail_torn(prefix_, error.message(), roots_);
      throw;
    }
  }
  return *file;
}

void CheckpointReader::fail_entry(const std::string& key, const std::string& path,
                                  std::string_view what) const {
  fail_torn(prefix_, concat(readable_key(key), " in ", path, ": ", what), roots_);
}

const FileReader& CheckpointReader::file_of(const std::string& key,
                                            const CheckpointEntry& entry) const {
  const FileReader& file = shard(entry.shard);
  const auto end = static_cast<uint64_t>(entry.offset + entry.size);
  if (end > file.size())
    fail_entry(key, file.path(),
               concat("it ends at byte ", end, ", but the file ends at ", file.size()));
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
      fail_torn(prefix_,
                concat("the slice '", stored.to_string(), "' of '", name, "' ", what,
                       " the index of ", prefix_),
                roots_);
    };
    if (found == index_.entries.end()) lost("is not in");
    const CheckpointEntry& part = found->second;
    if (part.dtype != entry.dtype || part.shape != slice.shape() || !part.slices.empty())
      lost("has a wrong dtype or shape in");
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

std::string complete_checkpoint_beside(const std::string& prefix, const FileRoots& roots) {
  constexpr std::string_view suffix = ".index";
  const std::string directory = directory_of(prefix), own = prefix.substr(prefix.rfind('/') + 1);
  std::string newest;
  int64_t newest_time = 0;
  for (const std::string& name : names_in(directory, roots)) {
    if (!name.ends_with(suffix)) continue;
    const std::string other = name.substr(0, name.size() - suffix.size());
    const std::string path = directory + "/" + other;
    if (other == own) continue;
    try {
      const std::optional<FileStatus> file = file_status(checkpoint_index_path(path), roots);
      if (!file || (!newest.empty() && file->changed_ns <= newest_time)) continue;
      const CheckpointIndex index = CheckpointIndex::read(checkpoint_index_path(path), roots);
      if (!has_all_data(path, index, roots)) continue;
      newest = path;
      newest_time = file->changed_ns;
    } catch (const Error&) {
      continue;  // torn, too
    }
  }
  return newest;
}

void remove_checkpoint(const std::string& prefix, const FileRoots& roots) {
  // The index first: what is left is no checkpoint any more.
  int shards = 1;
  try {
    shards = CheckpointIndex::read(checkpoint_index_path(prefix), roots).shards;
  } catch (const Error&) {
    // Torn or gone: what a checkpoint of one shard would have is removed.
  }
  drop_kept_checkpoint(local_path(prefix), roots);
  remove_file(checkpoint_index_path(prefix), roots);
  for (int shard = 0; shard < shards; ++shard)
    remove_file(checkpoint_data_path(prefix, shard, shards), roots);
}

}  // namespace leat
