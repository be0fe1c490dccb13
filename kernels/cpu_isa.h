// The vector instructions that this CPU has. Loops are compiled for each and chosen once, when a
// kernel is prepared.
#pragma once

namespace leat {

enum class Isa { base, avx2, avx512 };
Isa cpu_isa();

// The versions of one function, in the order of Isa.
template <class Function>
Function choose_isa(Function base, Function avx2, Function avx512) {
  const Isa isa = cpu_isa();
  return isa == Isa::avx512 ? avx512 : isa == Isa::avx2 ? avx2 : base;
}

}  // namespace leat

// How a version of a loop is compiled. `flatten` inlines the loop's body, which is generic code,
// into the version.
#if defined(__x86_64__)
#define LEAT_TARGET_AVX2 __attribute__((target("avx2,fma,f16c,bmi2"), flatten))
#if defined(__clang__)  // lacks the attribute; uses vectors half as wide
#define LEAT_PREFER_512
#else
#define LEAT_PREFER_512 ",prefer-vector-width=512"
#endif
#define LEAT_TARGET_AVX512                                                                        \
  __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,avx2,fma,f16c,bmi2" LEAT_PREFER_512), \
                 flatten))
#else
#define LEAT_TARGET_AVX2
#define LEAT_TARGET_AVX512
#endif

// The iterations of the next loop are independent, although its pointers may be equal (an output
// that shares the memory of its input). __restrict would promise too much.
#if defined(__clang__)
#define LEAT_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define LEAT_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif
