// Numbers too small to be normal count as 0 while kernels run, as in TensorFlow: a processor takes
// a hundred times as long for each of them, and they come in numbers where activations saturate or
// products have many factors.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace leat {

// Of this thread, until the end of the scope.
class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : before_(_mm_getcsr()) {
    if ((before_ & flags) != flags) _mm_setcsr(before_ | flags);
  }
  ~FlushDenormals() {
    if ((before_ & flags) != flags) _mm_setcsr(before_);
  }

 private:
  static constexpr unsigned flags = 0x8040;  // results (FTZ) and operands (DAZ)
  const unsigned before_;
#else
  FlushDenormals() {}
#endif
  FlushDenormals(const FlushDenormals&) = delete;
};

}  // namespace leat
