// Snappy, with which blocks of a LevelDB table may be compressed. Leat only reads it.
#pragma once

#include <string>
#include <string_view>

namespace leat {

// DATA_LOSS if it is damaged; then no more memory was taken than 32 times the bytes given.
std::string snappy_decompressed(std::string_view bytes);

}  // namespace leat
