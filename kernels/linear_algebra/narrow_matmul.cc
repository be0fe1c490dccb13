// leat: fast-math-loops
#include "kernels/linear_algebra/narrow_matmul.h"

#include <algorithm>
#include <cstring>

#include "core/execution/step_end.h"
#include "kernels/cpu.h"

namespace leat {
namespace {

// product[j, i] is the sum over k of wide[k, j] narrow[k, i]. `wide` is the operand that is read
// once, `narrow` the other one, with `count` columns. With few columns of the product, i is the
// column and j the row; with few rows, i is the row and j the column.
struct Narrow {
  int64_t count, length, k;
  bool is_wide_transposed;       // wide[k, j] lies at j * k_extent + k, else at k * length + j
  int64_t narrow_k, narrow_i;    // strides
  int64_t product_j, product_i;  // strides
  bool adds;

  LEAT_INLINE void put(float* product, int64_t j, int64_t i, float value) const {
    float* at = product + j * product_j + i * product_i;
    *at = adds ? *at + value : value;
  }
  // product[j .. j + n, i], where product_j is 1
  LEAT_INLINE void put_row(float* product, int64_t j, int64_t i, int64_t n,
                           const float* values) const {
    float* at = product + j + i * product_i;
    if (adds) {
      for (int64_t l = 0; l < n; ++l) at[l] += values[l];
    } else {
      for (int64_t l = 0; l < n; ++l) at[l] = values[l];
    }
  }
  // product[j, 0 .. count], where product_i is 1
  LEAT_INLINE void put_column(float* product, int64_t j, int64_t stride,
                              const float* values) const {
    float* at = product + j * product_j;
    if (adds) {
      for (int64_t i = 0; i < count; ++i) at[i] += values[i * stride];
    } else {
      for (int64_t i = 0; i < count; ++i) at[i] = values[i * stride];
    }
  }
};

// How many vectors the registers hold. `lanes` are floats of a vector.
struct Avx512 {
  static constexpr int lanes = 16, rows = 8, vectors = 3, dots = 4, broadcasts = 8;
};
struct Avx2 {
  static constexpr int lanes = 8, rows = 4, vectors = 2, dots = 2, broadcasts = 6;
};
struct Base {
  static constexpr int lanes = 4, rows = 4, vectors = 2, dots = 2, broadcasts = 2;
};

// Arrays of this type, unlike arrays of floats, stay in registers.
template <int lanes>
struct VectorOf {
  using type [[gnu::vector_size(lanes * sizeof(float))]] = float;
  using bits [[gnu::vector_size(lanes * sizeof(float))]] = int32_t;
  // in memory, anywhere (of memcpy, gcc makes copies in parts)
  using anywhere [[gnu::vector_size(lanes * sizeof(float)), gnu::aligned(4), gnu::may_alias]] =
      float;
};
template <class Cpu>
using Vector = typename VectorOf<Cpu::lanes>::type;

template <class V>
using Anywhere = typename VectorOf<sizeof(V) / sizeof(float)>::anywhere;
template <class V>
LEAT_INLINE inline void load(V& to, const float* from) {
  to = *reinterpret_cast<const Anywhere<V>*>(from);
}
template <class V>
LEAT_INLINE inline void store(const V& from, float* to) {
  *reinterpret_cast<Anywhere<V>*>(to) = from;
}

// For each of all vectors. (Of `= {}`, gcc makes a slow call for many.)
template <class V, int rows, int columns>
LEAT_INLINE inline void clear(V (&sum)[rows][columns]) {
  for (auto& row : sum) {
    for (V& x : row) x = V{};
  }
}

// Where the other ways of computing a product begin to win. Measured with operands in the L3 cache
// and in memory, on one core of a Xeon (Sapphire Rapids): up to 16 rows or columns, these loops
// take 0.4 to 1.2 times the time of the faster of oneDNN's sgemm and matmul primitive, 0.7 times in
// the middle; with 20, 0.8 to 1.2; with 32, 1.2 to 2.
constexpr int64_t max_narrow = 16, max_lanes = 16;
constexpr int64_t bytes_per_chunk = 1 << 20;

// ---- wide as it is: its rows, each times an element of `narrow`, are added up in the L1 cache, a
// block of columns at a time

constexpr int64_t floats_of_sums = 8192;

// sums[i, j] += the sum over `rows` rows of wide[row, j] * factors[i, row], for `vectors` vectors
// of columns.
template <class Cpu, int rows, int vectors>
LEAT_INLINE inline void add_rows(const Narrow& p, const float* wide, const float* factors,
                                 float* sums, int64_t block) {
  Vector<Cpu> x[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) load(x[r][v], wide + r * p.length + v * Cpu::lanes);
  }
  for (int64_t i = 0; i < p.count; ++i) {
    Vector<Cpu> sum[vectors];
    for (int v = 0; v < vectors; ++v) load(sum[v], sums + i * block + v * Cpu::lanes);
    for (int r = 0; r < rows; ++r) {
      const float factor = factors[i * rows + r];
      for (int v = 0; v < vectors; ++v) sum[v] += x[r][v] * factor;
    }
    for (int v = 0; v < vectors; ++v) store(sum[v], sums + i * block + v * Cpu::lanes);
  }
}

// Columns that are no whole vector are read as the end of a vector, whose other sums are ignored.
template <class Cpu, int rows>
LEAT_INLINE inline void add_rows_of_block(const Narrow& p, const float* wide, const float* narrow,
                                          int64_t width, int64_t block, float* sums) {
  float factors[max_narrow * rows];
  for (int64_t i = 0; i < p.count; ++i) {
    for (int r = 0; r < rows; ++r) factors[i * rows + r] = narrow[r * p.narrow_k + i * p.narrow_i];
  }
  constexpr int64_t step = Cpu::vectors * Cpu::lanes;
  int64_t j = 0;
  for (; j + step <= width; j += step)
    add_rows<Cpu, rows, Cpu::vectors>(p, wide + j, factors, sums + j, block);
  for (; j + Cpu::lanes <= width; j += Cpu::lanes)
    add_rows<Cpu, rows, 1>(p, wide + j, factors, sums + j, block);
  if (j < width) add_rows<Cpu, rows, 1>(p, wide + width - Cpu::lanes, factors, sums + j, block);
}

template <class Cpu>
LEAT_INLINE inline void sum_rows(const Narrow& p, const float* wide, const float* narrow,
                                 int64_t begin, int64_t end, float* product) {
  alignas(64) float sums[floats_of_sums];
  // Not a multiple of 4 KB: loads would wait for stores to other rows of sums.
  const int64_t block = (floats_of_sums / p.count / 64 * 2 - 1) * 32;
  for (int64_t at = begin; at < end; at += block) {
    const int64_t width = std::min(block, end - at);
    const int64_t whole = width / Cpu::lanes * Cpu::lanes, shift = whole + Cpu::lanes - width;
    for (int64_t i = 0; i < p.count; ++i)
      std::fill_n(sums + i * block, whole + (whole < width ? Cpu::lanes : 0), 0.0f);
    int64_t k = 0;
    for (; k + Cpu::rows <= p.k; k += Cpu::rows) {
      StepEnd::pace(width);
      add_rows_of_block<Cpu, Cpu::rows>(p, wide + k * p.length + at, narrow + k * p.narrow_k, width,
                                        block, sums);
    }
    for (; k < p.k; ++k) {
      add_rows_of_block<Cpu, 1>(p, wide + k * p.length + at, narrow + k * p.narrow_k, width, block,
                                sums);
    }
    for (int64_t i = 0; i < p.count && p.product_j == 1; ++i) {
      p.put_row(product, at, i, whole, sums + i * block);
      p.put_row(product, at + whole, i, width - whole, sums + i * block + whole + shift);
    }
    for (int64_t j = 0; j < width && p.product_j != 1; ++j)
      p.put_column(product, at + j, block, sums + j + (j < whole ? 0 : shift));
  }
}

// ---- wide transposed, and columns of `narrow` that lie one after another: dot products

// Calls tile(rows, j, from) for tiles of `rows` rows, an integral constant. The last rows, if they
// are fewer, are the end of a tile whose rows before `from` are computed once more.
template <int rows, class F>
LEAT_INLINE inline void for_tiles(const Narrow& p, int64_t begin, int64_t end, const F& tile) {
  const std::integral_constant<int, rows> whole;
  const std::integral_constant<int, 1> one;
  int64_t j = begin;
  for (; j + rows <= end; j += rows) {
    StepEnd::pace(p.k * rows);
    tile(whole, j, j);
  }
  if (rows > 1 && j < end && end >= rows) return tile(whole, end - rows, j);
  for (; j < end; ++j) tile(one, j, j);
}

// What is left of rows and columns behind their last whole vector. Of a row it is read as the end
// of a vector whose other lanes are cleared. Needs k >= lanes.
template <class Cpu>
struct Ends {
  using Bits = typename VectorOf<Cpu::lanes>::bits;
  Vector<Cpu> columns[max_narrow];
  Bits mask;

  LEAT_INLINE Ends(const Narrow& p, const float* narrow) {
    const int64_t n = p.k % Cpu::lanes;
    for (int l = 0; l < Cpu::lanes; ++l) mask[l] = l < Cpu::lanes - n ? 0 : -1;
    for (int64_t i = 0; n > 0 && i < p.count; ++i) load(columns[i], narrow + (i + 1) * p.k);
  }
  LEAT_INLINE void load(Vector<Cpu>& to, const float* end) const {
    Vector<Cpu> all;
    leat::load(all, end - Cpu::lanes);
    to = reinterpret_cast<Vector<Cpu>>(reinterpret_cast<Bits>(all) & mask);
  }
};

// Halves are added until four lanes are left.
template <class V>
LEAT_INLINE inline void fold(const V& from, VectorOf<4>::type& to) {
  constexpr int lanes = sizeof(V) / sizeof(float);
  if constexpr (lanes == 16) {
    fold(__builtin_shufflevector(from, from, 0, 1, 2, 3, 4, 5, 6, 7) +
             __builtin_shufflevector(from, from, 8, 9, 10, 11, 12, 13, 14, 15),
         to);
  } else if constexpr (lanes == 8) {
    fold(__builtin_shufflevector(from, from, 0, 1, 2, 3) +
             __builtin_shufflevector(from, from, 4, 5, 6, 7),
         to);
  } else {
    to = from;
  }
}

// The sums of the lanes of each vector, always added in the same order.
template <int columns, class V>
LEAT_INLINE inline void fold_all(const V (&sums)[columns], float (&out)[4]) {
  VectorOf<4>::type four[4] = {};
  for (int c = 0; c < columns; ++c) fold(sums[c], four[c]);
  const auto pair = [](const auto& x, const auto& y) LEAT_INLINE {
    return __builtin_shufflevector(x, y, 0, 4, 1, 5) + __builtin_shufflevector(x, y, 2, 6, 3, 7);
  };  // x0 + x2, y0 + y2, x1 + x3, y1 + y3
  const auto low = pair(four[0], four[1]), high = pair(four[2], four[3]);
  const VectorOf<4>::type total = __builtin_shufflevector(low, high, 0, 1, 4, 5) +
                                  __builtin_shufflevector(low, high, 2, 3, 6, 7);
  std::memcpy(out, &total, sizeof out);
}

// product[j, i] for `rows` rows j of wide and `columns` columns i of narrow.
template <class Cpu, int rows, int columns>
LEAT_INLINE inline void dot_products(const Narrow& p, const float* wide, const float* narrow,
                                     const Ends<Cpu>& ends, int64_t j, int64_t from, int64_t i,
                                     float* product) {
  const float *x = wide + j * p.k, *y = narrow + i * p.k;
  Vector<Cpu> sum[rows][columns];
  clear(sum);
  const int64_t whole = p.k / Cpu::lanes * Cpu::lanes;
  for (int64_t at = 0; at < whole; at += Cpu::lanes) {
    Vector<Cpu> b[columns];
    for (int c = 0; c < columns; ++c) load(b[c], y + c * p.k + at);
    for (int r = 0; r < rows; ++r) {
      Vector<Cpu> a;
      load(a, x + r * p.k + at);
      for (int c = 0; c < columns; ++c) sum[r][c] += a * b[c];
    }
  }
  if (whole < p.k) {
    for (int r = 0; r < rows; ++r) {
      Vector<Cpu> a;
      ends.load(a, x + r * p.k + p.k);
      for (int c = 0; c < columns; ++c) sum[r][c] += a * ends.columns[i + c];
    }
  }
  for (int r = 0; r < rows; ++r) {
    if (j + r < from) continue;
    float out[4];
    fold_all(sum[r], out);
    for (int c = 0; c < columns; ++c) p.put(product, j + r, i + c, out[c]);
  }
}

template <class Cpu, int rows>
LEAT_INLINE inline void dot_products_of_rows(const Narrow& p, const float* wide,
                                             const float* narrow, const Ends<Cpu>& ends, int64_t j,
                                             int64_t from, float* product) {
  int64_t i = 0;
  for (; i + 4 <= p.count; i += 4)
    dot_products<Cpu, rows, 4>(p, wide, narrow, ends, j, from, i, product);
  if (p.count - i == 3) dot_products<Cpu, rows, 3>(p, wide, narrow, ends, j, from, i, product);
  if (p.count - i == 2) dot_products<Cpu, rows, 2>(p, wide, narrow, ends, j, from, i, product);
  if (p.count - i == 1) dot_products<Cpu, rows, 1>(p, wide, narrow, ends, j, from, i, product);
}

template <class Cpu>
LEAT_INLINE inline void multiply_by_columns(const Narrow& p, const float* wide, const float* narrow,
                                            int64_t begin, int64_t end, float* product) {
  const Ends<Cpu> ends(p, narrow);
  for_tiles<Cpu::dots>(p, begin, end, [&](auto rows, int64_t j, int64_t from) LEAT_INLINE {
    dot_products_of_rows<Cpu, rows>(p, wide, narrow, ends, j, from, product);
  });
}

// ---- wide transposed, and rows of `narrow` that lie one after another, or are laid out so: each
// element of wide times a row of narrow

constexpr int64_t row_floats = max_narrow, max_packed = 256;

// Rows of narrow, to be read `row_floats` at a time, whatever follows them. The last ones are
// copied, so that nothing is read beyond the matrix; if they do not lie together, all are.
struct NarrowRows {
  const float* whole;
  int64_t copied_from;
  alignas(64) float copies[max_packed * row_floats];

  LEAT_INLINE NarrowRows(const Narrow& p, const float* narrow) : whole(narrow) {
    const int64_t unsafe = (row_floats + p.count - 1) / p.count;
    copied_from = p.narrow_i == 1 ? std::max<int64_t>(0, p.k - unsafe) : 0;
    std::fill_n(copies, (p.k - copied_from) * row_floats, 0.0f);
    for (int64_t i = 0; i < p.count; ++i) {
      for (int64_t k = copied_from; k < p.k; ++k)
        copies[(k - copied_from) * row_floats + i] = narrow[k * p.narrow_k + i * p.narrow_i];
    }
  }
};

template <class Cpu, int rows>
LEAT_INLINE inline void multiply_rows(const Narrow& p, const float* wide, const NarrowRows& narrow,
                                      int64_t j, int64_t from, float* product) {
  constexpr int vectors = row_floats / Cpu::lanes;
  Vector<Cpu> sum[rows][vectors];
  clear(sum);
  const float* x = wide + j * p.k;
  const auto add = [&](const float* y, int64_t k) LEAT_INLINE {
    Vector<Cpu> b[vectors];
    for (int v = 0; v < vectors; ++v) load(b[v], y + v * Cpu::lanes);
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) sum[r][v] += b[v] * x[r * p.k + k];
    }
  };
  const auto add_all = [&](const float* y, int64_t stride, int64_t begin, int64_t end) LEAT_INLINE {
    int64_t k = begin;
    for (; k + 4 <= end; k += 4, y += 4 * stride) {
      // Unrolled, so that gcc counts up a pointer to each row: with an index, an instruction that
      // also loads takes two slots.
      add(y, k), add(y + stride, k + 1), add(y + 2 * stride, k + 2), add(y + 3 * stride, k + 3);
    }
    for (; k < end; ++k, y += stride) add(y, k);
  };
  add_all(narrow.whole, p.count, 0, narrow.copied_from);
  add_all(narrow.copies, row_floats, narrow.copied_from, p.k);
  const int skipped = static_cast<int>(from - j);
  float out[rows * row_floats];
  if (p.product_i == 1 && !p.adds) {  // each row ends where the next begins
    for (int r = skipped; r < rows; ++r)
      std::memcpy(out + (r - skipped) * p.count, sum[r], row_floats * sizeof(float));
    std::memcpy(product + from * p.count, out, (rows - skipped) * p.count * sizeof(float));
    return;
  }
  std::memcpy(out, sum, sizeof out);
  for (int r = skipped; r < rows && p.product_i == 1; ++r)
    p.put_column(product, j + r, 1, out + r * row_floats);
  for (int64_t i = 0; i < p.count && p.product_i != 1; ++i) {
    for (int r = skipped; r < rows; ++r) p.put(product, j + r, i, out[r * row_floats + i]);
  }
}

template <class Cpu>
LEAT_INLINE inline void multiply_by_rows(const Narrow& p, const float* wide, const float* narrow,
                                         int64_t begin, int64_t end, float* product) {
  const NarrowRows rows_of_narrow(p, narrow);
  for_tiles<Cpu::broadcasts>(p, begin, end, [&](auto rows, int64_t j, int64_t from) LEAT_INLINE {
    multiply_rows<Cpu, rows>(p, wide, rows_of_narrow, j, from, product);
  });
}

// ---- The choice

enum class Way { rows, columns, broadcasts };

template <Way way, class Cpu>
LEAT_INLINE inline void multiply(const Narrow& p, const float* wide, const float* narrow,
                                 int64_t begin, int64_t end, float* product) {
  if constexpr (way == Way::rows) sum_rows<Cpu>(p, wide, narrow, begin, end, product);
  if constexpr (way == Way::columns) multiply_by_columns<Cpu>(p, wide, narrow, begin, end, product);
  if constexpr (way == Way::broadcasts) multiply_by_rows<Cpu>(p, wide, narrow, begin, end, product);
}

template <Way way>
BoundKernel bind(Narrow p, bool is_wide_first) {
  const bool is_packed = way == Way::columns && p.narrow_k != 1;  // columns lie together then
  if (is_packed) p.narrow_k = 1, p.narrow_i = p.k;
  BoundKernel kernel = BoundKernel::of([=](const Arguments& args) {
    const float *wide = args.input<float>(is_wide_first ? 0 : 1),
                *narrow = args.input<float>(is_wide_first ? 1 : 0);
    float* product = args.output<float>();
    if (is_packed) {
      auto* columns = static_cast<float*>(args.workspace);
      for (int64_t k = 0; k < p.k; ++k) {
        for (int64_t i = 0; i < p.count; ++i) columns[i * p.k + k] = narrow[k * p.count + i];
      }
      narrow = columns;
    }
    constexpr int64_t unit = 32;  // chunks begin at whole vectors
    const int64_t flops = 2 * p.count * p.k * unit, bytes = 4 * p.k * unit;
    const int64_t grain = 1 + std::min(bytes_per_chunk / bytes, matmul_flops_per_chunk / flops);
    args.stream->parallel_for(
        (p.length + unit - 1) / unit, grain, [&](int64_t first, int64_t last) {
          const int64_t begin = first * unit, end = std::min(last * unit, p.length);
          switch (cpu_isa()) {
            case Isa::avx512:
              return vectorized_avx512([=]() LEAT_INLINE {
                multiply<way, Avx512>(p, wide, narrow, begin, end, product);
              });
            case Isa::avx2:
              return vectorized_avx2(
                  [=]() LEAT_INLINE { multiply<way, Avx2>(p, wide, narrow, begin, end, product); });
            case Isa::base:
              return multiply<way, Base>(p, wide, narrow, begin, end, product);
          }
        });
  });
  return std::move(kernel).with_workspace(is_packed ? p.count * p.k * sizeof(float) : 0);
}

}  // namespace

std::optional<BoundKernel> bind_narrow_matmul(const MatMul& mm) {
  const bool is_wide_first = mm.n <= mm.m;
  Narrow p{};
  p.k = mm.k;
  p.adds = mm.adds;
  if (is_wide_first) {
    p.count = mm.n, p.length = mm.m;
    p.is_wide_transposed = !mm.transpose_a;
    p.narrow_k = mm.transpose_b ? 1 : mm.n, p.narrow_i = mm.transpose_b ? mm.k : 1;
    p.product_j = mm.n, p.product_i = 1;
  } else {
    p.count = mm.m, p.length = mm.n;
    p.is_wide_transposed = mm.transpose_b;
    p.narrow_k = mm.transpose_a ? mm.m : 1, p.narrow_i = mm.transpose_a ? 1 : mm.k;
    p.product_j = 1, p.product_i = mm.n;
  }
  if (p.count > max_narrow) return {};
  if (!p.is_wide_transposed) {
    if (p.length < max_lanes) return {};
    return bind<Way::rows>(p, is_wide_first);
  }
  const bool lies_in_rows = p.narrow_i == 1;
  const bool fills_rows = p.count > 4 && (lies_in_rows || p.k <= max_packed);
  if (p.k >= max_lanes && !fills_rows) return bind<Way::columns>(p, is_wide_first);
  return bind<Way::broadcasts>(p, is_wide_first);
}

}  // namespace leat
