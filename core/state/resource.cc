#include "core/state/resource.h"

#include <algorithm>

namespace leat {

std::string resource_name(const NodeView& node) {
  const auto& shared_name = node.attr<std::string>("shared_name");
  return shared_name.empty() ? std::string(node.name) : shared_name;
}

Tensor resource_handle(std::shared_ptr<Resource> resource) {
  return resource_handles({}, {&resource, 1});
}

const std::shared_ptr<Resource>& resource_of(const Tensor& handle) {
  const auto resources = resources_of(handle);
  check(resources.size() == 1, "one resource handle is expected, but the tensor has ",
        resources.size());
  return resources.front();
}

Tensor resource_handles(const Shape& shape, std::span<const std::shared_ptr<Resource>> resources) {
  using Pointer = std::shared_ptr<Resource>;
  check_internal(shape.elements() == std::ssize(resources), resources.size(),
                 " handles do not fill shape ", shape);
  auto* const copies = new Pointer[resources.size()];
  std::copy(resources.begin(), resources.end(), copies);
  const auto release = [](void* data) { delete[] static_cast<Pointer*>(data); };
  return Tensor(DType::resource, shape, std::make_shared<Buffer>(copies, 0, release));
}

std::span<const std::shared_ptr<Resource>> resources_of(const Tensor& handles) {
  check(handles.dtype() == DType::resource && handles.raw() != nullptr, "a tensor of dtype ",
        handles.dtype(), " and shape ", handles.shape(), " is not a resource handle");
  return {static_cast<const std::shared_ptr<Resource>*>(handles.raw()),
          static_cast<size_t>(handles.elements())};
}

void Cancellation::begin(int64_t step) {
  const std::lock_guard lock(mutex_);
  step_ = step;
  status_ = {};
  callbacks_.clear();
}

Cancellation::Token Cancellation::add(Callback callback) {
  Status status;
  Token token = -1;
  {
    const std::lock_guard lock(mutex_);
    status = status_;
    token = next_++;
    if (status.is_ok()) callbacks_.emplace(token, std::move(callback));
  }
  if (!status.is_ok()) callback(status);
  return token;
}

void Cancellation::remove(Token token) {
  std::map<Token, Callback>::node_type dying;  // outside the lock
  const std::lock_guard lock(mutex_);
  dying = callbacks_.extract(token);
}

void Cancellation::cancel(int64_t step, const Status& status) {
  std::map<Token, Callback> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (step != step_ || !status_.is_ok()) return;
    status_ = status;
    callbacks.swap(callbacks_);
  }
  for (const auto& [token, callback] : callbacks) callback(status);
}

}  // namespace leat
