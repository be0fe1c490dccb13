#include "kernels/linear_algebra/dense.h"

#include "core/execution/step_end.h"
#include "kernels/cpu_isa.h"

namespace leat {

namespace {

const RealDenseRoutines& of_this_processor() {
  const auto* chosen = choose_isa(&dense_base, dense_avx2, dense_avx2);
  return chosen == nullptr ? dense_base : *chosen;
}

}  // namespace

template <>
const DenseRoutines<float>& dense() {
  return of_this_processor().f32;
}

template <>
const DenseRoutines<double>& dense() {
  return of_this_processor().f64;
}

template <>
const DenseRoutines<std::complex<double>>& dense() {
  return dense_base_complex;
}

void ask_for_step_end() { StepEnd::ask(); }

}  // namespace leat
