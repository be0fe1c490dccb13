// leat: avx2
// The routines of dense.h for AVX2 and FMA.
#ifdef __AVX2__
#define LEAT_VERSION dense_avx2_version
#define Eigen leat_eigen_avx2
#include "kernels/linear_algebra/dense_eigen.h"

namespace leat {
const RealDenseRoutines* const dense_avx2 = &LEAT_VERSION::real_routines;
}
#else
#include "kernels/linear_algebra/dense.h"

namespace leat {
const RealDenseRoutines* const dense_avx2 = nullptr;
}
#endif
