#include "core/variant.h"

namespace leat {

Tensor variant_tensor(std::unique_ptr<Variant> value) {
  const auto release = [](void* data) { delete static_cast<Variant*>(data); };
  return Tensor(DType::variant, {}, std::make_shared<Buffer>(value.release(), 0, release));
}

const Variant& variant_of(const Tensor& tensor) {
  check(tensor.dtype() == DType::variant && tensor.raw() != nullptr, "a tensor of dtype ",
        tensor.dtype(), " and shape ", tensor.shape(), " holds no variant");
  return *static_cast<const Variant*>(tensor.raw());
}

Variant& own_variant_of(Tensor& tensor) {
  if (!is_sole_handle(tensor.buffer())) tensor = variant_tensor(variant_of(tensor).copy());
  return const_cast<Variant&>(variant_of(tensor));
}

}  // namespace leat
