// Checkpoints in TensorFlow's V2 format: `<prefix>.index` and `<prefix>.data-00000-of-00001`, one
// data file per shard; format V1 is read as well (checkpoint_v1.h). Prefixes are paths, or
// file:///… (file.h).
//
// Its two files cannot be renamed as one. So a checkpoint that is overwritten is kept as a
// checkpoint `<prefix>.before-overwrite` until the new one is complete; readers take it, with a
// warning, if the writer died in between. The next writer removes what dead writers left.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/formats/checkpoint_index.h"
#include "graph/formats/file.h"

namespace leat {

class V1Checkpoint;

// Writes one shard. Nothing is visible under the checkpoint's name before finish(), which puts the
// data there first and the index last; without finish() everything is removed. One writer per
// prefix.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(const std::string& prefix, const FileRoots& roots = any_file);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;

  // INVALID_ARGUMENT if the name is already there, or the tensor does not have its slice's shape.
  void add(const std::string& name, const Tensor& tensor);
  void add_slice(const std::string& name, const Shape& full, const TensorSlice& slice,
                 const Tensor& tensor);
  void finish();

 private:
  void add_entry(const std::string& key, const Tensor& tensor);

  const std::string prefix_;
  const FileRoots roots_;
  std::unique_ptr<TemporaryFile> temporary_data_, temporary_index_;
  std::unique_ptr<FileWriter> data_;
  CheckpointIndex index_;
};

// Reads checkpoints of any number of shards, of format V2 or else V1. The prefix of a V1 checkpoint
// may have wildcards: "model.ckpt-?????-of-00002". Every tensor that is read is checked against its
// checksum. A torn or changed file is DATA_LOSS: the message names it, and the newest complete
// checkpoint of the same directory.
class CheckpointReader {
 public:
  // NOT_FOUND if there is no such checkpoint; the message suggests others.
  explicit CheckpointReader(const std::string& prefix, const FileRoots& roots = any_file);
  ~CheckpointReader();
  CheckpointReader(const CheckpointReader&) = delete;

  struct Variable {
    std::string name;
    DType dtype;
    Shape shape;  // of a partitioned one: the full shape
  };
  std::vector<Variable> variables() const;  // by name
  // As a path; that of the kept checkpoint if this one is read.
  const std::string& prefix() const { return prefix_; }
  bool has(const std::string& name) const { return index_.entries.contains(name); }
  // NOT_FOUND "Key NAME not found in checkpoint" for this and the functions below.
  const CheckpointEntry& entry(const std::string& name) const;

  Tensor read(const std::string& name) const;
  // Assembled from the stored parts. INVALID_ARGUMENT if they leave a gap, or if `full` is not its
  // shape.
  Tensor read_slice(const std::string& name, const Shape& full, const TensorSlice& slice) const;
  // Reads everything: throws if anything is wrong with it.
  void verify() const;

 private:
  bool read_index();
  bool take_kept(bool has_index);
  Tensor read_entry(const std::string& key, const CheckpointEntry& entry) const;
  Tensor assemble(const std::string& name, const CheckpointEntry& entry,
                  const TensorSlice& wanted) const;
  const FileReader& shard(int number) const;
  // Where the entry's data lies, in format V2. DATA_LOSS if it cannot be there.
  const FileReader& file_of(const std::string& key, const CheckpointEntry& entry) const;
  [[noreturn]] void fail_entry(const std::string& key, const std::string& path,
                               std::string_view what) const;

  std::string prefix_;
  const FileRoots roots_;
  CheckpointIndex index_;
  std::unique_ptr<V1Checkpoint> v1_;  // where the values are, if it is one of V1
  mutable std::vector<std::unique_ptr<FileReader>> shards_;
};

// Merges what several tasks wrote (`prefixes`, one shard or more each) into the checkpoint `to`:
// renames data files, merges indexes, collects the parts of each variable. It finds every shard
// before it moves one: NOT_FOUND names the shard that this host cannot see.
// `delete_old_directories`: removes those of the prefixes if they are empty. `allow_missing`: skips
// prefixes without an index; INVALID_ARGUMENT if none has one.
void merge_checkpoints(const std::vector<std::string>& prefixes, const std::string& to,
                       bool delete_old_directories, bool allow_missing = false,
                       const FileRoots& roots = any_file);

// "<prefix>.index", "<prefix>.data-00001-of-00002".
std::string checkpoint_index_path(std::string_view prefix);
std::string checkpoint_data_path(std::string_view prefix, int shard, int shards);
// The newest complete checkpoint in the directory of `prefix`, other than itself; "" if there is
// none.
std::string complete_checkpoint_beside(const std::string& prefix,
                                       const FileRoots& roots = any_file);
void remove_checkpoint(const std::string& prefix, const FileRoots& roots = any_file);

}  // namespace leat
