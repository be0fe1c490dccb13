// The frames of a stream between two tasks: a fixed header, the extents of a tensor, and a payload.
// Header and extents share one checksum; the payload has another. Nothing is trusted or allocated
// before its checksum matches.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "distributed/grpc/rpc.h"
#include "distributed/wire/bytes_reader.h"

namespace leat {

enum class FrameKind : uint8_t {
  hello = 1,  // payload: Hello; the dialling task's first frame
  welcome,    // payload: Hello; the answer
  refusal,    // payload: Refusal; the answer, then the stream ends
  heartbeat,
  tensor,     // the payload is a piece of a tensor's bytes, the first one after its extents
  abort,      // of `step`; edge: the code, payload: the message; offset and total: where in it the
              // node is named, and with how many bytes (0: nowhere)
  credit,     // total: this many more bytes of tensors may be sent
  goodbye,    // the sender is ending
  complaint,  // payload: why the sender no longer trusts what it receives; then the stream ends
  call,       // step: its number; edge: the ns that its caller waits (0: for ever); payload: the
              // method, with `total` bytes, then the request
  answer,     // step: the call's number; edge: the code; payload: the message, with `total` bytes,
              // details, with `offset` bytes, then the answer
  ask,        // for the tensor of `step` and `edge`: the peer has sent the number of a list,
              // `total`, that is not kept here (known_lists.h); dtype and extents as they came
};

// The wire layout: little-endian, 64 bytes.
struct FrameHeader {
  uint32_t magic = expected_magic;
  FrameKind kind = FrameKind::heartbeat;
  uint8_t flags = 0;
  DType dtype = DType::invalid;  // invalid: a control edge, or no tensor
  uint8_t rank = 0;
  uint32_t sequence = 0;  // counts frames per direction, to detect lost or doubled ones
  uint32_t payload = 0;   // bytes after the header and the extents; of lent ones, those lent
  int64_t step = 0;
  int64_t edge = 0;
  uint64_t total = 0;             // bytes of the whole tensor
  uint64_t offset = 0;            // of this piece; only the first piece has extents
  uint64_t incarnation = 0;       // of the sender
  uint32_t payload_checksum = 0;  // CRC-32C
  uint32_t checksum = 0;          // CRC-32C of header (with 0 here) and extents; encode() sets it

  static constexpr uint32_t expected_magic = 0x5441454c;  // "LEAT"
  static constexpr uint8_t dead = 1;                      // the value is dead: no payload
  static constexpr uint8_t derived = 2;                   // of an abort: follows from another error
  static constexpr uint8_t takes_pieces = 4;              // of a call: as in RpcCallOptions
  // Of a tensor in one piece: both ends give it the next number of known_lists.h.
  static constexpr uint8_t remembered = 8;
  // Of a tensor: its elements are the list with the number `total`; no payload.
  static constexpr uint8_t known = 16;
  // Of a tensor: the payload lies in the sender's memory (RpcStream::lent). Its place follows, in 8
  // bytes, which the payload's checksum counts before the payload.
  static constexpr uint8_t lent = 32;

  size_t extents() const { return offset == 0 ? rank : 0; }
  // Bytes that follow the extents.
  size_t following() const { return (flags & lent) != 0 ? sizeof(uint64_t) : payload; }
  bool is_greeting() const { return kind <= FrameKind::refusal; }
};
static_assert(sizeof(FrameHeader) == 64);

// Header, with its checksum, and extents as bytes; reserves room for `extra` more.
std::string encode(FrameHeader header, const Shape& shape, size_t extra = 0);
// A whole frame, both checksums set.
std::string encode(FrameHeader header, const Shape& shape, std::string_view payload);

// Reads a message from front to back. Reading beyond its end is DATA_LOSS.
class FrameReader {
 public:
  // `stream`: on which it came; where its peer lends.
  explicit FrameReader(const Bytes& message, RpcStream* stream = nullptr)
      : bytes_(message), stream_(stream) {}

  size_t left() const { return bytes_.left(); }
  void read(void* into, size_t bytes);
  void skip(size_t bytes);
  // Header and extents. DATA_LOSS unless magic, checksum, kind and rank are right and what follows
  // is there.
  FrameHeader header();
  // The extents of the last header. DATA_LOSS if one is negative or the number of elements
  // overflows.
  Shape shape() const;
  // The payload of `header`. False if its checksum does not match. DATA_LOSS if it is lent and not
  // there.
  bool read_payload(const FrameHeader& header, void* into);

 private:
  void need(size_t bytes) const;

  BytesReader bytes_;
  RpcStream* stream_;
  std::array<int64_t, Shape::max_rank> extents_{};  // of the last header
  size_t rank_ = 0;
};

// The elements of a tensor of strings: their lengths, 8 bytes each, then their bytes.
std::string encode_strings(const Tensor& tensor);
// DATA_LOSS unless `bytes` are exactly that. Allocates nothing beyond the bytes that are there.
Tensor decode_strings(const Shape& shape, std::string_view bytes);

}  // namespace leat
