// CRC-32C (Castagnoli), for data between tasks and for checkpoints, records and event files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leat {

// The CRC of `bytes` bytes, continuing from the CRC `before` of the preceding data. Runs at memory
// speed where the CPU has instructions for it, at 1-2 GB/s elsewhere.
uint32_t crc32c(const void* data, size_t bytes, uint32_t before = 0);

// Copies the bytes and returns crc32c() of the copy, whoever writes to `from` meanwhile. The two do
// not overlap.
uint32_t copy_with_crc32c(void* to, const void* from, size_t bytes, uint32_t before = 0);

// The implementations that this CPU can run, fastest first, for tests. They do not invert the bits
// before and after.
using Crc32cWay = uint32_t (*)(const unsigned char* data, size_t bytes, uint32_t before);
const std::vector<Crc32cWay>& ways_to_crc32c();

// The CRC as stored in files: a CRC over data that contains CRCs would be weak.
inline uint32_t masked_crc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace leat
