// leat: cpu+cuda
// ZerosLike and OnesLike.
#include "kernels/control/variant_arithmetic.h"
#include "kernels/elementwise.h"

namespace leat {
namespace {

struct Zero {
  template <class T>
  LEAT_DEVICE T operator()(const T&) const {
    return T{};
  }
};

struct One {
  template <class T>
  LEAT_DEVICE T operator()(T) const {
    return T(1);
  }
};

const Op zeros_like_op{{
    .name = "ZerosLike",
    .doc = "y = zeros (empty strings, false) in the shape of x.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = {"T: type"},
    .shape = shapes::same_as(0),
    .kernels =
        join(join(elementwise_with_complex<Zero, NumberAndBoolTypes>(), string_elementwise<Zero>()),
             and_on_gpus(variant_kernels(
                 [](ExecuteContext& c) { c.set_output(0, zeros_like_variant(c.input(0))); }))),
    .examples = {{.inputs = {floats({1, 2})}, .outputs = {floats({0, 0})}}},
    .is_not_differentiable = true,
}};

const Op ones_like_op{{
    .name = "OnesLike",
    .doc = "y = ones (true) in the shape of x.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = {"T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, "
              "int64, uint64, complex64, "
              "complex128, bool}"},
    .shape = shapes::same_as(0),
    .kernels = elementwise_with_complex<One, NumberAndBoolTypes>(),
    .examples = {{.inputs = {floats({1, 2})}, .outputs = {floats({1, 1})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
