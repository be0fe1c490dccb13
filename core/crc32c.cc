// Three implementations: by tables, eight bytes at a time; on x86-64 by the CPU's CRC instruction,
// on three parts of the data at once (it takes a new word every cycle, but needs three for a
// result); or by carry-less products, 64 bytes at a time, where the CPU has them.
#include "core/crc32c.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace leat {
namespace {

constexpr uint32_t polynomial = 0x82f63b78;  // reflected: the top bit is the power 0

constexpr uint32_t times_x(uint32_t crc) { return (crc >> 1) ^ ((crc & 1) != 0 ? polynomial : 0); }

// tables[k][b]: what the byte b does to the CRC when k more bytes follow it.
constexpr auto tables = [] {
  std::array<std::array<uint32_t, 256>, 8> out{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = times_x(crc);
    out[0][i] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t i = 0; i < 256; ++i) {
      out[k][i] = (out[k - 1][i] >> 8) ^ out[0][out[k - 1][i] & 0xff];
    }
  }
  return out;
}();

uint64_t word_at(const unsigned char* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

uint32_t by_tables(const unsigned char* data, size_t bytes, uint32_t crc) {
  static_assert(std::endian::native == std::endian::little);
  for (; bytes >= 8; data += 8, bytes -= 8) {
    const uint64_t word = word_at(data) ^ crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= tables[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (; bytes > 0; ++data, --bytes) crc = (crc >> 8) ^ tables[0][(crc ^ *data) & 0xff];
  return crc;
}

#if defined(__x86_64__)

constexpr uint32_t power_of_x(size_t n) {
  uint32_t out = uint32_t{1} << 31;
  for (; n > 0; --n) out = times_x(out);
  return out;
}

// The CRC after `count` zero bytes. The product of two reflected polynomials comes out one bit, and
// the instruction's own answer 32 bits, further on: the factor is smaller by that.
template <size_t count>
__attribute__((target("sse4.2,pclmul"))) uint64_t after_zeros(uint64_t crc) {
  constexpr uint32_t factor = power_of_x(8 * count - 33);
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(crc)),
                                               _mm_cvtsi32_si128(static_cast<int>(factor)), 0);
  return _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(product)));
}

// Takes whole groups of three parts of `part` bytes from the front.
template <size_t part>
__attribute__((target("sse4.2,pclmul"))) uint64_t in_three(const unsigned char*& data,
                                                           size_t& bytes, uint64_t crc) {
  for (; bytes >= 3 * part; data += 3 * part, bytes -= 3 * part) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < part; i += 8) {
      crc = _mm_crc32_u64(crc, word_at(data + i));
      second = _mm_crc32_u64(second, word_at(data + part + i));
      third = _mm_crc32_u64(third, word_at(data + 2 * part + i));
    }
    crc = after_zeros<2 * part>(crc) ^ after_zeros<part>(second) ^ third;
  }
  return crc;
}

__attribute__((target("sse4.2,pclmul"))) uint32_t by_instruction(const unsigned char* data,
                                                                 size_t bytes, uint32_t crc) {
  uint64_t wide = in_three<2048>(data, bytes, crc);
  wide = in_three<128>(data, bytes, wide);
  for (; bytes >= 8; data += 8, bytes -= 8) wide = _mm_crc32_u64(wide, word_at(data));
  auto narrow = static_cast<uint32_t>(wide);
  for (; bytes > 0; ++data, --bytes) narrow = _mm_crc32_u8(narrow, *data);
  return narrow;
}

#define LEAT_WIDE __attribute__((target("sse4.2,avx512f,vpclmulqdq")))

// A register of four lanes of 128 bits whose first bit is the highest power; each lane times
// x^(8 * distance), but for multiples of the polynomial. (A lane is two words with a factor each; a
// product comes out one bit further on, and a factor of 32 bits stands for x^32 times itself.)
template <size_t distance>
LEAT_WIDE __m512i moved(__m512i lanes) {
  constexpr uint32_t first = power_of_x(8 * distance + 31), second = power_of_x(8 * distance - 33);
  const __m512i factors =
      _mm512_set_epi64(second, first, second, first, second, first, second, first);
  return _mm512_xor_si512(_mm512_clmulepi64_epi128(lanes, factors, 0x00),
                          _mm512_clmulepi64_epi128(lanes, factors, 0x11));
}

LEAT_WIDE __m512i lanes_at(const unsigned char* data) { return _mm512_loadu_si512(data); }

// The CRC of the bytes at `data`. If it stores, it copies them to `to`, and the CRC is that of the
// copy: each byte is loaded once.
template <bool stores>
LEAT_WIDE uint32_t fold(const unsigned char* data, size_t bytes, uint32_t crc, unsigned char* to) {
  const auto rest_of = [&](uint32_t before) {
    if constexpr (stores) {
      std::memcpy(to, data, bytes);
      return by_instruction(to, bytes, before);
    }
    return by_instruction(data, bytes, before);
  };
  if (bytes < 512) return rest_of(crc);
  const auto next = [&](int i) LEAT_WIDE {
    const __m512i lanes = lanes_at(data + 64 * i);
    if constexpr (stores) _mm512_storeu_si512(to + 64 * i, lanes);
    return lanes;
  };
  const auto advance = [&] {
    data += 256;
    bytes -= 256;
    if constexpr (stores) to += 256;
  };
  __m512i sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = next(i);
  sums[0] =
      _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  advance();
  while (bytes >= 256) {
    for (int i = 0; i < 4; ++i) {
      // The CPU by itself does not fetch beyond a page: a third more out of memory.
      _mm_prefetch(reinterpret_cast<const char*>(data) + 4096 + 64 * i, _MM_HINT_T0);
      sums[i] = _mm512_xor_si512(moved<256>(sums[i]), next(i));
    }
    advance();
  }
  for (int i = 1; i < 4; ++i) sums[i] = _mm512_xor_si512(sums[i], moved<64>(sums[i - 1]));
  unsigned char before[64];  // stands for all that came before
  _mm512_storeu_si512(before, sums[3]);
  return rest_of(by_instruction(before, sizeof before, 0));
}

uint32_t by_products(const unsigned char* data, size_t bytes, uint32_t crc) {
  return fold<false>(data, bytes, crc, nullptr);
}

#undef LEAT_WIDE

std::vector<Crc32cWay> supported() {
  std::vector<Crc32cWay> out;
  if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("vpclmulqdq"))
      out.push_back(by_products);
    out.push_back(by_instruction);
  }
  out.push_back(by_tables);
  return out;
}

#else

std::vector<Crc32cWay> supported() { return {by_tables}; }

#endif

}  // namespace

const std::vector<Crc32cWay>& ways_to_crc32c() {
  static const std::vector<Crc32cWay> out = supported();
  return out;
}

uint32_t copy_with_crc32c(void* to, const void* from, size_t bytes, uint32_t before) {
  auto* into = static_cast<unsigned char*>(to);
  const auto* data = static_cast<const unsigned char*>(from);
#if defined(__x86_64__)
  static const bool is_one_pass = ways_to_crc32c().front() == by_products;
  if (is_one_pass) return ~fold<true>(data, bytes, ~before, into);
#endif
  constexpr size_t at_once = 16 << 10;  // it stays in the first cache
  for (size_t size; bytes > 0; data += size, into += size, bytes -= size) {
    size = std::min(bytes, at_once);
    std::memcpy(into, data, size);
    before = crc32c(into, size, before);
  }
  return before;
}

uint32_t crc32c(const void* data, size_t bytes, uint32_t before) {
  static const Crc32cWay best = ways_to_crc32c().front();
  return ~best(static_cast<const unsigned char*>(data), bytes, ~before);
}

}  // namespace leat
