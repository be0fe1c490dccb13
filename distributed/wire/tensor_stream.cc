#include "distributed/wire/tensor_stream.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <optional>

#include "core/error.h"
#include "core/visit_dtype.h"
#include "graph/import/graph_def.h"

namespace leat {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// Smaller tensors are copied: a slice costs more.
constexpr size_t small_tensor = 4096;

// TensorProto's fields.
constexpr int dtype_field = 1, shape_field = 2, content_field = 4;
// TensorShapeProto's and its Dim's.
constexpr int dim_field = 2, dim_size_field = 1;

// ---- Writing ----

void put_varint(std::string& out, uint64_t value) {
  uint8_t bytes[10];
  const uint8_t* end = CodedOutputStream::WriteVarint64ToArray(value, bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(end - bytes));
}

void put_tag(std::string& out, int field, WireFormatLite::WireType type) {
  put_varint(out, WireFormatLite::MakeTag(field, type));
}

void put_length(std::string& out, int field, uint64_t length) {
  put_tag(out, field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
  put_varint(out, length);
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_length(out, field, bytes.size());
  out += bytes;
}

// The elements are the wire's bytes as they lie.
bool is_plain(DType dtype) {
  return dtype != DType::string && dtype != DType::boolean && visit_dtype(dtype, [](auto) {});
}

// TensorProto up to and with the length of tensor_content.
std::string encode_start(const Tensor& tensor) {
  std::string shape;
  for (const int64_t extent : tensor.shape().dims()) {
    std::string dim;
    put_tag(dim, dim_size_field, WireFormatLite::WIRETYPE_VARINT);
    put_varint(dim, static_cast<uint64_t>(extent));
    put_bytes(shape, dim_field, dim);
  }
  std::string out;
  put_tag(out, dtype_field, WireFormatLite::WIRETYPE_VARINT);
  put_varint(out, static_cast<uint64_t>(tensor.dtype()));
  put_bytes(out, shape_field, shape);
  put_length(out, content_field, tensor.bytes());
  return out;
}

// ---- Reading ----

// The received parts as protobuf reads them.
class PartsStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  explicit PartsStream(const std::vector<std::string_view>& parts) : parts_(parts) {}

  bool Next(const void** data, int* size) override {
    while (part_ < parts_.size() && offset_ == parts_[part_].size()) {
      ++part_;
      offset_ = 0;
    }
    if (part_ == parts_.size()) return false;
    const size_t left = std::min<size_t>(parts_[part_].size() - offset_, INT32_MAX);
    *data = parts_[part_].data() + offset_;
    *size = static_cast<int>(left);
    offset_ += left;
    read_ += static_cast<int64_t>(left);
    return true;
  }
  void BackUp(int count) override {
    offset_ -= static_cast<size_t>(count);
    read_ -= count;
  }
  bool Skip(int count) override {
    const void* data = nullptr;
    int size = 0;
    while (count > 0) {
      if (!Next(&data, &size)) return false;
      if (size > count) BackUp(size - count);
      count -= std::min(size, count);
    }
    return true;
  }
  int64_t ByteCount() const override { return read_; }

 private:
  const std::vector<std::string_view>& parts_;
  size_t part_ = 0, offset_ = 0;
  int64_t read_ = 0;
};

class MessageReader {
 public:
  explicit MessageReader(const Bytes& bytes) : stream_(bytes.parts()), in_(&stream_) {
    in_.SetTotalBytesLimit(INT32_MAX);
  }

  // Calls on_tensor for the fields with this number, with the reader at their start; collects the
  // others.
  template <class OnTensor>
  std::string read(int tensor_field, OnTensor&& on_tensor) {
    std::string rest;
    while (const uint32_t tag = in_.ReadTag()) {
      if (tag == WireFormatLite::MakeTag(tensor_field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) {
        within([&] { on_tensor(); });
      } else {
        keep(tag, rest);
      }
    }
    check_bytes(in_.ConsumedEntireMessage());
    return rest;
  }

  void named_tensor(const std::function<void(std::string, Tensor)>& done) {
    std::string name;
    std::string ignored;  // fields that are unknown here
    std::optional<Tensor> value;
    while (const uint32_t tag = in_.ReadTag()) {
      if (tag == WireFormatLite::MakeTag(1, WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) {
        name = bytes();
      } else if (tag == WireFormatLite::MakeTag(2, WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) {
        try {
          within([&] { value = tensor(); });
        } catch (const Error& error) {
          fail(error.code(), "tensor ", name, ": ", error.message());
        }
      } else {
        keep(tag, ignored);
      }
    }
    check(value.has_value(), "tensor ", name, " has no value");
    done(std::move(name), std::move(*value));
  }

  // A TensorProto up to the current limit.
  Tensor tensor() {
    const int size = in_.BytesUntilLimit();
    std::string rest;
    if (static_cast<size_t>(size) < small_tensor) {
      check_bytes(in_.ReadString(&rest, size));
      return from_tensor_proto(rest);
    }
    DType dtype = DType::invalid;
    std::optional<Shape> shape;
    std::optional<Tensor> direct;
    while (const uint32_t tag = in_.ReadTag()) {
      if (tag ==
              WireFormatLite::MakeTag(content_field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED) &&
          shape && is_plain(dtype) && !direct) {
        uint32_t length = 0;
        check_bytes(in_.ReadVarint32(&length) && length <= INT32_MAX &&
                    in_.BytesUntilLimit() >= static_cast<int>(length));
        const int64_t elements = shape->is_complete() ? shape->elements() : -1;
        if (elements > 0 && static_cast<uint64_t>(elements) == length / dtype_size(dtype) &&
            length % dtype_size(dtype) == 0) {
          direct = Tensor(dtype, *shape);
          check_bytes(in_.ReadRaw(direct->raw(), static_cast<int>(length)));
          continue;
        }
        put_length(rest, content_field, length);
        std::string content;
        check_bytes(in_.ReadString(&content, static_cast<int>(length)));
        rest += content;
        continue;
      }
      const size_t start = rest.size();
      keep(tag, rest);
      if (tag == WireFormatLite::MakeTag(dtype_field, WireFormatLite::WIRETYPE_VARINT)) {
        dtype = static_cast<DType>(static_cast<uint8_t>(rest.back()));  // one byte: below 128
        if (rest.size() - start != 2) dtype = DType::invalid;
      } else if (tag ==
                 WireFormatLite::MakeTag(shape_field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) {
        shape = shape_of(std::string_view(rest).substr(start));
      }
    }
    return direct ? std::move(*direct) : from_tensor_proto(rest);
  }

 private:
  static void check_bytes(bool ok) { check(ok, "the bytes are not a message of this protocol"); }

  // Reads a length-delimited field with the limit set to its end.
  template <class Body>
  void within(Body&& body) {
    uint32_t length = 0;
    check_bytes(in_.ReadVarint32(&length) && length <= INT32_MAX);
    const auto limit = in_.PushLimit(static_cast<int>(length));
    check_bytes(in_.BytesUntilLimit() == static_cast<int>(length));
    body();
    check_bytes(in_.BytesUntilLimit() == 0);
    in_.PopLimit(limit);
  }

  std::string bytes() {
    std::string out;
    uint32_t length = 0;
    check_bytes(in_.ReadVarint32(&length) && length <= INT32_MAX &&
                in_.ReadString(&out, static_cast<int>(length)));
    return out;
  }

  void keep(uint32_t tag, std::string& out) {
    put_varint(out, tag);
    switch (WireFormatLite::GetTagWireType(tag)) {
      case WireFormatLite::WIRETYPE_VARINT: {
        uint64_t value = 0;
        check_bytes(in_.ReadVarint64(&value));
        return put_varint(out, value);
      }
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
        const std::string value = bytes();
        put_varint(out, value.size());
        out += value;
        return;
      }
      case WireFormatLite::WIRETYPE_FIXED32:
      case WireFormatLite::WIRETYPE_FIXED64: {
        std::string value;
        const int size =
            WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_FIXED32 ? 4 : 8;
        check_bytes(in_.ReadString(&value, size));
        out += value;
        return;
      }
      default:
        check_bytes(false);
    }
  }

  // From an encoded shape field; nothing if it is unusual, which the general path then reports.
  static std::optional<Shape> shape_of(std::string_view field) {
    CodedInputStream in(reinterpret_cast<const uint8_t*>(field.data()),
                        static_cast<int>(field.size()));
    Shape out;
    uint32_t length = 0;
    in.ReadTag();
    in.ReadVarint32(&length);
    while (const uint32_t tag = in.ReadTag()) {
      uint64_t size = 0;
      if (tag != WireFormatLite::MakeTag(dim_field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED) ||
          !in.ReadVarint32(&length)) {
        return std::nullopt;
      }
      const auto limit = in.PushLimit(static_cast<int>(length));
      if (in.ReadTag() !=
              WireFormatLite::MakeTag(dim_size_field, WireFormatLite::WIRETYPE_VARINT) ||
          !in.ReadVarint64(&size) || in.BytesUntilLimit() != 0 || size > INT32_MAX ||
          out.rank() == Shape::max_rank) {
        return std::nullopt;
      }
      in.PopLimit(limit);
      out.push_back(static_cast<int64_t>(size));
    }
    return out;
  }

  PartsStream stream_;
  CodedInputStream in_;
};

}  // namespace

void MessageWriter::append(std::string_view fields) {
  text_ += fields;
  size_ += fields.size();
}

void MessageWriter::add_named_tensor(int field, std::string_view name, const Tensor& tensor) {
  const std::string owned(name);
  write(field, &owned, tensor);
}

void MessageWriter::add_tensor(int field, const Tensor& tensor) { write(field, nullptr, tensor); }

void MessageWriter::write(int field, const std::string* name, const Tensor& tensor) {
  check_internal(tensor.device() == nullptr, what_, " has a tensor that is not in host memory");
  const bool is_direct = is_plain(tensor.dtype()) && tensor.bytes() >= small_tensor;
  const std::string start = is_direct ? encode_start(tensor) : to_tensor_proto(tensor);
  const uint64_t tensor_size = start.size() + (is_direct ? tensor.bytes() : 0);
  const size_t before = text_.size();
  if (name != nullptr) {
    std::string head;
    put_bytes(head, 1, *name);
    put_length(head, 2, tensor_size);
    put_length(text_, field, head.size() + tensor_size);
    text_ += head;
  } else {
    put_length(text_, field, tensor_size);
  }
  text_ += start;
  size_ += text_.size() - before;
  if (!largest_.is_valid() || tensor.bytes() > largest_.bytes()) {
    largest_ = tensor;
    largest_name_ = name != nullptr ? *name : "";
  }
  if (!is_direct) return;
  flush();
  slices_.emplace_back(tensor.raw(), tensor.bytes(), tensor.buffer());
  size_ += tensor.bytes();
}

void MessageWriter::flush() {
  if (!text_.empty()) slices_.emplace_back(std::move(text_));
  text_.clear();
}

Slices MessageWriter::finish() && {
  if (size_ > INT32_MAX) {
    fail(Code::resource_exhausted, what_, " would have ", size_,
         " bytes; a message of this protocol holds at most ", INT32_MAX,
         ": feed or fetch less at a time. The largest tensor in it is ", largest_name_, " ",
         largest_.dtype(), largest_.shape(), " with ", largest_.bytes(), " bytes");
  }
  flush();
  return std::move(slices_);
}

std::string read_message(const Bytes& bytes, int tensor_field,
                         const std::function<void(std::string, Tensor)>& named_tensor) {
  MessageReader reader(bytes);
  return reader.read(tensor_field, [&] { reader.named_tensor(named_tensor); });
}

std::string read_message_of_tensors(const Bytes& bytes, int tensor_field,
                                    const std::function<void(Tensor)>& tensor) {
  MessageReader reader(bytes);
  return reader.read(tensor_field, [&] { tensor(reader.tensor()); });
}

}  // namespace leat
