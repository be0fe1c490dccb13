// Factors and solutions of dense matrices on a GPU, whoever computes them: cuSOLVER and cuBLAS in
// the plug-in (cusolver.cu), Eigen where tests run the plug-in on the host
// (tests/support/cuda/host_solver.cc). Kernels see only this.
//
// Matrices are column-major, as these libraries have them: a row-major matrix is the transpose of
// the column-major one in the same memory. Those of a batch follow each other without gaps.
#pragma once

#include <cstdint>
#include <memory>

#include "core/device.h"
#include "core/dtype.h"

namespace leat {

enum class SolverKind {
  // One triangle of a [n, n] = the L with L Lᵀ = a, or the U with Uᵀ U = a. Only that triangle is
  // read, and the other keeps its elements.
  cholesky,
  // a [n, n] = the L (below its diagonal, which is 1) and the U with L U = P a. Row i changed
  // places with row pivots[i] - 1, from the first row to the last.
  lu,
  // The same, then b [n, columns] = the x with op(a) x = b.
  solve,
  // b [columns, n] = the x with x op(a) = b. Of a [n, n] only one triangle is read.
  solve_triangular,
  // a [m, n] = R, in its upper triangle; q [m, columns] with q R = a, by Householder reflections.
  // The columns of q: from the lesser of m and n to m.
  qr,
};

struct SolverShape {
  SolverKind kind = SolverKind::lu;
  DType dtype = DType::f32;  // or f64
  int64_t m = 0, n = 0;      // m: of qr
  int64_t columns = 0;
  bool upper = false;       // which triangle
  bool transposes = false;  // op(a) is aᵀ
  int64_t batch = 1;
  bool shares_a = false;  // of solve_triangular: one a for the whole batch
};

struct SolverOperands {
  void* a = nullptr;
  void* b = nullptr;            // of qr: q
  int64_t* pivots = nullptr;    // [batch, n], of lu
  int32_t* failures = nullptr;  // [batch], of cholesky, lu and solve: 0, or not if a is not
                                // positive definite, or not invertible
};

// All that is chosen once for a shape. Thread-safe.
class Solver {
 public:
  virtual ~Solver() = default;
  virtual size_t workspace_bytes() const = 0;
  // Only enqueues. May be recorded if it solves a triangle; else it throws NotRecordable then.
  virtual void run(const SolverOperands& operands, void* workspace, Stream& stream) const = 0;
};

// No extent is 0. INTERNAL without has_solver_libraries().
std::unique_ptr<Solver> make_solver(Device& device, const SolverShape& shape);
// Opens them. Ops that always need them have no GPU kernel otherwise, and so are placed on the CPU.
bool has_solver_libraries();

}  // namespace leat
