// Writes LevelDB's tables, as TensorFlow does: blocks of 256 KiB, nothing compressed. The only file
// that sees LevelDB.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace leat {

class TableWriter {
 public:
  // Under exactly this name. Errors name it: RESOURCE_EXHAUSTED where the disk is full, else
  // UNKNOWN.
  explicit TableWriter(const std::string& path);
  ~TableWriter();  // without finish() what was written is no table
  TableWriter(const TableWriter&) = delete;

  // Keys in ascending order.
  void add(std::string_view key, std::string_view value);
  void finish();  // synced

 private:
  struct State;
  const std::string path_;
  std::unique_ptr<State> state_;
};

}  // namespace leat
