// The function and its vectors, with the names that g++ calls them by: `b` is SSE2, `c` and `d` are
// AVX and AVX2, `e` is AVX-512 (the ABI for vector functions of x86-64). This file does not include
// reciprocal_root.h: g++ would make the vector functions itself where it sees that declaration.
#include <cmath>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

extern "C" {

float leat_reciprocal_root(float x) noexcept { return 1.0F / std::sqrt(x); }

__m128 _ZGVbN4v_leat_reciprocal_root(__m128 x) {
  return _mm_div_ps(_mm_set1_ps(1), _mm_sqrt_ps(x));
}

__attribute__((target("avx"))) __m256 _ZGVcN8v_leat_reciprocal_root(__m256 x) {
  return _mm256_div_ps(_mm256_set1_ps(1), _mm256_sqrt_ps(x));
}

__attribute__((target("avx2"))) __m256 _ZGVdN8v_leat_reciprocal_root(__m256 x) {
  return _mm256_div_ps(_mm256_set1_ps(1), _mm256_sqrt_ps(x));
}

// The processor's estimate y is good to 14 bits, of denormals, too. One step of Newton's doubles
// them: y + y (1 - x y²) / 2. The estimates of zeros and infinity are exact, and the step would
// make them NaN.
__attribute__((target("avx512f,avx512dq"))) __m512 _ZGVeN16v_leat_reciprocal_root(__m512 x) {
  constexpr int zeros_and_infinity = 0x02 | 0x04 | 0x08;
  const __m512 half = _mm512_set1_ps(0.5F), y = _mm512_maskz_rsqrt14_ps(0xffff, x);
  const __mmask16 is_exact = _mm512_fpclass_ps_mask(x, zeros_and_infinity);
  const __m512 step = _mm512_fnmadd_ps(_mm512_mul_ps(x, y), _mm512_mul_ps(y, half), half);
  return _mm512_mask_fmadd_ps(y, _knot_mask16(is_exact), step, y);
}

}  // extern "C"
#endif
