// The index of a checkpoint: a LevelDB table from names to entries, behind a header.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "graph/formats/file.h"
#include "graph/formats/tensor_slice.h"

namespace leat {

struct CheckpointEntry {
  DType dtype = DType::invalid;
  Shape shape;
  int shard = 0;
  int64_t offset = 0, size = 0;
  uint32_t crc = 0;  // masked
  std::vector<TensorSlice>
      slices;  // of a partitioned variable, whose full shape this is; it has no data itself
};

// Whether Leat has this DataType of a file, and its tensors have bytes.
bool is_stored_type(int data_type);

struct CheckpointIndex {
  int shards = 1;
  // By key: a name, or slice_key(). Entries of types that Leat does not have are left out.
  std::map<std::string, CheckpointEntry> entries;

  // NOT_FOUND if there is no such file, DATA_LOSS if it is torn or changed; both name it.
  static CheckpointIndex read(const std::string& path, const FileRoots& roots = any_file);
  // Writes to exactly this path, and syncs.
  void write(const std::string& path, const FileRoots& roots = any_file) const;
};

}  // namespace leat
