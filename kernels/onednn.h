// oneDNN as our kernels use it: one engine, always on the calling thread; our pool splits the work.
// Only for .cc files.
#pragma once

#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

namespace leat {

// oneDNN's OpenMP threads would spin at their barriers. Call it on a thread before the first use
// there: primitives size their scratch memory for the current number of threads, and run on as
// many.
inline void use_one_onednn_thread() {
  static thread_local const bool done = (omp_set_num_threads(1), true);
  (void)done;
}

inline const dnnl::engine& onednn_engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

// oneDNN does not accept const pointers.
inline dnnl::memory onednn_memory(const dnnl::memory::desc& desc, const void* data) {
  return dnnl::memory(desc, onednn_engine(), const_cast<void*>(data));
}

}  // namespace leat
