// Variables and plain assignments. A variable's memory belongs to the runtime, which resolves ref
// edges to it; the kernels here update it in place.
#include "core/state/variable.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/any_device.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/state/assign.h"

namespace leat {
namespace {

void infer_assign(ShapeContext& c) {
  if (!c.attr<bool>("validate_shape")) return c.set_output(0, c.input(1));
  check(c.input(0).is_compatible(c.input(1)),
        "Assign requires shapes of both tensors to match. lhs shape= ", c.input(0),
        " rhs shape= ", c.input(1));
  c.set_output(0, c.input(0).merged(c.input(1)));
}

void infer_update(ShapeContext& c) { c.set_output(0, c.input(0).merged(c.input(1))); }

// Nothing runs: whoever uses the ref gets the variable itself.
BoundKernel no_kernel(const KernelRequest&) { return {}; }

const Op variable_v2_op{{
    .name = "VariableV2",
    .doc = "ref = the variable called shared_name (or like the node) in `container` of the "
           "device's task. It outlives steps and sessions.",
    .outputs = {"ref: Ref(dtype)"},
    .attrs = {"shape: shape", "dtype: type", "container: string = ''", "shared_name: string = ''"},
    .shape = shapes::from_attr("shape"),
    .kernels = kernels_for_any_device(no_kernel),
    .is_stateful = true,
    .is_variable = true,
}};

const Op variable_op{{
    .name = "Variable",
    .doc = "VariableV2 of older graphs; a scalar `shape` stands for an unknown one.",
    .outputs = {"ref: Ref(dtype)"},
    .attrs = {"shape: shape", "dtype: type", "container: string = ''", "shared_name: string = ''"},
    .shape =
        [](ShapeContext& c) {
          const Shape& shape = c.attr<Shape>("shape");
          c.set_output(0, shape.rank() == 0 ? Shape::unknown() : shape);
        },
    .kernels = kernels_for_any_device(no_kernel),
    .is_stateful = true,
    .is_variable = true,
}};

const Op assign_op{{
    .name = "Assign",
    .doc = "ref = value. With validate_shape the shapes must agree; without it the variable takes "
           "the value's shape.",
    .inputs = {"ref: Ref(T)", "value: T"},
    .outputs = {"output_ref: Ref(T)"},
    .attrs = {"T: type", "validate_shape: bool = true", "use_locking: bool = true"},
    .shape = infer_assign,
    .kernels = assign_kernels("T"),
    .examples = {{.inputs = {floats({1, 2}), floats({3, 4})}, .outputs = {floats({3, 4})}}},
    .allows_uninitialized = true,
    .is_not_differentiable = true,
}};

const Op assign_add_op{{
    .name = "AssignAdd",
    .doc = "ref = ref + value.",
    .inputs = {"ref: Ref(T)", "value: T"},
    .outputs = {"output_ref: Ref(T)"},
    .attrs = {"T: numbertype", "use_locking: bool = false"},
    .shape = infer_update,
    .kernels = assign_add_kernels("T"),
    .examples = {{.inputs = {floats({1, 2}), floats({3, 5})}, .outputs = {floats({4, 7})}}},
    .is_not_differentiable = true,
}};

const Op assign_sub_op{{
    .name = "AssignSub",
    .doc = "ref = ref - value.",
    .inputs = {"ref: Ref(T)", "value: T"},
    .outputs = {"output_ref: Ref(T)"},
    .attrs = {"T: numbertype", "use_locking: bool = false"},
    .shape = infer_update,
    .kernels = assign_sub_kernels("T"),
    .examples = {{.inputs = {floats({1, 2}), floats({3, 5})}, .outputs = {floats({-2, -3})}}},
    .is_not_differentiable = true,
}};

const Op is_variable_initialized_op{{
    .name = "IsVariableInitialized",
    .doc = "is_initialized = whether ref has a value.",
    .inputs = {"ref: Ref(dtype)"},
    .outputs = {"is_initialized: bool"},
    .attrs = {"dtype: type"},
    .shape = shapes::scalar(),
    .kernels = is_initialized_kernels(),
    .examples = {{.inputs = {Tensor::scalar(1.0f)}, .outputs = {Tensor::scalar(true)}}},
    .allows_uninitialized = true,
    .only_reads_state = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
