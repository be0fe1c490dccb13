// StringToHashBucketFast, …Strong and StringToHashBucket: strings to bucket numbers, the same on
// every machine and in TensorFlow. They use FarmHash's Fingerprint64, SipHash-2-4 and MurmurHash64.
#include <bit>
#include <cstring>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/text/string_hash.h"

namespace leat {
namespace {

uint64_t word(const char* s) {
  uint64_t value;
  std::memcpy(&value, s, sizeof value);
  return value;
}
uint64_t half_word(const char* s) {
  uint32_t value;
  std::memcpy(&value, s, sizeof value);
  return value;
}

// ---- FarmHash (farmhashna)

constexpr uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

uint64_t shift_mix(uint64_t x) { return x ^ (x >> 47); }

uint64_t mix(uint64_t u, uint64_t v, uint64_t factor) {
  const uint64_t a = shift_mix((u ^ v) * factor);
  return shift_mix((v ^ a) * factor) * factor;
}

uint64_t farm_up_to_16(const char* s, size_t n) {
  const uint64_t factor = k2 + n * 2;
  if (n >= 8) {
    const uint64_t a = word(s) + k2, b = word(s + n - 8);
    return mix(std::rotr(b, 37) * factor + a, (std::rotr(a, 25) + b) * factor, factor);
  }
  if (n >= 4) return mix(n + (half_word(s) << 3), half_word(s + n - 4), factor);
  if (n == 0) return k2;
  const auto byte = [&](size_t i) { return uint32_t{static_cast<uint8_t>(s[i])}; };
  const uint32_t y = byte(0) + (byte(n >> 1) << 8);
  const uint32_t z = static_cast<uint32_t>(n) + (byte(n - 1) << 2);
  return shift_mix((y * k2) ^ (z * k0)) * k2;
}

uint64_t farm_up_to_32(const char* s, size_t n) {
  const uint64_t factor = k2 + n * 2;
  const uint64_t a = word(s) * k1, b = word(s + 8), c = word(s + n - 8) * factor,
                 d = word(s + n - 16) * k2;
  return mix(std::rotr(a + b, 43) + std::rotr(c, 30) + d, a + std::rotr(b + k2, 18) + c, factor);
}

uint64_t farm_up_to_64(const char* s, size_t n) {
  const uint64_t factor = k2 + n * 2;
  const uint64_t a = word(s) * k2, b = word(s + 8), c = word(s + n - 8) * factor,
                 d = word(s + n - 16) * k2;
  const uint64_t y = std::rotr(a + b, 43) + std::rotr(c, 30) + d;
  const uint64_t z = mix(y, a + std::rotr(b + k2, 18) + c, factor);
  const uint64_t e = word(s + 16) * factor, f = word(s + 24), g = (y + word(s + n - 32)) * factor,
                 h = (z + word(s + n - 24)) * factor;
  return mix(std::rotr(e + f, 43) + std::rotr(g, 30) + h, e + std::rotr(f + a, 18) + g, factor);
}

struct Pair {
  uint64_t first, second;
};

Pair weak_hash(const char* s, uint64_t a, uint64_t b) {
  a += word(s);
  b = std::rotr(b + a + word(s + 24), 21);
  const uint64_t c = a;
  a += word(s + 8);
  a += word(s + 16);
  b += std::rotr(a, 44);
  return {a + word(s + 24), b + c};
}

}  // namespace

uint64_t farm_fingerprint(std::string_view bytes) {
  const char* s = bytes.data();
  const size_t n = bytes.size();
  if (n <= 16) return farm_up_to_16(s, n);
  if (n <= 32) return farm_up_to_32(s, n);
  if (n <= 64) return farm_up_to_64(s, n);
  constexpr uint64_t seed = 81;
  uint64_t x = seed * k2 + word(s), y = seed * k1 + 113, z = shift_mix(y * k2 + 113) * k2;
  Pair v{0, 0}, w{0, 0};
  // One round over 64 bytes; the last one, with another factor, covers the last 64.
  const auto round = [&](const char* at, uint64_t factor, uint64_t weight) {
    x = std::rotr(x + y + v.first + word(at + 8), 37) * factor;
    y = std::rotr(y + v.second + word(at + 48), 42) * factor;
    x ^= w.second * weight;
    y += v.first * weight + word(at + 40);
    z = std::rotr(z + w.first, 33) * factor;
    v = weak_hash(at, v.second * factor, x + w.first);
    w = weak_hash(at + 32, z + w.second, y + word(at + 16));
    std::swap(z, x);
  };
  const char* end = s + (n - 1) / 64 * 64;
  for (; s != end; s += 64) round(s, k1, 1);
  const uint64_t factor = k1 + ((z & 0xff) << 1);
  w.first += (n - 1) & 63;
  v.first += w.first;
  w.first += v.first;
  round(bytes.data() + n - 64, factor, 9);
  return mix(mix(v.first, w.first, factor) + shift_mix(y) * k0 + z,
             mix(v.second, w.second, factor) + x, factor);
}

// ---- MurmurHash64A

uint64_t murmur_hash(std::string_view text) {
  constexpr uint64_t m = 0xc6a4a7935bd1e995, seed = 0xDECAFCAFFE;
  const char* s = text.data();
  size_t n = text.size();
  uint64_t h = seed ^ (n * m);
  const auto mixed = [](uint64_t x) { return x ^ (x >> 47); };
  for (; n >= 8; n -= 8, s += 8) {
    h ^= mixed(word(s) * m) * m;
    h *= m;
  }
  if (n > 0) {
    uint64_t rest = 0;
    std::memcpy(&rest, s, n);
    h = (h ^ rest) * m;
  }
  return mixed(mixed(h) * m);
}

// ---- SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012)

uint64_t sip_hash(const std::string& text, uint64_t key0, uint64_t key1) {
  uint64_t a = key0 ^ 0x736f6d6570736575, b = key1 ^ 0x646f72616e646f6d,
           c = key0 ^ 0x6c7967656e657261, d = key1 ^ 0x7465646279746573;
  const auto rounds = [&](int count) {
    for (int i = 0; i < count; ++i) {
      a += b;
      c += d;
      b = std::rotl(b, 13) ^ a;
      d = std::rotl(d, 16) ^ c;
      a = std::rotl(a, 32);
      c += b;
      a += d;
      b = std::rotl(b, 17) ^ c;
      d = std::rotl(d, 21) ^ a;
      c = std::rotl(c, 32);
    }
  };
  const auto add = [&](uint64_t x) {
    d ^= x;
    rounds(2);
    a ^= x;
  };
  const char* s = text.data();
  size_t n = text.size();
  for (; n >= 8; n -= 8, s += 8) add(word(s));
  uint64_t rest = 0;  // the last bytes, and the length in the uppermost
  std::memcpy(&rest, s, n);
  add(rest | (uint64_t{text.size()} << 56));
  c ^= 0xff;
  rounds(4);
  return a ^ b ^ c ^ d;
}

namespace {

// ---- The ops

template <uint64_t (*hash)(std::string_view)>
OpDef buckets(std::string name, std::string doc, std::string input, Tensor expected) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {input + ": string"},
      .outputs = {"output: int64"},
      .attrs = {"num_buckets: int >= 1"},
      .shape = shapes::same_as(0),
      .kernels = {cpu_kernel([](const KernelRequest& r) {
        const uint64_t count = static_cast<uint64_t>(r.attr<int64_t>("num_buckets"));
        return BoundKernel::of([count, n = r.inputs[0].shape.elements()](const Arguments& a) {
          for (int64_t i = 0; i < n; ++i) {
            StepEnd::pace(64);
            a.output<int64_t>()[i] = static_cast<int64_t>(hash(a.input<std::string>(0)[i]) % count);
          }
        });
      })},
      .examples = {{.inputs = {Tensor::of<std::string>({2}, {"", "abc"})},
                    .attrs = {{"num_buckets", int64_t{1} << 62}},
                    .outputs = {std::move(expected)}}},
      .is_not_differentiable = true,
  };
}

const Op fast_op{buckets<farm_fingerprint>(
    "StringToHashBucketFast",
    "output = FarmHash's Fingerprint64 of each string modulo num_buckets.", "input",
    longs({1936946117179621455, 2640714258260161385}))};
const Op old_op{buckets<murmur_hash>(
    "StringToHashBucket",
    "output = a hash of each string modulo num_buckets; StringToHashBucketFast is the newer one.",
    "string_tensor", longs({105434511174508091, 1046625677629754806}))};

const Op strong_op{{
    .name = "StringToHashBucketStrong",
    .doc = "output = SipHash-2-4 of each string, by a key of two numbers, modulo num_buckets: "
           "without the key nobody can choose strings that share a bucket.",
    .inputs = {"input: string"},
    .outputs = {"output: int64"},
    .attrs = {"num_buckets: int >= 1", "key: list(int)"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel([](const KernelRequest& r) {
      const std::vector<int64_t>& key = r.attr<std::vector<int64_t>>("key");
      check(key.size() == 2, "key must have 2 elements, got ", key.size());
      return BoundKernel::of([key0 = static_cast<uint64_t>(key[0]),
                              key1 = static_cast<uint64_t>(key[1]),
                              count = static_cast<uint64_t>(r.attr<int64_t>("num_buckets")),
                              n = r.inputs[0].shape.elements()](const Arguments& a) {
        for (int64_t i = 0; i < n; ++i) {
          StepEnd::pace(64);
          a.output<int64_t>()[i] =
              static_cast<int64_t>(sip_hash(a.input<std::string>(0)[i], key0, key1) % count);
        }
      });
    })},
    .examples = {{.inputs = {texts({"", "abc", "abcdefgh", "abcdefghijkl"})},
                  .attrs = {{"num_buckets", int64_t{1} << 62}, {"key", std::vector<int64_t>{1, 2}}},
                  .outputs = {longs({443797209252341627, 1250540936487842205, 2649018002260510108,
                                     581588757420732271})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
