// Shared by the ops that cross features: a feature as text or as a number, and the combination of
// hashes. Inputs are int64 or string.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/tensor.h"
#include "kernels/text/string_hash.h"

namespace leat {

inline std::string feature_text(const Tensor& values, int64_t i) {
  return values.dtype() == DType::string ? values.data<std::string>()[i]
                                         : std::to_string(values.data<int64_t>()[i]);
}

inline uint64_t feature_fingerprint(const Tensor& values, int64_t i) {
  return values.dtype() == DType::string ? farm_fingerprint(values.data<std::string>()[i])
                                         : static_cast<uint64_t>(values.data<int64_t>()[i]);
}

inline uint64_t combined_hash(uint64_t a, uint64_t b) {  // as TensorFlow's FingerprintCat64
  constexpr uint64_t factor = 0xc6a4a7935bd1e995;
  const auto mixed = [](uint64_t x) { return x ^ (x >> 47); };
  uint64_t out = a ^ factor;
  out ^= mixed(b * factor) * factor;
  out *= factor;
  return mixed(mixed(out) * factor);
}

// Non-negative, and below `num_buckets` unless that is 0.
inline int64_t bucket_of(uint64_t hash, int64_t num_buckets) {
  const int64_t count = num_buckets > 0 ? num_buckets : std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(hash % static_cast<uint64_t>(count));
}

}  // namespace leat
