// The types that matrices are computed in.
#pragma once

#include <algorithm>
#include <complex>
#include <type_traits>
#include <vector>

#include "core/visit_dtype.h"

namespace leat {

// Double precision, for what loses too much in the matrix's own type.
template <class T>
using WideType = std::conditional_t<is_complex_type<T>, complex128, double>;
template <class T>
using Wide = std::vector<WideType<T>>;

template <class T>
Wide<T> widened(const T* from, int64_t n) {
  return Wide<T>(from, from + n);
}

// The matrix's own type, as in TensorFlow. Complex numbers are computed in double precision: the
// routines take a minute to compile for one more type.
template <class T>
using DenseType = std::conditional_t<is_complex_type<T>, complex128, T>;
template <class T>
using DenseMatrix = std::vector<DenseType<T>>;

// Rounds to the type of the matrix.
template <class W, class T>
void narrow(const std::vector<W>& values, T* to) {
  std::transform(values.begin(), values.end(), to, [](const W& x) { return static_cast<T>(x); });
}

// The conjugate; of a real number, the number itself.
template <class W>
W conjugate(const W& x) {
  if constexpr (is_complex_type<W>)
    return std::conj(x);
  else
    return x;
}

// Transposes [rows, columns] to [columns, rows].
template <class W>
std::vector<W> adjoint_of(const std::vector<W>& a, int64_t rows, int64_t columns) {
  std::vector<W> out(a.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) out[j * rows + i] = conjugate(a[i * columns + j]);
  }
  return out;
}

}  // namespace leat
