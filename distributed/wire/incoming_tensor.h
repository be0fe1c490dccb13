// A tensor that comes in pieces over a channel, the first one with its extents (frame.h).
#pragma once

#include <memory>
#include <string>

#include "core/tensor.h"
#include "distributed/wire/frame.h"

namespace leat {

class IncomingTensor {
 public:
  IncomingTensor() = default;
  // Room for what a first piece announces. DATA_LOSS if that is no tensor; RESOURCE_EXHAUSTED if
  // it is larger than `largest` bytes or does not fit.
  IncomingTensor(const FrameHeader& header, const Shape& shape, uint64_t largest);

  // Reads the next piece. DATA_LOSS if it is not the next one of this tensor. False if its
  // checksum does not fit what came. std::bad_alloc, with nothing read, if strings do not fit.
  bool read(FrameReader& reader, const FrameHeader& header);
  bool is_whole() const { return received_ == total_; }
  // Without dtype if it is dead, or a control edge. DATA_LOSS if the bytes are no strings;
  // RESOURCE_EXHAUSTED or std::bad_alloc if these do not fit.
  Tensor take() &&;

 private:
  Tensor value_;
  std::unique_ptr<std::string> strings_;  // in the wire's form
  Shape shape_;
  uint64_t total_ = 0, received_ = 0;
  char* destination_ = nullptr;
};

}  // namespace leat
