// The stream of random numbers that a node owns in a session: the same as TensorFlow's for the same
// attributes seed and seed2.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <memory>
#include <mutex>
#include <numbers>
#include <random>

#include "core/kernel.h"
#include "kernels/random/philox.h"

namespace leat {

// Concurrent steps take disjoint parts of the stream.
class RandomStream {
 public:
  explicit RandomStream(const Philox& start) : start_(start) {}

  // The next `blocks` results of the generator.
  Philox take(int64_t blocks) {
    Philox part = start_;
    part.skip(taken_.fetch_add(static_cast<uint64_t>(blocks), std::memory_order_relaxed));
    return part;
  }

  const Philox& start() const { return start_; }
  // How much has been taken, if a GPU draws the numbers: one uint64 in its memory. Zero at first.
  const std::shared_ptr<Buffer>& taken_on(Device& gpu) {
    std::call_once(is_counted_, [&] {
      taken_on_gpu_ = gpu.allocate(sizeof(uint64_t));
      const auto zero = std::make_shared<uint64_t>(0);
      gpu.copy_from_host(zero.get(), taken_on_gpu_->data(), sizeof(uint64_t),
                         [zero, kept = taken_on_gpu_](const Status&) {});
    });
    check_internal(taken_on_gpu_->device() == &gpu, "a node draws numbers on ", gpu.name(),
                   " and on ", taken_on_gpu_->device()->name());
    return taken_on_gpu_;
  }

  // The stream of the request's node, created by the first call; seeds 0 and 0 draw a random seed.
  static std::shared_ptr<RandomStream> of(const KernelRequest& request) {
    if (!request.node_state) {
      uint64_t seed = static_cast<uint64_t>(request.attr<int64_t>("seed"));
      uint64_t seed2 = static_cast<uint64_t>(request.attr<int64_t>("seed2"));
      if (seed == 0 && seed2 == 0) {
        std::random_device entropy;
        const auto word = [&] { return (uint64_t{entropy()} << 32) | entropy(); };
        seed = word();
        seed2 = word();
      }
      request.node_state = std::make_shared<RandomStream>(Philox(seed, seed2));
    }
    return std::static_pointer_cast<RandomStream>(request.node_state);
  }

 private:
  Philox start_;
  std::atomic<uint64_t> taken_{0};
  std::once_flag is_counted_;
  std::shared_ptr<Buffer> taken_on_gpu_;
};

// The key and the counter, as 64-bit numbers, that the stateless ops derive from a seed.
struct StatelessSeed {
  uint64_t key, counter[2];

  constexpr StatelessSeed(uint64_t seed, uint64_t seed2) : key(0), counter{0, 0} {
    Philox mixer(0x02461e293ec8f720, seed2);
    mixer.skip(seed);
    const Philox::Block mixed = mixer.next();
    key = mixed[0] | (uint64_t{mixed[1]} << 32);
    counter[1] = mixed[2] | (uint64_t{mixed[3]} << 32);
  }
  // Made from the two int32 or int64 values in an input.
  static StatelessSeed of(const Arguments& a, int input, DType dtype) {
    if (dtype == DType::i64) {
      const int64_t* seed = a.input<int64_t>(input);
      return {static_cast<uint64_t>(seed[0]), static_cast<uint64_t>(seed[1])};
    }
    const int32_t* seed = a.input<int32_t>(input);
    return {static_cast<uint64_t>(seed[0]), static_cast<uint64_t>(seed[1])};
  }
  constexpr Philox generator() const { return {key, counter[1]}; }
};

// In [0, 1): random mantissa bits under the exponent of 1, minus 1.
constexpr float uniform(uint32_t x) {
  return std::bit_cast<float>((x & 0x7fffffu) | 0x3f800000u) - 1.0f;
}
constexpr double uniform(uint32_t high, uint32_t low) {
  return std::bit_cast<double>((uint64_t{high & 0xfffffu} << 32) | low | (uint64_t{1023} << 52)) -
         1.0;
}

// Box-Muller: two uniform numbers to two normal ones. (The product with pi is TensorFlow's, in
// double.) Templates, because the logarithm of the library is no constexpr function.
template <class = void>
constexpr void box_muller(uint32_t x0, uint32_t x1, float* out) {
  const float u1 = std::max(uniform(x0), 1.0e-7f);
  const float angle = static_cast<float>(2.0 * std::numbers::pi * uniform(x1));
  const float radius = std::sqrt(-2.0f * std::log(u1));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}
template <class = void>
constexpr void box_muller(uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3, double* out) {
  const double u1 = std::max(uniform(x0, x1), 1.0e-7);
  const double angle = 2 * std::numbers::pi * uniform(x2, x3);
  const double radius = std::sqrt(-2.0 * std::log(u1));
  out[0] = std::sin(angle) * radius;
  out[1] = std::cos(angle) * radius;
}

// The words of a generator one by one.
class RandomWords {
 public:
  explicit RandomWords(const Philox& random) : random_(random) {}
  uint32_t next() {
    if (used_ == block_.size()) {
      block_ = random_.next();
      used_ = 0;
    }
    return block_[used_++];
  }

 private:
  Philox random_;
  Philox::Block block_{};
  size_t used_ = block_.size();
};

}  // namespace leat
