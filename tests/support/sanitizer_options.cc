// Options that the sanitizers request from a test program at its start.
#if defined(__SANITIZE_ADDRESS__)
#define LEAT_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAT_HAS_ASAN 1
#endif
#endif

#ifdef LEAT_HAS_ASAN
// Failed allocations return a null pointer, as without a sanitizer: tests request too much memory.
extern "C" const char* __asan_default_options() {  // NOLINT: its name is fixed
  return "allocator_may_return_null=1";
}
#endif
