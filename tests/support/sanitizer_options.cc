// Options that the sanitizers request from a test program at its start.
#if defined(__SANITIZE_ADDRESS__)
#define LEAT_HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAT_HAS_ASAN 1
#endif
#endif

#ifdef LEAT_HAS_ASAN
// Memory that is not there is a null pointer, as without a sanitizer: tests ask for too much.
extern "C" const char* __asan_default_options() {  // NOLINT: its name is fixed
  return "allocator_may_return_null=1";
}
#endif
