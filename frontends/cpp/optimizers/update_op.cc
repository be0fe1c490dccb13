#include "frontends/cpp/optimizers/update_op.h"

#include <algorithm>
#include <cmath>

#include "graph/op_def.h"

namespace leat {

Output update_op(std::string_view rule, const GradientAndVariable& gradient,
                 const std::vector<UpdateInput>& inputs, const AttrMap& attrs, Location at) {
  const GradientAndVariable used = sum_repeated(gradient, at);
  const OpDef& def = op_named(concat(used.indices ? "SparseApply" : "Apply", rule));
  std::vector<Output> ordered;
  for (const ArgDef& arg : def.schema.inputs) {
    if (arg.name == "var") {
      ordered.push_back(used.variable);
    } else if (arg.name == "grad" || arg.name == "delta") {
      ordered.push_back(used.gradient);
    } else if (arg.name == "indices") {
      ordered.push_back(used.indices);
    } else {
      const auto found = std::find_if(inputs.begin(), inputs.end(),
                                      [&](const UpdateInput& in) { return in.name == arg.name; });
      check_internal(found != inputs.end(), def.name, " has no input for ", arg.name);
      const double* number = std::get_if<double>(&found->value);
      ordered.push_back(number == nullptr ? std::get<Output>(found->value)
                                          : constant(used.variable.graph(), *number,
                                                     used.variable.dtype(), arg.name, at));
    }
  }
  return {&update_variable(def.name, ordered, attrs, at), 0};
}

void check_option(std::string_view optimizer, std::string_view option, double value, double low,
                  double high, Location at) {
  check(value >= low && value < high, optimizer, " (", at, "): ", option, " must be in [", low,
        ", ", high, "), got ", value);
}

void check_not_negative(std::string_view optimizer, std::string_view option, double value,
                        Location at) {
  check(value >= 0 && std::isfinite(value), optimizer, " (", at, "): ", option,
        " must be finite and not negative, got ", value);
}

}  // namespace leat
