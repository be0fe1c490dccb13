#include "kernels/cuda/device/block_pool.cuh"

#include <algorithm>
#include <array>
#include <iomanip>
#include <sstream>
#include <utility>
#include <vector>

#include "kernels/cuda/device/cuda_device.cuh"

namespace leat::cuda {
namespace {

std::string size_text(size_t bytes) {
  constexpr std::array<const char*, 5> units = {" bytes", " KiB", " MiB", " GiB", " TiB"};
  size_t unit = 0;
  auto size = static_cast<double>(bytes);
  for (; size >= 1024 && unit + 1 < units.size(); ++unit) size /= 1024;
  std::ostringstream out;
  out << std::fixed << std::setprecision(unit == 0 ? 0 : 1) << size << units[unit];
  return out.str();
}

}  // namespace

// Who has how much.
class BlockPool::Usage {
 public:
  void add(const Block& block) {
    by_use_[static_cast<size_t>(block.use)] += block.bytes;
    all_ += block.bytes;
    if (block.use == MemoryUse::variable) variables_[block.name] += block.bytes;
  }

  // "12.0 MiB in use: variables 8.0 MiB (words/w 8.0 MiB), constants 4.0 MiB"
  std::string to_string() const {
    std::string out = concat(size_text(all_), " in use");
    bool is_first = true;
    for (size_t use = 0; use < by_use_.size(); ++use) {
      if (by_use_[use] == 0) continue;
      out += concat(is_first ? ": " : ", ", memory_use_name(static_cast<MemoryUse>(use)), " ",
                    size_text(by_use_[use]));
      if (static_cast<MemoryUse>(use) == MemoryUse::variable) out += largest_variables();
      is_first = false;
    }
    return out;
  }

 private:
  std::string largest_variables() const {
    constexpr size_t most = 3;
    std::vector<std::pair<size_t, std::string>> sorted;
    for (const auto& [name, bytes] : variables_) sorted.emplace_back(bytes, name);
    std::sort(sorted.rbegin(), sorted.rend());
    std::string out;
    for (size_t i = 0; i < std::min(most, sorted.size()); ++i)
      out += concat(i == 0 ? " (" : ", ", sorted[i].second, " ", size_text(sorted[i].first));
    return out + (sorted.size() > most ? concat(", and ", sorted.size() - most, " more)") : ")");
  }

  std::array<size_t, memory_uses> by_use_{};
  std::map<std::string, size_t> variables_;
  size_t all_ = 0;
};

// The pools of this process. Sessions have devices, streams and pools of their own, but the GPU's
// memory is the process's: the one thing they share.
class BlockPool::All {
 public:
  static All& instance() {
    static auto* const all = new All;  // sessions may end after static objects
    return *all;
  }
  void add(BlockPool* pool) {
    const std::lock_guard lock(mutex_);
    pools_.push_back(pool);
  }
  void remove(BlockPool* pool) {
    const std::lock_guard lock(mutex_);
    std::erase(pools_, pool);
  }
  // Those of the same memory.
  template <class F>
  void for_each_like(const BlockPool& pool, F f) {
    const std::lock_guard lock(mutex_);
    for (BlockPool* each : pools_) {
      if (each->ordinal_ == pool.ordinal_ && each->allocate_ == pool.allocate_) f(*each);
    }
  }

 private:
  std::mutex mutex_;  // before that of a pool
  std::vector<BlockPool*> pools_;
};

BlockPool::BlockPool(int ordinal, const char* kind, Allocate allocate, Free free,
                     cudaStream_t users)
    : ordinal_(ordinal), kind_(kind), allocate_(allocate), free_(free), users_(users) {
  All::instance().add(this);
}

BlockPool::~BlockPool() {
  All::instance().remove(this);
  release_unused();
}

void* BlockPool::take(size_t bytes) {
  constexpr size_t unit = 512;
  const size_t rounded = (std::max<size_t>(bytes, 1) + unit - 1) / unit * unit;
  if (void* block = find_unused(rounded)) return block;
  check_cuda(cudaSetDevice(ordinal_), "cudaSetDevice");
  void* block = nullptr;
  cudaError_t error = allocate_(&block, rounded);
  if (error == cudaErrorMemoryAllocation) {  // perhaps the kept blocks have the wrong sizes
    (void)cudaGetLastError();
    All::instance().for_each_like(*this, [](BlockPool& pool) { pool.release_unused(); });
    error = allocate_(&block, rounded);
  }
  if (error == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    const MemoryOwner* const owner = MemoryOwner::current();
    Usage usage;
    All::instance().for_each_like(*this, [&](BlockPool& pool) { pool.add_to(usage); });
    size_t free = 0, total = 0;
    std::string of_all;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess)
      of_all = concat(" The GPU has ", size_text(free), " free of ", size_text(total), ".");
    fail(Code::resource_exhausted, "GPU:", ordinal_, " has no ", kind_, " memory for ",
         size_text(bytes), " (",
         memory_use_name(owner == nullptr ? MemoryUse::other : owner->use()),
         owner == nullptr || owner->name().empty() ? "" : concat(" ", owner->name()),
         "). This process has ", usage.to_string(), ".", of_all,
         " A smaller batch, SessionOptions::recompute or more GPUs need less.");
  }
  check_cuda(error, concat("allocation of ", kind_, " memory").c_str());
  const std::lock_guard lock(mutex_);
  return hand_out(block, rounded);
}

void* BlockPool::find_unused(size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto fit = unused_.lower_bound({bytes, nullptr});
  if (fit == unused_.end() || fit->first > bytes + bytes / 4) return nullptr;
  const auto [size, block] = *fit;
  unused_.erase(fit);
  return hand_out(block, size);
}

void* BlockPool::hand_out(void* block, size_t bytes) {
  const MemoryOwner* const owner = MemoryOwner::current();
  Block& entry = blocks_[block];
  entry.bytes = bytes;
  entry.use = owner == nullptr ? MemoryUse::other : owner->use();
  entry.name = owner == nullptr ? std::string_view() : owner->name();
  entry.is_untouched = std::exchange(entry.is_recorded, false) && entry.use == MemoryUse::copy;
  return block;
}

void BlockPool::give_back(void* block) {
  const std::lock_guard lock(mutex_);
  Block& entry = blocks_.at(block);
  if (entry.use == MemoryUse::copy && users_ != nullptr) {
    (void)cudaSetDevice(ordinal_);
    if (entry.end_of_use == nullptr)
      (void)cudaEventCreateWithFlags(&entry.end_of_use, cudaEventDisableTiming);
    entry.is_recorded =
        entry.end_of_use != nullptr && cudaEventRecord(entry.end_of_use, users_) == cudaSuccess;
  }
  unused_.emplace(entry.bytes, block);
}

cudaEvent_t BlockPool::end_of_use(const void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return nullptr;
  return std::exchange(found->second.is_untouched, false) ? found->second.end_of_use : nullptr;
}

void BlockPool::end_of_stream() {
  const std::lock_guard lock(mutex_);
  users_ = nullptr;
}

bool BlockPool::has(const void* address) {
  const std::lock_guard lock(mutex_);
  auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return false;
  const auto& [begin, block] = *--next;
  return static_cast<const char*>(address) < static_cast<const char*>(begin) + block.bytes;
}

void BlockPool::release_unused() {
  const std::lock_guard lock(mutex_);
  for (const auto& [bytes, block] : unused_) {
    if (const cudaEvent_t event = blocks_.at(block).end_of_use; event != nullptr)
      (void)cudaEventDestroy(event);
    blocks_.erase(block);
    (void)free_(block);
  }
  unused_.clear();
}

void BlockPool::add_to(Usage& usage) {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, block] : blocks_) usage.add(block);
}

}  // namespace leat::cuda
