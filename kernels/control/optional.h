// Optionals: values that may hold tensors. A condition of control flow v2 uses them to pass values
// that only one branch computed to its gradient.
#pragma once

#include <optional>
#include <vector>

#include "core/variant.h"

namespace leat {

class OptionalTensors final : public Variant {
 public:
  static constexpr std::string_view kind_name = "an Optional";

  std::optional<std::vector<Tensor>> values;

  std::string_view kind() const override { return kind_name; }
  int depth() const override { return values ? depth_around(*values) : 1; }
  std::unique_ptr<Variant> copy() const override {
    return std::make_unique<OptionalTensors>(*this);
  }
};

}  // namespace leat
