// LevelDB's table, read: sorted entries in blocks with checksums. Our own reader, since the
// library's allocates what a changed length says before it looks at the checksum.
#pragma once

#include <functional>
#include <string_view>

namespace leat {

// Of the last bytes of a file: is it such a table?
bool ends_as_table(std::string_view bytes);

// Calls `on_entry` for every entry of the table whose bytes these are, in their order. DATA_LOSS if
// a byte that is read has changed, or a length leads out of its block; UNIMPLEMENTED if it is
// compressed by anything but Snappy. The views hold for the call.
void read_table(std::string_view bytes,
                const std::function<void(std::string_view key, std::string_view value)>& on_entry);

}  // namespace leat
