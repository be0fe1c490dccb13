// Checkpoints in TensorFlow's format V1, used before 2017: one table (table_reader.h) under the
// checkpoint's own name, or one per shard, "model.ckpt-00000-of-00002". CheckpointReader
// (checkpoint.h) reads both formats.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/formats/checkpoint_index.h"
#include "graph/formats/table_reader.h"

namespace leat {

// The tables of one checkpoint.
class V1Checkpoint {
 public:
  // `pattern`: a path, or one with wildcards for all shards, "model.ckpt-?????-of-00002". Null if
  // there is no file, or it is no table. DATA_LOSS names the one that is torn; PERMISSION_DENIED
  // and the like as in file.h.
  static std::unique_ptr<V1Checkpoint> open(const std::string& pattern,
                                            const FileRoots& roots = any_file);

  // As an index of V2 in which every tensor has parts. `shard` is the number of the table. Call it
  // once.
  CheckpointIndex take_index() { return std::move(index_); }
  // Reads a part. DATA_LOSS if it does not match the index.
  Tensor read(const std::string& key, const CheckpointEntry& entry) const;
  const std::string& path_of(const CheckpointEntry& entry) const {
    return tables_[static_cast<size_t>(entry.shard)]->path();
  }

 private:
  V1Checkpoint() = default;
  void add_table(const std::string& path, const FileRoots& roots);

  CheckpointIndex index_;
  std::vector<std::unique_ptr<TableFile>> tables_;
};

// Writes one table. Nothing is visible under its name before finish(). Keeps all data in memory
// until then.
class V1CheckpointWriter {
 public:
  explicit V1CheckpointWriter(const std::string& path, const FileRoots& roots = any_file);
  ~V1CheckpointWriter();
  V1CheckpointWriter(const V1CheckpointWriter&) = delete;

  // INVALID_ARGUMENT if the tensor does not have its slice's shape, was added already, or differs
  // from earlier parts in dtype or full shape; UNIMPLEMENTED for dtypes, RESOURCE_EXHAUSTED for
  // sizes that the format does not have.
  void add(const std::string& name, const Shape& full, const TensorSlice& slice,
           const Tensor& tensor);
  void finish();

 private:
  struct Contents;
  const std::string path_;
  const FileRoots roots_;
  std::unique_ptr<Contents> contents_;
};

}  // namespace leat
