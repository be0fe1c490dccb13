// LEAT_UNDER_SANITIZER: memory belongs to AddressSanitizer or ThreadSanitizer, which keep freed
// memory and have their own malloc.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LEAT_UNDER_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LEAT_UNDER_SANITIZER
#endif
#endif
