// Diag and DiagPart: the diagonal of a tensor of any even rank. MatrixDiag (matrix_diag.cc) handles
// diagonals of matrices.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/pieces.h"

namespace leat {
namespace {

using DiagTypes = Types<float, double, half, bfloat16, int32_t, int64_t, complex64, complex128>;
const char* const types = "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}";

const Op diag_op{{
    .name = "Diag",
    .doc = "output[i…, i…] = diagonal[i…], 0 elsewhere.",
    .inputs = {"diagonal: T"},
    .outputs = {"output: T"},
    .attrs = {types},
    .shape =
        [](ShapeContext& c) {
          const Shape& diagonal = c.input(0);
          if (!diagonal.has_rank()) return c.set_output(0, Shape::unknown());
          check(diagonal.rank() >= 1, "Input must be at least rank 1, got ", diagonal);
          Shape out = diagonal;
          for (const int64_t extent : diagonal.dims()) out.push_back(extent);
          c.set_output(0, out);
        },
    .gradient = [](Gradient& g) { g.dx() = op("DiagPart", {g.dy()}); },
    .kernels = {cpu_kernel("T", DiagTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return BoundKernel::of(
                                 [n = r.inputs[0].shape.elements()](const Arguments& a) {
                                   fill_in_pieces(a.output<T>(), n * n, T(0));
                                   for (int64_t i = 0; i < n; ++i)
                                     a.output<T>()[i * (n + 1)] = a.input<T>(0)[i];
                                 });
                           })},
    .examples = {{.inputs = {floats({1, 2})}, .outputs = {floats({2, 2}, {1, 0, 0, 2})}}},
}};

const Op diag_part_op{{
    .name = "DiagPart",
    .doc = "diagonal[i…] = input[i…, i…].",
    .inputs = {"input: T"},
    .outputs = {"diagonal: T"},
    .attrs = {types},
    .shape =
        [](ShapeContext& c) {
          const Shape& input = c.input(0);
          if (!input.has_rank()) return c.set_output(0, Shape::unknown());
          check(input.rank() % 2 == 0 && input.rank() > 0,
                "The rank of the tensor should be even and positive, got shape ", input);
          const int half_rank = input.rank() / 2;
          const Shape first(input.dims().first(half_rank)), last(input.dims().last(half_rank));
          check(first.is_compatible(last), "Invalid shape ", input, ": extents ", first, " and ",
                last, " must be equal");
          c.set_output(0, first.merged(last));
        },
    .gradient = [](Gradient& g) { g.dx() = op("Diag", {g.dy()}); },
    .kernels = {cpu_kernel("T", DiagTypes{},
                           []<class T>(TypeTag<T>, const KernelRequest& r) {
                             return BoundKernel::of(
                                 [n = r.outputs[0].shape.elements()](const Arguments& a) {
                                   for (int64_t i = 0; i < n; ++i)
                                     a.output<T>()[i] = a.input<T>(0)[i * (n + 1)];
                                 });
                           })},
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4})}, .outputs = {floats({1, 4})}}},
}};

}  // namespace
}  // namespace leat
