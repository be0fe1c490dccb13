#include "tests/support/cuda/fiber.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBERS_UNDER_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define FIBERS_UNDER_TSAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define FIBERS_UNDER_ASAN
#endif
#ifdef __SANITIZE_THREAD__
#define FIBERS_UNDER_TSAN
#endif

#ifdef FIBERS_UNDER_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBERS_UNDER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__) || defined(__aarch64__)

// Saves the registers that a function must keep, and the stack pointer to *save; continues where
// `load` was saved.
extern "C" void cuda_on_host_switch(void** save, void* load);
extern "C" void cuda_on_host_enter();

#if defined(__x86_64__)
asm(R"(
.text
.globl cuda_on_host_switch
.hidden cuda_on_host_switch
.type cuda_on_host_switch, @function
cuda_on_host_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_on_host_switch, .-cuda_on_host_switch

.globl cuda_on_host_enter
.hidden cuda_on_host_enter
.type cuda_on_host_enter, @function
cuda_on_host_enter:
  movq %r12, %rdi
  callq *%r13
  ud2
.size cuda_on_host_enter, .-cuda_on_host_enter
)");
#else
asm(R"(
.text
.globl cuda_on_host_switch
.hidden cuda_on_host_switch
.type cuda_on_host_switch, %function
cuda_on_host_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size cuda_on_host_switch, .-cuda_on_host_switch

.globl cuda_on_host_enter
.hidden cuda_on_host_enter
.type cuda_on_host_enter, %function
cuda_on_host_enter:
  mov x0, x19
  blr x20
  brk #1
.size cuda_on_host_enter, .-cuda_on_host_enter
)");
#endif

namespace {

void* new_context(char* stack, size_t bytes, void (*entry)(void*), void* argument) {
  uint64_t* top =
      reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(stack + bytes) & ~uintptr_t{15});
#if defined(__x86_64__)
  uint64_t* frame = top - 9;  // six registers and where to return; then a multiple of 16
  for (int i = 0; i < 9; ++i) frame[i] = 0;
  frame[2] = reinterpret_cast<uint64_t>(entry);     // r13
  frame[3] = reinterpret_cast<uint64_t>(argument);  // r12
  frame[6] = reinterpret_cast<uint64_t>(&cuda_on_host_enter);
  return frame;
#else
  uint64_t* frame = top - 20;
  for (int i = 0; i < 20; ++i) frame[i] = 0;
  frame[0] = reinterpret_cast<uint64_t>(argument);              // x19
  frame[1] = reinterpret_cast<uint64_t>(entry);                 // x20
  frame[11] = reinterpret_cast<uint64_t>(&cuda_on_host_enter);  // x30
  return frame;
#endif
}

void free_context(void*) {}
void switch_context(void** from, void** to) { cuda_on_host_switch(from, *to); }

}  // namespace

#else  // slower: each switch asks the system for the signal mask

#include <ucontext.h>

namespace {

void enter(unsigned high, unsigned low) {
  auto* fiber = reinterpret_cast<cuda_on_host::Fiber*>((uint64_t{high} << 32) | low);
  fiber->begin();
  fiber->entry(fiber->argument);
}

void* new_context(char* stack, size_t bytes, void (*)(void*), void* fiber) {
  auto* context = new ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = bytes;
  context->uc_link = nullptr;
  const uint64_t address = reinterpret_cast<uint64_t>(fiber);
  makecontext(context, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
  return context;
}

void free_context(void* context) { delete static_cast<ucontext_t*>(context); }
void switch_context(void** from, void** to) {
  if (*from == nullptr) *from = new ucontext_t;
  swapcontext(static_cast<ucontext_t*>(*from), static_cast<ucontext_t*>(*to));
}

}  // namespace

#endif

namespace cuda_on_host {
namespace {

constexpr size_t guard_bytes = 4096;
#if defined(FIBERS_UNDER_ASAN) || defined(FIBERS_UNDER_TSAN)
constexpr size_t stack_bytes = 256 * 1024;
#else
constexpr size_t stack_bytes = 64 * 1024;
#endif

void start(void* fiber) {
  auto* self = static_cast<Fiber*>(fiber);
  self->begin();
  self->entry(self->argument);
}

}  // namespace

Fiber::Fiber() {
#ifdef FIBERS_UNDER_TSAN
  sanitizer_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(void (*entry)(void*), void* argument)
    : entry(entry), argument(argument), bytes_(stack_bytes) {
  void* memory = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, guard_bytes, PROT_NONE);
  stack_ = static_cast<char*>(memory) + guard_bytes;
  bottom_ = stack_;
  context_ = new_context(stack_, bytes_, start, this);
#ifdef FIBERS_UNDER_TSAN
  sanitizer_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
  if (stack_ == nullptr) {
#if !defined(__x86_64__) && !defined(__aarch64__)
    free_context(context_);
#endif
    return;
  }
#ifdef FIBERS_UNDER_ASAN
  __asan_unpoison_memory_region(stack_, bytes_);  // frames that never returned
#endif
#ifdef FIBERS_UNDER_TSAN
  __tsan_destroy_fiber(sanitizer_);
#endif
  free_context(context_);
  munmap(stack_ - guard_bytes, guard_bytes + bytes_);
}

void Fiber::switch_to(Fiber& next) {
  next.came_from_ = this;
#ifdef FIBERS_UNDER_ASAN
  __sanitizer_start_switch_fiber(&sanitizer_, next.bottom_, next.bytes_);
#endif
#ifdef FIBERS_UNDER_TSAN
  __tsan_switch_to_fiber(next.sanitizer_, 0);
#endif
  switch_context(&context_, &next.context_);
  arrive();
}

void Fiber::begin() { arrive(); }

void Fiber::arrive() {
#ifdef FIBERS_UNDER_ASAN
  // Where the thread's own stack lies is learned from the first switch away from it.
  const void* bottom = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(sanitizer_, &bottom, &bytes);
  if (came_from_->stack_ == nullptr) {
    came_from_->bottom_ = bottom;
    came_from_->bytes_ = bytes;
  }
#endif
}

}  // namespace cuda_on_host
