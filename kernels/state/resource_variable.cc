// Variables by handle (tf.Variable with use_resource=True). Internally they are the same as ref
// variables: the runtime resolves a handle to the variable before a step runs, and kernels get the
// variable's memory.
#include <mutex>

#include "core/state/variable.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/any_device.h"
#include "kernels/examples.h"
#include "kernels/state/assign.h"

namespace leat {
namespace {

BoundKernel prepare_variable_shape(const KernelRequest& request) {
  const std::span<const int64_t> dims = request.inputs[0].shape.dims();
  return BoundKernel::of([dims = std::vector<int64_t>(dims.begin(), dims.end()),
                          dtype = request.attr<DType>("out_type")](const Arguments& a) {
    if (dtype == DType::i64) {
      std::copy(dims.begin(), dims.end(), a.output<int64_t>());
    } else {
      std::copy(dims.begin(), dims.end(), a.output<int32_t>());
    }
  });
}

void infer_update(ShapeContext& c) {
  check(c.input(0).is_compatible(c.input(1)), "the variable has shape ", c.input(0),
        ", but the value has ", c.input(1));
}

OpDef update_op(std::string name, std::string doc, std::vector<Kernel> kernels, Tensor result) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {"resource: resource", "value: dtype"},
      .attrs = {"dtype: type"},
      .shape = infer_update,
      .kernels = std::move(kernels),
      .examples = {{.inputs = {floats({1, 2}), floats({3, 5})}, .outputs = {std::move(result)}}},
      .is_stateful = true,
      .is_not_differentiable = true,
  };
}

const Op var_handle_op{{
    .name = "VarHandleOp",
    .doc = "resource = a handle on the variable called shared_name (or like the node) in "
           "`container` of the device's task. It outlives steps and sessions.",
    .outputs = {"resource: resource"},
    .attrs = {"container: string = ''", "shared_name: string = ''", "debug_name: string = ''",
              "dtype: type", "shape: shape", "allowed_devices: list(string) = []"},
    .shape = shapes::from_attr("shape"),
    .kernels = kernels_for_any_device([](const KernelRequest&) { return BoundKernel{}; }),
    .is_stateful = true,
    .is_variable = true,
}};

const Op var_is_initialized_op{{
    .name = "VarIsInitializedOp",
    .doc = "is_initialized = whether the variable has a value.",
    .inputs = {"resource: resource"},
    .outputs = {"is_initialized: bool"},
    .shape = shapes::scalar(),
    .kernels = is_initialized_kernels(),
    .examples = {{.inputs = {Tensor::scalar(1.0f)}, .outputs = {Tensor::scalar(true)}}},
    .is_stateful = true,
    .allows_uninitialized = true,
    .only_reads_state = true,
    .is_not_differentiable = true,
}};

const Op read_variable_op{{
    .name = "ReadVariableOp",
    .doc = "value = what the variable holds when the node runs; later writes do not change it.",
    .inputs = {"resource: resource"},
    .outputs = {"value: dtype"},
    .attrs = {"dtype: type"},
    .shape = shapes::same_as(0),
    .gradient = [](Gradient& g) { g.dx() = g.dy(); },
    .kernels = kernels_for_any_device([](const KernelRequest&) { return BoundKernel::view(); }),
    .examples = {{.inputs = {floats({1, 2})},
                  .attrs = {{"dtype", f32}},
                  .outputs = {floats({1, 2})}}},
    .is_stateful = true,
    .only_reads_state = true,
}};

const Op variable_shape_op{{
    .name = "VariableShape",
    .doc = "output = the extents of the variable.",
    .inputs = {"input: resource"},
    .outputs = {"output: out_type"},
    .attrs = {"out_type: {int32, int64} = int32"},
    .shape =
        [](ShapeContext& c) {
          c.set_output(0, Shape{c.input(0).has_rank() ? c.input(0).rank() : any});
        },
    .kernels = host_kernels_for_any_device(prepare_variable_shape),
    .examples = {{.inputs = {floats({2, 1}, {1, 2})}, .outputs = {ints({2, 1})}}},
    .only_reads_state = true,
    .tells_shape = true,
    .is_not_differentiable = true,
}};

const Op assign_variable_op{{
    .name = "AssignVariableOp",
    .doc = "variable = value. The variable takes the value's shape, unless validate_shape is set "
           "and it has one by now.",
    .inputs = {"resource: resource", "value: dtype"},
    .attrs = {"dtype: type", "validate_shape: bool = false"},
    .shape = infer_update,
    .kernels = assign_kernels("dtype"),
    .examples = {{.inputs = {floats({1, 2}), floats({3, 4})}, .outputs = {floats({3, 4})}}},
    .is_stateful = true,
    .allows_uninitialized = true,
    .is_not_differentiable = true,
}};

const Op assign_add_variable_op(update_op("AssignAddVariableOp", "variable = variable + value.",
                                          assign_add_kernels("dtype"), floats({4, 7})));
const Op assign_sub_variable_op(update_op("AssignSubVariableOp", "variable = variable - value.",
                                          assign_sub_kernels("dtype"), floats({-2, -3})));

const Op disable_copy_on_read_op{{
    .name = "DisableCopyOnRead",
    .doc = "A hint that reads need not be copies. Reads never are, so nothing happens.",
    .inputs = {"resource: resource"},
    .shape = shapes::none(),
    .kernels = kernels_for_any_device([](const KernelRequest&) { return BoundKernel{}; }),
    .examples = {{.inputs = {Tensor::scalar(1.0f)}}},
    .is_stateful = true,
    .only_reads_state = true,
    .is_not_differentiable = true,
}};

const Op destroy_resource_op{{
    .name = "DestroyResourceOp",
    .doc = "The variable loses its value and is uninitialized. NOT_FOUND if it has none, unless "
           "ignore_lookup_error.",
    .inputs = {"resource: resource"},
    .attrs = {"ignore_lookup_error: bool = true"},
    .shape = shapes::none(),
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       Variable& variable = c.variable(0);
                       const std::unique_lock lock(variable.mutex());
                       if (!variable.is_initialized() &&
                           !c.node().attr<bool>("ignore_lookup_error"))
                         fail(Code::not_found, "the variable '", variable.name(), "' has no value");
                       variable.forget_value();
                     }}},
    .is_stateful = true,
    .allows_uninitialized = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
