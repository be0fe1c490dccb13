// Values of dtype variant: each element is an object of the runtime, such as a TensorList. They
// stay on the task that makes them.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/tensor.h"

namespace leat {

class Variant {
 public:
  virtual ~Variant() = default;
  virtual std::string_view kind() const = 0;  // "a TensorList", for messages
  virtual std::unique_ptr<Variant> copy() const = 0;
  // The nesting depth of variants in this one, itself included.
  virtual int depth() const { return 1; }
};

// An element of a tensor of variants. Null: no value yet. Tensors share elements, so they are
// const.
using VariantPointer = std::shared_ptr<const Variant>;
template <>
struct DTypeOf<VariantPointer> {
  static constexpr DType value = DType::variant;
};

Tensor variant_tensor(std::unique_ptr<Variant> value);  // a scalar

// From a scalar, or from element `at`. INVALID_ARGUMENT if that is not a variant.
const Variant& variant_of(const Tensor& tensor);
const Variant& variant_of(const Tensor& tensor, int64_t at);
// From a scalar, for changing: `tensor` first gets a copy if the value is shared.
Variant& own_variant_of(Tensor& tensor);

// The depth of a variant that holds these tensors. INVALID_ARGUMENT above 1,000, because the
// destructor recurses once per level.
int depth_around(std::span<const Tensor> held);

// For kernels that want one kind: INVALID_ARGUMENT, "this is a dataset, not a TensorList".
template <class T>
const T& as_variant(const Variant& value) {
  const auto* out = dynamic_cast<const T*>(&value);
  check(out != nullptr, "this is ", value.kind(), ", not ", T::kind_name);
  return *out;
}
template <class T>
const T& variant_as(const Tensor& tensor) {
  return as_variant<T>(variant_of(tensor));
}
template <class T>
const T& variant_as(const Tensor& tensor, int64_t at) {
  return as_variant<T>(variant_of(tensor, at));
}
template <class T>
T& own_variant_as(Tensor& tensor) {
  variant_as<T>(tensor);
  return static_cast<T&>(own_variant_of(tensor));
}

}  // namespace leat
