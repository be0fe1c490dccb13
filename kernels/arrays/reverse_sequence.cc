// ReverseSequence: the first elements of each sequence in reverse order.
#include "kernels/arrays/reverse_sequence.h"

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/moves/strided_copy.h"

namespace leat {
namespace {

void check_axes(const Shape& input, int64_t seq_dim, int64_t batch_dim) {
  check(batch_dim != seq_dim, "batch_dim == seq_dim == ", seq_dim);
  check(seq_dim < input.rank() && seq_dim >= 0, "seq_dim must be < input rank (", seq_dim, " vs. ",
        input.rank(), ")");
  check(batch_dim < input.rank() && batch_dim >= 0, "batch_dim must be < input rank (", batch_dim,
        " vs. ", input.rank(), ")");
}

}  // namespace

SequenceExtents sequence_extents(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const int seq = static_cast<int>(request.attr<int64_t>("seq_dim"));
  const int batch = static_cast<int>(request.attr<int64_t>("batch_dim"));
  check_axes(shape, seq, batch);
  SequenceExtents out{.length = shape[seq], .sequences = shape[batch]};
  for (int i = std::max(seq, batch) + 1; i < shape.rank(); ++i) out.row *= shape[i];
  const std::vector<int64_t> strides = strides_of(shape);
  out.step = strides[seq];
  out.batch_step = strides[batch];
  out.rows = shape.elements() / std::max<int64_t>(1, out.row);
  return out;
}

namespace {

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  const bool wide = request.inputs[1].dtype == DType::i64;
  return BoundKernel::of([wide, e = sequence_extents(request)](const Arguments& a) {
    const auto length = [&](int64_t b) {
      return wide ? a.input<int64_t>(1)[b] : int64_t{a.input<int32_t>(1)[b]};
    };
    for (int64_t b = 0; b < e.sequences; ++b) {
      check(length(b) >= 0 && length(b) <= e.length, "seq_lens(", b, ") = ", length(b),
            " is not in [0, ", e.length, "], the extent of input along seq_dim");
    }
    for (int64_t r = 0; r < e.rows; ++r) {
      const int64_t at = r * e.row, from = e.source_of(at, length(e.sequence_of(at)));
      copy_elements(a.input<T>(0) + from, e.row, a.output<T>() + at);
    }
  });
}

const Op reverse_sequence_op{{
    .name = "ReverseSequence",
    .doc = "output = input with the first seq_lengths[b] elements along axis seq_dim reversed, "
           "where b is the index along axis batch_dim.",
    .inputs = {"input: T", "seq_lengths: Tlen"},
    .outputs = {"output: T"},
    .attrs = {"seq_dim: int", "batch_dim: int = 0", "T: type", "Tlen: {int32, int64} = int64"},
    .shape =
        [](ShapeContext& c) {
          const Shape& input = c.input(0);
          const Shape lengths = c.with_rank(1, 1);
          if (input.has_rank()) {
            const int64_t batch = c.attr<int64_t>("batch_dim");
            check_axes(input, c.attr<int64_t>("seq_dim"), batch);
            check(Shape{input[static_cast<int>(batch)]}.is_compatible(lengths),
                  "seq_lengths must have one element for each index of batch_dim, got ", lengths,
                  " for input ", input);
          }
          c.set_output(0, input);
        },
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("ReverseSequence", {g.dy(), g.x(1)},
                       {{"seq_dim", g.attr<int64_t>("seq_dim")},
                        {"batch_dim", g.attr<int64_t>("batch_dim")}});
        },
    .kernels = {cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({2, 3})},
                  .attrs = {{"seq_dim", 1}},
                  .outputs = {floats({2, 3}, {2, 1, 3, 6, 5, 4})}}},
}};

}  // namespace
}  // namespace leat
