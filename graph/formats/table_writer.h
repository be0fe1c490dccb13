// Writes LevelDB's tables, as TensorFlow does: blocks of 256 KiB, nothing compressed. The only file
// that sees LevelDB.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "graph/formats/file.h"

namespace leat {

class TableWriter {
 public:
  // Under exactly this name. Errors are those of FileWriter.
  explicit TableWriter(const std::string& path, const FileRoots& roots = any_file);
  ~TableWriter();  // without finish() what was written is no table
  TableWriter(const TableWriter&) = delete;

  // Keys in ascending order.
  void add(std::string_view key, std::string_view value);
  void finish();  // synced

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leat
