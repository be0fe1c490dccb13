// Blocks of halves as floats, converted by the instructions of one version of a loop. A loop over
// the floats of one block becomes a few vector instructions, and the compiler then sees that the
// floats need not pass through memory, unlike those of half_rows.h.
#pragma once

#include <cstdint>

#include "core/half.h"
#include "kernels/cpu_isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace leat {

template <Isa isa>
struct HalfBlock {
  static constexpr bool exists = false;
};

#if defined(__x86_64__)
// GCC 12 unrolls loops of 16 iterations or less before it makes vectors, and then makes none.
// The processor keeps a NaN's lower bits, where half() clears them.
template <>
struct HalfBlock<Isa::avx2> {
  static constexpr bool exists = true;
  static constexpr int64_t size = 32;

  LEAT_TARGET_AVX2 static inline void widen(const half* from, int64_t /*size*/, float* to) {
    for (int64_t i = 0; i < size; i += 8) {
      const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm256_store_ps(to + i, _mm256_cvtph_ps(bits));
    }
  }
  LEAT_TARGET_AVX2 static inline void narrow(const float* from, int64_t /*size*/, half* to) {
    const __m256 sign = _mm256_set1_ps(-0.0F), nan = _mm256_set1_ps(__builtin_nanf(""));
    for (int64_t i = 0; i < size; i += 8) {
      const __m256 values = _mm256_load_ps(from + i);
      const __m256 shortened = _mm256_or_ps(_mm256_and_ps(values, sign), nan);
      const __m256 is_nan = _mm256_cmp_ps(values, values, _CMP_UNORD_Q);
      const __m128i bits = _mm256_cvtps_ph(_mm256_blendv_ps(values, shortened, is_nan),
                                           _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), bits);
    }
  }
};

template <>
struct HalfBlock<Isa::avx512> {
  static constexpr bool exists = true;
  static constexpr int64_t size = 32;
  // g++ warns of the forms without a mask: they read a variable before its first value (its bug
  // 105593).
  static constexpr uint16_t all = 0xffff;

  LEAT_TARGET_AVX512 static inline void widen(const half* from, int64_t /*size*/, float* to) {
    for (int64_t i = 0; i < size; i += 16) {
      const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
      _mm512_store_ps(to + i, _mm512_maskz_cvtph_ps(all, bits));
    }
  }
  LEAT_TARGET_AVX512 static inline void narrow(const float* from, int64_t /*size*/, half* to) {
    constexpr int sign_or_nan = 0xea;  // values & sign | nan
    const __m512i sign = _mm512_set1_epi32(static_cast<int>(0x80000000U)),
                  nan = _mm512_set1_epi32(0x7fc00000);
    for (int64_t i = 0; i < size; i += 16) {
      const __m512 values = _mm512_load_ps(from + i);
      const __mmask16 is_nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
      const __m512i shortened = _mm512_mask_ternarylogic_epi32(_mm512_castps_si512(values), is_nan,
                                                               sign, nan, sign_or_nan);
      const __m256i bits = _mm512_maskz_cvtps_ph(all, _mm512_castsi512_ps(shortened),
                                                 _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), bits);
    }
  }
};
#endif

}  // namespace leat
