#include "core/variant.h"

#include <algorithm>

namespace leat {
namespace {

constexpr int deepest = 1000;

}  // namespace

Tensor variant_tensor(std::unique_ptr<Variant> value) {
  Tensor out(DType::variant, {});
  *out.data<VariantPointer>() = std::move(value);
  return out;
}

const Variant& variant_of(const Tensor& tensor) {
  check(tensor.dtype() == DType::variant && tensor.shape().rank() == 0, "a tensor of dtype ",
        tensor.dtype(), " and shape ", tensor.shape(), " is not a scalar variant");
  return variant_of(tensor, 0);
}

const Variant& variant_of(const Tensor& tensor, int64_t at) {
  const VariantPointer& element = tensor.data<VariantPointer>()[at];
  check(element != nullptr, "element ", at, " of a tensor of variants of shape ", tensor.shape(),
        " was not set");
  return *element;
}

Variant& own_variant_of(Tensor& tensor) {
  const Variant& value = variant_of(tensor);
  const bool is_sole =
      is_sole_handle(tensor.buffer()) && is_sole_handle(*tensor.data<VariantPointer>());
  if (!is_sole) tensor = variant_tensor(value.copy());
  return const_cast<Variant&>(variant_of(tensor));
}

int depth_around(std::span<const Tensor> held) {
  int out = 1;
  for (const Tensor& tensor : held) {
    if (tensor.dtype() != DType::variant) continue;
    for (const VariantPointer& element : tensor.span<VariantPointer>()) {
      if (element != nullptr) out = std::max(out, element->depth() + 1);
    }
  }
  check(out <= deepest, "variants (lists, Optionals, datasets) are nested more than ", deepest,
        " levels deep");
  return out;
}

}  // namespace leat
