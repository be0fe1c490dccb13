// RandomIndexShuffle: the position of an index in a random order, without generating that order.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// A permutation of the numbers of 2 * `bits` bits: the block cipher Simon (Beaulieu et al., "The
// Simon and Speck families of lightweight block ciphers", 2013) with TensorFlow's number of rounds.
// It keeps no secrets.
class Cipher {
 public:
  Cipher(int bits, const std::array<uint32_t, 3>& key) : bits_(bits) {
    for (size_t i = 0; i < 3; ++i) key_[i] = key[i] & mask();
  }

  uint64_t operator()(uint64_t x, int64_t rounds) const {
    uint64_t left = (x >> bits_) & mask(), right = x & mask();
    std::array<uint64_t, 3> keys = key_;  // of the rounds to come
    uint64_t constants = 0x7369f885192c0ef5 & mask();
    for (int64_t i = 0; i < rounds; i += 2) {
      for (uint64_t* to : {&left, &right}) {
        const uint64_t from = to == &left ? right : left;
        *to ^= (rotated(from, 1) & rotated(from, 8)) ^ rotated(from, 2) ^ keys[0];
        const uint64_t last = keys[2];
        const uint64_t next = (0xfffffffc & mask()) ^ (constants & 1) ^ keys[0] ^
                              rotated(last, bits_ - 3) ^ rotated(last, bits_ - 4);
        keys = {keys[1], keys[2], next};
        constants >>= 1;
      }
    }
    return (left << bits_) | right;
  }

 private:
  uint64_t mask() const { return (uint64_t{1} << bits_) - 1; }
  uint64_t rotated(uint64_t x, int left) const {
    return ((x << left) | (x >> (bits_ - left))) & mask();
  }

  int bits_;
  std::array<uint64_t, 3> key_;
};

// The cipher is repeated until an index comes out, which permutes the indices alone. (As in
// TensorFlow, the largest index 2^k is given k bits, one too few.)
uint64_t shuffled(uint64_t index, uint64_t largest, const std::array<uint32_t, 3>& key,
                  int64_t rounds) {
  if (largest == 0) return 0;
  const int bits = static_cast<int>(std::ceil(std::log2(static_cast<double>(largest))));
  const Cipher cipher(std::clamp((bits + 1) / 2, 8, 32), key);
  do {
    index = cipher(index, rounds);
  } while (index > largest);
  return index;
}

void check_shapes(const Shape& index, const Shape& seed, const Shape& largest, int64_t n) {
  check(index.rank() == 0 || (index.rank() == 1 && index[0] == n),
        "index must be a scalar or a vector of ", n, " elements, got shape ", index);
  check(seed == Shape{3} || seed == Shape{n, 3}, "seed must have shape [3] or [", n,
        ",3], got shape ", seed);
  check(largest.rank() == 0 || (largest.rank() == 1 && largest[0] == n),
        "max_index must be a scalar or a vector of ", n, " elements, got shape ", largest);
}

template <class T, class Seed>
BoundKernel bind(const KernelRequest& r) {
  const Shape &index = r.inputs[0].shape, &seed = r.inputs[1].shape, &largest = r.inputs[2].shape;
  const int64_t n = std::max({index.elements(), largest.elements(), seed.elements() / 3});
  check_shapes(index, seed, largest, n);
  const int64_t rounds = r.attr<int64_t>("rounds");
  check(rounds >= 4 && rounds % 2 == 0 && rounds <= std::numeric_limits<int32_t>::max(),
        "rounds must be even and in [4, 2^31), got ", rounds);
  const auto step = [](const Shape& shape, int rank_of_one) { return shape.rank() > rank_of_one; };
  return BoundKernel::of([=, index_step = step(index, 0), seed_step = 3 * step(seed, 1),
                          largest_step = step(largest, 0)](const Arguments& a) {
    for (int64_t i = 0; i < n; ++i) {
      StepEnd::pace(64);
      const T from = a.input<T>(0)[i * index_step], last = a.input<T>(2)[i * largest_step];
      check(from >= 0, "index must be >= 0 but was ", from);
      check(last >= 0, "max_index must be >= 0 but was ", last);
      check(last >= from, "max_index must be >= index, but ", last, " < ", from);
      const Seed* key = a.input<Seed>(1) + i * seed_step;
      a.output<T>()[i] =
          static_cast<T>(shuffled(static_cast<uint64_t>(from), static_cast<uint64_t>(last),
                                  {static_cast<uint32_t>(key[0]), static_cast<uint32_t>(key[1]),
                                   static_cast<uint32_t>(key[2])},
                                  rounds));
    }
  });
}

using IndexTypes = Types<int32_t, uint32_t, int64_t, uint64_t>;

void infer(ShapeContext& c) {
  const Shape &index = c.input(0), &seed = c.with_rank_at_least(1, 1), &largest = c.input(2);
  check(index.rank() <= 1, "index must be a scalar or a vector, got shape ", index);
  check(seed.rank() <= 2, "seed must have shape [3] or [n, 3], got ", seed);
  check(largest.rank() <= 1, "max_index must be a scalar or a vector, got shape ", largest);
  if (seed.has_rank()) {
    const int64_t width = seed[seed.rank() - 1];
    check(width == 3 || width == any, "seed must have shape [3] or [n, 3], got ", seed);
  }
  if (index.rank() == 0 && seed.rank() == 1 && largest.rank() == 0) return c.set_output(0, {});
  if (index.rank() != 1 && seed.rank() != 2 && largest.rank() != 1)
    return c.set_output(0, Shape::unknown());
  Shape out{any};
  if (index.rank() == 1) out = out.merged({index[0]});
  if (seed.rank() == 2) out = out.merged({seed[0]});
  if (largest.rank() == 1) out = out.merged({largest[0]});
  c.set_output(0, out);
}

const Op op{{
    .name = "RandomIndexShuffle",
    .doc = "output[i] = where index[i] goes in a random order of 0 … max_index[i], the same for "
           "the same seed[i]. Each of the three may be the same for all i.",
    .inputs = {"index: dtype", "seed: Tseed", "max_index: dtype"},
    .outputs = {"output: dtype"},
    .attrs = {"rounds: int = 4", "dtype: {int32, uint32, int64, uint64}",
              "Tseed: {int32, uint32, int64, uint64}"},
    .shape = infer,
    .kernels = {cpu_kernel("dtype", IndexTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return visit_type(
                                 IndexTypes{}, r.attr<DType>("Tseed"),
                                 [&]<class Seed>(TypeTag<Seed>) { return bind<T, Seed>(r); });
                           })},
    .examples = {{.inputs = {ints({0, 1, 2, 3}), ints({1, 2, 3}), Tensor::scalar(3)},
                  .outputs = {ints({2, 0, 3, 1})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
