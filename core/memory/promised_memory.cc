#include "core/memory/promised_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "core/error.h"
#include "core/memory/host_memory.h"
#include "core/memory/memory_limit.h"

namespace leat {
namespace {

constexpr size_t worth_asking = size_t{64} << 20;  // its page faults take a hundred times as long

size_t page_size() {
  static const auto size = static_cast<size_t>(::sysconf(_SC_PAGE_SIZE));
  return size;
}

// For memory that no claim asks for: messages, 64 MB of tensors between two questions, other
// processes.
uint64_t reserve() {
  static const uint64_t bytes =
      std::clamp<uint64_t>(host_memory_limit() / 32, uint64_t{64} << 20, uint64_t{1} << 30);
  return bytes;
}

}  // namespace

PromisedMemory& PromisedMemory::process() {
  static auto* const memory = new PromisedMemory;  // never destroyed: buffers may outlive all else
  return *memory;
}

void PromisedMemory::add(void* data, size_t bytes) {
  const std::lock_guard lock(mutex_);
  mappings_[data] = bytes;
}

void PromisedMemory::remove(void* data) {
  const std::lock_guard lock(mutex_);
  mappings_.erase(data);
}

uint64_t PromisedMemory::bytes() {
  const std::lock_guard lock(mutex_);
  return untouched_locked();
}

uint64_t PromisedMemory::untouched_locked() {
  uint64_t out = 0;
  for (auto at = mappings_.begin(); at != mappings_.end();) {
    const auto [data, bytes] = *at;
    pages_.resize((bytes + page_size() - 1) / page_size());
    // An error is of a mapping that is no longer there: nothing will be taken for it.
    const bool is_known = ::mincore(data, bytes, pages_.data()) == 0;
    const auto without = static_cast<size_t>(
        std::count_if(pages_.begin(), pages_.end(), [](unsigned char in) { return !(in & 1); }));
    if (!is_known || without < pages_.size() / 8 + 1) {
      at = mappings_.erase(at);
      continue;
    }
    out += without * page_size();
    ++at;
  }
  return out;
}

MemoryClaim::MemoryClaim(size_t bytes) {
  static std::atomic<size_t> since_asked{0};
  if (bytes < worth_asking &&
      since_asked.fetch_add(bytes, std::memory_order_relaxed) + bytes < worth_asking)
    return;
  since_asked.store(0, std::memory_order_relaxed);
  PromisedMemory& promised = PromisedMemory::process();
  const std::lock_guard lock(promised.mutex_);
  // In this order: what is used meanwhile counts twice, not never.
  const uint64_t taken = promised.untouched_locked() + promised.claimed_ + reserve();
  const uint64_t available = available_host_memory(taken);
  if (bytes > available) {
    fail(Code::resource_exhausted, "out of host memory: ", bytes,
         " bytes are needed for one buffer, but only ", available, " bytes are available");
  }
  promised.claimed_ += bytes;
  claimed_ = bytes;
}

MemoryClaim::~MemoryClaim() {
  if (claimed_ == 0) return;
  PromisedMemory& promised = PromisedMemory::process();
  const std::lock_guard lock(promised.mutex_);
  promised.claimed_ -= claimed_;
}

}  // namespace leat
