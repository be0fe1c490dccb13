// Complex numbers: gradients of ops on them, Fourier transforms of any length, products of
// matrices.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>

#include "core/visit_dtype.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

Tensor numbers(const Shape& shape, const std::vector<complex128>& values) {
  return Tensor::of<complex128>(shape, std::span<const complex128>(values));
}

// Distinct numbers, neither small nor large, off the axes and the branch cuts.
Tensor some(const Shape& shape, double phase = 0) {
  std::vector<complex128> values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const double at = static_cast<double>(i) + phase;
    values.emplace_back(0.6 + 0.25 * std::sin(1.3 * at), 0.4 + 0.3 * std::cos(0.9 * at));
  }
  return numbers(shape, values);
}

complex128 at(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == f64 ? complex128(tensor.data<double>()[i])
                               : tensor.data<complex128>()[i];
}

// The real part of the sum of conj(a) b: how far a step b goes along the gradient a.
double inner_product(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i) sum += (std::conj(at(a, i)) * at(b, i)).real();
  return sum;
}

// By TensorFlow's convention, the inner product of dy and y falls fastest along -gradient: a step
// along the real or the imaginary axis changes it by that part of dx.
void check_gradient(const std::string& op_name, const std::vector<Tensor>& inputs,
                    const AttrMap& attrs = {}, const std::vector<Tensor>& fixed = {}) {
  Graph graph;
  std::map<const Node*, Tensor> feeds;
  std::vector<Output> xs;
  for (const Tensor& input : inputs) {
    xs.push_back(placeholder(graph, "x", input.dtype(), input.shape()));
    feeds[xs.back().node] = input;
  }
  std::vector<Output> all = xs;
  for (const Tensor& value : fixed) all.push_back(constant(graph, value));
  const Output y = graph.add({.op = op_name, .inputs = all, .attrs = attrs}).output();
  const Tensor value = evaluate({y}, feeds)[0];
  Tensor seed = some(value.shape(), 0.7);
  if (value.dtype() == f64) seed = run_op("Real", {seed}, {{"Tout", f64}})[0];
  const Output dy = placeholder(graph, "dy", value.dtype(), value.shape());
  feeds[dy.node] = seed;
  const std::vector<Output> dxs = gradients({y}, xs, {dy});
  for (size_t k = 0; k < xs.size(); ++k) {
    ASSERT_TRUE(dxs[k]) << op_name;
    const Tensor dx = evaluate({dxs[k]}, feeds)[0];
    ASSERT_EQ(dx.dtype(), inputs[k].dtype()) << op_name;
    for (int64_t i = 0; i < dx.elements(); ++i) {
      for (const complex128 direction : {complex128(1), complex128(0, 1)}) {
        if (dx.dtype() == f64 && direction.imag() != 0) continue;
        const auto product_at = [&](double step) {
          Tensor x = inputs[k].clone();
          if (dx.dtype() == f64) {
            x.data<double>()[i] += step;
          } else {
            x.data<complex128>()[i] += step * direction;
          }
          std::map<const Node*, Tensor> moved = feeds;
          moved[xs[k].node] = x;
          return inner_product(seed, evaluate({y}, moved)[0]);
        };
        const double difference = (product_at(1e-5) - product_at(-1e-5)) / 2e-5;
        EXPECT_NEAR((std::conj(at(dx, i)) * direction).real(), difference, 1e-7)
            << op_name << ", input " << k << ", element " << i << ", along " << direction;
      }
    }
  }
}

TEST(Complex, GradientsOfFunctionsAreConjugated) {
  for (const char* op : {"Exp",  "Log",  "Sqrt", "Rsqrt", "Reciprocal", "Square",  "Neg",   "Sin",
                         "Cos",  "Tan",  "Sinh", "Cosh",  "Tanh",       "Sigmoid", "Expm1", "Log1p",
                         "Asin", "Acos", "Atan", "Asinh", "Acosh",      "Atanh",   "Conj"})
    check_gradient(op, {some({3})});
  for (const char* op : {"Add", "Sub", "Mul", "RealDiv", "DivNoNan", "Pow", "SquaredDifference",
                         "MulNoNan", "Xlogy", "Xdivy", "Xlog1py"})
    check_gradient(op, {some({2, 3}), some({3}, 5)});
}

TEST(Complex, GradientsOfGradientOps) {
  for (const char* op : {"SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "SigmoidGrad", "TanhGrad"})
    check_gradient(op, {some({3}), some({3}, 4)});
}

TEST(Complex, GradientsOfRealAndImaginaryParts) {
  const AttrMap to_double = {{"Tout", f64}};
  for (const char* op : {"Real", "Imag", "ComplexAbs", "Angle"})
    check_gradient(op, {some({3})}, to_double);
  const Tensor re = run_op("Real", {some({2, 2})}, to_double)[0],
               im = run_op("Imag", {some({2}, 3)}, to_double)[0];
  check_gradient("Complex", {re, im}, {{"Tout", DType::complex128}});
  check_gradient("Cast", {re}, {{"DstT", DType::complex128}});
  check_gradient("Cast", {some({3})}, {{"DstT", f64}});
}

TEST(Complex, GradientsOfProductsAndSums) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      const Tensor x = some(a ? Shape{3, 2} : Shape{2, 3}), y = some(b ? Shape{4, 3} : Shape{3, 4});
      check_gradient("MatMul", {x, y}, {{"transpose_a", a}, {"transpose_b", b}});
      check_gradient("BatchMatMulV2", {x, y}, {{"adj_x", a}, {"adj_y", b}});
    }
  }
  const Tensor axis = Tensor::of<int32_t>({1}, {0});
  for (const char* op : {"Sum", "Mean", "Prod"}) check_gradient(op, {some({3, 2})}, {}, {axis});
  check_gradient("ConjugateTranspose", {some({3, 2})}, {}, {Tensor::of<int32_t>({2}, {1, 0})});
}

TEST(Complex, GradientsOfFourierTransforms) {
  for (const char* op : {"FFT", "IFFT"}) check_gradient(op, {some({2, 5})});
  for (const char* op : {"FFT2D", "IFFT2D"}) check_gradient(op, {some({2, 2, 3})});
  check_gradient("FFT3D", {some({2, 1, 3})});
}

TEST(Complex, AdjointsAreConjugated) {
  const Tensor x = numbers({1, 2}, {{1, 2}, {3, 4}});
  const Tensor adjoint = run_op("BatchMatMulV2", {x, x}, {{"adj_y", true}})[0];
  EXPECT_EQ(at(adjoint, 0), complex128(30));
  const Tensor transposed = run_op("MatMul", {x, x}, {{"transpose_b", true}})[0];
  EXPECT_EQ(at(transposed, 0), complex128(-10, 28));
}

TEST(Complex, FourierTransformsOfAnyLengthMatchTheDefinition) {
  for (const int64_t n : {1, 2, 3, 5, 8, 12, 17, 100}) {
    const Tensor x = some({n}), y = run_op("FFT", {x})[0], back = run_op("IFFT", {y})[0];
    for (int64_t k = 0; k < n; ++k) {
      complex128 sum = 0;
      for (int64_t j = 0; j < n; ++j)
        sum += at(x, j) * std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(j * k % n) /
                                              static_cast<double>(n));
      EXPECT_LT(std::abs(at(y, k) - sum), 1e-11) << k << " of " << n;
      EXPECT_LT(std::abs(at(back, k) - at(x, k)), 1e-13) << k << " of " << n;
    }
  }
}

TEST(Complex, RealTransformsInvert) {
  const AttrMap types = {{"Treal", f64}, {"Tcomplex", DType::complex128}};
  for (const int32_t n : {1, 4, 5}) {
    const Tensor x = run_op("Real", {some({2, 3, n})}, {{"Tout", f64}})[0];
    const Tensor length = Tensor::of<int32_t>({2}, {3, n});
    const Tensor y = run_op("RFFT2D", {x, length}, types)[0];
    EXPECT_EQ(y.shape(), (Shape{2, 3, n / 2 + 1}));
    const Tensor whole =
        run_op("FFT2D", {run_op("Cast", {x}, {{"DstT", DType::complex128}})[0]})[0];
    for (int64_t i = 0; i < y.elements(); ++i) {
      const int64_t columns = n / 2 + 1;
      EXPECT_LT(std::abs(at(y, i) - at(whole, i / columns * n + i % columns)), 1e-12);
    }
    const Tensor back = run_op("IRFFT2D", {y, length}, types)[0];
    ASSERT_EQ(back.shape(), x.shape());
    for (int64_t i = 0; i < x.elements(); ++i)
      EXPECT_NEAR(back.data<double>()[i], x.data<double>()[i], 1e-13);
  }
}

}  // namespace
}  // namespace leat
