// Ops on Optionals (optional.h).
#include "kernels/control/optional.h"

#include "graph/shape_inference.h"
#include "kernels/cpu.h"

namespace leat {
namespace {

const OptionalTensors& optional_of(const ExecuteContext& c) {
  return variant_as<OptionalTensors>(c.input(0));
}

void from_value(ExecuteContext& c) {
  auto out = std::make_unique<OptionalTensors>();
  out->values.emplace();
  for (int i = 0; i < c.num_inputs(); ++i) out->values->push_back(c.input(i));
  depth_around(*out->values);
  c.set_output(0, variant_tensor(std::move(out)));
}

void get_value(ExecuteContext& c) {
  const OptionalTensors& optional = optional_of(c);
  check(optional.values.has_value(), "The given optional does not have a value.");
  const std::vector<Tensor> values = *optional.values;
  const auto& dtypes = c.node().attr<std::vector<DType>>("output_types");
  const auto& shapes = c.node().attr<std::vector<Shape>>("output_shapes");
  check(values.size() == dtypes.size(), "The given optional has ", values.size(),
        " components, expected ", dtypes.size(), ".");
  for (size_t i = 0; i < values.size(); ++i) {
    check(values[i].dtype() == dtypes[i],
          "The given optional does not match the expected type for ", "component ", i,
          ". Expected: ", dtypes[i], ". Actual: ", values[i].dtype(), ".");
    check(i >= shapes.size() || shapes[i].is_compatible(values[i].shape()),
          "The given optional does not match the expected shape for component ", i);
    c.set_output(static_cast<int>(i), values[i]);
  }
}

const Op from_value_op{{
    .name = "OptionalFromValue",
    .doc = "optional = an Optional that holds the components.",
    .inputs = {"components: Toutput_types"},
    .outputs = {"optional: variant"},
    .attrs = {"Toutput_types: list(type) >= 1"},
    .shape = shapes::scalar(),
    .kernels = {{.execute = from_value}},
    .is_not_differentiable = true,
}};

const Op none_op{{
    .name = "OptionalNone",
    .doc = "optional = an Optional that holds nothing.",
    .outputs = {"optional: variant"},
    .shape = shapes::scalar(),
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       c.set_output(0, variant_tensor(std::make_unique<OptionalTensors>()));
                     }}},
    .is_not_differentiable = true,
}};

const Op get_value_op{{
    .name = "OptionalGetValue",
    .doc = "components = what the Optional holds; INVALID_ARGUMENT if it holds nothing.",
    .inputs = {"optional: variant"},
    .outputs = {"components: output_types"},
    .attrs = {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"},
    .kernels = {{.execute = get_value}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op has_value_op{{
    .name = "OptionalHasValue",
    .doc = "has_value = whether the Optional holds something.",
    .inputs = {"optional: variant"},
    .outputs = {"has_value: bool"},
    .shape = shapes::scalar(),
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       c.set_output(0, Tensor::scalar(optional_of(c).values.has_value()));
                     }}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
