// The CPU's side of elementwise.h: runs a functor over tensors in loops that the compiler
// vectorises.
#pragma once

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "core/error.h"
#include "core/kernel.h"
#include "kernels/broadcast.h"
#include "kernels/cpu_isa.h"
#include "kernels/half_blocks.h"
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

// Rows of halves in tiles that fit the first-level cache; HalfBlock is the same for full blocks.
struct HalfTile {
  static constexpr int64_t size = 512;
  static void widen(const half* from, int64_t n, float* to) { widen_row(from, n, to); }
  static void narrow(const float* from, int64_t n, half* to) { narrow_row(from, n, to); }
};

// `count` elements of an operand, from number `at` on. Halves are widened at once.
template <class Operand, class Halves>
struct Tile {
  Operand operand;
  int64_t at;
  LEAT_DEVICE Tile(Operand all, int64_t first, int64_t /*count*/) : operand(all), at(first) {}
  LEAT_DEVICE decltype(auto) operator[](int64_t i) const { return operand[at + i]; }
};
template <class Halves>
struct Tile<Elements<half, false>, Halves> {
  alignas(64) float values[Halves::size];
  LEAT_DEVICE Tile(Elements<half, false> all, int64_t first, int64_t count) {
    Halves::widen(all.from + first, count, values);
  }
  LEAT_DEVICE float operator[](int64_t i) const { return values[i]; }
};

// A functor with `static constexpr bool is_exact = true` returns what a 16-bit float holds if its
// operands are such: there is nothing to round.
template <class F, class Out, class Value>
LEAT_DEVICE Out stored(const Value& value) {
  if constexpr (std::is_same_v<Out, bfloat16> && std::is_same_v<Value, float> &&
                requires { F::is_exact; }) {
    return bfloat16::from_bits(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
  } else {
    return static_cast<Out>(value);
  }
}

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
      out[i] = stored<F, Out>(f(in[i]...));
    }
    if (is_invalid != 0) report_invalid(F::invalid);
  } else {
    LEAT_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < n; ++i) out[i] = stored<F, Out>(f(in[i]...));
  }
}

template <class Halves, class F, class Out, class... Operand>
LEAT_DEVICE void run_tile(Passed<F> f, int64_t at, int64_t count, Out* out, Operand... in) {
  if constexpr (std::is_same_v<Out, half>) {
    alignas(64) float results[Halves::size];
    run_row<F>(f, count, results, Tile<Operand, Halves>(in, at, count)...);
    Halves::narrow(results, count, out + at);
  } else {
    run_row<F>(f, count, out + at, Tile<Operand, Halves>(in, at, count)...);
  }
}

// Halves pass through floats: the compiler does not know the processor's conversions.
template <Isa isa, class F, class Out, class... Operand>
LEAT_DEVICE void run_operands(Passed<F> f, int64_t n, Out* out, Operand... in) {
  if constexpr (std::is_same_v<Out, half> ||
                (std::is_same_v<Operand, Elements<half, false>> || ...)) {
    int64_t at = 0;
    if constexpr (HalfBlock<isa>::exists) {
      constexpr int64_t size = HalfBlock<isa>::size;
      for (; at + size <= n; at += size) run_tile<HalfBlock<isa>, F>(f, at, size, out, in...);
    }
    for (; at < n; at += HalfTile::size) {
      run_tile<HalfTile, F>(f, at, std::min(HalfTile::size, n - at), out, in...);
    }
  } else {
    run_row<F>(f, n, out, in...);
  }
}

// A functor of x and y may have other forms where y repeats: F::for_repeated(y, loop) calls loop
// with a functor of x and returns true, or returns false.
template <Isa isa, class F, class Out, class X, class Y>
LEAT_DEVICE bool run_for_repeated(int64_t n, Out* out, X x, Y y) {
  if constexpr (requires { F::for_repeated(y[0], [](auto) {}); }) {
    return F::for_repeated(
        y[0], [&]<class Of>(Of f)
                  __attribute__((always_inline)) { run_operands<isa, Of>(f, n, out, x); });
  } else {
    return false;
  }
}

// Bit i of `repeated`: operand i is one element.
template <unsigned repeated, class F, class Out, class... In>
struct Row {
  template <Isa isa, size_t... I>
  LEAT_DEVICE static void run(std::index_sequence<I...>, const void* f, int64_t n, void* out,
                              const void* const* in) {
    Out* const to = static_cast<Out*>(out);
    if constexpr (sizeof...(In) == 2 && repeated == 2) {
      if (run_for_repeated<isa, F>(n, to, Elements<In, I == 1>(in[I])...)) return;
    }
    run_operands<isa, F>(*static_cast<const F*>(f), n, to,
                         Elements<In, (repeated >> I & 1) != 0>(in[I])...);
  }
  static void base(const void* f, int64_t n, void* out, const void* const* in) {
    run<Isa::base>(std::index_sequence_for<In...>{}, f, n, out, in);
  }
  LEAT_TARGET_AVX2 static void avx2(const void* f, int64_t n, void* out, const void* const* in) {
    run<Isa::avx2>(std::index_sequence_for<In...>{}, f, n, out, in);
  }
  LEAT_TARGET_AVX512 static void avx512(const void* f, int64_t n, void* out,
                                        const void* const* in) {
    run<Isa::avx512>(std::index_sequence_for<In...>{}, f, n, out, in);
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

// f(f(x, y), z)
template <class F>
struct Twice {
  template <class T>
  LEAT_DEVICE T operator()(T x, T y, T z) const {
    return F{}(F{}(x, y), z);
  }
};

// out = f(… f(f(in0, in1), in2) …) for `count` inputs of one shape. The output may share the memory
// of input 0 or 1. Two terms at a time join the running result, but for 16-bit floats, which are
// rounded after each.
template <class F, class T>
BoundKernel bind_fold(int count, int64_t elements) {
  if (elements == 0) return {};
  const cpu::RowLoop add_one = cpu::Row<0, F, T, T, T>::choose();
  cpu::RowLoop add_two = nullptr;
  if constexpr (std::is_same_v<T, ComputeType<T>>) {
    add_two = cpu::Row<0, Twice<F>, T, T, T, T>::choose();
  }
  BoundKernel kernel =
      BoundKernel::of([count, elements, add_one, add_two](const Arguments& arguments) {
        // Three operands and the running result stay in the first-level cache.
        constexpr int64_t tile = (8 << 10) / sizeof(T);
        const F f;
        T* out = arguments.output<T>();
        arguments.stream->parallel_for(
            elements, cpu::grain_cost / cpu::cost_of<F>() / count, [&](int64_t begin, int64_t end) {
              for (int64_t at = begin; at < end; at += tile) {
                const int64_t n = std::min(tile, end - at);
                const auto term = [&](int i) { return arguments.input<T>(i) + at; };
                const void* total = term(0);
                for (int i = 1; i < count; total = out + at) {
                  const bool takes_two = add_two != nullptr && i + 1 < count;
                  const void* terms[] = {total, term(i), takes_two ? term(i + 1) : nullptr};
                  (takes_two ? add_two : add_one)(&f, n, out + at, terms);
                  i += takes_two ? 2 : 1;
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
