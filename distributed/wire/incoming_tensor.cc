#include "distributed/wire/incoming_tensor.h"

#include <cstring>

#include "core/bools.h"
#include "core/memory/host_memory.h"
#include "core/visit_dtype.h"

namespace leat {
namespace {

constexpr uint64_t worth_asking = uint64_t{64} << 20;

}  // namespace

IncomingTensor::IncomingTensor(const FrameHeader& header, const Shape& shape, uint64_t largest,
                               Tensor room)
    : shape_(shape) {
  if (header.dtype == DType::invalid || (header.flags & FrameHeader::dead) != 0) {
    if (header.total != 0)
      fail(Code::data_loss, "a dead value or a control edge with ", header.total, " bytes");
    return;
  }
  const bool is_string = header.dtype == DType::string;
  uint64_t expected = 0;
  if (!visit_dtype(header.dtype, [](auto) {})) {
    fail(Code::data_loss, "a tensor of unknown dtype ", static_cast<int>(header.dtype));
  }
  if (__builtin_mul_overflow(static_cast<uint64_t>(shape.elements()), dtype_size(header.dtype),
                             &expected) ||
      (!is_string && expected != header.total)) {
    fail(Code::data_loss, "a tensor of dtype ", header.dtype, " and shape ", shape, " in ",
         header.total, " bytes");
  }
  if (header.total > largest) {
    fail(Code::resource_exhausted, "a tensor of dtype ", header.dtype, " and shape ", shape, " (",
         header.total, " bytes) is larger than the limit of ", largest, " bytes");
  }
  total_ = header.total;
  if (is_string) {
    // Grows with what comes, but what cannot become whole need not begin.
    const uint64_t available = header.total < worth_asking ? header.total : available_host_memory();
    if (header.total > available) {
      fail(Code::resource_exhausted, "a tensor of strings of ", header.total,
           " bytes does not fit: ", available, " bytes of memory are available");
    }
    strings_ = std::make_unique<std::string>();
  } else {
    value_ = room.is_valid() ? std::move(room) : Tensor(header.dtype, shape);
    destination_ = static_cast<char*>(value_.raw());
  }
}

IncomingTensor::IncomingTensor(const FrameHeader& header, const Shape& shape,
                               const std::string& elements) {
  FrameHeader whole = header;
  whole.total = elements.size();
  *this = IncomingTensor(whole, shape, whole.total);
  if (strings_ || !value_.is_valid()) fail(Code::data_loss, "a known list that is no tensor");
  std::memcpy(destination_, elements.data(), elements.size());
  received_ = total_;
}

bool IncomingTensor::read(FrameReader& reader, const FrameHeader& header) {
  if (header.offset != received_) fail(Code::data_loss, "a piece of a tensor is missing");
  if (header.total != total_) {
    fail(Code::data_loss, "a piece belongs to a tensor of ", header.total,
         " bytes, but the tensor began with ", total_);
  }
  if (strings_) strings_->resize(header.offset + header.payload);
  char* const to = strings_ ? strings_->data() : destination_;
  if (!reader.read_payload(header, to + header.offset)) return false;
  received_ += header.payload;
  return true;
}

Tensor IncomingTensor::take() && {
  if (strings_) return decode_strings(shape_, *strings_);
  normalise_bools(value_);
  return std::move(value_);
}

}  // namespace leat
