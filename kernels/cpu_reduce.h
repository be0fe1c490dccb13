// The CPU's side of reduction.h. Two loops: over adjacent elements (rows are reduced), and over
// rows that are combined element by element (columns are reduced).
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/execution/step_end.h"
#include "core/kernel.h"
#include "kernels/cpu_loops.h"
#include "kernels/fold_halves.h"
#include "kernels/half_rows.h"
#include "kernels/moves/square.h"
#include "kernels/reduction_plan.h"

namespace leat {
namespace cpu {

// Parallel partial results, because the compiler may not reorder floating-point additions itself.
// Runs are cut into blocks, so that the error of a sum grows with the length of a block, not of the
// tensor.
inline constexpr int lanes = 64;
inline constexpr int64_t run_block = 4096;

template <class R>
inline constexpr auto combine_of =
    [](auto a, auto b) LEAT_INLINE { return R::template combine<decltype(a)>(a, b); };

// The results of lanes of `in`, each of every lanes-th element.
template <class R, class T>
LEAT_DEVICE void reduce_lanes(const T* in, int64_t n, Accumulator<R, T> (&partial)[lanes]) {
  using C = Accumulator<R, T>;
  for (int lane = 0; lane < lanes; ++lane) partial[lane] = R::template identity<C>();
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      partial[lane] =
          R::template combine<C>(partial[lane], R::template map<C>(widened(in[i + lane])));
    }
  }
  for (int lane = 0; i < n; ++i, ++lane)
    partial[lane] = R::template combine<C>(partial[lane], R::template map<C>(widened(in[i])));
}

template <class R, class T>
LEAT_DEVICE Accumulator<R, T> reduce_block(const T* in, int64_t n) {
  Accumulator<R, T> partial[lanes];
  reduce_lanes<R>(in, n, partial);
  fold_halves<lanes>(partial, combine_of<R>);
  return partial[0];
}

// Several runs at once, of one block each. Within a vector, lanes are slow to combine: here a
// vector has the same lane of all runs. The order is reduce_block's, so the results are.
template <int runs, class R, class T>
LEAT_DEVICE void reduce_runs(const T* in, int64_t stride, int64_t n, Accumulator<R, T>* out) {
  using C = Accumulator<R, T>;
  typename RowOf<C, runs>::type square[runs];
  for (int run = 0; run < runs; ++run) {
    C partial[lanes];
    reduce_lanes<R>(in + run * stride, n, partial);
    fold_halves<lanes, runs>(partial, combine_of<R>);
    std::memcpy(&square[run], partial, sizeof square[run]);
  }
  turn(square);
  C turned[runs * runs];
  std::memcpy(turned, square, sizeof square);
  fold_halves<runs * runs, runs>(turned, combine_of<R>);
  std::memcpy(out, turned, runs * sizeof(C));
}

template <class R, class T>
LEAT_DEVICE Accumulator<R, T> reduce_run(const T* in, int64_t n) {
  using C = Accumulator<R, T>;
  C total = R::template identity<C>();
  if (n < lanes) {
    for (int64_t i = 0; i < n; ++i)
      total = R::template combine<C>(total, R::template map<C>(widened(in[i])));
    return total;
  }
  for (int64_t i = 0; i < n; i += run_block) {
    total = R::template combine<C>(total, reduce_block<R, T>(in + i, std::min(run_block, n - i)));
  }
  return total;
}

// total[j] = combine(total[j], in[row * stride + j]) for all rows; j < columns.
inline constexpr int max_columns = 512;

template <class R, class T>
LEAT_DEVICE void reduce_rows(const T* in, int64_t rows, int64_t stride, int64_t columns,
                             Accumulator<R, T>* total) {
  using C = Accumulator<R, T>;
  constexpr int64_t row_block = 256;
  C partial[max_columns];
  for (int64_t first = 0; first < rows; first += row_block) {
    for (int64_t j = 0; j < columns; ++j) partial[j] = R::template identity<C>();
    const int64_t last = std::min(rows, first + row_block);
    int64_t row = first;
    for (; row + 4 <= last; row += 4) {  // so that partial results are read and written less often
      const T *a = in + row * stride, *b = a + stride, *c = b + stride, *d = c + stride;
      for (int64_t j = 0; j < columns; ++j) {
        C sum = R::template combine<C>(partial[j], R::template map<C>(widened(a[j])));
        sum = R::template combine<C>(sum, R::template map<C>(widened(b[j])));
        sum = R::template combine<C>(sum, R::template map<C>(widened(c[j])));
        partial[j] = R::template combine<C>(sum, R::template map<C>(widened(d[j])));
      }
    }
    for (; row < last; ++row) {
      const T* from = in + row * stride;
      for (int64_t j = 0; j < columns; ++j)
        partial[j] = R::template combine<C>(partial[j], R::template map<C>(widened(from[j])));
    }
    for (int64_t j = 0; j < columns; ++j) total[j] = R::template combine<C>(total[j], partial[j]);
  }
}

// The same; of few adjacent columns, several rows are one. Halves pass through floats.
template <class R, class T>
LEAT_DEVICE void reduce_any_rows(const T* in, int64_t rows, int64_t stride, int64_t columns,
                                 Accumulator<R, T>* total) {
  using C = Accumulator<R, T>;
  if constexpr (std::is_same_v<T, half> && std::is_same_v<C, Accumulator<R, float>>) {
    constexpr int64_t size = 4096;
    float values[size];
    const int64_t height = size / columns;
    for (int64_t row = 0; row < rows; row += height) {
      const int64_t count = std::min(height, rows - row);
      if (stride == columns) {
        widen_row(in + row * stride, count * columns, values);
      } else {
        for (int64_t i = 0; i < count; ++i)
          widen_row(in + (row + i) * stride, columns, values + i * columns);
      }
      reduce_any_rows<R, float>(values, count, columns, columns, total);
    }
    return;
  }
  const int64_t at_once = stride == columns ? std::min<int64_t>(rows, max_columns / columns) : 1;
  int64_t done = 0;
  if (at_once > 1) {
    C wide[max_columns];
    const int64_t width = at_once * columns;
    for (int64_t j = 0; j < width; ++j) wide[j] = R::template identity<C>();
    reduce_rows<R, T>(in, rows / at_once, width, width, wide);
    for (int64_t row = 0; row < at_once; ++row) {
      for (int64_t j = 0; j < columns; ++j)
        total[j] = R::template combine<C>(total[j], wide[row * columns + j]);
    }
    done = rows / at_once * at_once;
  }
  reduce_rows<R, T>(in + done * stride, rows - done, stride, columns, total);
}

// clang-format off
template <class R, class T> Accumulator<R, T> run_base(const T* in, int64_t n) { return reduce_run<R, T>(in, n); }
template <class R, class T> LEAT_TARGET_AVX2 Accumulator<R, T> run_avx2(const T* in, int64_t n) { return reduce_run<R, T>(in, n); }
template <class R, class T> LEAT_TARGET_AVX512 Accumulator<R, T> run_avx512(const T* in, int64_t n) { return reduce_run<R, T>(in, n); }

// How many runs are reduced at once.
template <class C> inline constexpr int runs_avx2 = static_cast<int>(32 / sizeof(C));
template <class C> inline constexpr int runs_avx512 = static_cast<int>(64 / sizeof(C));
template <class R, class T> LEAT_TARGET_AVX2 void reduce_runs_avx2(const T* in, int64_t stride, int64_t n, Accumulator<R, T>* out) {
  reduce_runs<runs_avx2<Accumulator<R, T>>, R>(in, stride, n, out);
}
template <class R, class T> LEAT_TARGET_AVX512 void reduce_runs_avx512(const T* in, int64_t stride, int64_t n, Accumulator<R, T>* out) {
  reduce_runs<runs_avx512<Accumulator<R, T>>, R>(in, stride, n, out);
}

template <class R, class T> void rows_base(const T* in, int64_t rows, int64_t stride, int64_t columns, Accumulator<R, T>* total) {
  reduce_any_rows<R, T>(in, rows, stride, columns, total);
}
template <class R, class T> LEAT_TARGET_AVX2 void rows_avx2(const T* in, int64_t rows, int64_t stride, int64_t columns, Accumulator<R, T>* total) {
  reduce_any_rows<R, T>(in, rows, stride, columns, total);
}
template <class R, class T> LEAT_TARGET_AVX512 void rows_avx512(const T* in, int64_t rows, int64_t stride, int64_t columns, Accumulator<R, T>* total) {
  reduce_any_rows<R, T>(in, rows, stride, columns, total);
}
// clang-format on

// Offset of the index-th combination of `rank` axes.
inline int64_t offset_of(int64_t index, int rank, const int64_t* extents, const int64_t* strides) {
  int64_t offset = 0;
  for (int axis = rank - 1; axis >= 0; --axis) {
    offset += index % extents[axis] * strides[axis];
    index /= extents[axis];
  }
  return offset;
}

template <class R, class T>
struct ReductionLoop {
  using C = Accumulator<R, T>;
  using Run = C (*)(const T*, int64_t);
  using Rows = void (*)(const T*, int64_t, int64_t, int64_t, C*);
  using Runs = void (*)(const T*, int64_t, int64_t, C*);
  ReductionPlan plan;
  Run run = nullptr;    // elements to combine are adjacent
  Runs runs = nullptr;  // several such runs, `at_once` of them; may be null
  int at_once = 0;
  Rows rows = nullptr;  // results are adjacent

  // A reduction of many elements to one, or to few adjacent ones, runs in pieces of fixed size, so
  // that its result does not depend on the number of threads.
  static constexpr int64_t piece = 65536;
  static constexpr int most_at_once = 16;
  int64_t pieces() const {
    if (plan.reduced_rank != 1) return 1;
    if (run != nullptr) return plan.outputs == 1 ? (plan.reduced + piece - 1) / piece : 1;
    const bool is_cut = plan.kept_rank == 1 && plan.outputs <= most_columns_in_pieces;
    return is_cut ? (plan.reduced + piece_rows() - 1) / piece_rows() : 1;
  }
  // Wider results have tiles enough for the threads.
  static constexpr int64_t most_columns_in_pieces = 4096;
  int64_t piece_rows() const { return std::max<int64_t>(1, piece / plan.outputs); }
  size_t workspace_bytes() const {
    const int64_t n = pieces();
    return n > 1 ? static_cast<size_t>(n * plan.outputs) * sizeof(C) : 0;
  }

  void operator()(const Arguments& arguments) const {
    const T* in = arguments.input<T>(0);
    T* out = arguments.output<T>();
    if (plan.reduced == 0) {
      std::fill_n(out, plan.outputs,
                  static_cast<T>(R::template finish<C>(R::template identity<C>(), 0)));
    } else if (run != nullptr && pieces() > 1) {
      reduce_all(arguments, in, out);
    } else if (run != nullptr) {
      arguments.stream->parallel_for(
          plan.outputs, grain(plan.reduced),
          [&](int64_t begin, int64_t end) { reduce_inner(in, out, begin, end); });
    } else if (pieces() > 1) {
      reduce_columns(arguments, in, out);
    } else {
      const int64_t columns = plan.kept_rank > 0 ? plan.kept_extents[plan.kept_rank - 1] : 1;
      const int64_t tiles = (columns + max_columns - 1) / max_columns;
      arguments.stream->parallel_for(plan.outputs / columns * tiles,
                                     grain(plan.reduced * std::min<int64_t>(columns, max_columns)),
                                     [&](int64_t begin, int64_t end) {
                                       for (int64_t at = begin; at < end; ++at)
                                         reduce_outer(in, out, columns, at / tiles,
                                                      at % tiles * max_columns);
                                     });
    }
  }

 private:
  static int64_t grain(int64_t elements) {
    return std::max<int64_t>(1, grain_cost / (2 * elements));
  }

  void reduce_all(const Arguments& arguments, const T* in, T* out) const {
    C* partial = static_cast<C*>(arguments.workspace);
    arguments.stream->parallel_for(pieces(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        partial[i] = run(in + i * piece, std::min(piece, plan.reduced - i * piece));
      }
    });
    C total = R::template identity<C>();
    for (int64_t i = 0; i < pieces(); ++i) total = R::template combine<C>(total, partial[i]);
    *out = static_cast<T>(R::template finish<C>(total, plan.reduced));
  }

  // All rows are reduced, a piece of them at a time.
  void reduce_columns(const Arguments& arguments, const T* in, T* out) const {
    C* const partial = static_cast<C*>(arguments.workspace);
    const int64_t columns = plan.outputs, height = piece_rows(), stride = plan.reduced_strides[0];
    arguments.stream->parallel_for(pieces(), 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t count = std::min(height, plan.reduced - i * height);
        StepEnd::pace(count * columns);
        C* const total = partial + i * columns;
        std::fill_n(total, columns, R::template identity<C>());
        for (int64_t j = 0; j < columns; j += max_columns) {
          rows(in + i * height * stride + j, count, stride,
               std::min<int64_t>(max_columns, columns - j), total + j);
        }
      }
    });
    for (int64_t i = 1; i < pieces(); ++i) {
      for (int64_t j = 0; j < columns; ++j)
        partial[j] = R::template combine<C>(partial[j], partial[i * columns + j]);
    }
    finish_columns(partial, columns, out);
  }

  void reduce_inner(const T* in, T* out, int64_t begin, int64_t end) const {
    const int outer_rank = plan.reduced_rank - 1;
    const int64_t length = plan.reduced_extents[outer_rank];
    const int64_t count = plan.reduced / length;
    int64_t at = begin;
    if (runs != nullptr && count == 1 && plan.kept_rank == 1 && length >= lanes &&
        length <= run_block) {
      for (; at + at_once <= end; at += at_once) {
        StepEnd::pace(at_once * length);
        C total[most_at_once];
        runs(in + at * plan.kept_strides[0], plan.kept_strides[0], length, total);
        for (int i = 0; i < at_once; ++i)
          out[at + i] = static_cast<T>(R::template finish<C>(total[i], length));
      }
    }
    for (; at < end; ++at) {
      const T* from = in + offset_of(at, plan.kept_rank, plan.kept_extents, plan.kept_strides);
      C total = R::template identity<C>();
      for (int64_t i = 0; i < count; ++i) {
        const int64_t offset = offset_of(i, outer_rank, plan.reduced_extents, plan.reduced_strides);
        StepEnd::pace(length);
        total = R::template combine<C>(total, run(from + offset, length));
      }
      out[at] = static_cast<T>(R::template finish<C>(total, plan.reduced));
    }
  }

  // Columns [first, first + max_columns) of one run of results.
  void reduce_outer(const T* in, T* out, int64_t all_columns, int64_t outer, int64_t first) const {
    const int64_t columns = std::min<int64_t>(max_columns, all_columns - first);
    const int kept_outer = std::max(0, plan.kept_rank - 1);
    const T* from = in + offset_of(outer, kept_outer, plan.kept_extents, plan.kept_strides) + first;
    C total[max_columns];
    if (plan.reduced == 1) {  // no identity here: 0 + -0 would be 0
      for (int64_t j = 0; j < columns; ++j) total[j] = R::template map<C>(widened(from[j]));
      return finish_columns(total, columns, out + outer * all_columns + first);
    }
    std::fill_n(total, columns, R::template identity<C>());
    const int outer_rank = std::max(0, plan.reduced_rank - 1);
    const int64_t length = plan.reduced_rank > 0 ? plan.reduced_extents[outer_rank] : 1;
    const int64_t stride = plan.reduced_rank > 0 ? plan.reduced_strides[outer_rank] : 0;
    constexpr int64_t rows_at_once = 1 << 14;  // a multiple of what reduce_rows() adds at a time
    for (int64_t i = 0; i < plan.reduced / length; ++i) {
      const T* run = from + offset_of(i, outer_rank, plan.reduced_extents, plan.reduced_strides);
      for (int64_t row = 0; row < length; row += rows_at_once) {
        const int64_t count = std::min(rows_at_once, length - row);
        StepEnd::pace(count * columns);
        rows(run + row * stride, count, stride, columns, total);
      }
    }
    finish_columns(total, columns, out + outer * all_columns + first);
  }

  void finish_columns(const C* total, int64_t columns, T* to) const {
    for (int64_t j = 0; j < columns; ++j)
      to[j] = static_cast<T>(R::template finish<C>(total[j], plan.reduced));
  }
};

}  // namespace cpu

template <class R, class T>
BoundKernel bind_reduction(const ReductionPlan& plan) {
  using Loop = cpu::ReductionLoop<R, T>;
  if (plan.outputs == 0) return {};
  Loop loop{plan};
  if (plan.reduces_inner()) {
    if constexpr (cpu::is_common<T>) {
      loop.run = choose_isa<typename Loop::Run>(cpu::run_base<R, T>, cpu::run_avx2<R, T>,
                                                cpu::run_avx512<R, T>);
      using C = typename Loop::C;
      if constexpr (std::is_arithmetic_v<C> && sizeof(C) >= 4) {
        loop.runs = choose_isa<typename Loop::Runs>(nullptr, cpu::reduce_runs_avx2<R, T>,
                                                    cpu::reduce_runs_avx512<R, T>);
        loop.at_once = choose_isa<int>(0, cpu::runs_avx2<C>, cpu::runs_avx512<C>);
      }
    } else {
      loop.run = cpu::run_base<R, T>;
    }
  } else {
    if constexpr (cpu::is_common<T>) {
      loop.rows = choose_isa<typename Loop::Rows>(cpu::rows_base<R, T>, cpu::rows_avx2<R, T>,
                                                  cpu::rows_avx512<R, T>);
    } else {
      loop.rows = cpu::rows_base<R, T>;
    }
  }
  BoundKernel kernel = BoundKernel::of(loop);
  kernel.workspace_bytes = loop.workspace_bytes();
  kernel.cost_ns = 0.2 * static_cast<double>(plan.outputs * plan.reduced);
  return kernel;
}

}  // namespace leat
