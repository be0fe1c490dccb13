// Variants that each hold a ragged tensor: elements of datasets and of loops over rows.
#pragma once

#include <utility>
#include <vector>

#include "core/variant.h"

namespace leat {

class RaggedVariant final : public Variant {
 public:
  static constexpr std::string_view kind_name = "a ragged tensor";

  // Each of `splits` is a vector of int32 or int64, outermost first. INVALID_ARGUMENT for values
  // that are variants: their nesting depth would be unknown.
  RaggedVariant(std::vector<Tensor> splits, Tensor values)
      : splits(std::move(splits)), values(std::move(values)) {
    check(this->values.dtype() != DType::variant, "a variant cannot hold another variant");
  }

  std::string_view kind() const override { return kind_name; }
  std::unique_ptr<Variant> copy() const override { return std::make_unique<RaggedVariant>(*this); }

  int64_t ragged_rank() const { return static_cast<int64_t>(splits.size()); }

  const std::vector<Tensor> splits;
  const Tensor values;
};

}  // namespace leat
