// Values of dtype variant: scalars that hold an object of the runtime, such as a TensorList. They
// stay on the task that makes them.
#pragma once

#include <memory>
#include <string_view>

#include "core/tensor.h"

namespace leat {

class Variant {
 public:
  virtual ~Variant() = default;
  virtual std::string_view kind() const = 0;  // "a TensorList", for messages
  virtual std::unique_ptr<Variant> copy() const = 0;
};

Tensor variant_tensor(std::unique_ptr<Variant> value);

// INVALID_ARGUMENT if the tensor is no variant.
const Variant& variant_of(const Tensor& tensor);
// To be changed: `tensor` gets a copy first if somebody else has its value.
Variant& own_variant_of(Tensor& tensor);

// "expected a TensorList, not …" for the kernels that want one kind.
template <class T>
const T& variant_as(const Tensor& tensor) {
  const auto* out = dynamic_cast<const T*>(&variant_of(tensor));
  check(out != nullptr, "this is ", variant_of(tensor).kind(), ", not ", T::kind_name);
  return *out;
}
template <class T>
T& own_variant_as(Tensor& tensor) {
  variant_as<T>(tensor);
  return static_cast<T&>(own_variant_of(tensor));
}

}  // namespace leat
