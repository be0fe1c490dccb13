// A message between master and worker as bytes: [u32 size of the protobuf part][protobuf part]
// [elements of its tensors, one after the other; of a string, u32 size and bytes]. Tensors are sent
// in place, and no protobuf limit applies to them. Malformed bytes are INVALID_ARGUMENT.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "distributed/wire/bytes_reader.h"
#include "runtime/session.h"

namespace google::protobuf {
class MessageLite;
template <class Element>
class RepeatedPtrField;
}  // namespace google::protobuf

namespace leat::wire {

class TensorHeader;
using TensorHeaders = google::protobuf::RepeatedPtrField<TensorHeader>;

// Adds each tensor's name, dtype, extents and bytes to the protobuf part.
void describe(const NamedTensors& tensors, TensorHeaders* list);

// RESOURCE_EXHAUSTED, naming the largest tensor, if the protobuf part exceeds protobuf's limit, or
// the whole exceeds one gRPC message (largest_rpc_message). The slices hold the tensors' memory.
Slices frame(const google::protobuf::MessageLite& header);
enum class FrameSize { one_message, any };
Slices frame(const google::protobuf::MessageLite& header, const NamedTensors& tensors,
             FrameSize size = FrameSize::one_message);

// A received message, read front to back. The bytes must outlive it.
class FramedMessage {
 public:
  explicit FramedMessage(const Bytes& bytes) : bytes_(bytes) {}

  // Call first, and once.
  template <class Message>
  Message header() {
    Message out;
    parse_header(out);
    return out;
  }
  // Copies of the tensors that the protobuf part describes.
  NamedTensors tensors(const TensorHeaders& headers);

 private:
  void parse_header(google::protobuf::MessageLite& header);
  Tensor tensor(const TensorHeader& header);
  void read(void* to, size_t size);

  BytesReader bytes_;
};

}  // namespace leat::wire
