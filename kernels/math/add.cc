// leat: cpu+cuda
// Add, AddV2 and Sub.
#include "kernels/math/functors.h"

namespace leat {
namespace {

const Op add_op{binary({
    .name = "Add",
    .doc = "z = x + y with broadcasting; strings are joined.",
    .attrs = {"T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
              "complex128, string}"},
    .gradient = [](Gradient& g) { set_broadcast_gradients(g, g.dy(), g.dy()); },
    .kernels = join(elementwise_with_complex<Add>(), string_elementwise<Add>()),
    .examples = {{.inputs = {floats({1, 2}), floats({3, 4})}, .outputs = {floats({4, 6})}},
                 {.inputs = {Tensor::scalar("a"), Tensor::scalar("b")},
                  .outputs = {Tensor::scalar("ab")}}},
})};

const Op add_v2_op{binary({
    .name = "AddV2",
    .doc = "z = x + y with broadcasting.",
    .attrs = {"T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, "
              "int32, int64, complex64, "
              "complex128}"},
    .gradient = [](Gradient& g) { set_broadcast_gradients(g, g.dy(), g.dy()); },
    .kernels = elementwise_with_complex<Add>(),
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), floats({10, 20})},
                  .outputs = {floats({2, 2}, {11, 22, 13, 24})}},
                 {.inputs = {floats({2, 1}, {1, 2}), floats({10, 20})},
                  .outputs = {floats({2, 2}, {11, 21, 12, 22})}},
                 {.inputs = {Tensor::scalar(1), ints({2, 3})}, .outputs = {ints({3, 4})}}},
    .is_commutative = true,
})};

const Op sub_op{binary({
    .name = "Sub",
    .doc = "z = x - y with broadcasting.",
    .attrs = {"T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, "
              "complex64, complex128, uint32, "
              "uint64}"},
    .gradient = [](Gradient& g) { set_broadcast_gradients(g, g.dy(), -g.dy()); },
    .kernels = elementwise_with_complex<Sub>(),
    .examples = {{.inputs = {floats({3, 4}), Tensor::scalar(1.0f)}, .outputs = {floats({2, 3})}}},
})};

}  // namespace
}  // namespace leat
