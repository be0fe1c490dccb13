// Fills an output with random numbers of one distribution: shared by ops with a stream of their own
// and ops with a seed per call.
#pragma once

#include <cmath>
#include <type_traits>

#include "kernels/cpu.h"
#include "kernels/random/philox.h"
#include "kernels/random/random_stream.h"

namespace leat {

// A distribution draws groups of outputs. After each run a stream advances by 256 blocks per
// output, however many were used.
inline constexpr int64_t blocks_per_output = 256;

// ---- Distributions: a group is what one call of `fill` writes (constexpr: nvcc compiles it for
// the GPU, too)

template <class T>
struct Uniform {
  static constexpr int group = std::is_same_v<T, double> ? 2 : 4;
  static constexpr uint64_t blocks_per_group = 1;
  constexpr void fill(Philox& random, T* out) const {
    const Philox::Block x = random.next();
    if constexpr (std::is_same_v<T, double>) {
      out[0] = uniform(x[0], x[1]);
      out[1] = uniform(x[2], x[3]);
    } else if constexpr (std::is_same_v<T, half>) {
      for (int i = 0; i < 4; ++i)
        out[i] = half(float(half::from_bits((x[i] & 0x3ffu) | 0x3c00u)) - 1.0f);
    } else {
      for (int i = 0; i < 4; ++i)
        out[i] = bfloat16(float(bfloat16::from_bits((x[i] & 0x7fu) | 0x3f80u)) - 1.0f);
    }
  }
};

template <>
struct Uniform<float> {
  static constexpr int group = 4;
  static constexpr uint64_t blocks_per_group = 1;
  constexpr void fill(Philox& random, float* out) const {
    const Philox::Block x = random.next();
    for (int i = 0; i < 4; ++i) out[i] = uniform(x[i]);
  }
  // Philox::lanes groups.
  [[gnu::always_inline]] void fill_many(Philox& random, float* out) const {
    uint32_t x[4][Philox::lanes];
    random.next(x);
    for (int l = 0; l < Philox::lanes; ++l) {
      for (int i = 0; i < 4; ++i) out[l * 4 + i] = uniform(x[i][l]);
    }
  }
};

// Integers in [low, low + range). The bounds are inputs, so they are set at every run.
template <class T>
struct UniformInt {
  using U = std::make_unsigned_t<T>;
  static constexpr int group = sizeof(T) == 8 ? 2 : 4;
  static constexpr uint64_t blocks_per_group = 1;
  T low;
  U range;
  constexpr void fill(Philox& random, T* out) const {
    const Philox::Block x = random.next();
    for (int i = 0; i < group; ++i) {
      const U bits = sizeof(T) == 8
                         ? static_cast<U>(x[2 * i % 4] | (uint64_t{x[(2 * i + 1) % 4]} << 32))
                         : x[i];
      out[i] = static_cast<T>(static_cast<U>(low) + bits % range);
    }
  }
};

// Integers, uniform over all values of the type.
template <class T>
struct AnyInt {
  static constexpr int group = sizeof(T) == 8 ? 2 : 4;
  static constexpr uint64_t blocks_per_group = 1;
  constexpr void fill(Philox& random, T* out) const {
    const Philox::Block x = random.next();
    for (int i = 0; i < group; ++i) {
      if constexpr (sizeof(T) == 8) {
        out[i] = static_cast<T>(x[2 * i] | (uint64_t{x[2 * i + 1]} << 32));
      } else {
        out[i] = static_cast<T>(x[i]);
      }
    }
  }
};

template <class T>
struct Normal {
  static constexpr int group = std::is_same_v<T, double> ? 2 : 4;
  static constexpr uint64_t blocks_per_group = 1;
  constexpr void fill(Philox& random, T* out) const {
    const Philox::Block x = random.next();
    if constexpr (std::is_same_v<T, double>) {
      box_muller(x[0], x[1], x[2], x[3], out);
    } else {
      for (int i = 0; i < 4; i += 2) {
        float pair[2];
        box_muller(x[i], x[i + 1], pair);
        out[i] = T(pair[0]);
        out[i + 1] = T(pair[1]);
      }
    }
  }
};

// Normal numbers within two standard deviations; others are redrawn. A group may use any number of
// blocks, so each has its own part of the stream.
template <class T>
struct TruncatedNormal {
  static constexpr int group = std::is_same_v<T, double> ? 2 : 4;
  static constexpr uint64_t blocks_per_group = group * blocks_per_output / 4;
  constexpr void fill(Philox& random, T* out) const {
    Philox::Block x{};
    int used = 4;
    const auto word = [&] {
      if (used == 4) {
        x = random.next();
        used = 0;
      }
      return x[used++];
    };
    for (int filled = 0;;) {
      using C = ComputeType<T>;
      C pair[2];
      const uint32_t x0 = word(), x1 = word();
      if constexpr (std::is_same_v<T, double>) {
        const uint32_t x2 = word(), x3 = word();
        box_muller(x0, x1, x2, x3, pair);
      } else {
        box_muller(x0, x1, pair);
      }
      for (const C value : pair) {
        if (std::abs(value) < C(2)) {
          out[filled++] = T(value);
          if (filled == group) return;
        }
      }
    }
  }
};

// ---- Filling

// The n elements of output 0, from `start` on.
template <class T, class Distribution>
void fill(const Arguments& a, const Philox& start, const Distribution& distribution, int64_t n,
          int64_t grain) {
  constexpr int group = Distribution::group;
  T* out = a.output<T>();
  a.stream->parallel_for((n + group - 1) / group, grain, [&](int64_t begin, int64_t end) {
    Philox random = start;
    random.skip(begin * Distribution::blocks_per_group);
    int64_t g = begin;
    if constexpr (requires { distribution.fill_many(random, out); }) {
      const int64_t whole = std::min(end, n / group);
      vectorized([&]() LEAT_INLINE {
        for (; g + Philox::lanes <= whole; g += Philox::lanes)
          distribution.fill_many(random, out + g * group);
      });
    }
    for (; g < end; ++g) {
      if constexpr (Distribution::blocks_per_group != 1) {
        random = start;
        random.skip(g * Distribution::blocks_per_group);
      }
      if ((g + 1) * group <= n) {
        distribution.fill(random, out + g * group);
      } else {  // the last group of a tensor may be cut short
        T rest[group];
        distribution.fill(random, rest);
        copy_elements(rest, n - g * group, out + g * group);
      }
    }
  });
}

}  // namespace leat
