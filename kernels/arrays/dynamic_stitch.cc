// DynamicStitch, ParallelDynamicStitch: merge rows from several tensors at given positions. The
// largest position determines the number of rows, so they run between segments.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/pieces.h"

namespace leat {
namespace {

// The shape of a row: the axes of data[i] after those of indices[i].
Shape row_of(const Shape& indices, const Shape& data) {
  check(data.rank() >= indices.rank(), "data ", data, " must begin with the shape of its indices ",
        indices);
  Shape row;
  for (int i = 0; i < data.rank(); ++i) {
    if (i >= indices.rank()) {
      row.push_back(data[i]);
    } else {
      check(data[i] == any || indices[i] == any || data[i] == indices[i], "data ", data,
            " must begin with the shape of its indices ", indices);
    }
  }
  return row;
}

void infer(ShapeContext& c) {
  const int n = c.num_inputs() / 2;
  int64_t last = -1;
  bool known = true;
  Shape row = Shape::unknown();
  for (int i = 0; i < n; ++i) {
    const Shape &indices = c.input(i), &data = c.input(n + i);
    if (indices.has_rank() && data.has_rank()) row = row.merged(row_of(indices, data));
    const Tensor* value = c.value(i);
    known = known && value != nullptr;
    if (value == nullptr) continue;
    for (const int64_t index : to_int64s(*value)) last = std::max(last, index);
  }
  if (!row.has_rank()) return c.set_output(0, Shape::unknown());
  Shape out{known ? last + 1 : any};
  for (const int64_t extent : row.dims()) out.push_back(extent);
  c.set_output(0, out);
}

template <class T>
void stitch(ExecuteContext& c, Tensor& out, int64_t row) {
  const int n = c.num_inputs() / 2;
  T* merged = static_cast<T*>(out.raw());
  fill_in_pieces(merged, out.elements(), T{});
  for (int i = 0; i < n; ++i) {
    const std::span<const int32_t> indices = c.input(i).span<int32_t>();
    const T* data = static_cast<const T*>(c.input(n + i).raw());
    for (size_t j = 0; j < indices.size(); ++j)
      copy_elements(data + j * row, row, merged + indices[j] * row);
  }
}

void run(ExecuteContext& c) {
  const int n = c.num_inputs() / 2;
  int64_t rows = 0;
  for (int i = 0; i < n; ++i) {
    for (const int32_t index : c.input(i).span<int32_t>()) {
      check(index >= 0, "indices[", i, "] contains the negative index ", index);
      rows = std::max(rows, int64_t{index} + 1);
    }
  }
  const Shape row = row_of(c.input(0).shape(), c.input(n).shape());
  for (int i = 1; i < n; ++i) {
    const Shape other = row_of(c.input(i).shape(), c.input(n + i).shape());
    check(other == row, "data[", i, "] has rows of shape ", other,
          ", but data[0] has rows of shape ", row);
  }
  Shape shape{rows};
  for (const int64_t extent : row.dims()) shape.push_back(extent);
  Tensor out(c.input(n).dtype(), shape);
  visit_moved(out.dtype(), [&]<class T>(TypeTag<T>) { stitch<T>(c, out, row.elements()); });
  c.set_output(0, std::move(out));
}

OpDef stitch_op(std::string name, std::string doc) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {"indices: N * int32", "data: N * T"},
      .outputs = {"merged: T"},
      .attrs = {"N: int >= 1", "T: type"},
      .shape = infer,
      .gradient =
          [](Gradient& g) {
            const int n = g.num_inputs() / 2;
            for (int i = 0; i < n; ++i) g.dx(n + i) = take(g.dy(), g.x(i));
          },
      .kernels = {{.types = {{"T", AllTypes::list()}}, .execute = run}},
      .examples = {{.inputs = {ints({0, 2}), Tensor::scalar<int32_t>(1), floats({2, 1}, {1, 3}),
                               floats({2})},
                    .outputs = {floats({3, 1}, {1, 2, 3})}}},
      .has_data_dependent_shape = true,
  };
}

const Op dynamic_stitch_op(
    stitch_op("DynamicStitch",
              "merged[indices[m][i…]] = data[m][i…] for all m, i; the last one wins. Rows that no "
              "index names are 0."));
// In TensorFlow the order of updates is undefined; here it is DynamicStitch's.
const Op parallel_dynamic_stitch_op(
    stitch_op("ParallelDynamicStitch",
              "merged[indices[m][i…]] = data[m][i…] for all m, i; each index occurs once. Rows "
              "that no index names are 0."));

}  // namespace
}  // namespace leat
