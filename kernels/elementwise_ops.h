// The common parts of the schemas of elementwise ops. Each function here fills in what the op's
// file leaves out, and keeps what the file gives:
//
//   const Op exp_op{unary_with_complex<Exp>({.name = "Exp", .doc = …, .gradient = …})};
#pragma once

#include "kernels/elementwise.h"

namespace leat {

inline constexpr const char* float_attr = "T: {bfloat16, half, float, double}";
inline constexpr const char* float_or_complex_attr =
    "T: {bfloat16, half, float, double, complex64, complex128}";
inline constexpr const char* signed_or_complex_attr =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";
inline constexpr const char* number_or_complex_attr =
    "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, "
    "complex64, complex128}";

// `op` with the schema and the kernels of `defaults` where it has none.
inline OpDef with_defaults(OpDef op, OpDef defaults) {
  if (op.inputs.empty()) op.inputs = std::move(defaults.inputs);
  if (op.outputs.empty()) op.outputs = std::move(defaults.outputs);
  if (op.attrs.empty()) op.attrs = std::move(defaults.attrs);
  if (!op.shape) op.shape = std::move(defaults.shape);
  if (op.kernels.empty()) op.kernels = std::move(defaults.kernels);
  return op;
}

// y = f(x), of the types and with the kernels that the op gives.
inline OpDef unary(OpDef op) {
  return with_defaults(std::move(op),
                       {.inputs = {"x: T"}, .outputs = {"y: T"}, .shape = shapes::same_as(0)});
}

// y = F(x) of floats.
template <class F>
OpDef unary(OpDef op) {
  return unary(with_defaults(std::move(op),
                             {.attrs = {float_attr}, .kernels = elementwise<F, FloatTypes>()}));
}

// y = F(x) of floats and complex numbers.
template <class F>
OpDef unary_with_complex(OpDef op) {
  return unary(with_defaults(
      std::move(op),
      {.attrs = {float_or_complex_attr}, .kernels = elementwise_with_complex<F, FloatTypes>()}));
}

// z = F(y, dy): the gradient of an op y = f(x), from its output.
template <class F>
OpDef gradient_by_output(OpDef op) {
  return with_defaults(std::move(op), {.inputs = {"y: T", "dy: T"},
                                       .outputs = {"z: T"},
                                       .attrs = {float_or_complex_attr},
                                       .shape = shapes::same_for_all(),
                                       .kernels = elementwise_with_complex<F, FloatTypes>()});
}

// z = f(x, y) with broadcasting, of the types and with the kernels that the op gives.
inline OpDef binary(OpDef op) {
  return with_defaults(
      std::move(op),
      {.inputs = {"x: T", "y: T"}, .outputs = {"z: T"}, .shape = shapes::broadcast_binary()});
}

}  // namespace leat
