// Singular values and vectors of a batch of matrices, in a part of a kernel's workspace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/linear_algebra/batches.cuh"
#include "kernels/cuda/linear_algebra/jacobi.cuh"

namespace leat::cuda {

// Vectors are rows. Of the longer sides there are `kept`: as many as singular values, or all that
// are orthogonal. The others are square. m and n are at least 1.
struct SvdPlan {
  JacobiShape shape;
  bool is_tall;  // m >= n: the longer vectors are those of the left side
  bool wants_vectors;
  int64_t kept;
  // Where the parts of the workspace begin.
  size_t states, failures, w, v, lengths, places, values, space, longer, square;
};

SvdPlan plan_svd(WorkspaceParts& parts, const MatrixBatch& matrices, bool full, bool wants_vectors);

// What enqueue_svd() leaves there.
inline const double* singular_values(const Arguments& a, const SvdPlan& plan) {
  return part_of<double>(a, plan.values);  // [count, vectors], falling
}
inline const double* longer_vectors(const Arguments& a, const SvdPlan& plan) {
  return part_of<double>(a, plan.longer);  // [count, kept, length]
}
inline const double* square_vectors(const Arguments& a, const SvdPlan& plan) {
  return part_of<double>(a, plan.square);  // [count, vectors, vectors]
}
// [count]: whether a matrix is not finite, and has no result.
inline const int32_t* svd_failures(const Arguments& a, const SvdPlan& plan) {
  return part_of<int32_t>(a, plan.failures);
}

// `in` [count, m, n], row-major, of float or double.
template <class T>
void enqueue_svd(const Arguments& a, const SvdPlan& plan, const T* in);

// Sets the states of matrices [count, m, n]: their norms, and whether they are finite. Of symmetric
// ones, only the lower triangle is read.
template <class T>
void enqueue_measurement(const Arguments& a, int64_t count, int64_t m, int64_t n, bool symmetric,
                         const T* in, JacobiState* states, int32_t* failures);

}  // namespace leat::cuda
