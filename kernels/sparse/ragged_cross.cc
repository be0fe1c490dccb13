// RaggedCross: the crosses of ragged, sparse and dense columns. A row of the result has every
// combination of one feature per column, as a string or as a hash; the last column's features
// change fastest.
#include <algorithm>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/row_splits.h"
#include "kernels/sparse/crossed_features.h"

namespace leat {
namespace {

constexpr const char* one_batch = "inputs must all have the same batch dimension size.";
constexpr const char* rank_2 = "tf.ragged.cross only supports inputs with rank=2.";

// The features of row i are elements [splits[i], splits[i + 1]) of `values`.
struct Column {
  const Tensor& values;
  std::vector<int64_t> splits;

  int64_t num_rows() const { return std::ssize(splits) - 1; }
  int64_t num_features(int64_t row) const { return splits[row + 1] - splits[row]; }
};

Column ragged_column(const Tensor& values, const Tensor& row_splits) {
  check(values.shape().rank() == 1 && row_splits.shape().rank() == 1, rank_2);
  Column column{values, to_int64s(row_splits)};
  const std::vector<int64_t>& splits = column.splits;
  check(!splits.empty(), "Ragged splits may not be empty");
  check(splits.front() == 0, "Ragged splits must start with 0, got ", splits.front());
  check(std::is_sorted(splits.begin(), splits.end()), "Ragged splits must be sorted");
  check(splits.back() == values.elements(), "Ragged splits must end with the number of values, ",
        values.elements(), ", got ", splits.back());
  return column;
}

// Entries of a row must follow those of rows before it; as in TensorFlow, an entry that does not is
// counted towards the current row.
Column sparse_column(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  check(shape.shape() == Shape{2}, rank_2);
  check(indices.shape().rank() == 2 && values.shape().rank() == 1 &&
            indices.shape()[0] == values.shape()[0] && indices.shape()[1] == 2,
        "Invalid SparseTensor: indices ", indices.shape(), ", values ", values.shape());
  const int64_t rows = shape.data<int64_t>()[0], count = values.elements();
  check(rows >= 0, "Invalid SparseTensor: its number of rows, ", rows, ", is negative");
  const auto* index = indices.data<int64_t>();
  check_memory_for(rows, sizeof(int64_t));
  Column column{values, {0}};
  int64_t i = 0;
  for (int64_t row = 0; row < rows; ++row) {
    while (i < count && index[2 * i] <= row) ++i;
    column.splits.push_back(i);
  }
  return column;
}

Column dense_column(const Tensor& values) {
  check(values.shape().rank() == 2, rank_2);
  Column column{values, {0}};
  for (int64_t row = 1; row <= values.shape()[0]; ++row)
    column.splits.push_back(row * values.shape()[1]);
  return column;
}

// The columns by the op's `input_order`: R for a ragged one, S for a sparse one, D for a dense one.
std::vector<Column> columns_of(const ExecuteContext& c) {
  const auto count_of = [&](const char* attr) {
    return static_cast<int>(c.node().attr<std::vector<DType>>(attr).size());
  };
  const int ragged = count_of("ragged_values_types"), sparse = count_of("sparse_values_types"),
            dense = count_of("dense_types"), first_sparse = 2 * ragged,
            first_dense = first_sparse + 3 * sparse;
  const std::string& order = c.node().attr<std::string>("input_order");
  const auto letters = [&](char letter) { return std::count(order.begin(), order.end(), letter); };
  check(letters('R') == ragged && letters('S') == sparse && letters('D') == dense &&
            std::ssize(order) == ragged + sparse + dense,
        "input_order \"", order, "\" must have an R for each of ", ragged,
        " ragged inputs, an S for each of ", sparse, " sparse ones and a D for each of ", dense,
        " dense ones");
  std::vector<Column> columns;
  int r = 0, s = first_sparse, d = first_dense;
  for (const char kind : order) {
    if (kind == 'R') {
      columns.push_back(ragged_column(c.input(r), c.input(ragged + r)));
      ++r;
    } else if (kind == 'S') {
      columns.push_back(sparse_column(c.input(s), c.input(s + sparse), c.input(s + 2 * sparse)));
      ++s;
    } else {
      columns.push_back(dense_column(c.input(d++)));
    }
  }
  for (const Column& column : columns) check(column.num_rows() == columns[0].num_rows(), one_batch);
  return columns;
}

// Where the crosses of each row begin.
std::vector<int64_t> crossed_splits(const std::vector<Column>& columns) {
  std::vector<int64_t> splits = {0};
  const int64_t rows = columns.empty() ? 0 : columns[0].num_rows();
  for (int64_t row = 0; row < rows; ++row) {
    int64_t crosses = 1, end = 0;
    const bool is_empty = std::ranges::any_of(
        columns, [&](const Column& column) { return column.num_features(row) == 0; });
    for (const Column& column : columns) {
      check(is_empty || !__builtin_mul_overflow(crosses, column.num_features(row), &crosses),
            "too many crosses in row ", row);
    }
    check(!__builtin_add_overflow(splits.back(), is_empty ? 0 : crosses, &end),
          "too many crosses up to row ", row);
    splits.push_back(end);
  }
  return splits;
}

// T is std::string or int64_t; cross(elements, one for each column) makes one cross.
template <class T, class Cross>
Tensor crosses(const std::vector<Column>& columns, const std::vector<int64_t>& splits,
               Cross cross) {
  Tensor out(dtype_of<T>, Shape{splits.back()});
  T* value = out.template data<T>();
  std::vector<int64_t> elements(columns.size());
  for (int64_t row = 0; row + 1 < std::ssize(splits); ++row) {
    for (size_t k = 0; k < columns.size(); ++k) elements[k] = columns[k].splits[row];
    for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
      StepEnd::pace(64);
      *value++ = cross(elements);
      for (size_t k = columns.size(); k-- > 0;) {
        if (++elements[k] < columns[k].splits[row + 1]) break;
        elements[k] = columns[k].splits[row];
      }
    }
  }
  return out;
}

Tensor text_crosses(const std::vector<Column>& columns, const std::vector<int64_t>& splits) {
  return crosses<std::string>(columns, splits, [&](const std::vector<int64_t>& elements) {
    std::string joined;
    for (size_t k = 0; k < elements.size(); ++k) {
      if (k > 0) joined += "_X_";
      joined += feature_text(columns[k].values, elements[k]);
    }
    return joined;
  });
}

void cross(ExecuteContext& c) {
  const std::vector<Column> columns = columns_of(c);
  const std::vector<int64_t> splits = crossed_splits(columns);
  const auto key = static_cast<uint64_t>(c.node().attr<int64_t>("hash_key"));
  const int64_t num_buckets = c.node().attr<int64_t>("num_buckets");
  c.set_output(1, row_splits(splits, c.node().attr<DType>("out_row_splits_type")));
  if (c.node().attr<DType>("out_values_type") == DType::string) {
    c.set_output(0, text_crosses(columns, splits));
    return;
  }
  c.set_output(0, crosses<int64_t>(columns, splits, [&](const std::vector<int64_t>& elements) {
                 uint64_t hash = key;
                 for (size_t k = 0; k < elements.size(); ++k)
                   hash = combined_hash(hash, feature_fingerprint(columns[k].values, elements[k]));
                 return bucket_of(hash, num_buckets);
               }));
}

void infer(ShapeContext& c) {
  const auto count_of = [&](const char* attr) {
    return static_cast<int>(c.attr<std::vector<DType>>(attr).size());
  };
  const int ragged = count_of("ragged_values_types"), sparse = count_of("sparse_values_types");
  check(ragged == count_of("ragged_splits_types"),
        "ragged values and splits must have the same length.");
  check(sparse == c.attr<int64_t>("Nsparse"),
        "sparse indices and values must have the same length");
  Shape splits{any};
  const auto merge = [&](int64_t rows) {
    check(splits[0] == any || splits[0] == rows + 1, one_batch);
    splits = {rows + 1};
  };
  for (int i = ragged; i < 2 * ragged; ++i) {
    const Shape row_splits = c.with_rank(i, 1);
    if (row_splits[0] != any) merge(row_splits[0] - 1);
  }
  for (int i = 2 * ragged + 3 * sparse; i < c.num_inputs(); ++i) {
    const Shape dense = c.with_rank(i, 2);
    if (dense[0] != any) merge(dense[0]);
  }
  c.set_output(0, {any});
  c.set_output(1, splits);
}

const Op ragged_cross_op{{
    .name = "RaggedCross",
    .doc = "Crosses of the columns, which come in input_order (R, S, D: the next ragged, sparse, "
           "dense one): strings joined by \"_X_\" or, of out_values_type int64, their hashes from "
           "hash_key on, modulo num_buckets if that is not 0.",
    .inputs = {"ragged_values: ragged_values_types", "ragged_row_splits: ragged_splits_types",
               "sparse_indices: Nsparse * int64", "sparse_values: sparse_values_types",
               "sparse_shape: Nsparse * int64", "dense_inputs: dense_types"},
    .outputs = {"output_values: out_values_type", "output_row_splits: out_row_splits_type"},
    .attrs = {"Nsparse: int >= 0", "input_order: string", "hashed_output: bool",
              "num_buckets: int >= 0", "hash_key: int",
              "ragged_values_types: list({int64, string}) >= 0",
              "ragged_splits_types: list({int32, int64}) >= 0",
              "sparse_values_types: list({int64, string}) >= 0",
              "dense_types: list({int64, string}) >= 0", "out_values_type: {int64, string}",
              "out_row_splits_type: {int32, int64}"},
    .shape = infer,
    .kernels = {{.execute = cross}},
    .examples = {{.inputs = {texts({"a", "b", "c"}), ints({0, 2, 3}),
                             Tensor::of<int64_t>({2, 1}, {7, 8})},
                  .attrs = {{"Nsparse", 0},
                            {"input_order", "DR"},
                            {"hashed_output", false},
                            {"num_buckets", 0},
                            {"hash_key", 0},
                            {"ragged_values_types", std::vector<DType>{DType::string}},
                            {"ragged_splits_types", std::vector<DType>{i32}},
                            {"sparse_values_types", std::vector<DType>{}},
                            {"dense_types", std::vector<DType>{i64}},
                            {"out_values_type", DType::string},
                            {"out_row_splits_type", i64}},
                  .outputs = {texts({"7_X_a", "7_X_b", "8_X_c"}), longs({0, 2, 3})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
