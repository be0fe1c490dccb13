// Matrices that are too large for the table of rows: those that libraries and kernels treat
// otherwise than small ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/agreement.h"

namespace leat {
namespace {

// [count, m, n], with `diagonal` added to the diagonals.
Tensor matrices(DType dtype, int64_t count, int64_t m, int64_t n, double diagonal = 0) {
  std::vector<double> values(count * m * n);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<double>(i);
    values[i] = std::sin(0.7 * at * at + 3 * at + 1);
    if (static_cast<int64_t>(i) / n % m == static_cast<int64_t>(i) % n) values[i] += diagonal;
  }
  return from_doubles(dtype, {count, m, n}, values);
}

// The last output has vectors as columns, the first what belongs to each of them. Their products
// are those of symmetric matrices.
Tensor product_of(const std::vector<Tensor>& eigen) {
  const std::vector<double> values = to_doubles(eigen[0]);
  std::vector<double> scaled = to_doubles(eigen[1]);
  const auto n = static_cast<size_t>(eigen[1].shape()[2]);
  for (size_t i = 0; i < scaled.size(); ++i) scaled[i] *= values[i / (n * n) * n + i % n];
  return run_op("BatchMatMulV2",
                {from_doubles(eigen[1].dtype(), eigen[1].shape(), scaled), eigen[1]},
                {{"adj_y", true}})[0];
}

}  // namespace

int expect_large_matrices_agree_with_the_cpu(Device& device, const RunChoices& choices) {
  int ran = 0;
  for (const DType dtype : {DType::f32, DType::f64}) {
    const double tolerance = dtype == DType::f64 ? 1e-10 : 1e-3;
    const auto expect = [&](const std::string& op, const std::vector<Tensor>& inputs,
                            const AttrMap& attrs = {}) {
      const std::string what = concat(op, " of ", dtype, " ", inputs[0].shape());
      try {
        const std::vector<Tensor> expected = run_op(op, inputs, attrs),
                                  actual = run_op(op, inputs, attrs, device, choices);
        for (size_t i = 0; i < actual.size(); ++i)
          expect_equal(actual[i], expected[i], tolerance, what);
        ++ran;
      } catch (const Error& error) {
        ADD_FAILURE() << what << ": " << error.message();
      }
    };
    // One call for a batch, and a call for each matrix.
    for (const auto& [count, n] : {std::pair<int64_t, int64_t>{5, 40}, {2, 300}}) {
      // Of a norm below 50 or so: definite, and far from singular.
      const Tensor a = matrices(dtype, count, n, n, 60), b = matrices(dtype, count, n, 33);
      expect("Cholesky", {a});
      expect("LogMatrixDeterminant", {a});
      expect("Qr", {matrices(dtype, count, n, n / 2)});
      expect("Qr", {matrices(dtype, count, n / 2, n)});
      for (const bool adjoint : {false, true}) {
        expect("MatrixInverse", {a}, {{"adjoint", adjoint}});
        expect("MatrixSolve", {a, b}, {{"adjoint", adjoint}});
        for (const bool lower : {false, true}) {
          expect("MatrixTriangularSolve", {a, b}, {{"adjoint", adjoint}, {"lower", lower}});
        }
      }
    }
    const Tensor tall = matrices(dtype, 2, 40, 34), right = matrices(dtype, 2, 40, 3);
    expect("Svd", {tall}, {{"compute_uv", false}});
    for (const bool fast : {false, true})
      expect("MatrixSolveLs", {tall, right, Tensor::scalar(0.5)}, {{"fast", fast}});
    const Tensor some = matrices(dtype, 2, 36, 36);
    const Tensor symmetric =
        run_op("AddV2", {some, run_op("BatchMatMulV2", {some, some}, {{"adj_y", true}})[0]})[0];
    const Tensor lower = product_of(run_op("SelfAdjointEigV2", {symmetric}));
    expect_equal(product_of(run_op("SelfAdjointEigV2", {symmetric}, {}, device, choices)), lower,
                 tolerance, concat("SelfAdjointEigV2 of ", dtype));
    ++ran;
  }
  return ran;
}

}  // namespace leat
