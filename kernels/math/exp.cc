// leat: cpu+cuda
// leat: fast-math-loops
// Exp, Log and Pow; Expm1 and Log1p; Erf and Erfc.
#include "kernels/math/functors.h"

namespace leat {
namespace {

const Op exp_op{unary_with_complex<Exp>({
    .name = "Exp",
    .doc = "y = e^x, elementwise.",
    .gradient = [](Gradient& g) { g.dx() = g.dy() * g.y(); },
    .examples = {{.inputs = {floats({0, 1})}, .outputs = {floats({1, 2.7182817})}}},
})};

const Op log_op{unary_with_complex<Log>({
    .name = "Log",
    .doc = "y = ln x, elementwise.",
    .gradient = [](Gradient& g) { g.dx() = g.dy() / g.x(); },
    .examples = {{.inputs = {floats({1, 2})}, .outputs = {floats({0, 0.6931472})}}},
})};

const Op expm1_op{unary_with_complex<Expm1>({
    .name = "Expm1",
    .doc = "y = e^x - 1, elementwise; exact for small x.",
    .gradient = [](Gradient& g) { g.dx() = g.dy() * exp(g.x()); },
    .examples = {{.inputs = {floats({0, 1, 1e-7f})}, .outputs = {floats({0, 1.7182818f, 1e-7f})}}},
})};

const Op log1p_op{unary_with_complex<Log1p>({
    .name = "Log1p",
    .doc = "y = ln(1 + x), elementwise; exact for small x.",
    .gradient = [](Gradient& g) { g.dx() = g.dy() / (1 + g.x()); },
    .examples = {{.inputs = {floats({0, 1, 1e-7f})}, .outputs = {floats({0, 0.6931472f, 1e-7f})}}},
})};

// 2/√π exp(-x²) dy
Output erf_gradient(Gradient& g) { return (1.1283791670955126 * exp(-square(g.x()))) * g.dy(); }

const Op erf_op{unary<Erf>({
    .name = "Erf",
    .doc = "y = 2/√π times the integral of exp(-t²) from 0 to x, elementwise.",
    .gradient = [](Gradient& g) { g.dx() = erf_gradient(g); },
    .examples = {{.inputs = {floats({0, 0.5})}, .outputs = {floats({0, 0.52049988f})}}},
})};

const Op erfc_op{unary<Erfc>({
    .name = "Erfc",
    .doc = "y = 1 - erf(x), elementwise; exact for large x.",
    .gradient = [](Gradient& g) { g.dx() = -erf_gradient(g); },
    .examples = {{.inputs = {floats({0, 0.5})}, .outputs = {floats({1, 0.47950012f})}}},
})};

const Op pow_op{binary({
    .name = "Pow",
    .doc = "z = x^y with broadcasting; integers take no negative powers.",
    .attrs =
        {"T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, complex128}"},
    .gradient =
        [](Gradient& g) {
          // ln x where it is defined; elsewhere no gradient flows to y, as in TensorFlow.
          const Output x = g.x(0), y = g.x(1);
          const Output has_log = is_complex(x.dtype()) ? not_equal(x, 0) : greater(x, 0);
          const Output log_x = where(has_log, log(where(has_log, x, ones_like(x))), 0);
          set_broadcast_gradients(g, (g.dy() * y) * pow(x, y - 1), (g.dy() * g.y()) * log_x);
        },
    .kernels = elementwise_with_complex<Pow, SignedTypes>(),
    .examples = {{.inputs = {floats({2, 4}), floats({3, 0.5})}, .outputs = {floats({8, 2})}},
                 {.inputs = {ints({2, -3}), ints({10, 3})}, .outputs = {ints({1024, -27})}}},
})};

}  // namespace
}  // namespace leat
