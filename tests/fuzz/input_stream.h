// A stream between tasks whose messages come from a fuzzer.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "core/crc32c.h"
#include "distributed/grpc/rpc.h"
#include "distributed/wire/frame.h"

namespace leat::fuzz {

// A stream that delivers the test's messages and discards all writes.
class InputStream final : public RpcStream {
 public:
  void start(Events events) override { events_ = std::move(events); }
  void write(Slices) override {}
  size_t queued_bytes() const override { return 0; }
  size_t message_bytes() const override { return size_t{1} << 20; }
  void close() override { end({}); }
  void cancel() override { end({1, "cancelled", RpcCause::none}); }
  std::string peer() const override { return "fuzz"; }

  void bring(Bytes message) {
    if (!has_ended_ && events_.on_message) events_.on_message(std::move(message));
  }
  void end(const RpcStatus& status) {
    if (has_ended_) return;
    has_ended_ = true;
    if (events_.on_end) events_.on_end(status);
    events_ = {};
  }

 private:
  Events events_;
  bool has_ended_ = false;
};

// Sets the checksums of the frames at the beginning of `bytes`, so that the fuzzer gets beyond
// them.
inline void seal(std::string& bytes) {
  for (size_t at = 0; at + sizeof(FrameHeader) <= bytes.size();) {
    FrameHeader header;
    std::memcpy(&header, bytes.data() + at, sizeof header);
    const size_t extents = sizeof(int64_t) * std::min<size_t>(header.extents(), Shape::max_rank);
    const size_t end = at + sizeof header + extents + header.payload;
    if (header.magic != FrameHeader::expected_magic || end > bytes.size()) return;
    header.payload_checksum = crc32c(bytes.data() + at + sizeof header + extents, header.payload);
    header.checksum = 0;
    header.checksum =
        crc32c(bytes.data() + at + sizeof header, extents, crc32c(&header, sizeof header));
    std::memcpy(bytes.data() + at, &header, sizeof header);
    at = end;
  }
}

}  // namespace leat::fuzz
