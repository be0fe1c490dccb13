// TFRecord files: records with checksums. Event files are made of them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "graph/formats/byte_source.h"

namespace leat {

// Length, checksum of the length, data, checksum of the data.
std::string framed_record(std::string_view data);

class RecordReader {
 public:
  explicit RecordReader(const std::string& path, Compression compression = Compression::none,
                        const FileRoots& roots = any_file)
      : source_(path, compression, roots) {}
  // The next record; none at the end. DATA_LOSS, with the position, if it is torn or changed.
  std::optional<std::string> next();
  uint64_t position() const { return source_.position(); }  // of the next record

 private:
  ByteSource source_;
};

}  // namespace leat
