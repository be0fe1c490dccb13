#include "kernels/linear_algebra/dense.h"

#include "core/execution/step_end.h"
#include "kernels/cpu_isa.h"

namespace leat {

template <>
const DenseRoutines<double>& dense() {
  const auto* chosen = choose_isa(&dense_base, dense_avx2, dense_avx512);
  return chosen == nullptr ? dense_base : *chosen;
}

template <>
const DenseRoutines<std::complex<double>>& dense() {
  return dense_base_complex;
}

void ask_for_step_end() { StepEnd::ask(); }

}  // namespace leat
