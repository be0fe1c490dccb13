// Complex numbers on a GPU, with both parts: the table of every op fills in real numbers alone.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "core/visit_dtype.h"
#include "tests/cuda/host_gpu.h"
#include "tests/kernels/agreement.h"

namespace leat {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Its parts are the values in turn.
Tensor numbers(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor out(dtype, shape);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const complex128 value(values[2 * i], values[2 * i + 1]);
    if (dtype == DType::complex64) {
      out.data<complex64>()[i] = complex64(value);
    } else {
      out.data<complex128>()[i] = value;
    }
  }
  return out;
}

Tensor some_numbers(DType dtype, const Shape& shape, double phase) {
  std::vector<double> values(2 * shape.elements());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 2 * std::sin(phase + 1.7 * static_cast<double>(i));
  return numbers(dtype, shape, values);
}

void expect_agreement(const char* op, const std::vector<Tensor>& inputs,
                      const AttrMap& attrs = {}) {
  const Tensor expected = run_op(op, inputs, attrs)[0];
  for (const bool in_place : {false, true}) {
    expect_equal(run_op(op, inputs, attrs, host_gpu(), exactly(in_place))[0], expected,
                 tolerance_of(expected.dtype()),
                 concat(op, " of ", inputs[0].dtype(), " ", inputs[0].shape()));
  }
}

class Complex : public testing::TestWithParam<DType> {
 protected:
  DType dtype = GetParam();
  DType of_parts = dtype == DType::complex64 ? f32 : f64;
};
INSTANTIATE_TEST_SUITE_P(Types, Complex, testing::Values(DType::complex64, DType::complex128));

TEST_P(Complex, Arithmetic) {
  for (const int64_t n : {1, 33, 4097}) {
    const Tensor x = some_numbers(dtype, {n, 3}, 0), y = some_numbers(dtype, {n, 3}, 1),
                 row = some_numbers(dtype, {3}, 2), one = some_numbers(dtype, {}, 3);
    for (const char* op :
         {"Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "DivNoNan", "SquaredDifference"}) {
      for (const Tensor& other : {y, row, one}) {
        expect_agreement(op, {x, other});
        expect_agreement(op, {other, x});
      }
    }
    for (const char* op : {"Neg", "Square", "Reciprocal", "Conj", "ZerosLike", "OnesLike"})
      expect_agreement(op, {x});
    for (const int64_t count : {1, 3, 17})
      expect_agreement("AddN", std::vector<Tensor>(count, x), {{"N", count}});
  }
}

TEST_P(Complex, Parts) {
  for (const int64_t n : {1, 33, 4097}) {
    const Tensor x = some_numbers(dtype, {n, 3}, 0);
    for (const char* op : {"Real", "Imag", "ComplexAbs", "Angle"})
      expect_agreement(op, {x}, {{"Tout", of_parts}});
    std::vector<double> values(n * 3);
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::cos(static_cast<double>(i));
    const Tensor re = from_doubles(of_parts, {n, 3}, values),
                 im = from_doubles(of_parts, {3}, {1, -2, 0.5});
    expect_agreement("Complex", {re, im}, {{"Tout", dtype}});
    expect_agreement("Complex", {im, re}, {{"Tout", dtype}});
  }
}

TEST_P(Complex, QuotientsOfZerosAndInfinities) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), large = 1e30;
  const std::vector<double> parts = {0.0, -0.0, 1, -2.5, large, infinity, -infinity, nan};
  std::vector<double> x, y;
  for (const double a : parts) {
    for (const double b : parts) {
      for (const double c : parts) {
        for (const double d : parts) {
          x.insert(x.end(), {a, b});
          y.insert(y.end(), {c, d});
        }
      }
    }
  }
  const Shape shape = {static_cast<int64_t>(x.size() / 2)};
  for (const char* op : {"Div", "DivNoNan"})
    expect_agreement(op, {numbers(dtype, shape, x), numbers(dtype, shape, y)});
}

}  // namespace
}  // namespace leat
