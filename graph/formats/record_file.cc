#include "graph/formats/record_file.h"

#include <utility>

#include "core/error.h"
#include "graph/formats/file.h"
#include "graph/formats/records.h"

namespace leat {
namespace {

class Lines final : public RecordFile {
 public:
  Lines(const std::string& path, int64_t skipped, Compression compression, const FileRoots& roots)
      : source_(path, compression, roots) {
    while (number_ < skipped && source_.read_line()) ++number_;
  }
  std::optional<Record> next() override {
    std::optional<std::string> line = source_.read_line();
    if (!line) return std::nullopt;
    return Record{concat(source_.path(), ":", ++number_), std::move(*line)};
  }

 private:
  ByteSource source_;
  int64_t number_ = 0;
};

class Records final : public RecordFile {
 public:
  Records(const std::string& path, Compression compression, const FileRoots& roots)
      : path_(path), reader_(path, compression, roots) {}
  std::optional<Record> next() override {
    const uint64_t position = reader_.position();
    std::optional<std::string> value = reader_.next();
    if (!value) return std::nullopt;
    return Record{concat(path_, ":", position), std::move(*value)};
  }

 private:
  const std::string path_;
  RecordReader reader_;
};

class One final : public RecordFile {
 public:
  explicit One(Record record) : record_(std::move(record)) {}
  std::optional<Record> next() override { return std::exchange(record_, std::nullopt); }
  bool is_at_end() const override { return !record_; }

 private:
  std::optional<Record> record_;
};

class FixedLengthRecords final : public RecordFile {
 public:
  FixedLengthRecords(const std::string& path, FixedLength bytes, Compression compression,
                     const FileRoots& roots)
      : source_(path, compression, roots), bytes_(bytes) {
    if (bytes_.hop == 0) bytes_.hop = bytes_.record;
    if (bytes_.fits && compression == Compression::none) {
      const auto size = static_cast<int64_t>(source_.file_size());
      const int64_t body = size - bytes_.header - bytes_.footer;
      if (body < 0 || body % bytes_.record != 0) fail(Code::invalid_argument, misfit(body));
    }
    is_at_end_ = source_.skip(bytes_.header) < static_cast<uint64_t>(bytes_.header);
  }
  std::optional<Record> next() override {
    if (is_at_end_ || (number_ > 0 && !hop())) return std::nullopt;
    // The footer must be there: it is none of a record's bytes.
    const auto wanted = static_cast<size_t>(bytes_.record + bytes_.footer);
    ahead_ += source_.read(wanted - ahead_.size());
    is_at_end_ = ahead_.size() < wanted;
    if (is_at_end_) {
      const int64_t rest = std::ssize(ahead_) - bytes_.footer;
      if (bytes_.fits && rest > 0) fail(Code::data_loss, misfit(number_ * bytes_.record + rest));
      return std::nullopt;
    }
    return Record{concat(source_.path(), ":", number_++), ahead_.substr(0, bytes_.record)};
  }

 private:
  std::string misfit(int64_t body) const {
    return concat("Excluding the header (", bytes_.header, " bytes) and footer (", bytes_.footer,
                  " bytes), input file \"", source_.path(), "\" has body length ", body,
                  " bytes, which is not an exact multiple of the record length (", bytes_.record,
                  " bytes).");
  }

  bool hop() {
    const auto kept = static_cast<int64_t>(ahead_.size());
    ahead_.erase(0, bytes_.hop);
    const uint64_t further = std::max<int64_t>(bytes_.hop - kept, 0);
    is_at_end_ = source_.skip(further) < further;
    return !is_at_end_;
  }

  ByteSource source_;
  FixedLength bytes_;
  std::string ahead_;  // from the last record's begin
  int64_t number_ = 0;
  bool is_at_end_ = false;
};

}  // namespace

OpenedFile open_lines(const std::string& path, int64_t skipped, Compression compression,
                      const FileRoots& roots) {
  return std::make_unique<Lines>(path, skipped, compression, roots);
}

OpenedFile open_records(const std::string& path, Compression compression, const FileRoots& roots) {
  return std::make_unique<Records>(path, compression, roots);
}

OpenedFile open_whole(const std::string& path, const FileRoots& roots) {
  return std::make_unique<One>(RecordFile::Record{path, read_file(path, roots)});
}

OpenedFile open_name(const std::string& path) {
  return std::make_unique<One>(RecordFile::Record{path, path});
}

void FixedLength::check_bytes() const {
  check(header >= 0, "header_bytes must be >= 0 not ", header);
  check(record > 0, "record_bytes must be > 0 not ", record);
  check(footer >= 0, "footer_bytes must be >= 0 not ", footer);
  check(hop >= 0, "hop_bytes must be >= 0 not ", hop);
  int64_t ignored = 0;
  check(!__builtin_add_overflow(record, footer, &ignored), "record_bytes ", record,
        " and footer_bytes ", footer, " are too large together");
}

OpenedFile open_fixed_length(const std::string& path, FixedLength bytes, Compression compression,
                             const FileRoots& roots) {
  return std::make_unique<FixedLengthRecords>(path, bytes, compression, roots);
}

}  // namespace leat
