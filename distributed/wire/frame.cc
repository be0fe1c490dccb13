#include "distributed/wire/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/crc32c.h"

namespace leat {

static_assert(std::endian::native == std::endian::little,
              "frames are written as they lie in memory");

namespace {

uint32_t checksum_of(FrameHeader header, const int64_t* extents) {
  header.checksum = 0;
  return crc32c(extents, header.extents() * sizeof(int64_t), crc32c(&header, sizeof header));
}

}  // namespace

std::string encode(FrameHeader header, const Shape& shape, size_t extra) {
  header.checksum = checksum_of(header, shape.dims().data());
  const size_t extents = header.extents() * sizeof(int64_t);
  std::string bytes;
  bytes.reserve(sizeof header + extents + extra);
  bytes.append(reinterpret_cast<const char*>(&header), sizeof header);
  if (extents > 0) bytes.append(reinterpret_cast<const char*>(shape.dims().data()), extents);
  return bytes;
}

std::string encode(FrameHeader header, const Shape& shape, std::string_view payload) {
  header.payload = static_cast<uint32_t>(payload.size());
  header.payload_checksum = crc32c(payload.data(), payload.size());
  return encode(header, shape, payload.size()).append(payload);
}

void FrameReader::need(size_t bytes) const {
  if (bytes > left()) fail(Code::data_loss, "a frame ends ", bytes - left(), " bytes too early");
}

void FrameReader::read(void* into, size_t bytes) {
  need(bytes);
  bytes_.read(into, bytes);
}

void FrameReader::skip(size_t bytes) {
  need(bytes);
  bytes_.take(bytes, [](std::string_view) {});
}

// What a peer has lent may change meanwhile: its copy is what counts.
bool FrameReader::read_payload(const FrameHeader& header, void* into) {
  auto* to = static_cast<char*>(into);
  uint32_t checksum = 0;
  if ((header.flags & FrameHeader::lent) != 0) {
    uint64_t place;
    read(&place, sizeof place);
    checksum = crc32c(&place, sizeof place);
    const char* const data = stream_ != nullptr ? stream_->lent(place, header.payload) : nullptr;
    if (data == nullptr) {
      fail(Code::data_loss, "a frame of ", header.payload, " bytes names the place ", place,
           ", where the peer lends nothing");
    }
    checksum = copy_with_crc32c(to, data, header.payload, checksum);
  } else {
    need(header.payload);
    bytes_.take(header.payload, [&](std::string_view piece) {
      checksum = copy_with_crc32c(to, piece.data(), piece.size(), checksum);
      to += piece.size();
    });
  }
  return checksum == header.payload_checksum;
}

FrameHeader FrameReader::header() {
  FrameHeader header;
  read(&header, sizeof header);
  if (header.magic != FrameHeader::expected_magic)
    fail(Code::data_loss, "the received bytes are not a frame of Leat");
  rank_ = std::min<size_t>(header.extents(), Shape::max_rank);
  read(extents_.data(), std::min(left(), rank_ * sizeof(int64_t)));
  // Tasks of version 1, whose frames have no checksums, are greeted so far that they hear why they
  // are refused.
  const bool is_old = header.is_greeting() && header.checksum == 0;
  if (header.rank > Shape::max_rank ||
      (checksum_of(header, extents_.data()) != header.checksum && !is_old)) {
    fail(Code::data_loss, "the checksum of a frame's header does not match the received bytes");
  }
  if (header.kind < FrameKind::hello || header.kind > FrameKind::ask) {
    fail(Code::data_loss, "a frame of unknown kind ", static_cast<int>(header.kind));
  }
  if ((header.flags & FrameHeader::lent) != 0 && header.kind != FrameKind::tensor)
    fail(Code::data_loss, "a frame of kind ", static_cast<int>(header.kind), " is lent");
  if (header.following() > left()) {
    fail(Code::data_loss, "a frame announces ", header.following(), " bytes, but only ", left(),
         " are left");
  }
  return header;
}

Shape FrameReader::shape() const {
  const std::span<const int64_t> extents(extents_.data(), rank_);
  // Without elements, the other extents may be anything.
  const bool is_empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
  int64_t elements = 1;
  for (const int64_t extent : extents) {
    if (extent < 0 || (!is_empty && __builtin_mul_overflow(elements, extent, &elements)))
      fail(Code::data_loss, "a frame with an impossible extent of ", extent);
  }
  return Shape(extents);
}

std::string encode_strings(const Tensor& tensor) {
  const auto strings = tensor.span<std::string>();
  size_t size = strings.size() * sizeof(uint64_t);
  for (const std::string& text : strings) size += text.size();
  std::string bytes;
  bytes.reserve(size);
  for (const std::string& text : strings) {
    const uint64_t length = text.size();
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  }
  for (const std::string& text : strings) bytes.append(text);
  return bytes;
}

Tensor decode_strings(const Shape& shape, std::string_view bytes) {
  const auto count = static_cast<uint64_t>(shape.elements());
  if (count > bytes.size() / sizeof(uint64_t)) {
    fail(Code::data_loss, "a tensor announces ", count, " strings in ", bytes.size(), " bytes");
  }
  std::string_view texts = bytes.substr(count * sizeof(uint64_t));
  Tensor tensor(DType::string, shape);
  for (std::string& text : tensor.span<std::string>()) {
    uint64_t length;
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes.remove_prefix(sizeof length);
    if (length > texts.size())
      fail(Code::data_loss, "a string announces ", length, " bytes, but only ", texts.size(),
           " are left");
    text.assign(texts.substr(0, length));
    texts.remove_prefix(length);
  }
  if (!texts.empty())
    fail(Code::data_loss, texts.size(), " bytes follow the last string of a tensor");
  return tensor;
}

}  // namespace leat
