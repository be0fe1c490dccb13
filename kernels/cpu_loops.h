// The CPU's side of elementwise.h: runs a functor over tensors in loops that the compiler
// vectorises.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/kernel.h"
#include "kernels/broadcast.h"
#include "kernels/cpu_isa.h"
#include "kernels/half_rows.h"
#include "kernels/types.h"

#define LEAT_DEVICE __attribute__((always_inline)) inline

namespace leat {

inline constexpr DeviceType kernel_device = DeviceType::cpu;
inline constexpr bool has_host_types = true;  // strings, variants and std::complex

// For functors with invalid operands (an integer division by zero): INVALID_ARGUMENT. A GPU cannot
// report it and continues, so the functor must return a value after the call.
inline void report_invalid(const char* message) { fail(Code::invalid_argument, message); }

namespace cpu {

// Small values are passed by value: a choice between two references would be a branch with a load
// behind it, where one between two values is an instruction.
template <class T>
using Passed = std::conditional_t<std::is_trivially_copyable_v<T>, T, const T&>;

template <class T>
LEAT_DEVICE Passed<T> widened(const T& value) {
  return value;
}
LEAT_DEVICE float widened(const half& value) { return value; }
LEAT_DEVICE float widened(const bfloat16& value) { return value; }

// An operand within one row: it advances with the output, or repeats one element.
template <class T, bool repeats>
struct Elements {
  const T* from;
  LEAT_DEVICE explicit Elements(const void* in) : from(static_cast<const T*>(in)) {}
  LEAT_DEVICE Passed<ComputeType<T>> operator[](int64_t i) const { return widened(from[i]); }
};
// GCC 12 chooses by the result of a comparison with vector instructions, but not by a bool that it
// loads.
template <>
struct Elements<bool, false> {
  const uint8_t* from;
  LEAT_DEVICE explicit Elements(const void* in) : from(static_cast<const uint8_t*>(in)) {}
  LEAT_DEVICE bool operator[](int64_t i) const { return from[i] != 0; }
};
template <class T>
struct Elements<T, true> {
  ComputeType<T> value;
  LEAT_DEVICE explicit Elements(const void* in) : value(widened(*static_cast<const T*>(in))) {}
  LEAT_DEVICE Passed<ComputeType<T>> operator[](int64_t) const { return value; }
};

// One row of n elements. The types are erased, so that the code around a row exists once
// (cpu_loops.cc).
using RowLoop = void (*)(const void* functor, int64_t n, void* out, const void* const* in);

// Loops over other types are rare: one version is enough.
template <class T>
inline constexpr bool is_common =
    std::is_floating_point_v<ComputeType<T>> || std::is_same_v<T, int32_t> ||
    std::is_same_v<T, int64_t> || std::is_same_v<T, uint8_t> || std::is_same_v<T, bool>;

// A functor with `static constexpr bool has_versions = false` has one version for all types.
template <class F>
constexpr bool has_versions() {
  if constexpr (requires { F::has_versions; }) {
    return F::has_versions;
  } else {
    return true;
  }
}

inline constexpr int64_t tile_size = 512;

// `count` elements of an operand, from number `at` on. Halves are widened at once.
template <class Operand>
struct Tile {
  Operand operand;
  int64_t at;
  LEAT_DEVICE Tile(Operand all, int64_t first, int64_t /*count*/) : operand(all), at(first) {}
  LEAT_DEVICE decltype(auto) operator[](int64_t i) const { return operand[at + i]; }
};
template <>
struct Tile<Elements<half, false>> {
  float values[tile_size];
  LEAT_DEVICE Tile(Elements<half, false> all, int64_t first, int64_t count) {
    widen_row(all.from + first, count, values);
  }
  LEAT_DEVICE float operator[](int64_t i) const { return values[i]; }
};

// The functor is copied: for all the compiler knows, a store to `out` might change its original.
template <class F, class Out, class... Operand>
LEAT_DEVICE void run_row(Passed<F> f, int64_t n, Out* out, const Operand&... in) {
  if constexpr (requires {
                  F::is_invalid(in[0]...);
                }) {  // one report per row: no branch in the loop
    unsigned is_invalid = 0;
    LEAT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i) {
      is_invalid |= static_cast<unsigned>(F::is_invalid(in[i]...));
      out[i] = static_cast<Out>(f(in[i]...));
    }
    if (is_invalid != 0) report_invalid(F::invalid);
  } else {
    LEAT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Out>(f(in[i]...));
  }
}

// Halves pass through floats, a tile at a time: the compiler does not know the processor's
// conversions.
template <class F, class Out, class... Operand>
LEAT_DEVICE void run_operands(Passed<F> f, int64_t n, Out* out, Operand... in) {
  constexpr bool makes_halves = std::is_same_v<Out, half>;
  if constexpr (makes_halves || (std::is_same_v<Operand, Elements<half, false>> || ...)) {
    for (int64_t at = 0; at < n; at += tile_size) {
      const int64_t count = std::min(tile_size, n - at);
      if constexpr (makes_halves) {
        float results[tile_size];
        run_row<F>(f, count, results, Tile<Operand>(in, at, count)...);
        narrow_row(results, count, out + at);
      } else {
        run_row<F>(f, count, out + at, Tile<Operand>(in, at, count)...);
      }
    }
  } else {
    run_row<F>(f, n, out, in...);
  }
}

// A functor of x and y may have other forms where y repeats: F::for_repeated(y, loop) calls loop
// with a functor of x and returns true, or returns false.
template <class F, class Out, class X, class Y>
LEAT_DEVICE bool run_for_repeated(int64_t n, Out* out, X x, Y y) {
  if constexpr (requires { F::for_repeated(y[0], [](auto) {}); }) {
    return F::for_repeated(
        y[0], [&]<class Of>(Of f)
                  __attribute__((always_inline)) { run_operands<Of>(f, n, out, x); });
  } else {
    return false;
  }
}

// Bit i of `repeated`: operand i is one element.
template <unsigned repeated, class F, class Out, class... In>
struct Row {
  template <size_t... I>
  LEAT_DEVICE static void run(std::index_sequence<I...>, const void* f, int64_t n, void* out,
                              const void* const* in) {
    Out* const to = static_cast<Out*>(out);
    if constexpr (sizeof...(In) == 2 && repeated == 2) {
      if (run_for_repeated<F>(n, to, Elements<In, I == 1>(in[I])...)) return;
    }
    run_operands<F>(*static_cast<const F*>(f), n, to,
                    Elements<In, (repeated >> I & 1) != 0>(in[I])...);
  }
  static void base(const void* f, int64_t n, void* out, const void* const* in) {
    run(std::index_sequence_for<In...>{}, f, n, out, in);
  }
  LEAT_TARGET_AVX2 static void avx2(const void* f, int64_t n, void* out, const void* const* in) {
    run(std::index_sequence_for<In...>{}, f, n, out, in);
  }
  LEAT_TARGET_AVX512 static void avx512(const void* f, int64_t n, void* out,
                                        const void* const* in) {
    run(std::index_sequence_for<In...>{}, f, n, out, in);
  }

  static RowLoop choose() {
    constexpr bool are_numbers = (std::is_arithmetic_v<ComputeType<In>> && ...);
    if constexpr ((is_common<In> || ...) && are_numbers && has_versions<F>()) {
      return choose_isa<RowLoop>(base, avx2, avx512);
    } else {
      return base;
    }
  }
};

template <class F, class Out, class... In, size_t... repeated>
RowLoop choose_row(unsigned pattern, std::index_sequence<repeated...>) {
  RowLoop row = nullptr;
  ((pattern == repeated ? void(row = Row<repeated, F, Out, In...>::choose()) : void()), ...);
  return row;
}

// Approximate time per element, in tenths of a nanosecond. Functors of more than one instruction
// define `cost`.
template <class F>
constexpr int64_t cost_of() {
  if constexpr (requires { F::cost; }) {
    return F::cost;
  } else {
    return 2;
  }
}

// A second thread must save tens of microseconds.
inline constexpr int64_t grain_cost = 200'000;  // tenths of a nanosecond

// Runs a RowLoop over all rows of a broadcast plan.
struct ElementwiseLoop {
  BroadcastPlan plan;
  int num_inputs;
  size_t out_size;  // bytes of an element
  size_t in_sizes[BroadcastPlan::max_inputs];
  int64_t grain;  // elements
  RowLoop row;
  std::shared_ptr<const void> functor;

  void operator()(const Arguments& arguments) const;
};

// One row, on the calling thread: for a small tensor, everything outside its loop is overhead.
struct SingleRow {
  RowLoop row;
  const void* functor;
  int64_t elements;
  std::shared_ptr<const void> owner;  // owns the functor

  void operator()(const Arguments& arguments) const {
    row(functor, elements, arguments.outputs[0], arguments.inputs);
  }
};

template <class F>
std::shared_ptr<const void> shared_functor(F f) {
  if constexpr (std::is_empty_v<F> && std::is_default_constructible_v<F>) {
    static const F only{};
    return {std::shared_ptr<const void>(), &only};
  } else {
    return std::make_shared<const F>(std::move(f));
  }
}

}  // namespace cpu

// out = f(in…), elementwise with broadcasting.
template <class F, class Out, class... In>
BoundKernel bind_elementwise(F f, const BroadcastPlan& plan) {
  if (plan.elements == 0) return {};
  unsigned pattern = 0;
  for (unsigned i = 0; i < sizeof...(In); ++i) {
    if (plan.inner() > 1 && plan.repeats_inner(static_cast<int>(i))) pattern |= 1u << i;
  }
  // At least one operand has the output's extent, except in BroadcastTo.
  constexpr size_t patterns =
      (size_t{1} << sizeof...(In)) - (requires { F::repeats_its_only_operand; } ? 0 : 1);
  constexpr int64_t cost = cpu::cost_of<F>();
  constexpr int64_t grain = cpu::grain_cost / cost;
  const cpu::RowLoop row =
      cpu::choose_row<F, Out, In...>(pattern, std::make_index_sequence<patterns>{});
  std::shared_ptr<const void> functor = cpu::shared_functor(std::move(f));
  BoundKernel kernel;
  if (plan.rank == 1 && plan.elements <= grain) {
    const void* self = functor.get();
    kernel = BoundKernel::of(cpu::SingleRow{row, self, plan.elements, std::move(functor)});
  } else {
    kernel = BoundKernel::of(cpu::ElementwiseLoop{.plan = plan,
                                                  .num_inputs = sizeof...(In),
                                                  .out_size = sizeof(Out),
                                                  .in_sizes = {sizeof(In)...},
                                                  .grain = grain,
                                                  .row = row,
                                                  .functor = std::move(functor)});
  }
  kernel.cost_ns = static_cast<double>(plan.elements * cost) / 10;
  return kernel;
}

// out = f(… f(f(in0, in1), in2) …) for `count` inputs of one shape. The output may share the memory
// of input 0.
template <class F, class T>
BoundKernel bind_fold(int count, int64_t elements) {
  if (elements == 0) return {};
  const cpu::RowLoop row = cpu::Row<0, F, T, T, T>::choose();
  BoundKernel kernel = BoundKernel::of([count, elements, row](const Arguments& arguments) {
    // Two operands and the running result stay in the first-level cache.
    constexpr int64_t tile = (8 << 10) / sizeof(T);
    const F f;
    T* out = arguments.output<T>();
    arguments.stream->parallel_for(elements, cpu::grain_cost / cpu::cost_of<F>() / count,
                                   [&](int64_t begin, int64_t end) {
                                     for (int64_t at = begin; at < end; at += tile) {
                                       const int64_t n = std::min(tile, end - at);
                                       const void* total = arguments.input<T>(0) + at;
                                       for (int i = 1; i < count; ++i) {
                                         const void* terms[] = {total, arguments.input<T>(i) + at};
                                         row(&f, n, out + at, terms);
                                         total = out + at;
                                       }
                                     }
                                   });
  });
  kernel.cost_ns = static_cast<double>(elements * count * cpu::cost_of<F>()) / 10;
  return kernel;
}

// The memory that an indexed loop reads and writes.
struct Pointers {
  void* const* inputs;
  void* const* outputs;

  template <class T>
  LEAT_DEVICE const T* input(int i) const {
    return static_cast<const T*>(inputs[i]);
  }
  template <class T>
  LEAT_DEVICE T* output(int i = 0) const {
    return static_cast<T*>(outputs[i]);
  }
};

// f(i, pointers) for i in [0, n), in any order and on several threads. `cost`: of one call, in
// tenths of a nanosecond.
template <class F>
BoundKernel bind_indexed(const KernelRequest& /*request*/, int64_t n, int64_t cost, F f) {
  if (n == 0) return {};
  BoundKernel kernel = BoundKernel::of([n, cost, f](const Arguments& arguments) {
    const Pointers pointers{arguments.inputs, arguments.outputs};
    arguments.stream->parallel_for(n, std::max<int64_t>(1, cpu::grain_cost / cost),
                                   [&](int64_t begin, int64_t end) {
                                     for (int64_t i = begin; i < end; ++i) f(i, pointers);
                                   });
  });
  kernel.cost_ns = static_cast<double>(n * cost) / 10;
  return kernel;
}

}  // namespace leat
