// Where a kernel between segments keeps elements: in host memory, or in a GPU's. What is done to a
// GPU's memory is enqueued on its stream.
#pragma once

#include "core/device.h"
#include "core/kernel.h"
#include "graph/host_values.h"
#include "kernels/moves/copy_elements.h"

namespace leat {

class ElementMemory {
 public:
  // That of the kernel's device. Counts and objects of the host (graph/host_values.h) are in host
  // memory on any device.
  ElementMemory(const ExecuteContext& c, DType dtype)
      : ElementMemory(is_host_object(dtype) || is_count(dtype, Shape::unknown()) ? nullptr
                                                                                 : &c.device()) {}
  // The memory in which `other` is.
  explicit ElementMemory(const Tensor& other) : ElementMemory(other.device()) {}

  // Not initialised.
  Tensor make(DType dtype, const Shape& shape) const {
    if (gpu_ == nullptr) return Tensor(dtype, shape);
    return Tensor(dtype, shape,
                  gpu_->allocate(static_cast<size_t>(shape.elements()) * dtype_size(dtype)));
  }

  Tensor zeros(DType dtype, const Shape& shape) const {
    const Tensor host = leat::zeros(dtype, shape);
    if (gpu_ == nullptr) return host;
    Tensor out = make(dtype, shape);
    if (host.bytes() > 0)
      gpu_->copy_from_host(host.raw(), out.raw(), host.bytes(), [host, out](const Status&) {});
    return out;
  }

  // copy_elements() within this memory.
  void copy(const Tensor& from, int64_t from_at, Tensor& to, int64_t to_at, int64_t count) const {
    if (gpu_ == nullptr) return copy_elements(from, from_at, to, to_at, count);
    const auto size = static_cast<int64_t>(dtype_size(from.dtype()));
    gpu_->copy_within(static_cast<const char*>(from.raw()) + from_at * size,
                      static_cast<char*>(to.raw()) + to_at * size,
                      static_cast<size_t>(count * size));
  }

  // slice_of() within this memory.
  Tensor slice(const Tensor& batch, int64_t at) const {
    if (gpu_ == nullptr) return slice_of(batch, at);
    Tensor out = make(batch.dtype(), Shape(batch.shape().dims().subspan(1)));
    copy(batch, at * out.elements(), out, 0, out.elements());
    return out;
  }

 private:
  explicit ElementMemory(Device* device)
      : gpu_(device == nullptr || device->type() == DeviceType::cpu ? nullptr : device) {}

  Device* gpu_;  // null: the host
};

}  // namespace leat
