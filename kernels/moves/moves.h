// Ops that only move elements, on both devices: the op's file plans its copies in `prepare`, this
// header chooses who makes them. g++ compiles the file for the CPU, nvcc for the GPU plug-in
// (`// leat: cpu+cuda` in its first line).
//
//   template <class T>
//   BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
//     return BoundKernel::of([copy = StridedCopy(…)](const Arguments& a) {
//       copy_strided(copy, a, a.input<T>(0), a.output<T>());
//     });
//   }
//
// T is any type of the element's size (moved_elements.h). A bound function must not read elements
// itself, since a GPU's are not in host memory.
#pragma once

#ifdef __CUDACC__
#include "kernels/moves/cuda_moves.cuh"
#else
#include "kernels/moves/cpu_moves.h"
#endif
