#include "graph/formats/byte_source.h"

#include <zlib.h>

#include <algorithm>

#include "core/error.h"

namespace leat {
namespace {

constexpr size_t buffer_bytes = 1 << 18;

}  // namespace

Compression parse_compression(std::string_view name) {
  if (name.empty()) return Compression::none;
  if (name == "GZIP") return Compression::gzip;
  if (name == "ZLIB") return Compression::zlib;
  fail(Code::invalid_argument, "Unsupported compression_type: ", name,
       "; it is GZIP, ZLIB or empty");
}

struct ByteSource::Inflater {
  explicit Inflater(Compression compression) {
    const int window_bits = compression == Compression::gzip ? 15 + 16 : 15;  // as zlib.h has it
    if (inflateInit2(&stream, window_bits) != Z_OK)
      fail(Code::resource_exhausted, "no memory to decompress with");
  }
  ~Inflater() { inflateEnd(&stream); }

  z_stream stream{};
  bool is_between_streams = true;
};

ByteSource::ByteSource(const std::string& path, Compression compression, const FileRoots& roots)
    : file_(path, roots) {
  if (compression != Compression::none) inflater_ = std::make_unique<Inflater>(compression);
}

ByteSource::~ByteSource() = default;

bool ByteSource::refill(std::string& buffer) {
  const size_t bytes = std::min<uint64_t>(buffer_bytes, file_.size() - file_position_);
  buffer.resize(bytes);
  file_.read(file_position_, buffer.data(), bytes);
  file_position_ += bytes;
  return bytes > 0;
}

// Streams may follow one another, as gzip joins them.
void ByteSource::inflate_some() {
  z_stream& stream = inflater_->stream;
  bytes_.resize(buffer_bytes);
  stream.next_out = reinterpret_cast<Bytef*>(bytes_.data());
  stream.avail_out = static_cast<uInt>(bytes_.size());
  while (stream.avail_out == bytes_.size()) {
    if (raw_begin_ == raw_.size()) {
      raw_begin_ = 0;
      if (!refill(raw_)) {
        if (!inflater_->is_between_streams)
          fail(Code::data_loss, path(), " is torn: its compressed data has no end");
        break;
      }
    }
    stream.next_in = reinterpret_cast<Bytef*>(raw_.data() + raw_begin_);
    stream.avail_in = static_cast<uInt>(raw_.size() - raw_begin_);
    inflater_->is_between_streams = false;
    const int result = inflate(&stream, Z_NO_FLUSH);
    raw_begin_ = raw_.size() - stream.avail_in;
    if (result == Z_STREAM_END) {
      inflater_->is_between_streams = true;
      inflateReset(&stream);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail(Code::data_loss, path(),
           " cannot be decompressed: ", stream.msg != nullptr ? stream.msg : "it is damaged");
    }
  }
  bytes_.resize(bytes_.size() - stream.avail_out);
}

std::string_view ByteSource::available() {
  if (begin_ == bytes_.size()) {
    begin_ = 0;
    if (inflater_)
      inflate_some();
    else
      refill(bytes_);
  }
  return std::string_view(bytes_).substr(begin_);
}

void ByteSource::consume(size_t bytes) {
  begin_ += bytes;
  position_ += bytes;
}

std::string ByteSource::read(uint64_t bytes) {
  std::string out;
  while (out.size() < bytes) {
    const std::string_view next = available().substr(0, bytes - out.size());
    if (next.empty()) break;
    out += next;
    consume(next.size());
  }
  return out;
}

uint64_t ByteSource::skip(uint64_t bytes) {
  uint64_t skipped = 0;
  while (skipped < bytes) {
    const size_t next = std::min<uint64_t>(available().size(), bytes - skipped);
    if (next == 0) break;
    consume(next);
    skipped += next;
  }
  return skipped;
}

std::optional<std::string> ByteSource::read_line() {
  if (available().empty()) return std::nullopt;
  std::string out;
  for (std::string_view next; !(next = available()).empty();) {
    const size_t end = next.find('\n');
    out += next.substr(0, end);
    const bool is_whole = end != std::string_view::npos;
    consume(is_whole ? end + 1 : next.size());
    if (is_whole) break;
  }
  if (out.ends_with('\r')) out.pop_back();
  return out;
}

}  // namespace leat
