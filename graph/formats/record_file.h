// Files as sequences of records, in the formats that readers and datasets know.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "graph/formats/byte_source.h"

namespace leat {

// One file, record by record.
class RecordFile {
 public:
  struct Record {
    std::string key;  // "PATH:17": where it was, as TensorFlow's readers have it
    std::string value;
  };
  virtual ~RecordFile() = default;
  virtual std::optional<Record> next() = 0;         // none at the end
  virtual bool is_at_end() const { return false; }  // true: it knows without next()
};

using OpenedFile = std::unique_ptr<RecordFile>;

// Lines without their ends; keys count from 1 and include the `skipped` header lines.
OpenedFile open_lines(const std::string& path, int64_t skipped, Compression compression,
                      const FileRoots& roots = any_file);
// TFRecords; keys have the position of the record's first byte.
OpenedFile open_records(const std::string& path, Compression compression,
                        const FileRoots& roots = any_file);
// One record: the file's contents, or (open_name) its path; the key is the path.
OpenedFile open_whole(const std::string& path, const FileRoots& roots = any_file);
OpenedFile open_name(const std::string& path);

struct FixedLength {
  int64_t header = 0, record, footer = 0;  // bytes
  int64_t hop = 0;                         // from a record to the next; 0 = record
  bool fits = false;                       // is a partial record at the end an error?
  // INVALID_ARGUMENT "record_bytes must be >= 0 …"
  void check_bytes() const;
};
// A partial record at the end is ignored; if `fits`, it is INVALID_ARGUMENT when the file is opened
// or, in a compressed file, DATA_LOSS at its end. Keys count from 0.
OpenedFile open_fixed_length(const std::string& path, FixedLength bytes, Compression compression,
                             const FileRoots& roots = any_file);

}  // namespace leat
