// oneDNN has two ways to multiply plain matrices: sgemm, and a matmul primitive, which takes 150 to
// 600 us to make for extents that are new. The primitive is more even: it wins where sgemm is slow
// for a transposition. There, sgemm of the transposed product, op(b)^T op(a)^T, which is then
// turned, beats both, and is as cheap to bind. So a table says when to turn. Of some extents, sgemm
// is slow only as long as nothing is transposed, or for a transposed b: there, a or b is turned.
#include "kernels/linear_algebra/sgemm.h"

#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <limits>

#include "core/execution/step_end.h"
#include "core/execution/thread_pool.h"
#include "kernels/cpu_isa.h"
#include "kernels/moves/turn_squares.h"

namespace leat {
namespace {

// A tile takes some hundredths of a second: between tiles, the kernel asks whether the product is
// still wanted. Tiles are as wide as oneDNN needs to be fast. Sums are cut by the product's extents
// alone, not by the chunk at hand, so that equal products are equal.
constexpr double flops_per_tile = 1.5e9;
constexpr int64_t least_tile = 256, terms_per_tile = 8192;

double flops_of(int64_t m, int64_t n, int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// product[m, n] = op(a)[m, k] op(b)[k, n], or added to it.
void sgemm_tile(const MatMul& mm, const float* a, const float* b, float* product, int64_t m,
                int64_t n, int64_t k, bool adds) {
  StepEnd::ask();
  static thread_local const bool single_threaded = (omp_set_num_threads(1), true);
  (void)single_threaded;
  const dnnl_status_t status =
      dnnl_sgemm(mm.transpose_a ? 'T' : 'N', mm.transpose_b ? 'T' : 'N', m, n, k, 1.0f, a,
                 mm.transpose_a ? mm.m : mm.k, b, mm.transpose_b ? mm.k : mm.n, adds ? 1.0f : 0.0f,
                 product, mm.n);
  check_internal(status == dnnl_success, "dnnl_sgemm failed with status ",
                 static_cast<int>(status));
}

void sgemm(const MatMul& mm, const float* a, const float* b, float* product, int64_t m, int64_t n) {
  const bool is_cut = StepEnd::of_thread() != nullptr && std::max(m, n) >= 2 * least_tile &&
                      flops_of(m, n, mm.k) > 2 * flops_per_tile;
  if (is_cut && m >= n) {
    const int64_t half = m / 32 * 16;
    sgemm(mm, a, b, product, half, n);
    return sgemm(mm, a + half * (mm.transpose_a ? 1 : mm.k), b, product + half * mm.n, m - half, n);
  }
  if (is_cut) {
    const int64_t half = n / 32 * 16;
    sgemm(mm, a, b, product, m, half);
    return sgemm(mm, a, b + half * (mm.transpose_b ? mm.k : 1), product + half, m, n - half);
  }
  const bool is_long = mm.k >= 2 * terms_per_tile && flops_of(mm.m, mm.n, mm.k) > flops_per_tile;
  const int64_t terms = is_long ? terms_per_tile : mm.k;
  for (int64_t at = 0; at < mm.k; at += terms) {
    sgemm_tile(mm, a + at * (mm.transpose_a ? mm.m : 1), b + at * (mm.transpose_b ? 1 : mm.n),
               product, m, n, std::min(terms, mm.k - at), mm.adds || at > 0);
  }
}

// Cells of the product, one per chunk.
struct Grid {
  int64_t rows, columns;
};

// sgemm copies what it reads of `b`, and of `a`: a row of cells costs about three times as much per
// element of b as a column of cells costs per element of a. One chunk per thread loses least; of a
// long product there are more, for the case that a thread loses its core.
Grid grid_of(const MatMul& mm, int threads) {
  constexpr double long_flops = 4e8;
  constexpr int64_t least_rows = 16, least_columns = 64, times_b = 3;
  const double flops = flops_of(mm.m, mm.n, mm.k);
  const int64_t most = threads * (flops > long_flops ? 2 : 1);
  const int64_t chunks =
      std::min(most, static_cast<int64_t>(flops / static_cast<double>(matmul_flops_per_chunk)));
  Grid best{1, 1};
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int64_t columns = 1; columns <= std::min(chunks, 1 + mm.n / (2 * least_columns));
       ++columns) {
    const int64_t rows = std::clamp<int64_t>(chunks / columns, 1, 1 + mm.m / (2 * least_rows));
    const int64_t copied = columns * mm.m + times_b * rows * mm.n;
    if (rows * columns < best.rows * best.columns) continue;
    if (rows * columns > best.rows * best.columns || copied < least) {
      best = {rows, columns};
      least = copied;
    }
  }
  return best;
}

// Where cell `i` of `count` begins, on an axis of `extent` elements: at a multiple of a vector.
int64_t cell_begin(int64_t i, int64_t count, int64_t extent) {
  return i == count ? extent : extent * i / count / 16 * 16;
}

// Equal products are equal, whatever the number of threads. Without AVX-512, oneDNN adds up in
// another order where an operand is cut: there the cells are those of a usual number of threads.
int threads_for(Stream& stream) {
  constexpr int usual = 4;
  static const bool keeps_order = cpu_isa() == Isa::avx512;
  if (!keeps_order) return usual;
  return stream.pool() == nullptr ? 1 : stream.pool()->threads();
}

void multiply(const MatMul& mm, Stream& stream, const float* a, const float* b, float* product) {
  const Grid grid = grid_of(mm, threads_for(stream));
  stream.parallel_for(grid.rows * grid.columns, 1, [&](int64_t begin, int64_t end) {
    for (int64_t cell = begin; cell < end; ++cell) {
      const int64_t row = cell / grid.columns, column = cell % grid.columns;
      const int64_t i = cell_begin(row, grid.rows, mm.m),
                    j = cell_begin(column, grid.columns, mm.n);
      const int64_t m = cell_begin(row + 1, grid.rows, mm.m) - i,
                    n = cell_begin(column + 1, grid.columns, mm.n) - j;
      sgemm(mm, a + i * (mm.transpose_a ? 1 : mm.k), b + j * (mm.transpose_b ? mm.k : 1),
            product + i * mm.n + j, m, n);
    }
  });
}

// ---- The product, turned

constexpr int64_t line = 16;  // floats: cache lines of the transposed product are read once

// Rows [begin, end) of the product, at most a line of the transposed one.
void turn(const MatMul& mm, const float* turned, int64_t begin, int64_t end, float* product) {
  StepEnd::pace(line * mm.n);
  const auto into_product = mm.adds ? add_turned_squares : turn_squares<float>;
  into_product(turned + begin, mm.m, product + begin * mm.n, mm.n, mm.n, end - begin);
}

// The least k from which a turned product is faster, for a product whose smaller extent is at most
// `smaller`. Measured with operands in the L3 cache on one core of a Xeon (Sapphire Rapids), with
// m and n from 20 to 2048, k from 128 to 2048. With nothing transposed, it never is.
struct Turn {
  bool transpose_a, transpose_b;
  bool is_wide, is_tall;  // m <= n, m >= n
  int64_t smaller, k;
};
constexpr Turn turns[] = {
    {true, true, true, true, 48, 256},     // takes 0.4 to 1.0 times sgemm's time
    {true, true, true, true, 128, 512},    // 0.6 to 0.93
    {true, true, true, true, 1024, 1024},  // 0.75 to 1.05; in memory 0.7
    {false, true, true, false, 48, 256},   // 0.65 to 0.92
    {false, true, true, false, 64, 512},   // 0.8 to 1.05
    {true, false, false, true, 24, 128},   // 0.6 to 0.8
    {true, false, false, true, 64, 1024}   // 0.74 to 0.91
};

bool is_faster_turned(const MatMul& mm) {
  // Small products of a batch share a chunk: they have no workspace.
  if (flops_of(mm.m, mm.n, mm.k) < matmul_flops_per_chunk) return false;
  return std::any_of(std::begin(turns), std::end(turns), [&](const Turn& turn) {
    return turn.transpose_a == mm.transpose_a && turn.transpose_b == mm.transpose_b &&
           (mm.m <= mm.n ? turn.is_wide : turn.is_tall) && std::min(mm.m, mm.n) <= turn.smaller &&
           mm.k >= turn.k;
  });
}

// The caches of other makers' processors favour other ways.
bool is_intel() {
#if defined(__x86_64__)
  static const bool is_it = __builtin_cpu_is("intel") != 0;
  return is_it;
#else
  return false;
#endif
}

// Rows of a transposed `b` that begin 2 or 4 KB after one another meet in few lines of the cache.
// On an EPYC (Zen 4), to turn such a b first takes 0.7 to 0.97 of the time, if it fits into the L2
// cache, and more if it does not.
bool is_faster_with_turned_b(const MatMul& mm) {
  constexpr int64_t fewest = 32, most = 256, largest = 1 << 19;
  return !is_intel() && !mm.transpose_a && mm.transpose_b && mm.k % 512 == 0 && mm.m >= fewest &&
         mm.m <= most && mm.n * mm.k <= largest &&
         flops_of(mm.m, mm.n, mm.k) >= matmul_flops_per_chunk;
}

// Rows of `b` that begin 4 KB after one another meet in few lines of the cache, and sgemm copies
// none of `b` while k is just within one of its blocks of 384. Of m = 64 to 512, n = 1024 to 4096
// and k = 96 to 768, the product takes 0.6 to 0.85 times as long then on a Xeon; of a few rows also
// with two such blocks. On an EPYC (Zen 4) it takes 1.03 to 1.2 times as long.
bool is_faster_with_turned_a(const MatMul& mm) {
  constexpr int64_t block = 384, near = 48;
  if (!is_intel() || mm.transpose_a || mm.transpose_b || mm.n % 1024 != 0 || mm.m < 48)
    return false;
  const auto fills = [&](int64_t blocks) {
    return mm.k <= blocks * block && mm.k > blocks * block - near;
  };
  return fills(1) || (fills(2) && mm.m <= 64 && mm.n > 1024);
}

// `turned` in the shape of the product, with several threads.
void turn_all(const MatMul& mm, Stream& stream, const float* turned, float* product) {
  constexpr int64_t elements_per_chunk = 1 << 16;  // tens of microseconds
  stream.parallel_for((mm.m + line - 1) / line, 1 + elements_per_chunk / (line * mm.n),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i)
                          turn(mm, turned, i * line, std::min(mm.m, (i + 1) * line), product);
                      });
}

}  // namespace

Sgemm::Sgemm(const MatMul& extents) : extents_(extents), way_(way(extents)) {}

Sgemm::Way Sgemm::way(const MatMul& extents) {
  if (is_faster_with_turned_b(extents)) return Way::turned_b;
  if (is_faster_turned(extents)) return Way::turned_product;
  return is_faster_with_turned_a(extents) ? Way::turned_a : Way::plain;
}

size_t Sgemm::workspace_bytes() const {
  int64_t elements = 0;
  switch (way_) {
    case Way::plain:
      break;
    case Way::turned_a:
      elements = extents_.m * extents_.k;
      break;
    case Way::turned_b:
      elements = extents_.n * extents_.k;
      break;
    case Way::turned_product:
      elements = extents_.m * extents_.n;
      break;
  }
  return static_cast<size_t>(elements) * sizeof(float);
}

void Sgemm::run(Stream& stream, const float* a, const float* b, float* product,
                void* workspace) const {
  MatMul mm = extents_;
  auto* turned = static_cast<float*>(workspace);
  switch (way_) {
    case Way::plain:
      return multiply(mm, stream, a, b, product);
    case Way::turned_a:
      turn_all({.m = mm.k, .n = mm.m}, stream, a, turned);
      mm.transpose_a = true;
      return multiply(mm, stream, turned, b, product);
    case Way::turned_b:
      turn_all({.m = mm.k, .n = mm.n}, stream, b, turned);
      mm.transpose_b = false;
      return multiply(mm, stream, a, turned, product);
    case Way::turned_product:
      multiply({.m = mm.n,
                .n = mm.m,
                .k = mm.k,
                .transpose_a = !mm.transpose_b,
                .transpose_b = !mm.transpose_a},
               stream, b, a, turned);
      return turn_all(mm, stream, turned, product);
  }
}

}  // namespace leat
