// MatrixBandPart: matrices with zeros outside a band around the diagonal.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

const Op band_part_op{{
    .name = "MatrixBandPart",
    .doc =
        "band[b…, m, n] = input[b…, m, n] where m - n <= num_lower (or that is negative) and n - "
        "m <= num_upper (or that is), else 0.",
    .inputs = {"input: T", "num_lower: Tindex", "num_upper: Tindex"},
    .outputs = {"band: T"},
    .attrs = {"T: type", "Tindex: {int32, int64} = int64"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank_at_least(0, 2);
          for (int i : {1, 2}) c.with_rank(i, 0);
          c.set_output(0, c.input(0));
        },
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("MatrixBandPart", {g.dy(), g.x(1), g.x(2)});
        },
    .kernels = {cpu_moving_kernel(
        "T",
        []<class T>(TypeTag<T>, const KernelRequest& r) {
          const Shape& shape = r.inputs[0].shape;
          const int64_t rows = shape[shape.rank() - 2], cols = shape[shape.rank() - 1];
          const int64_t lower = to_int64s(*r.inputs[1].value).at(0);
          const int64_t upper = to_int64s(*r.inputs[2].value).at(0);
          check(lower <= rows, "num_lower must be negative or less or equal to number of rows (",
                rows, ") got: ", lower);
          check(upper <= cols, "num_upper must be negative or less or equal to number of columns (",
                cols, ") got: ", upper);
          const int64_t all_rows = shape.elements() == 0 ? 0 : shape.elements() / cols;
          return BoundKernel::of([=](const Arguments& a) {
                   for (int64_t r = 0; r < all_rows; ++r) {
                     const int64_t m = r % rows;
                     const T* from = a.input<T>(0) + r * cols;
                     T* to = a.output<T>() + r * cols;
                     for (int64_t n = 0; n < cols; ++n) {
                       const bool keeps =
                           (lower < 0 || m - n <= lower) && (upper < 0 || n - m <= upper);
                       to[n] = keeps ? from[n] : T{};
                     }
                   }
                 })
              .sharing(0, 0);
        })},
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), Tensor::scalar<int64_t>(0),
                             Tensor::scalar<int64_t>(1)},
                  .outputs = {floats({2, 3}, {1, 2, 0, 0, 5, 6})}}},
    .value_inputs = {1, 2},
}};

}  // namespace
}  // namespace leat
