// Adds an entry to rows without entries: SparseFillEmptyRows, RaggedFillEmptyRows and their
// gradients.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/sparse/sparse_tensor.h"

namespace leat {
namespace {

// Inputs 0 and 1 are the places and the values of n entries, input 3 is the value of added entries.
// A place is `rank` numbers, of which the first is the row.
template <class T>
void fill_empty_rows(ExecuteContext& c, int64_t rows, int64_t rank) {
  const Tensor &places = c.input(0), &values = c.input(1);
  check(c.input(3).shape().rank() == 0,
        "default_value must be a scalar, saw: ", c.input(3).shape());
  check(rows >= 0, "the number of rows must not be negative, got ", rows);
  const int64_t n = values.elements();
  const auto* place = places.data<int64_t>();
  // Tensors, because they report it if memory is short.
  Tensor entries_of_rows(DType::i64, {rows}), next_of_rows(DType::i64, {rows});
  const std::span<int64_t> entries = entries_of_rows.span<int64_t>();
  std::fill(entries.begin(), entries.end(), int64_t{0});
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = place[i * rank];
    check(row >= 0 && row < rows, "entry ", i, " is in row ", row, ", which is not in [0, ", rows,
          ")");
    ++entries[row];
  }
  auto* next = next_of_rows.data<int64_t>();  // place in the output of each row's next entry
  const int64_t n_empty = std::count(entries.begin(), entries.end(), int64_t{0});
  Shape filled = places.shape();
  filled.set(0, n + n_empty);
  Tensor is_empty(DType::boolean, {rows}), map(DType::i64, {n});
  Tensor out_places(DType::i64, filled), out_values(values.dtype(), {n + n_empty});
  int64_t at = 0;
  for (int64_t row = 0; row < rows; ++row) {
    next[row] = at;
    is_empty.data<bool>()[row] = entries[row] == 0;
    if (entries[row] == 0) {
      int64_t* to = out_places.data<int64_t>() + at * rank;
      std::fill_n(to, rank, int64_t{0});
      to[0] = row;
      out_values.data<T>()[at] = *c.input(3).data<T>();
    }
    at += std::max<int64_t>(1, entries[row]);
  }
  for (int64_t i = 0; i < n; ++i) {
    const int64_t to = next[place[i * rank]]++;
    copy_elements(place + i * rank, rank, out_places.data<int64_t>() + to * rank);
    out_values.data<T>()[to] = values.data<T>()[i];
    map.data<int64_t>()[i] = to;
  }
  c.set_output(0, std::move(out_places));
  c.set_output(1, std::move(out_values));
  c.set_output(2, std::move(is_empty));
  c.set_output(3, std::move(map));
}

template <class T>
void fill_sparse(ExecuteContext& c) {
  check_sparse(c.input(0), c.input(1), c.input(2));
  const int64_t rank = c.input(0).shape()[1];
  check(rank > 0, "Dense shape cannot be empty.");
  fill_empty_rows<T>(c, *c.input(2).data<int64_t>(), rank);
}

template <class T>
void fill_ragged(ExecuteContext& c) {
  const Shape &rows = c.input(0).shape(), &values = c.input(1).shape();
  check(c.input(2).shape().rank() == 0, "nrows must be a scalar, saw: ", c.input(2).shape());
  check(rows.rank() == 1 && values == rows,
        "value_rowids and values must be vectors of one length, saw: ", rows, " and ", values);
  fill_empty_rows<T>(c, *c.input(2).data<int64_t>(), 1);
}

void differentiate(Gradient& g, const char* gradient_op) {
  const std::vector<Output> dx = op_outputs(gradient_op, {g.y(3), g.dy(1)});
  g.dx(1) = dx[0];
  g.dx(3) = dx[1];
}

const Op fill_sparse_op{{
    .name = "SparseFillEmptyRows",
    .doc = "The sparse tensor with an entry default_value at [row, 0, …] for every row without "
           "entries; also which rows were empty, and the new place of every entry.",
    .inputs = {"indices: int64", "values: T", "dense_shape: int64", "default_value: T"},
    .outputs = {"output_indices: int64", "output_values: T", "empty_row_indicator: bool",
                "reverse_index_map: int64"},
    .attrs = {"T: type"},
    .shape =
        [](ShapeContext& c) {
          const Shape indices = infer_sparse(c);
          c.with_rank(3, 0);
          const Shape shape = c.partial_value(2);
          c.set_output(0, {any, indices[1]});
          c.set_output(1, {any});
          c.set_output(2, {shape.has_rank() && shape.rank() > 0 ? shape[0] : any});
          c.set_output(3, {indices[0]});
        },
    .gradient = [](Gradient& g) { differentiate(g, "SparseFillEmptyRowsGrad"); },
    .kernels = {execute_kernel("T", AllTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { fill_sparse<T>(c); })},
    .examples = {{.inputs = {longs({2, 2}, {2, 0, 0, 1}), floats({1, 2}), longs({3, 2}),
                             Tensor::scalar(9.0F)},
                  .outputs = {longs({3, 2}, {0, 1, 1, 0, 2, 0}), floats({2, 9, 1}),
                              bools({false, true, false}), longs({2, 0})}}},
    .has_data_dependent_shape = true,
}};

const Op fill_ragged_op{{
    .name = "RaggedFillEmptyRows",
    .doc = "The ragged tensor, given as the row of each value, with default_value added to every "
           "row without values; also which rows were empty, and the new place of every value.",
    .inputs = {"value_rowids: int64", "values: T", "nrows: int64", "default_value: T"},
    .outputs = {"output_value_rowids: int64", "output_values: T", "empty_row_indicator: bool",
                "reverse_index_map: int64"},
    .attrs = {"T: type"},
    .shape =
        [](ShapeContext& c) {
          const Shape entries = c.with_rank(0, 1).merged(c.with_rank(1, 1));
          c.with_rank(2, 0);
          c.with_rank(3, 0);
          for (int i : {0, 1, 2}) c.set_output(i, {any});
          c.set_output(3, entries);
        },
    .gradient = [](Gradient& g) { differentiate(g, "RaggedFillEmptyRowsGrad"); },
    .kernels = {execute_kernel("T", AllTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { fill_ragged<T>(c); })},
    .examples = {{.inputs = {longs({2, 0}), floats({1, 2}), Tensor::scalar<int64_t>(3),
                             Tensor::scalar(9.0F)},
                  .outputs = {longs({0, 1, 2}), floats({2, 9, 1}), bools({false, true, false}),
                              longs({2, 0})}}},
    .has_data_dependent_shape = true,
}};

// ---- Gradients

template <class T>
BoundKernel prepare_gradient(TypeTag<T>, const KernelRequest& r) {
  using C = ComputeType<T>;
  return BoundKernel::of(
      [n = r.inputs[0].shape.elements(), count = r.inputs[1].shape.elements()](const Arguments& a) {
        const auto* map = a.input<int64_t>(0);
        const T* dy = a.input<T>(1);
        std::vector<bool> is_entry(count, false);
        for (int64_t i = 0; i < n; ++i) {
          check(map[i] >= 0 && map[i] < count, "Elements in reverse index must be in [0, ", count,
                ") but got ", map[i]);
          a.output<T>(0)[i] = dy[map[i]];
          is_entry[map[i]] = true;
        }
        C sum = 0;
        for (int64_t i = 0; i < count; ++i) sum = is_entry[i] ? sum : C(sum + C(dy[i]));
        *a.output<T>(1) = T(sum);
      });
}

OpDef gradient_op(const char* name) {
  return {
      .name = name,
      .doc =
          "d_values = grad_values of the entries that were there, d_default_value = the sum of "
          "the others.",
      .inputs = {"reverse_index_map: int64", "grad_values: T"},
      .outputs = {"d_values: T", "d_default_value: T"},
      .attrs = {"T: type"},
      .shape =
          [](ShapeContext& c) {
            c.with_rank(1, 1);
            c.set_output(0, c.with_rank(0, 1));
            c.set_output(1, {});
          },
      .kernels = {cpu_kernel(
          "T", NumberAndComplexTypes{},
          []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare_gradient(t, r); })},
      .examples = {{.inputs = {longs({2, 0}), floats({1, 2, 3, 4})},
                    .outputs = {floats({3, 1}), Tensor::scalar(6.0F)}}},
  };
}

const Op sparse_gradient_op{gradient_op("SparseFillEmptyRowsGrad")};
const Op ragged_gradient_op{gradient_op("RaggedFillEmptyRowsGrad")};

}  // namespace
}  // namespace leat
