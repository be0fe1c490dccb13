// The routines of dense.h for every processor, and those of complex numbers.
#define LEAT_VERSION dense_base_version
#define Eigen leat_eigen_base
#include "kernels/linear_algebra/dense_eigen.h"

namespace leat {
const RealDenseRoutines dense_base = LEAT_VERSION::real_routines;
const DenseRoutines<std::complex<double>> dense_base_complex =
    LEAT_VERSION::routines<std::complex<double>>;
}  // namespace leat
