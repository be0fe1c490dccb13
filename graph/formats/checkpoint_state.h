// The file `checkpoint` of a directory: lists the checkpoints and names the last. Text, as
// TensorFlow's Saver writes it.
#pragma once

#include <string>
#include <vector>

#include "graph/formats/file.h"

namespace leat {

struct CheckpointState {
  std::string model_checkpoint_path;                    // the last one; "" if there is none
  std::vector<std::string> all_model_checkpoint_paths;  // oldest first; may lack the last one

  // Of `directory`; empty if the file is not there. Relative paths come back with the directory in
  // front. DATA_LOSS if the text is malformed or names no last checkpoint; the message has the
  // newest complete one.
  static CheckpointState read(const std::string& directory, const FileRoots& roots = any_file);
  // Paths below the directory are written relative to it, so that it can be moved.
  void write(const std::string& directory, const FileRoots& roots = any_file) const;
};

}  // namespace leat
