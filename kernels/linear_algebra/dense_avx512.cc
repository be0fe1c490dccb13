// leat: avx512
// The routines of dense.h for AVX-512.
#ifdef __AVX512F__
#define LEAT_VERSION dense_avx512_version
#define Eigen leat_eigen_avx512
#include "kernels/linear_algebra/dense_eigen.h"

namespace leat {
const DenseRoutines<double>* const dense_avx512 = &LEAT_VERSION::routines<double>;
}
#else
#include "kernels/linear_algebra/dense.h"

namespace leat {
const DenseRoutines<double>* const dense_avx512 = nullptr;
}
#endif
