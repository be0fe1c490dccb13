// Complex numbers and their parts: Complex, Real, Imag, Conj, ComplexAbs and Angle. Gradients
// follow TensorFlow's convention: the gradient of a real y is conj(dy/dx), so that -gradient
// descends.
#include "kernels/elementwise.h"

namespace leat {
namespace {

struct Combine {
  template <class T>
  std::complex<T> operator()(T real, T imaginary) const {
    return {real, imaginary};
  }
};
struct RealPart {
  template <class T>
  T operator()(const std::complex<T>& x) const {
    return x.real();
  }
};
struct ImaginaryPart {
  template <class T>
  T operator()(const std::complex<T>& x) const {
    return x.imag();
  }
};
struct Absolute {
  static constexpr int cost = 10;
  template <class T>
  T operator()(const std::complex<T>& x) const {
    return std::abs(x);
  }
};
struct Argument {
  static constexpr int cost = 30;
  template <class T>
  T operator()(const std::complex<T>& x) const {
    return std::arg(x);
  }
};
struct Conjugate {
  template <class T>
  std::complex<T> operator()(const std::complex<T>& x) const {
    return std::conj(x);
  }
};

template <class F, class T>
Kernel part_kernel() {
  return {.types = {{"T", {dtype_of<std::complex<T>>}}, {"Tout", {dtype_of<T>}}},
          .prepare = [](const KernelRequest& r) {
            return bind_elementwise<F, T, std::complex<T>>({}, plan_broadcast(r));
          }};
}

template <class F>
OpDef part(std::string name, std::string doc, std::string output, GradientFunction gradient,
           float expected) {
  const std::string input = name == "ComplexAbs" ? "x: T" : "input: T";
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {input},
      .outputs = {output + ": Tout"},
      .attrs = {"T: {complex64, complex128} = complex64", "Tout: {float, double} = float"},
      .shape = shapes::same_as(0),
      .gradient = std::move(gradient),
      .kernels = {part_kernel<F, float>(), part_kernel<F, double>()},
      .examples = {{.inputs = {Tensor::scalar(complex64(3, 4))},
                    .outputs = {Tensor::scalar(expected)}}},
      .has_complex_gradient = true,
  };
}

Output none_of(Output x) { return op("ZerosLike", {x}); }

template <class T>
Kernel combining_kernel() {
  return {.types = {{"T", {dtype_of<T>}}, {"Tout", {dtype_of<std::complex<T>>}}},
          .prepare = [](const KernelRequest& r) {
            return bind_elementwise<Combine, std::complex<T>, T, T>({}, plan_broadcast(r));
          }};
}

const Op complex_op{{
    .name = "Complex",
    .doc = "out = real + i imag, with broadcasting.",
    .inputs = {"real: T", "imag: T"},
    .outputs = {"out: Tout"},
    .attrs = {"T: {float, double} = float", "Tout: {complex64, complex128} = complex64"},
    .shape = shapes::broadcast_binary(),
    .gradient = [](Gradient& g) { set_broadcast_gradients(g, real(g.dy()), imag(g.dy())); },
    .kernels = {combining_kernel<float>(), combining_kernel<double>()},
    .examples = {{.inputs = {floats({1, 2}), Tensor::scalar(3.0F)},
                  .outputs = {Tensor::of<complex64>({2}, {{1, 3}, {2, 3}})}}},
    .has_complex_gradient = true,
}};

const Op real_op{part<RealPart>(
    "Real", "output = the real part of input, elementwise.", "output",
    [](Gradient& g) { g.dx() = complex(g.dy(), none_of(g.dy())); }, 3)};
const Op imag_op{part<ImaginaryPart>(
    "Imag", "output = the imaginary part of input, elementwise.", "output",
    [](Gradient& g) { g.dx() = complex(none_of(g.dy()), g.dy()); }, 4)};
const Op abs_op{part<Absolute>(
    "ComplexAbs", "y = |x|, elementwise.", "y",
    [](Gradient& g) {
      const Output share = div_no_nan(g.dy(), g.y());
      g.dx() = complex(share, none_of(share)) * g.x();
    },
    5)};
const Op angle_op{part<Argument>(
    "Angle", "output = the angle of input, in [-π, π], elementwise.", "output",
    [](Gradient& g) {
      // i x / |x|²: at a right angle to x
      const Output x = g.x(), length = square(op("ComplexAbs", {x}, {{"Tout", g.dy().dtype()}}));
      const Output share = div_no_nan(g.dy(), length);
      g.dx() = complex(none_of(share), share) * x;
    },
    0.92729521F)};

const Op conj_op{{
    .name = "Conj",
    .doc = "output = real part - i imaginary part of input, elementwise.",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {"T: {complex64, complex128, variant} = complex64"},
    .shape = shapes::same_as(0),
    .gradient = [](Gradient& g) { g.dx() = conj(g.dy()); },
    .kernels = elementwise<Conjugate, ComplexTypes>(),
    .examples = {{.inputs = {Tensor::scalar(complex64(3, 4))},
                  .outputs = {Tensor::scalar(complex64(3, -4))}}},
    .has_complex_gradient = true,
}};

}  // namespace
}  // namespace leat
