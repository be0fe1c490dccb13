// malloc of the program `leat`: glibc's, but for blocks of the size into which gRPC reads. Left out
// of builds with a sanitizer, which has a malloc of its own, and where there is no glibc.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "core/slot_memory.h"

namespace {

using leat::SlotMemory;

bool fits(size_t bytes) { return bytes > SlotMemory::least && bytes <= SlotMemory::most; }

}  // namespace

#pragma GCC visibility push(default)  // for all libraries of the process
extern "C" {

void* __libc_malloc(size_t bytes);               // NOLINT
void* __libc_calloc(size_t count, size_t each);  // NOLINT
void* __libc_realloc(void* data, size_t bytes);  // NOLINT
void __libc_free(void* data);                    // NOLINT

void* malloc(size_t bytes) {
  if (fits(bytes)) {
    if (void* const data = SlotMemory::process().take()) return data;
  }
  return __libc_malloc(bytes);
}

void free(void* data) {
  SlotMemory& slots = SlotMemory::process();
  if (slots.owns(data)) return slots.give(data);
  __libc_free(data);
}

void* calloc(size_t count, size_t each) { return __libc_calloc(count, each); }

void* realloc(void* data, size_t bytes) {
  if (!SlotMemory::process().owns(data)) return __libc_realloc(data, bytes);
  if (bytes == 0) {
    free(data);
    return nullptr;
  }
  void* const moved = __libc_malloc(bytes);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, data, bytes < SlotMemory::most ? bytes : SlotMemory::most);
  free(data);
  return moved;
}

size_t malloc_usable_size(void* data) {
  using Function = size_t (*)(void*);
  static const auto usual = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "malloc_usable_size"));
  return SlotMemory::process().owns(data) ? SlotMemory::most : usual(data);
}

}  // extern "C"
#pragma GCC visibility pop
