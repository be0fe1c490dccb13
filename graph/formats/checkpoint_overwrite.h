// What stands behind a checkpoint while another is written over it (checkpoint.h).
#pragma once

#include <string>

#include "graph/formats/checkpoint_index.h"
#include "graph/formats/file.h"

namespace leat {

// The prefix under which it is kept.
std::string kept_prefix(std::string_view prefix);
// Before any file of `prefix` changes: what is there is kept, on the disk, if it is whole. What a
// writer that died has kept stays, if that is the one that is whole.
void keep_checkpoint(const std::string& prefix, const FileRoots& roots);
// Once the new one is on the disk.
void drop_kept_checkpoint(const std::string& prefix, const FileRoots& roots);

// Whether its data files are there and as long as the index says.
bool has_all_data(const std::string& prefix, const CheckpointIndex& index, const FileRoots& roots);

}  // namespace leat
