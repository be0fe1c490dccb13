// Snappy, which may compress blocks of a LevelDB table. Leat only decompresses.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// DATA_LOSS if it is damaged; even then it takes at most 32 times the given bytes of memory.
std::string snappy_decompressed(std::string_view bytes);

}  // namespace leat
