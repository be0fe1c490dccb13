// Tensors inside TensorFlow's messages, without copies. A message is written as slices that point
// at the tensors' memory; elements are read from the received parts straight into a tensor. Small
// or unusual forms (strings, bools, *_val) go through graph/import/graph_def.h, which owns the
// format.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/tensor.h"
#include "distributed/grpc/rpc.h"

namespace leat {

// Writes one message, field by field. Not thread-safe.
class MessageWriter {
 public:
  explicit MessageWriter(std::string_view what) : what_(what) {}

  // Adds other fields of the message: a serialised protobuf message without its tensors.
  void append(std::string_view fields);
  // `field` = NamedTensorProto{name = 1, tensor = 2}.
  void add_named_tensor(int field, std::string_view name, const Tensor& tensor);
  // `field` = TensorProto.
  void add_tensor(int field, const Tensor& tensor);

  uint64_t size() const { return size_; }
  // RESOURCE_EXHAUSTED if the message exceeds protobuf's limit.
  Slices finish() &&;

 private:
  void write(int field, const std::string* name, const Tensor& tensor);
  void flush();

  const std::string what_;  // for messages: "the reply of RunStep"
  std::string text_;        // not yet a slice
  Slices slices_;
  uint64_t size_ = 0;
  Tensor largest_;  // and its name, for the error
  std::string largest_name_;
};

// Reads a message: calls `named_tensor` for each NamedTensorProto in field `tensor_field`, and
// returns all other fields unchanged, for protobuf to parse. INVALID_ARGUMENT for malformed bytes;
// a tensor's error names it.
std::string read_message(const Bytes& bytes, int tensor_field,
                         const std::function<void(std::string name, Tensor tensor)>& named_tensor);
// The same for fields that are TensorProtos.
std::string read_message_of_tensors(const Bytes& bytes, int tensor_field,
                                    const std::function<void(Tensor tensor)>& tensor);

}  // namespace leat
