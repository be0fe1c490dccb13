// What device code is written with, as host code: qualifiers, the indices of a thread, barriers,
// warp operations and atomics.
#pragma once

#include <stdint.h>
#include <string.h>

#include <bit>
#include <type_traits>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// A stream's thread runs one block at a time, all of its threads on fibers of this thread.
#define __shared__ static thread_local

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

extern __thread uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace cuda_on_host {

// Where a barrier or a warp operation stands in the source.
struct Site {
  const char* file;
  int line;
};

enum class Vote { none, any, all, count };
enum class Shuffle { index, up, down, exclusive_or, ballot };

int barrier(Vote vote, bool predicate, Site site);
// Waits for the lanes of `mask`; returns the value of the lane that this one asks for, or its own
// if there is none. ballot: a bit for each lane whose value is not 0.
uint64_t warp_operation(Shuffle shuffle, unsigned mask, uint64_t value, int operand, int width,
                        Site site);
unsigned active_lanes();

template <class T>
T shuffled(Shuffle shuffle, unsigned mask, T value, int operand, int width, Site site) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = warp_operation(shuffle, mask, bits, operand, width, site);
  memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace cuda_on_host

inline constexpr int warpSize = 32;

#define CUDA_ON_HOST_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(CUDA_ON_HOST_SITE) {
  cuda_on_host::barrier(cuda_on_host::Vote::none, false, {file, line});
}
inline int __syncthreads_or(int predicate, CUDA_ON_HOST_SITE) {
  return cuda_on_host::barrier(cuda_on_host::Vote::any, predicate != 0, {file, line});
}
inline int __syncthreads_and(int predicate, CUDA_ON_HOST_SITE) {
  return cuda_on_host::barrier(cuda_on_host::Vote::all, predicate != 0, {file, line});
}
inline int __syncthreads_count(int predicate, CUDA_ON_HOST_SITE) {
  return cuda_on_host::barrier(cuda_on_host::Vote::count, predicate != 0, {file, line});
}

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32, CUDA_ON_HOST_SITE) {
  return cuda_on_host::shuffled(cuda_on_host::Shuffle::index, mask, value, lane, width,
                                {file, line});
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_ON_HOST_SITE) {
  return cuda_on_host::shuffled(cuda_on_host::Shuffle::up, mask, value, static_cast<int>(delta),
                                width, {file, line});
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_ON_HOST_SITE) {
  return cuda_on_host::shuffled(cuda_on_host::Shuffle::down, mask, value, static_cast<int>(delta),
                                width, {file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32, CUDA_ON_HOST_SITE) {
  return cuda_on_host::shuffled(cuda_on_host::Shuffle::exclusive_or, mask, value, lanes, width,
                                {file, line});
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_ON_HOST_SITE) {
  return static_cast<unsigned>(cuda_on_host::warp_operation(
      cuda_on_host::Shuffle::ballot, mask, predicate != 0 ? 1 : 0, 0, 32, {file, line}));
}
inline int __any_sync(unsigned mask, int predicate, CUDA_ON_HOST_SITE) {
  return __ballot_sync(mask, predicate, file, line) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_ON_HOST_SITE) {
  return __ballot_sync(mask, predicate, file, line) == mask ? 1 : 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_ON_HOST_SITE) {
  (void)__ballot_sync(mask, 0, file, line);
}
inline unsigned __activemask() { return cuda_on_host::active_lanes(); }

// ---- Arithmetic that C++ names otherwise

template <class T>
T __ldg(const T* from) {
  return *from;
}
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __popcll(unsigned long long bits) { return std::popcount(bits); }
inline int __clz(int bits) { return std::countl_zero(static_cast<unsigned>(bits)); }
inline int __ffs(int bits) { return __builtin_ffs(bits); }
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>((static_cast<uint64_t>(a) * b) >> 32);
}

// ---- Atomics: other streams run on other threads

namespace cuda_on_host {

template <class T, class Change>
T atomic_change(T* at, Change change) {
  T old, wanted;
  __atomic_load(at, &old, __ATOMIC_RELAXED);
  do {
    wanted = change(old);
  } while (
      !__atomic_compare_exchange(at, &old, &wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
  return old;
}

}  // namespace cuda_on_host

template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(at, [=](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicSub(T* at, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(at, [=](T old) { return static_cast<T>(old - value); });
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(at, [=](T old) { return value < old ? value : old; });
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(at, [=](T old) { return old < value ? value : old; });
}
template <class T>
T atomicAnd(T* at, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(at, [=](T old) { return static_cast<T>(old & value); });
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(at, [=](T old) { return static_cast<T>(old | value); });
}
template <class T>
T atomicXor(T* at, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(at, [=](T old) { return static_cast<T>(old ^ value); });
}
template <class T>
T atomicExch(T* at, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(at, [=](T) { return value; });
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return cuda_on_host::atomic_change(at, [=](T old) { return old == expected ? value : old; });
}
inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
