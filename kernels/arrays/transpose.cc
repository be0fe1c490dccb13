// leat: cpu+cuda
// Transpose: axes in another order.
#include "kernels/arrays/transpose.h"

namespace leat {
namespace {

const Op transpose_op{transposition(
    "Transpose",
    "y[i_0, …, i_n] = x[j_0, …, j_n] with j_perm[k] = i_k: axis k of y is axis perm[k] of x.",
    moving_kernels_and_for_variants("T", []<class T>(TypeTag<T> t, const KernelRequest& r) {
      return prepare_transpose(t, r);
    }))};

}  // namespace
}  // namespace leat
