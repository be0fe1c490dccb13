// Reads files sequentially and decompresses them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "graph/formats/file.h"

namespace leat {

enum class Compression { none, gzip, zlib };
// "", "GZIP" or "ZLIB", as in ops' attributes; INVALID_ARGUMENT otherwise.
Compression parse_compression(std::string_view name);

// Errors are those of FileReader; DATA_LOSS if compressed data is damaged or torn.
class ByteSource {
 public:
  explicit ByteSource(const std::string& path, Compression compression = Compression::none,
                      const FileRoots& roots = any_file);
  ~ByteSource();

  const std::string& path() const { return file_.path(); }
  uint64_t file_size() const { return file_.size(); }  // compressed, if it is
  uint64_t position() const { return position_; }      // in the decompressed data

  // The next `bytes` bytes; fewer only at the end. Takes no more memory than there are bytes.
  std::string read(uint64_t bytes);
  uint64_t skip(uint64_t bytes);  // returns how many there were
  // Up to the next '\n', without it and without one '\r' before it; none at the end.
  std::optional<std::string> read_line();

  // The bytes at hand, at least one; empty at the end. Valid until some are consumed.
  std::string_view available();
  void consume(size_t bytes);  // of those available

 private:
  struct Inflater;

  bool refill(std::string& buffer);  // from the file; false at its end
  void inflate_some();

  const FileReader file_;
  uint64_t file_position_ = 0, position_ = 0;
  std::string raw_, bytes_;  // of the file; decompressed
  size_t raw_begin_ = 0, begin_ = 0;
  std::unique_ptr<Inflater> inflater_;  // null if nothing is compressed
};

}  // namespace leat
