// String hashes that are the same on every machine and in TensorFlow.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leat {

uint64_t farm_fingerprint(std::string_view bytes);  // FarmHash Fingerprint64
uint64_t murmur_hash(std::string_view text);        // MurmurHash64A, with TensorFlow's seed
uint64_t sip_hash(const std::string& text, uint64_t key0, uint64_t key1);  // SipHash-2-4

}  // namespace leat
