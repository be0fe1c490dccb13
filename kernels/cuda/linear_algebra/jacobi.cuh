// Singular values and vectors by rotations of pairs of vectors until all are orthogonal (one-sided
// Jacobi; Golub and Van Loan, "Matrix computations", 8.6.3; in blocks, 8.5.6). cuSOLVER's routines
// for large matrices wait for the GPU; these launches do not, and may be recorded as a graph.
// Computes in double precision.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernel.h"

namespace leat::cuda {

// What is known of a matrix of the batch.
struct JacobiState {
  double norm;     // the root of the sum of its squares; the vectors are divided by it
  int32_t failed;  // it is not finite
  int32_t done;
  int32_t rotated;  // in this sweep
  int32_t rank;     // how many vectors are longer than rounding errors
};

struct JacobiShape {
  int64_t count;            // matrices
  int64_t vectors, length;  // of each; at least as long as many
};

// A vector of a norm of 1 that is no longer than this is 0 but for rounding errors.
inline constexpr double jacobi_floor = 2.220446049250313e-16;

// Of W [count, vectors, length], whose squares add up to about 1: rotates the vectors of each
// matrix until they are orthogonal to each other. V [count, vectors, vectors], whose vectors are
// those of a unit matrix, takes part in the rotations; it may be null. Leaves matrices alone that
// are `done`. If W's vectors are the columns of a matrix A, then A = W Vᵀ at the end.
void enqueue_jacobi(const Arguments& a, const JacobiShape& shape, double* w, double* v,
                    JacobiState* states);

// The lengths [count, vectors] of W's vectors; their places in falling order; and the rank.
void enqueue_lengths(const Arguments& a, const JacobiShape& shape, const double* w, double* lengths,
                     int32_t* places, JacobiState* states);

// to [count, kept, length] = W's vectors in their order, of length 1, and behind the rank others
// that are orthogonal to them and to each other; `kept` is at least shape.vectors. `space`: for
// [count, length + kept] numbers.
void enqueue_left_vectors(const Arguments& a, const JacobiShape& shape, int64_t kept,
                          const double* w, const double* lengths, const int32_t* places,
                          const JacobiState* states, double* space, double* to);

// to [count, vectors, vectors] = V's vectors in their order, or in the opposite one.
void enqueue_right_vectors(const Arguments& a, const JacobiShape& shape, bool rising,
                           const double* v, const int32_t* places, double* to);

}  // namespace leat::cuda
