// ConjugateTranspose: Transpose with conjugated complex numbers.
#include <algorithm>

#include "kernels/arrays/transpose.h"
#include "kernels/cpu.h"

namespace leat {
namespace {

// Copies, then conjugates the copy in place.
template <class T>
BoundKernel prepare_conjugate(TypeTag<T>, const KernelRequest& request) {
  using Element = std::conditional_t<sizeof(T) == 8, uint64_t, complex128>;
  return BoundKernel::of([copy = transposition_of(request).copy](const Arguments& a) {
    copy.run(*a.stream, a.input<Element>(0), a.output<Element>());
    T* const y = a.output<T>();
    std::transform(y, y + copy.elements(), y, [](const T& x) { return std::conj(x); });
  });
}

Kernel plain_kernel() {
  return cpu_moving_kernel(
      "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_transpose(t, r); });
}
Kernel conjugating_kernel() {
  return cpu_kernel("T", ComplexTypes{}, []<class T>(TypeTag<T> t, const KernelRequest& r) {
    return prepare_conjugate(t, r);
  });
}

const Op conjugate_transpose_op{
    transposition("ConjugateTranspose", "y = Transpose of x, with conjugated complex numbers.",
                  {conjugating_kernel(), plain_kernel()})};

}  // namespace
}  // namespace leat
