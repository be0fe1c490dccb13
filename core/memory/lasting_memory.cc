#include "core/memory/lasting_memory.h"

#include <cstring>

namespace leat {
namespace {

// Each size exceeds the previous one by an eighth to a quarter, so that few bytes are lost per
// block.
constexpr std::array<uint16_t, 20> sizes = {16,  32,  48,  64,  80,  96,  112, 128, 160, 192,
                                            224, 256, 320, 384, 448, 512, 640, 768, 896, 1024};

constexpr size_t unit = 16;

// By the number of units that are asked for.
constexpr auto kind_of_units = [] {
  std::array<uint8_t, LastingMemory::most / unit + 1> out{};
  uint8_t kind = 0;
  for (size_t units = 0; units < out.size(); ++units) {
    if (units * unit > sizes[kind]) ++kind;
    out[units] = kind;
  }
  return out;
}();

uint16_t capacity(uint8_t kind) {
  return static_cast<uint16_t>(LastingMemory::page_bytes / sizes[kind]);
}

}  // namespace

thread_local constinit int LastingMemory::Scope::depth_ = 0;
thread_local constinit uint32_t LastingMemory::Scope::group_ = 0;

LastingMemory& LastingMemory::process() {
  static constinit LastingMemory memory;
  return memory;
}

size_t LastingMemory::size(const void* data) const {
  std::lock_guard lock(mutex_);
  return sizes[pages_[memory_.index_of(data)].kind];
}

// ---- Groups: a scope's pages. With the lock held ----

bool LastingMemory::open(uint32_t& id) {
  if (id != 0) return true;
  for (size_t tries = 0; tries < most_open; ++tries) {
    const uint32_t candidate = ++last_group_;
    if (candidate == 0 || group(candidate).id != 0) continue;
    group(candidate) = {.id = candidate};
    id = candidate;
    return true;
  }
  return false;
}

void LastingMemory::close(uint32_t& id) {
  if (id == 0) return;
  std::lock_guard lock(mutex_);
  group(id).id = 0;
  id = 0;
  memory_.trim_all();
}

void LastingMemory::link(Group& group, uint16_t number) {
  uint16_t& first = group.with_room[page(number).kind];
  page(number).previous = 0;
  page(number).next = first;
  if (first != 0) page(first).previous = number;
  first = number;
}

void LastingMemory::unlink(Group& group, uint16_t number) {
  const Page& gone = page(number);
  (gone.previous == 0 ? group.with_room[gone.kind] : page(gone.previous).next) = gone.next;
  if (gone.next != 0) page(gone.next).previous = gone.previous;
}

// ---- Blocks ----

void* LastingMemory::take(size_t bytes, uint32_t& id) {
  if (is_exhausted_.load(std::memory_order_relaxed)) return nullptr;
  const uint8_t kind = kind_of_units[(bytes + unit - 1) / unit];
  std::lock_guard lock(mutex_);
  if (!open(id)) return nullptr;
  Group& mine = group(id);
  if (mine.with_room[kind] == 0) {
    const void* const fresh = memory_.take();
    if (fresh == nullptr) {
      is_exhausted_.store(true, std::memory_order_relaxed);
      return nullptr;
    }
    const auto number = static_cast<uint16_t>(memory_.index_of(fresh) + 1);
    page(number) = {.group = id, .kind = kind};
    link(mine, number);
  }
  const uint16_t number = mine.with_room[kind];
  Page& in = page(number);
  char* const block =
      memory_.slot(number - 1) + sizes[kind] * (in.free != 0 ? in.free - 1 : in.touched);
  if (in.free != 0) {
    std::memcpy(&in.free, block, sizeof(in.free));
  } else {
    ++in.touched;
  }
  if (++in.taken == capacity(kind)) unlink(mine, number);
  ++blocks_;
  bytes_ += sizes[kind];
  return block;
}

void LastingMemory::give(void* data) {
  const auto number = static_cast<uint16_t>(memory_.index_of(data) + 1);
  char* const begin = memory_.slot(number - 1);
  std::lock_guard lock(mutex_);
  is_exhausted_.store(false, std::memory_order_relaxed);
  Page& in = page(number);
  const size_t size = sizes[in.kind];
  --blocks_;
  bytes_ -= size;
  const bool was_full = in.taken-- == capacity(in.kind);
  Group& owner = group(in.group);
  const bool is_open = owner.id == in.group;
  if (is_open && was_full) link(owner, number);
  if (in.taken == 0) {
    if (is_open) unlink(owner, number);
    memory_.give(begin);
    if (!is_open) memory_.trim_all();
    return;
  }
  std::memcpy(data, &in.free, sizeof(in.free));
  in.free = static_cast<uint16_t>(static_cast<size_t>(static_cast<char*>(data) - begin) / size + 1);
}

LastingMemory::Counts LastingMemory::counts() const {
  const auto of_pages = memory_.counts();
  std::lock_guard lock(mutex_);
  return {blocks_, bytes_, of_pages.taken, of_pages.kept};
}

}  // namespace leat
