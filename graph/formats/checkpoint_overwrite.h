// Keeps a checkpoint while another is written over it (checkpoint.h).
#pragma once

#include <string>

#include "graph/formats/checkpoint_index.h"
#include "graph/formats/file.h"

namespace leat {

// The prefix under which it is kept.
std::string kept_prefix(std::string_view prefix);
// Call it before any file of `prefix` changes: it keeps the present checkpoint, on the disk, if it
// is whole. If not, but the one kept by a dead writer is whole, that one stays.
void keep_checkpoint(const std::string& prefix, const FileRoots& roots);
// Call it once the new one is on the disk.
void drop_kept_checkpoint(const std::string& prefix, const FileRoots& roots);

// Whether its data files are there and as long as the index says.
bool has_all_data(const std::string& prefix, const CheckpointIndex& index, const FileRoots& roots);

}  // namespace leat
