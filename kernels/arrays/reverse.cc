// ReverseV2 reverses the elements along some axes, ReverseSequence the first ones of each sequence.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/strided_copy.h"

namespace leat {
namespace {

// A scalar or a tensor without elements has no reversed axes, whatever `axes` says, as in
// TensorFlow.
std::vector<bool> reversed_axes(const Tensor& axes, const Shape& shape) {
  const int rank = shape.rank();
  std::vector<bool> reversed(rank, false);
  if (rank == 0 || (shape.is_complete() && shape.elements() == 0)) return reversed;
  const std::vector<int64_t> list = to_int64s(axes);
  for (size_t i = 0; i < list.size(); ++i) {
    check(list[i] >= -rank && list[i] < rank, "'axis'[", i, "] = ", list[i],
          " is out of valid range [", -rank, ", ", rank - 1, "]");
    const size_t axis = static_cast<size_t>(list[i] < 0 ? list[i] + rank : list[i]);
    check(!reversed[axis], "axis ", axis, " specified more than once.");
    reversed[axis] = true;
  }
  return reversed;
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const std::vector<bool> reversed = reversed_axes(*request.inputs[1].value, shape);
  const std::vector<int64_t> strides = strides_of(shape);
  std::vector<StridedCopy::Axis> axes;
  int64_t first = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    axes.push_back({shape[i], reversed[i] ? -strides[i] : strides[i], strides[i]});
    if (reversed[i]) first += (shape[i] - 1) * strides[i];
  }
  if (shape.elements() == 0) return {};
  if (first == 0) return BoundKernel::view();
  return BoundKernel::of([copy = StridedCopy(std::move(axes)), first](const Arguments& a) {
    copy.run(*a.stream, a.input<T>(0) + first, a.output<T>());
  });
}

const Op reverse_op{{
    .name = "ReverseV2",
    .doc = "output = tensor with the order of the elements reversed along each of the axes.",
    .inputs = {"tensor: T", "axis: Tidx"},
    .outputs = {"output: T"},
    .attrs = {"Tidx: {int32, int64} = int32",
              "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, "
              "float, double, complex64, complex128, string}"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 1);
          if (c.input(0).has_rank() && c.value(1) != nullptr)
            reversed_axes(*c.value(1), c.input(0));
          c.set_output(0, c.input(0));
        },
    .gradient =
        [](Gradient& g) {
          g.dx(0) = op("ReverseV2", {g.dy(), g.x(1)});
        },
    .kernels = {cpu_moving_kernel(
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({-1})},
                  .outputs = {floats({2, 2}, {2, 1, 4, 3})}},
                 {.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({0, 1})},
                  .outputs = {floats({2, 2}, {4, 3, 2, 1})}}},
    .value_inputs = {1},
}};

// ---- ReverseSequence

void check_axes(const Shape& input, int64_t seq_dim, int64_t batch_dim) {
  check(batch_dim != seq_dim, "batch_dim == seq_dim == ", seq_dim);
  check(seq_dim < input.rank() && seq_dim >= 0, "seq_dim must be < input rank (", seq_dim, " vs. ",
        input.rank(), ")");
  check(batch_dim < input.rank() && batch_dim >= 0, "batch_dim must be < input rank (", batch_dim,
        " vs. ", input.rank(), ")");
}

template <class T>
BoundKernel prepare_sequence(TypeTag<T>, const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  const int seq = static_cast<int>(request.attr<int64_t>("seq_dim"));
  const int batch = static_cast<int>(request.attr<int64_t>("batch_dim"));
  check_axes(shape, seq, batch);
  int64_t row = 1;  // elements after both axes
  const int inner = std::max(seq, batch);
  for (int i = inner + 1; i < shape.rank(); ++i) row *= shape[i];
  const std::vector<int64_t> strides = strides_of(shape);
  const bool wide = request.inputs[1].dtype == DType::i64;
  const int64_t rows = shape.elements() / std::max<int64_t>(1, row);
  return BoundKernel::of([=](const Arguments& a) {
    const auto length = [&](int64_t b) {
      return wide ? a.input<int64_t>(1)[b] : int64_t{a.input<int32_t>(1)[b]};
    };
    for (int64_t b = 0; b < shape[batch]; ++b) {
      check(length(b) >= 0 && length(b) <= shape[seq], "seq_lens(", b, ") = ", length(b),
            " is not in [0, ", shape[seq], "], the extent of input along seq_dim");
    }
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * row, s = at / strides[seq] % shape[seq];
      const int64_t n = length(at / strides[batch] % shape[batch]);
      const int64_t from = s < n ? at + (n - 1 - 2 * s) * strides[seq] : at;
      copy_elements(a.input<T>(0) + from, row, a.output<T>() + at);
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
        "T", []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_sequence(t, r); })},
    .examples = {{.inputs = {floats({2, 3}, {1, 2, 3, 4, 5, 6}), ints({2, 3})},
                  .attrs = {{"seq_dim", 1}},
                  .outputs = {floats({2, 3}, {2, 1, 3, 6, 5, 4})}}},
}};

}  // namespace
}  // namespace leat
