// A tensor that arrives in pieces over a channel; the first piece has the extents (frame.h).
#pragma once

#include <memory>
#include <string>

#include "core/tensor.h"
#include "distributed/wire/frame.h"

namespace leat {

class IncomingTensor {
 public:
  IncomingTensor() = default;
  // Makes room for the tensor that a first piece announces. DATA_LOSS if it is not a valid tensor;
  // RESOURCE_EXHAUSTED if it is larger than `largest` bytes or does not fit.
  // `room`: a tensor of that dtype and shape to receive it into; may be invalid.
  IncomingTensor(const FrameHeader& header, const Shape& shape, uint64_t largest, Tensor room = {});

  // One that is whole: its elements are those bytes, which have come before. DATA_LOSS if they are
  // not those of a tensor of the header's dtype and this shape.
  IncomingTensor(const FrameHeader& header, const Shape& shape, const std::string& elements);

  // Reads the next piece. False if its checksum does not match. DATA_LOSS if it is not the next
  // piece of this tensor. std::bad_alloc, with nothing read, if strings do not fit.
  bool read(FrameReader& reader, const FrameHeader& header);
  bool is_whole() const { return received_ == total_; }
  // Without dtype for a dead value or a control edge. DATA_LOSS if the bytes are not valid strings;
  // RESOURCE_EXHAUSTED or std::bad_alloc if they do not fit.
  Tensor take() &&;

 private:
  Tensor value_;
  std::unique_ptr<std::string> strings_;  // in the wire's form
  Shape shape_;
  uint64_t total_ = 0, received_ = 0;
  char* destination_ = nullptr;
};

}  // namespace leat
