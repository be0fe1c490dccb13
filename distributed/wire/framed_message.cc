#include "distributed/wire/framed_message.h"

#include <algorithm>
#include <cstring>

#include "core/bools.h"
#include "core/visit_dtype.h"
#include "distributed/proto/worker.pb.h"

namespace leat::wire {
namespace {

// A smaller payload is copied into the slice before it.
constexpr size_t small_payload = 1024;

class FrameWriter {
 public:
  explicit FrameWriter(const google::protobuf::MessageLite& header) {
    const uint64_t size = header.ByteSizeLong();
    if (size > INT32_MAX) {
      fail(Code::resource_exhausted, "a message of ", size, " bytes without its tensors; at most ",
           INT32_MAX, " are possible");
    }
    const auto size32 = static_cast<uint32_t>(size);
    text_.resize(sizeof(size32) + size);
    std::memcpy(text_.data(), &size32, sizeof(size32));
    header.SerializeToArray(text_.data() + sizeof(size32), static_cast<int>(size));
  }

  void add(const Tensor& tensor) {
    if (tensor.dtype() == DType::string) return add_strings(tensor);
    if (tensor.bytes() < small_payload) {
      text_.append(static_cast<const char*>(tensor.raw()), tensor.bytes());
      return;
    }
    flush();
    slices_.emplace_back(tensor.raw(), tensor.bytes(), tensor.buffer());
  }

  Slices finish() && {
    flush();
    return std::move(slices_);
  }

 private:
  void add_strings(const Tensor& tensor) {
    for (const std::string& value : tensor.span<std::string>()) {
      const auto size = static_cast<uint32_t>(value.size());
      text_.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(value);
    }
  }
  void flush() {
    if (!text_.empty()) slices_.emplace_back(std::move(text_));
    text_.clear();
  }

  std::string text_;
  Slices slices_;
};

// As they are sent.
uint64_t payload_bytes(const Tensor& tensor, const std::string& name) {
  if (tensor.dtype() != DType::string) return tensor.bytes();
  uint64_t bytes = sizeof(uint32_t) * static_cast<uint64_t>(tensor.elements());
  for (const std::string& value : tensor.span<std::string>()) {
    if (value.size() > UINT32_MAX)
      fail(Code::resource_exhausted, "a string of ", value.size(), " bytes in ", name);
    bytes += value.size();
  }
  return bytes;
}

}  // namespace

void describe(const NamedTensors& tensors, TensorHeaders* list) {
  for (const auto& [name, tensor] : tensors) {
    check_internal(tensor.device() == nullptr, "tensor ", name, " is not in host memory");
    TensorHeader& header = *list->Add();
    header.set_name(name);
    header.set_dtype(static_cast<int>(tensor.dtype()));
    for (const int64_t dim : tensor.shape().dims()) header.add_dims(dim);
    header.set_bytes(payload_bytes(tensor, name));
  }
}

Slices frame(const google::protobuf::MessageLite& header) { return FrameWriter(header).finish(); }

Slices frame(const google::protobuf::MessageLite& header, const NamedTensors& tensors,
             FrameSize allowed) {
  uint64_t size = sizeof(uint32_t) + header.ByteSizeLong();
  const std::pair<std::string, Tensor>* largest = nullptr;
  uint64_t largest_bytes = 0;
  for (const auto& named : tensors) {
    const uint64_t bytes = payload_bytes(named.second, named.first);
    size += bytes;
    if (largest != nullptr && bytes <= largest_bytes) continue;
    largest = &named;
    largest_bytes = bytes;
  }
  if (allowed == FrameSize::one_message && size > largest_rpc_message && largest != nullptr) {
    fail(Code::resource_exhausted, "a message between two tasks would have ", size,
         " bytes; one holds at most ", largest_rpc_message,
         ": feed or fetch less at a time. The largest tensor in it is ", largest->first, " ",
         largest->second.dtype(), largest->second.shape(), " with ", largest_bytes, " bytes");
  }
  FrameWriter writer(header);
  for (const auto& [name, tensor] : tensors) writer.add(tensor);
  return std::move(writer).finish();
}

void FramedMessage::read(void* to, size_t size) {
  check(size <= bytes_.left(), "a message ends ", size - bytes_.left(), " bytes too early");
  bytes_.read(to, size);
}

void FramedMessage::parse_header(google::protobuf::MessageLite& header) {
  uint32_t size = 0;
  read(&size, sizeof(size));
  check(size <= bytes_.left() && size <= INT32_MAX, "a message claims a header of ", size,
        " bytes, but has ", bytes_.left());
  bool parsed = false;
  if (const auto lies = bytes_.view(size)) {
    parsed = header.ParseFromArray(lies->data(), static_cast<int>(size));
  } else {
    std::string text(size, '\0');
    read(text.data(), size);
    parsed = header.ParseFromString(text);
  }
  check(parsed, "a message is not a ", header.GetTypeName());
}

Tensor FramedMessage::tensor(const TensorHeader& header) {
  const auto dtype = static_cast<DType>(header.dtype());
  check(header.dtype() > 0 && header.dtype() < 256 && visit_dtype(dtype, [](auto) {}), "tensor ",
        header.name(), " has the dtype ", header.dtype(), ", which is unknown");
  check(header.dims_size() <= Shape::max_rank, "tensor ", header.name(), " has rank ",
        header.dims_size());
  Shape shape;
  for (const int64_t dim : header.dims()) {
    check(dim >= 0, "tensor ", header.name(), " has a negative extent");
    shape.push_back(dim);
  }
  check(header.bytes() <= bytes_.left(), "tensor ", header.name(), " claims ", header.bytes(),
        " bytes of ", bytes_.left());
  const auto elements = static_cast<uint64_t>(shape.elements());
  if (dtype == DType::string) {
    check(elements <= header.bytes() / sizeof(uint32_t), "tensor ", header.name(), " claims ",
          elements, " strings in ", header.bytes(), " bytes");
    Tensor out(dtype, shape);
    for (std::string& value : out.span<std::string>()) {
      uint32_t size = 0;
      read(&size, sizeof(size));
      check(size <= bytes_.left(), "a string of tensor ", header.name(), " claims ", size,
            " bytes of ", bytes_.left());
      value.resize(size);
      read(value.data(), size);
    }
    return out;
  }
  check(elements <= header.bytes() && elements * dtype_size(dtype) == header.bytes(), "tensor ",
        header.name(), " of shape ", shape, " has ", header.bytes(), " bytes");
  Tensor out(dtype, shape);
  read(out.raw(), header.bytes());
  normalise_bools(out);
  return out;
}

NamedTensors FramedMessage::tensors(const TensorHeaders& headers) {
  NamedTensors out;
  out.reserve(static_cast<size_t>(headers.size()));
  for (const TensorHeader& header : headers) out.emplace_back(header.name(), tensor(header));
  return out;
}

}  // namespace leat::wire
