// CRC-32C (Castagnoli): of what travels between tasks, and of checkpoints, records and event files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leat {

// Of `bytes` bytes, going on from the CRC of what came before. As fast as memory is where the CPU
// has instructions for it, 1-2 GB/s elsewhere.
uint32_t crc32c(const void* data, size_t bytes, uint32_t before = 0);

// The ways in which this CPU can do it, the best first, for tests: without the inversion of bits
// before and after.
using Crc32cWay = uint32_t (*)(const unsigned char* data, size_t bytes, uint32_t before);
const std::vector<Crc32cWay>& ways_to_crc32c();

// As it is stored in files: a CRC over data that contains CRCs would be weak.
inline uint32_t masked_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace leat
