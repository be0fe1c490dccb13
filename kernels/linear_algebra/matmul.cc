// leat: fast-math-loops
// Matrix products. f32 uses oneDNN's sgemm (sgemm.cc), products with few rows or columns the loops
// of narrow_matmul.cc. Vectors and other types have loops here.
#include "kernels/linear_algebra/matmul.h"
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/linear_algebra/bfloat16_matmul.h"
#include "kernels/linear_algebra/narrow_matmul.h"
#include "kernels/linear_algebra/sgemm.h"
#include "kernels/moves/strided_copy.h"
#include "kernels/pieces.h"

namespace leat {
namespace {

// Tens of microseconds of work: less is not worth a second thread.
constexpr int64_t flops_per_chunk = matmul_flops_per_chunk;
constexpr int64_t bytes_per_chunk = 1 << 20;

// ---- f32

// product[i, j] = a[i] b[j]
void multiply_outer(Stream& stream, const MatMul& mm, const float* a, const float* b,
                    float* product) {
  const int64_t n = mm.n;
  stream.parallel_for(mm.m, 1 + bytes_per_chunk / (4 * n), [&](int64_t begin, int64_t end) {
    vectorized([=, adds = mm.adds]() LEAT_INLINE {
      for (int64_t i = begin; i < end; ++i) {
        const float x = a[i];
        float* row = product + i * n;
        if (adds) {
          for (int64_t j = 0; j < n; ++j) row[j] += x * b[j];
        } else {
          for (int64_t j = 0; j < n; ++j) row[j] = x * b[j];
        }
      }
    });
  });
}

// All ways to compute y[j] = sum over k of x[k] matrix[k, j] add in the order of k, to y[j] if it
// `adds`: a chunk of columns may go any of them.

// For a block of columns kept in registers.
template <int width>
LEAT_INLINE inline void columns(const float* x, const float* matrix, int64_t k, int64_t stride,
                                bool adds, float* y) {
  float sum[width] = {};
  if (adds) std::copy_n(y, width, sum);
  for (int64_t i = 0; i < k; ++i) {
    const float* row = matrix + i * stride;
    for (int j = 0; j < width; ++j) sum[j] += x[i] * row[j];
  }
  std::copy_n(sum, width, y);
}

// For some rows: y[j] += sum over r of x[r] matrix[r, j]
template <int rows>
LEAT_INLINE inline void add_rows(const float* x, const float* matrix, int64_t n, int64_t begin,
                                 int64_t end, float* y) {
  for (int64_t j = begin; j < end; ++j) {
    float sum = y[j];
    for (int r = 0; r < rows; ++r) sum += x[r] * matrix[r * n + j];
    y[j] = sum;
  }
}

// A row vector times a row-major matrix. Reading the matrix is all the work. One that may lie in a
// cache is read in blocks of columns, so that sums stay in registers. Memory is read as fast as can
// be only in order: rows of a block's width, and short rows, one at a time (2 to 2.4 times as fast
// as blocks or several rows, with 200 K elements on an EPYC); of long ones, eight.
void multiply_vector(Stream& stream, int64_t n, int64_t k, bool adds, const float* x,
                     const float* matrix, float* y) {
  stream.parallel_for(
      n, std::max<int64_t>(128, bytes_per_chunk / (4 * k)), [&](int64_t begin, int64_t end) {
        vectorized([=]() LEAT_INLINE {
          constexpr int64_t cached = 1 << 17, widest = 256, block = 128, long_row = 1024;
          int64_t at = begin;
          if (n == widest && end - begin == n) return columns<widest>(x, matrix, k, n, adds, y);
          if (n == block || n * k <= cached) {
            for (; at + block <= end; at += block)
              columns<block>(x, matrix + at, k, n, adds, y + at);
            for (; at + 16 <= end; at += 16) columns<16>(x, matrix + at, k, n, adds, y + at);
          }
          if (at == end) return;
          if (!adds) std::fill(y + at, y + end, 0.0f);
          int64_t i = 0;
          for (; n >= long_row && i + 8 <= k; i += 8)
            add_rows<8>(x + i, matrix + i * n, n, at, end, y);
          for (; i < k; ++i) add_rows<1>(x + i, matrix + i * n, n, at, end, y);
        });
      });
}

BoundKernel bind(TypeTag<float>, const MatMul& mm) {
  if (mm.k == 1) {
    return BoundKernel::of([mm](const Arguments& a) {
      multiply_outer(*a.stream, mm, a.input<float>(0), a.input<float>(1), a.output<float>());
    });
  }
  if (mm.m == 1 && !mm.transpose_b) {
    return BoundKernel::of([mm](const Arguments& a) {
      multiply_vector(*a.stream, mm.n, mm.k, mm.adds, a.input<float>(0), a.input<float>(1),
                      a.output<float>());
    });
  }
  if (mm.n == 1 && mm.transpose_a) {
    return BoundKernel::of([mm](const Arguments& a) {
      multiply_vector(*a.stream, mm.m, mm.k, mm.adds, a.input<float>(1), a.input<float>(0),
                      a.output<float>());
    });
  }
  if (auto narrow = bind_narrow_matmul(mm)) return std::move(*narrow);
  const Sgemm product(mm);
  return BoundKernel::of([product](const Arguments& a) {
           product.run(*a.stream, a.input<float>(0), a.input<float>(1), a.output<float>(),
                       a.workspace);
         })
      .with_workspace(product.workspace_bytes());
}

// ---- f64, integers and complex numbers

// Rows [begin, end) of a product of untransposed matrices: 4 rows by 2 cache lines of columns are
// kept in registers.
template <class T, class Sum>
LEAT_INLINE inline void multiply_rows(const MatMul& mm, const T* a, const T* b, T* product,
                                      int64_t begin, int64_t end) {
  constexpr int width = 128 / sizeof(T), height = 4;
  const auto put = [&](const Sum(&sum)[width], T* to) LEAT_INLINE {
    for (int c = 0; c < width; ++c) to[c] = T(mm.adds ? Sum(to[c]) + sum[c] : sum[c]);
  };
  int64_t j = 0;
  for (; j + width <= mm.n; j += width) {
    int64_t i = begin;
    for (; i + height <= end; i += height) {
      StepEnd::pace(mm.k * height);
      Sum sum[height][width] = {};
      for (int64_t k = 0; k < mm.k; ++k) {
        for (int r = 0; r < height; ++r) {
          const Sum x = a[(i + r) * mm.k + k];
          for (int c = 0; c < width; ++c) sum[r][c] += x * Sum(b[k * mm.n + j + c]);
        }
      }
      for (int r = 0; r < height; ++r) {
        put(sum[r], product + (i + r) * mm.n + j);
      }
    }
    for (; i < end; ++i) {
      StepEnd::pace(mm.k);
      Sum sum[width] = {};
      for (int64_t k = 0; k < mm.k; ++k) {
        const Sum x = a[i * mm.k + k];
        for (int c = 0; c < width; ++c) sum[c] += x * Sum(b[k * mm.n + j + c]);
      }
      put(sum, product + i * mm.n + j);
    }
  }
  for (int64_t i = begin; j < mm.n && i < end; ++i) {
    StepEnd::pace(mm.k);
    if (!mm.adds) std::fill(product + i * mm.n + j, product + (i + 1) * mm.n, T(0));
    for (int64_t k = 0; k < mm.k; ++k) {
      const Sum x = a[i * mm.k + k];
      for (int64_t c = j; c < mm.n; ++c)
        product[i * mm.n + c] = T(Sum(product[i * mm.n + c]) + x * Sum(b[k * mm.n + c]));
    }
  }
}

template <class T>
void conjugate(const MatMul& mm, T* values, int64_t n) {
  if constexpr (is_complex_type<T>) {
    if (mm.conjugates) std::transform(values, values + n, values, [](T x) { return std::conj(x); });
  }
}

// Signed integers wrap around, as TensorFlow's do: they are multiplied as unsigned ones. Transposed
// operands are first laid out plainly in the workspace.
template <class T>
BoundKernel bind(TypeTag<T>, const MatMul& mm) {
  using U = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                        std::type_identity<T>>::type;
  using Sum = std::conditional_t<sizeof(T) == 2, uint32_t, U>;
  using Bits = std::conditional_t<
      sizeof(T) == 16, complex128,
      std::conditional_t<sizeof(T) == 8, uint64_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>>;
  const int64_t a_copy = mm.transpose_a ? mm.m * mm.k : 0,
                b_copy = mm.transpose_b ? mm.k * mm.n : 0;
  const StridedCopy plain_a({{mm.m, 1, mm.k}, {mm.k, mm.m, 1}}),
      plain_b({{mm.k, 1, mm.n}, {mm.n, mm.k, 1}});
  return BoundKernel::of([=](const Arguments& args) {
           const U *a = args.input<U>(0), *b = args.input<U>(1);
           U* product = args.output<U>();
           U* scratch = static_cast<U*>(args.workspace);
           if (a_copy > 0) {
             plain_a.run(*args.stream, args.input<Bits>(0), reinterpret_cast<Bits*>(scratch));
             a = scratch;
             conjugate(mm, scratch, a_copy);
             scratch += a_copy;
           }
           if (b_copy > 0) {
             plain_b.run(*args.stream, args.input<Bits>(1), reinterpret_cast<Bits*>(scratch));
             conjugate(mm, scratch, b_copy);
             b = scratch;
           }
           const int64_t grain = 4 + flops_per_chunk / (4 * mm.n * mm.k);
           args.stream->parallel_for(mm.m, grain, [&](int64_t begin, int64_t end) {
             vectorized([=]()
                            LEAT_INLINE { multiply_rows<U, Sum>(mm, a, b, product, begin, end); });
           });
         })
      .with_workspace((a_copy + b_copy) * sizeof(T));
}

// ---- 16-bit floats

// As f32 in the workspace.
template <class T>
BoundKernel bind_through_floats(const MatMul& mm) {
  const int64_t size_a = mm.m * mm.k, size_b = mm.k * mm.n, size = mm.m * mm.n;
  const Sgemm multiply(mm);
  return BoundKernel::of([=](const Arguments& args) {
           float *a = static_cast<float*>(args.workspace), *b = a + size_a, *product = b + size_b;
           const T *a16 = args.input<T>(0), *b16 = args.input<T>(1);
           T* product16 = args.output<T>();
           vectorized([=]() LEAT_INLINE {
             for (int64_t i = 0; i < size_a; ++i) a[i] = a16[i];
             for (int64_t i = 0; i < size_b; ++i) b[i] = b16[i];
           });
           if (mm.adds) {
             vectorized([=]() LEAT_INLINE {
               for (int64_t i = 0; i < size; ++i) product[i] = product16[i];
             });
           }
           multiply.run(*args.stream, a, b, product, product + size);
           vectorized([=]() LEAT_INLINE {
             for (int64_t i = 0; i < size; ++i) product16[i] = T(product[i]);
           });
         })
      .with_workspace((size_a + size_b + size) * sizeof(float) + multiply.workspace_bytes());
}

BoundKernel bind(TypeTag<half>, const MatMul& mm) { return bind_through_floats<half>(mm); }

BoundKernel bind(TypeTag<bfloat16>, const MatMul& mm) {
  if (auto native = bind_bfloat16_matmul(mm)) return *native;
  return bind_through_floats<bfloat16>(mm);
}

// ---- The op

BoundKernel with_cost(BoundKernel kernel, const MatMul& mm, size_t element_bytes) {
  const double flops = 2.0 * mm.m * mm.n * mm.k;
  const double elements = 1.0 * mm.m * mm.k + 1.0 * mm.k * mm.n + 1.0 * mm.m * mm.n;
  kernel.cost_ns = 500 + std::max(flops / 120, elements * element_bytes / 40);
  return kernel;
}

template <class T>
BoundKernel prepare(TypeTag<T> type, const MatMul& mm) {
  if (mm.m == 0 || mm.n == 0) return {};
  if (mm.k == 0 && mm.adds) return {};
  if (mm.k == 0) {
    return BoundKernel::of(
        [n = mm.m * mm.n](const Arguments& args) { fill_in_pieces(args.output<T>(), n, T(0)); });
  }
  return with_cost(bind(type, mm), mm, sizeof(T));
}

BoundKernel prepare_matmul(const KernelRequest& request) {
  const Shape &a = request.inputs[0].shape, &product = request.outputs[0].shape;
  const bool ta = request.attr<bool>("transpose_a"), tb = request.attr<bool>("transpose_b");
  const MatMul mm{product[0], product[1], a[ta ? 0 : 1], ta, tb};
  const TensorSpec& b = request.inputs[1];
  if (b.dtype == bf16 && b.value != nullptr && mm.m * mm.n * mm.k > 0) {
    if (auto packed = bind_bfloat16_matmul(mm, *b.value, request.node_state))
      return with_cost(std::move(*packed), mm, sizeof(bfloat16));
  }
  return bind_matmul(b.dtype, mm);
}

void infer(ShapeContext& c) {
  const Shape a = c.with_rank(0, 2), b = c.with_rank(1, 2);
  const bool ta = c.attr<bool>("transpose_a"), tb = c.attr<bool>("transpose_b");
  const int64_t k_of_a = a[ta ? 0 : 1], k_of_b = b[tb ? 1 : 0];
  check(k_of_a == any || k_of_b == any || k_of_a == k_of_b, "Matrix size-incompatible: In[0]: ", a,
        ", In[1]: ", b, ta ? ", transpose_a" : "", tb ? ", transpose_b" : "");
  c.set_output(0, Shape{a[ta ? 1 : 0], b[tb ? 0 : 1]});
}

void gradient(Gradient& g) {
  const bool ta = g.attr<bool>("transpose_a"), tb = g.attr<bool>("transpose_b");
  const Output a = g.x(0), b = g.x(1), dy = g.dy();
  g.dx(0) = ta ? matmul(b, dy, {.transpose_a = tb, .transpose_b = true})
               : matmul(dy, b, {.transpose_b = !tb});
  g.dx(1) = tb ? matmul(dy, a, {.transpose_a = true, .transpose_b = ta})
               : matmul(a, dy, {.transpose_a = !ta});
}

const Op matmul_op{{
    .name = "MatMul",
    .doc =
        "product[i, j] = sum over k of op(a)[i, k] * op(b)[k, j], where op transposes if asked to.",
    .inputs = {"a: T", "b: T"},
    .outputs = {"product: T"},
    .attrs = {"transpose_a: bool = false", "transpose_b: bool = false",
              "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, "
              "complex64, complex128}",
              "grad_a: bool = false", "grad_b: bool = false"},
    .shape = infer,
    .gradient = gradient,
    .kernels = {cpu_kernel("T", MatMulTypes{},
                           [](auto, const KernelRequest& r) { return prepare_matmul(r); })},
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), floats({3, 1}, {1, 0, 2})},
                  .outputs = {floats({2, 1}, {7, 16})}},
                 {.inputs = {floats({3, 2}, {1, 4, 2, 5, 3, 6}), floats({1, 3}, {1, 0, 2})},
                  .attrs = {{"transpose_a", true}, {"transpose_b", true}},
                  .outputs = {floats({2, 1}, {7, 16})}}},
}};

}  // namespace

BoundKernel bind_matmul(DType dtype, const MatMul& extents) {
  return visit_type(MatMulTypes{}, dtype, [&](auto type) { return prepare(type, extents); });
}

}  // namespace leat
