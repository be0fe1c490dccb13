// leat: cpu+cuda
// LogicalNot, LogicalAnd, LogicalOr.
#include "kernels/math/functors.h"

namespace leat {
namespace {

const Op logical_not_op{{
    .name = "LogicalNot",
    .doc = "y = not x, elementwise.",
    .inputs = {"x: bool"},
    .outputs = {"y: bool"},
    .shape = shapes::same_as(0),
    .kernels = elementwise<Not, Types<bool>>(),
    .examples = {{.inputs = {bools({true, false})}, .outputs = {bools({false, true})}}},
    .is_not_differentiable = true,
}};

const Op logical_and_op{{
    .name = "LogicalAnd",
    .doc = "z = x and y with broadcasting.",
    .inputs = {"x: bool", "y: bool"},
    .outputs = {"z: bool"},
    .shape = shapes::broadcast_binary(),
    .kernels = elementwise<And, Types<bool>>(),
    .examples = {{.inputs = {bools({true, false}), Tensor::scalar(true)},
                  .outputs = {bools({true, false})}}},
    .is_commutative = true,
    .is_not_differentiable = true,
}};

const Op logical_or_op{{
    .name = "LogicalOr",
    .doc = "z = x or y with broadcasting.",
    .inputs = {"x: bool", "y: bool"},
    .outputs = {"z: bool"},
    .shape = shapes::broadcast_binary(),
    .kernels = elementwise<Or, Types<bool>>(),
    .examples = {{.inputs = {bools({true, false}), Tensor::scalar(false)},
                  .outputs = {bools({true, false})}}},
    .is_commutative = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
