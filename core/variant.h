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
  // How many variants lie in one another in it, itself included.
  virtual int depth() const { return 1; }
};

// An element of a tensor of variants. Null: it has none yet. Elements are shared by the tensors
// that have them, so they are constant.
using VariantPointer = std::shared_ptr<const Variant>;
template <>
struct DTypeOf<VariantPointer> {
  static constexpr DType value = DType::variant;
};

Tensor variant_tensor(std::unique_ptr<Variant> value);  // a scalar

// Of a scalar, or of element `at`. INVALID_ARGUMENT if that is no variant.
const Variant& variant_of(const Tensor& tensor);
const Variant& variant_of(const Tensor& tensor, int64_t at);
// Of a scalar, to be changed: `tensor` gets a copy first if somebody else has its value.
Variant& own_variant_of(Tensor& tensor);

// The depth of a variant that holds these tensors. INVALID_ARGUMENT above 1,000: when it dies, each
// level is a call.
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
