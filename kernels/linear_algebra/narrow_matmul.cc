// leat: fast-math-loops
#include "kernels/linear_algebra/narrow_matmul.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu.h"

namespace leat {
namespace {

constexpr int64_t bytes_per_chunk = 1 << 20;

// b[k, n], wherever its elements lie.
struct Coefficients {
  const float* b;
  int64_t row, column;
  LEAT_INLINE float operator()(int64_t k, int64_t n) const { return b[k * row + n * column]; }
};

// ---- a as it is: rows of a times columns of b, which lie one after another

// Partial sums of one element. With this type instead of an array, they stay in registers.
using Lanes [[gnu::vector_size(64)]] = float;
constexpr int64_t lanes = sizeof(Lanes) / sizeof(float);

template <int rows, int n>
LEAT_INLINE inline void dot_products(const float* a, const float* columns, int64_t k,
                                     float* product) {
  Lanes sum[rows][n] = {};
  int64_t i = 0;
  for (; i + lanes <= k; i += lanes) {
    for (int r = 0; r < rows; ++r) {
      Lanes x, y;
      std::memcpy(&x, a + r * k + i, sizeof x);
      for (int c = 0; c < n; ++c) {
        std::memcpy(&y, columns + c * k + i, sizeof y);
        sum[r][c] += x * y;
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < n; ++c) {
      float total = 0;
      for (int64_t l = 0; l < lanes; ++l) total += sum[r][c][l];
      for (int64_t rest = i; rest < k; ++rest) total += a[r * k + rest] * columns[c * k + rest];
      product[r * n + c] = total;
    }
  }
}

template <int n>
LEAT_INLINE inline void multiply_rows(const MatMul& mm, const float* a, const float* columns,
                                      int64_t begin, int64_t end, float* product) {
  constexpr int rows = n <= 2 ? 4 : 2;  // as many sums as there are registers
  int64_t i = begin;
  for (; i + rows <= end; i += rows)
    dot_products<rows, n>(a + i * mm.k, columns, mm.k, product + i * n);
  for (; i < end; ++i) dot_products<1, n>(a + i * mm.k, columns, mm.k, product + i * n);
}

template <int n>
BoundKernel bind_rows(const MatMul& mm) {
  const bool is_packed = mm.transpose_b || n == 1;
  return BoundKernel::of([mm, is_packed](const Arguments& args) {
           const float *a = args.input<float>(0), *columns = args.input<float>(1);
           float* product = args.output<float>();
           if (!is_packed) {
             const float* b = columns;
             auto* packed = static_cast<float*>(args.workspace);
             for (int64_t k = 0; k < mm.k; ++k) {
               for (int c = 0; c < n; ++c) packed[c * mm.k + k] = b[k * n + c];
             }
             columns = packed;
           }
           const int64_t grain = 4 + bytes_per_chunk / (4 * mm.k);
           args.stream->parallel_for(mm.m, grain, [&](int64_t begin, int64_t end) {
             vectorized([=]()
                            LEAT_INLINE { multiply_rows<n>(mm, a, columns, begin, end, product); });
           });
         })
      .with_workspace(is_packed ? 0 : n * mm.k * sizeof(float));
}

// ---- a transposed: rows of a, each times a row of b, are added up, a block of columns at a time

constexpr int64_t block = 512;

// sums[c][j] += the sum over `rows` rows of a[row, j] * b[row, c]
template <int rows, int n>
LEAT_INLINE inline void add_rows(const float* a, int64_t stride, const Coefficients& b, int64_t row,
                                 int64_t width, float (&sums)[n][block]) {
  float factor[rows][n];
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < n; ++c) factor[r][c] = b(row + r, c);
  }
  const float* from = a + row * stride;
  LEAT_INDEPENDENT_ITERATIONS
  for (int64_t j = 0; j < width; ++j) {
    for (int c = 0; c < n; ++c) {
      float sum = sums[c][j];
      for (int r = 0; r < rows; ++r) sum += factor[r][c] * from[r * stride + j];
      sums[c][j] = sum;
    }
  }
}

template <int n>
LEAT_INLINE inline void sum_columns(const MatMul& mm, const float* a, const Coefficients& b,
                                    int64_t begin, int64_t end, float* product) {
  float sums[n][block];
  for (int64_t at = begin; at < end; at += block) {
    const int64_t width = std::min(block, end - at);
    for (auto& sum : sums) std::fill_n(sum, width, 0.0f);
    int64_t row = 0;
    for (; row + 8 <= mm.k; row += 8) add_rows<8, n>(a + at, mm.m, b, row, width, sums);
    for (; row < mm.k; ++row) add_rows<1, n>(a + at, mm.m, b, row, width, sums);
    for (int64_t j = 0; j < width; ++j) {
      for (int c = 0; c < n; ++c) product[(at + j) * n + c] = sums[c][j];
    }
  }
}

template <int n>
BoundKernel bind_columns(const MatMul& mm) {
  return BoundKernel::of([mm](const Arguments& args) {
    const float* a = args.input<float>(0);
    const Coefficients b{args.input<float>(1), mm.transpose_b ? 1 : n, mm.transpose_b ? mm.k : 1};
    float* product = args.output<float>();
    const int64_t grain = block + bytes_per_chunk / (4 * mm.k);
    args.stream->parallel_for(mm.m, grain, [&](int64_t begin, int64_t end) {
      vectorized([=]() LEAT_INLINE { sum_columns<n>(mm, a, b, begin, end, product); });
    });
  });
}

}  // namespace

std::optional<BoundKernel> bind_narrow_matmul(const MatMul& mm) {
  if (mm.transpose_a) {
    if (mm.n == 2) return bind_columns<2>(mm);
    if (mm.n == 3) return bind_columns<3>(mm);
    if (mm.n == 4) return bind_columns<4>(mm);
  } else {
    if (mm.n == 1) return bind_rows<1>(mm);
    if (mm.n == 2) return bind_rows<2>(mm);
    if (mm.n == 3) return bind_rows<3>(mm);
  }
  return {};
}

}  // namespace leat
