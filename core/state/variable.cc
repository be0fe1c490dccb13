#include "core/state/variable.h"

#include <vector>

#include "core/byte_size.h"
#include "core/device.h"
#include "core/memory/memory_owner.h"

namespace leat {
namespace {

constexpr std::string_view default_container = "localhost";

std::string_view container_or_default(std::string_view container) {
  return container.empty() ? default_container : container;
}

}  // namespace

const Tensor& Variable::value() const {
  if (!is_initialized())
    fail(Code::failed_precondition, "Attempting to use uninitialized value ", name_);
  return value_;
}

Tensor& Variable::mutable_value() {
  if (!is_initialized())
    fail(Code::failed_precondition, "Attempting to use uninitialized value ", name_);
  if (value_.buffer() && !is_sole_handle(value_.buffer())) {
    if (Device* device = value_.device()) {
      const MemoryOwner memory_owner(MemoryUse::variable, name_);
      Tensor copy(dtype_, value_.shape(), device->allocate(value_.bytes()));
      device->copy_within(value_.raw(), copy.raw(), value_.bytes());
      value_ = std::move(copy);
    } else {
      value_ = value_.clone();
    }
  }
  return value_;
}

void Variable::assign(Tensor value) {
  check(value.dtype() == dtype_, "variable '", name_, "' of dtype ", dtype_,
        " was assigned a tensor of dtype ", value.dtype());
  note_shape(value.shape());
  value_ = std::move(value);
  mark_written();
}

Tensor& Variable::memory(const Shape& shape, Device& device, Tensor* replaced) {
  const Device* const owner = device.type() == DeviceType::cpu ? nullptr : &device;
  const bool fits = value_.is_valid() && value_.shape() == shape && value_.device() == owner &&
                    is_sole_handle(value_.buffer());
  if (fits) return value_;
  const MemoryOwner memory_owner(MemoryUse::variable, name_);
  Tensor fresh = dtype_ == DType::string
                     ? Tensor(dtype_, shape)
                     : Tensor(dtype_, shape, device.allocate(byte_size(dtype_, shape)));
  note_shape(shape);
  if (replaced != nullptr) *replaced = std::move(value_);
  value_ = std::move(fresh);
  return value_;
}

void Variable::note_shape(const Shape& shape) {
  if (value_.is_valid() && !(value_.shape() == shape)) note_other_shape();
}

void Variable::forget_value() {
  initialized_.store(false, std::memory_order_release);
  value_ = Tensor();
}

void Variable::reset() {
  forget_value();
  is_reset_.store(true, std::memory_order_release);
}

void Variable::mark_written() {
  is_reset_.store(false, std::memory_order_release);
  version_.fetch_add(1, std::memory_order_acq_rel);
  initialized_.store(true, std::memory_order_release);
}

std::shared_ptr<Variable> Containers::variable(std::string_view container, std::string_view name,
                                               DType dtype, VariableKind kind) {
  std::lock_guard lock(mutex_);
  auto& slot = variables_[{std::string(container_or_default(container)), kind, std::string(name)}];
  if (!slot || (slot->is_reset() && slot->dtype() != dtype))
    slot = std::make_shared<Variable>(std::string(name), dtype);
  check(slot->dtype() == dtype, "variable '", name, "' already has dtype ", slot->dtype(),
        ", but dtype ", dtype, " was requested; Session reset clears the variable");
  return slot;
}

std::shared_ptr<Resource> Containers::resource(std::string_view container,
                                               std::shared_ptr<Resource> wanted) {
  std::lock_guard lock(mutex_);
  auto& slot =
      resources_[{std::string(container_or_default(container)), wanted->kind(), wanted->name()}];
  if (!slot) slot = std::move(wanted);
  return slot;
}

void Containers::clear(std::string_view container) {
  const std::string name(container_or_default(container));
  std::vector<std::shared_ptr<const void>> dying;  // outside the lock
  std::vector<std::shared_ptr<Variable>> held;
  {
    std::lock_guard lock(mutex_);
    const auto is_there = [&](const auto& entry) { return std::get<0>(entry.first) == name; };
    std::erase_if(variables_, [&](const auto& entry) {
      if (!is_there(entry)) return false;
      const bool is_held = entry.second.use_count() > 1;
      if (is_held)
        held.push_back(entry.second);
      else
        dying.push_back(entry.second);
      return !is_held;
    });
    std::erase_if(resources_, [&](const auto& entry) {
      if (!is_there(entry)) return false;
      dying.push_back(entry.second);
      return true;
    });
  }
  for (const std::shared_ptr<Variable>& variable : held) {
    std::lock_guard lock(variable->mutex());
    variable->reset();
  }
}

size_t Containers::size() const {
  std::lock_guard lock(mutex_);
  return variables_.size();
}

}  // namespace leat
