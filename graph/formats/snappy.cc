#include "graph/formats/snappy.h"

#include <snappy.h>

#include "core/error.h"

namespace leat {

std::string snappy_decompressed(std::string_view bytes) {
  constexpr size_t most_per_byte = 32;  // a piece of 64 bytes takes 3
  size_t size = 0;
  const bool is_believable = snappy::GetUncompressedLength(bytes.data(), bytes.size(), &size) &&
                             size / most_per_byte <= bytes.size();
  std::string out(is_believable ? size : 0, '\0');
  if (!is_believable || !snappy::RawUncompress(bytes.data(), bytes.size(), out.data()))
    fail(Code::data_loss, "its compressed data is damaged");
  return out;
}

}  // namespace leat
