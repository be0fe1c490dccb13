#include "kernels/half_rows.h"

#include "kernels/cpu_isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace leat {
namespace {

using Widen = void (*)(const half*, int64_t, float*);
using Narrow = void (*)(const float*, int64_t, half*);

void widen_base(const half* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}
void narrow_base(const float* from, int64_t n, half* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = from[i];
}

#if defined(__x86_64__)
// The processor keeps a NaN's lower bits. half() does not, so the base version takes the few rows
// that have one.
LEAT_TARGET_AVX2 void widen_avx2(const half* from, int64_t n, float* to) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(bits));
  }
  widen_base(from + i, n - i, to + i);
}
LEAT_TARGET_AVX2 void narrow_avx2(const float* from, int64_t n, half* to) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256 values = _mm256_loadu_ps(from + i);
    if (_mm256_movemask_ps(_mm256_cmp_ps(values, values, _CMP_UNORD_Q)) != 0) {
      narrow_base(from + i, 8, to + i);
      continue;
    }
    const __m128i bits = _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), bits);
  }
  narrow_base(from + i, n - i, to + i);
}
LEAT_TARGET_AVX512 void widen_avx512(const half* from, int64_t n, float* to) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_ps(to + i, _mm512_cvtph_ps(bits));
  }
  widen_base(from + i, n - i, to + i);
}
LEAT_TARGET_AVX512 void narrow_avx512(const float* from, int64_t n, half* to) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __m512 values = _mm512_loadu_ps(from + i);
    if (_mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q) != 0) {
      narrow_base(from + i, 16, to + i);
      continue;
    }
    const __m256i bits = _mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), bits);
  }
  narrow_base(from + i, n - i, to + i);
}
#else
constexpr Widen widen_avx2 = widen_base, widen_avx512 = widen_base;
constexpr Narrow narrow_avx2 = narrow_base, narrow_avx512 = narrow_base;
#endif

}  // namespace

void widen_row(const half* from, int64_t n, float* to) {
  static const auto row = choose_isa<Widen>(widen_base, widen_avx2, widen_avx512);
  row(from, n, to);
}

void narrow_row(const float* from, int64_t n, half* to) {
  static const auto row = choose_isa<Narrow>(narrow_base, narrow_avx2, narrow_avx512);
  row(from, n, to);
}

}  // namespace leat
