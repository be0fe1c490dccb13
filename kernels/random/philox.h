// Philox4x32-10, the counter-based generator of TensorFlow's random ops (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", 2011): block i of a stream costs the same to compute as
// block 0, so any thread can fill any part. constexpr: nvcc compiles it for the GPU, too.
#pragma once

#include <array>
#include <cstdint>

namespace leat {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  // TensorFlow's layout: the first seed is the key, the second one the upper half of the counter.
  constexpr Philox(uint64_t seed, uint64_t seed2)
      : counter_{0, 0, static_cast<uint32_t>(seed2), static_cast<uint32_t>(seed2 >> 32)},
        key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}

  // Skips `blocks` results.
  constexpr void skip(uint64_t blocks) {
    const uint32_t low = static_cast<uint32_t>(blocks);
    uint32_t high = static_cast<uint32_t>(blocks >> 32);
    counter_[0] += low;
    if (counter_[0] < low) ++high;
    counter_[1] += high;
    if (counter_[1] < high && ++counter_[2] == 0) ++counter_[3];
  }

  constexpr Block next() {
    Block c = counter_;
    std::array<uint32_t, 2> key = key_;
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
           static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
      key[0] += 0x9E3779B9;
      key[1] += 0xBB67AE85;
    }
    if (++counter_[0] == 0 && ++counter_[1] == 0 && ++counter_[2] == 0) ++counter_[3];
    return c;
  }

  // The next `lanes` blocks at once: word w of block l goes to out[w][l]. One loop per step, so
  // that each becomes a few vector instructions.
  static constexpr int lanes = 16;
  [[gnu::always_inline]] void next(uint32_t (&out)[4][lanes]) {
    for (uint32_t l = 0; l < lanes; ++l) {
      const uint32_t c0 = counter_[0] + l, carry0 = c0 < l ? 1 : 0;
      const uint32_t c1 = counter_[1] + carry0, carry1 = carry0 != 0 && c1 == 0 ? 1 : 0;
      const uint32_t c2 = counter_[2] + carry1, carry2 = carry1 != 0 && c2 == 0 ? 1 : 0;
      out[0][l] = c0;
      out[1][l] = c1;
      out[2][l] = c2;
      out[3][l] = counter_[3] + carry2;
    }
    uint32_t key0 = key_[0], key1 = key_[1];
    for (int round = 0; round < 10; ++round, key0 += 0x9E3779B9, key1 += 0xBB67AE85) {
      for (int l = 0; l < lanes; ++l) {
        const uint64_t a = uint64_t{0xD2511F53} * out[0][l], b = uint64_t{0xCD9E8D57} * out[2][l];
        out[0][l] = static_cast<uint32_t>(b >> 32) ^ out[1][l] ^ key0;
        out[2][l] = static_cast<uint32_t>(a >> 32) ^ out[3][l] ^ key1;
        out[1][l] = static_cast<uint32_t>(b);
        out[3][l] = static_cast<uint32_t>(a);
      }
    }
    skip(lanes);
  }

 private:
  Block counter_;
  std::array<uint32_t, 2> key_;
};

}  // namespace leat
