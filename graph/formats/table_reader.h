// LevelDB's table, read: sorted entries in blocks with checksums. Our own reader, since the
// library's allocates what a corrupt length asks for before it checks the checksum. DATA_LOSS if a
// byte has changed or a length leads out of its block; UNIMPLEMENTED for any compression but
// Snappy.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/formats/file.h"

namespace leat {

// Whether a file with these last bytes is such a table.
bool ends_as_table(std::string_view bytes);

// Calls `on_entry` for every entry of the table whose bytes these are, in their order. The views
// hold for the call.
void read_table(std::string_view bytes,
                const std::function<void(std::string_view key, std::string_view value)>& on_entry);

// A table that reads only the blocks it needs. Messages do not name the file.
class TableFile {
 public:
  explicit TableFile(const std::string& path, const FileRoots& roots = any_file);

  const std::string& path() const { return file_.path(); }
  // The value of the key; nothing if it is not there.
  std::optional<std::string> find(std::string_view key) const;

 private:
  struct BlockPlace {
    std::string last_key;  // no key of the block is greater
    std::string handle;
  };

  FileReader file_;
  std::vector<BlockPlace> blocks_;
};

}  // namespace leat
