// malloc of the program `leat`: glibc's, except for blocks of the size that gRPC reads into, and
// for long-lived memory (LastingMemory::Scope). Left out of sanitizer builds, which have their own
// malloc, and of builds without glibc.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/memory/lasting_memory.h"
#include "core/memory/slot_memory.h"

namespace {

using leat::LastingMemory;
using leat::SlotMemory;

// Null: it is glibc's to give.
void* take(size_t bytes) {
  if (bytes <= LastingMemory::most && LastingMemory::Scope::is_open())
    return LastingMemory::process().take(bytes);
  if (bytes > SlotMemory::least && bytes <= SlotMemory::most) return SlotMemory::process().take();
  return nullptr;
}

// Of a block that is not glibc's. 0: it is.
size_t own_size(const void* data) {
  if (SlotMemory::process().owns(data)) return SlotMemory::most;
  const LastingMemory& lasting = LastingMemory::process();
  return lasting.owns(data) ? lasting.size(data) : 0;
}

}  // namespace

#pragma GCC visibility push(default)  // for all libraries of the process
extern "C" {

void* __libc_malloc(size_t bytes);               // NOLINT
void* __libc_calloc(size_t count, size_t each);  // NOLINT
void* __libc_realloc(void* data, size_t bytes);  // NOLINT
void __libc_free(void* data);                    // NOLINT

void* malloc(size_t bytes) {
  if (void* const data = take(bytes)) return data;
  return __libc_malloc(bytes);
}

void free(void* data) {
  if (SlotMemory& slots = SlotMemory::process(); slots.owns(data)) return slots.give(data);
  if (LastingMemory& lasting = LastingMemory::process(); lasting.owns(data))
    return lasting.give(data);
  __libc_free(data);
}

void* calloc(size_t count, size_t each) {
  if (LastingMemory::Scope::is_open() && each > 0 && count <= LastingMemory::most / each) {
    if (void* const data = take(count * each)) return std::memset(data, 0, count * each);
  }
  return __libc_calloc(count, each);
}

void* realloc(void* data, size_t bytes) {
  if (data == nullptr) return malloc(bytes);
  const size_t size = own_size(data);
  if (size == 0) return __libc_realloc(data, bytes);
  if (bytes == 0) {
    free(data);
    return nullptr;
  }
  void* const moved = malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, data, std::min(bytes, size));
  free(data);
  return moved;
}

size_t malloc_usable_size(void* data) {
  using Function = size_t (*)(void*);
  static const auto usual = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "malloc_usable_size"));
  const size_t size = own_size(data);
  return size != 0 ? size : usual(data);
}

}  // extern "C"
#pragma GCC visibility pop
