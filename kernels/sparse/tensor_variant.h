// Variants that each hold a tensor: parts of sparse tensors, as datasets hold them.
#pragma once

#include "core/variant.h"
#include "kernels/sparse/sparse_batch.h"

namespace leat {

class TensorVariant final : public Variant {
 public:
  static constexpr std::string_view kind_name = "a tensor";

  // INVALID_ARGUMENT for variants: their nesting depth would be unknown.
  explicit TensorVariant(Tensor tensor) : tensor(std::move(tensor)) {
    check(this->tensor.dtype() != DType::variant, "a variant cannot hold another variant");
  }

  std::string_view kind() const override { return kind_name; }
  std::unique_ptr<Variant> copy() const override { return std::make_unique<TensorVariant>(*this); }

  const Tensor tensor;
};

// Indices, values and shape, as SerializeSparse returns them and datasets hold them.
inline void write(const SparseValue& sparse, VariantPointer* to) {
  for (const Tensor* part : {&sparse.indices, &sparse.values, &sparse.shape})
    *to++ = std::make_shared<TensorVariant>(*part);
}
inline Tensor sparse_variant(const SparseValue& sparse) {
  Tensor out(DType::variant, {3});
  write(sparse, out.data<VariantPointer>());
  return out;
}

}  // namespace leat
