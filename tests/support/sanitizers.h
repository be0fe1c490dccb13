// LEAT_UNDER_SANITIZER: memory is AddressSanitizer's or ThreadSanitizer's, which keep what was
// freed and have a malloc of their own.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LEAT_UNDER_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LEAT_UNDER_SANITIZER
#endif
#endif
