// Makes an optimizer's update op. Not for programs.
#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "frontends/cpp/optimizers/optimizer.h"

namespace leat {

// An input of an update op, by its name in the signature: "accum", "lr", "momentum". A number
// becomes a constant of that name and of the variable's dtype.
struct UpdateInput {
  std::string_view name;
  std::variant<Output, double> value;
};

// Apply<rule> of a gradient of the whole, SparseApply<rule> of one of rows, whose repeated rows are
// added up before; of a resource variable their forms for these. The variable, the gradient and its
// indices are put where the signature wants them, `inputs` go by their names. The result is there
// to wait for: an op on a resource variable has no output.
Output update_op(std::string_view rule, const GradientAndVariable& gradient,
                 const std::vector<UpdateInput>& inputs, const AttrMap& attrs, Location at);

// INVALID_ARGUMENT unless low <= value < high: "Adam (train.cc:12): beta1 must be in [0, 1), got
// 2".
void check_option(std::string_view optimizer, std::string_view option, double value, double low,
                  double high, Location at);
// INVALID_ARGUMENT unless value >= 0 and finite.
void check_not_negative(std::string_view optimizer, std::string_view option, double value,
                        Location at);

}  // namespace leat
