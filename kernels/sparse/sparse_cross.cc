// SparseCross, SparseCrossV2, SparseCrossHashed: the crosses of feature columns. A row of the
// result has every combination of one feature per column, as a string or as a hash; the last
// column's features change fastest.
#include <algorithm>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/sparse/crossed_features.h"

namespace leat {
namespace {

// Features of one row: elements [start, start + count) of a column's values.
struct Features {
  int64_t row, start, count;
};

// A column: a dense matrix, or the values of a sparse matrix, where `rows` gives the place of each
// row's values.
struct Column {
  const Tensor& values;
  bool is_sparse;
  std::vector<Features> rows = {};
  size_t next = 0;

  // Must be called for rows in ascending order.
  Features features_of(int64_t row) {
    if (!is_sparse) return {row, row * values.shape()[1], values.shape()[1]};
    while (next < rows.size() && rows[next].row < row) ++next;
    const bool has_row = next < rows.size() && rows[next].row == row;
    return has_row ? rows[next] : Features{row, 0, 0};
  }
};

// As in TensorFlow, the first entry of an earlier row, or of a row that does not exist, and all
// entries after it have no effect.
std::vector<Features> rows_of(const Tensor& indices, int64_t batch) {
  std::vector<Features> rows;
  const int64_t n = indices.shape()[0];
  const auto row_of = [&](int64_t i) { return indices.data<int64_t>()[2 * i]; };
  for (int64_t i = 0, last = -1; i < n && row_of(i) > last && row_of(i) < batch;) {
    last = row_of(i);
    const int64_t start = i;
    while (i < n && row_of(i) == last) ++i;
    rows.push_back({last, start, i - start});
  }
  return rows;
}

// The inputs: `count` of each of indices, values and shapes, then the dense ones.
struct Inputs {
  int count, num_dense;
  int64_t batch = 0;
  std::vector<Column> columns;

  explicit Inputs(const ExecuteContext& c)
      : count(static_cast<int>(c.node().attr<int64_t>("N"))),
        num_dense(static_cast<int>(c.node().attr<std::vector<DType>>("dense_types").size())) {
    check(std::ssize(c.node().attr<std::vector<DType>>("sparse_types")) == count, "Expected ",
          count, " input values, got ", c.node().attr<std::vector<DType>>("sparse_types").size());
    for (int i = 0; i < count; ++i) check_sparse_column(c, i);
    for (int i = 0; i < num_dense; ++i) {
      const Shape& shape = c.input(3 * count + i).shape();
      check(shape.rank() == 2, "Dense inputs should be a matrix but received shape ", shape,
            " at position ", i);
    }
    if (count > 0) {
      batch = c.input(2 * count).data<int64_t>()[0];
      check(batch >= 0, "the number of rows, ", batch, ", is negative");
    } else if (num_dense > 0) {
      batch = c.input(0).shape()[0];
    }
    for (int i = 0; i < count; ++i) {
      const int64_t rows = c.input(2 * count + i).data<int64_t>()[0];
      check(rows == batch, "Expected batch size ", batch, " got ", rows, " at position ", i);
      columns.push_back({c.input(count + i), true, rows_of(c.input(i), batch)});
    }
    for (int i = 0; i < num_dense; ++i) {
      const Tensor& dense = c.input(3 * count + i);
      check(dense.shape()[0] == batch, "Expected batch size ", batch, " got ", dense.shape()[0],
            " at dense tensor ", i);
      columns.push_back({dense, false});
    }
  }

  void check_sparse_column(const ExecuteContext& c, int i) const {
    const Shape &indices = c.input(i).shape(), &values = c.input(count + i).shape(),
                &shape = c.input(2 * count + i).shape();
    check(indices.rank() == 2, "Input indices should be a matrix but received shape ", indices,
          " at position ", i);
    check(indices[1] == 2, "Expected D2 of index to be 2 got ", indices[1], " at position ", i);
    check(values.rank() == 1, "Input values should be a vector but received shape ", values,
          " at position ", i);
    check(indices[0] == values[0], "Expected size of values to be ", indices[0], " got ", values[0],
          " at position ", i);
    check(shape.rank() == 1, "Input shapes should be a vector but received shape ", shape,
          " at position ", i);
    check(shape[0] == 2, "shape should imply a 2D tensor, but got ", shape, " at position ", i);
  }

  // Calls f(row, the features of each column there) for the rows where every column has some.
  template <class F>
  void for_each_row(F f) {
    const auto has_no_features = [](const Column& column) {
      return column.is_sparse ? column.rows.empty() : column.values.elements() == 0;
    };
    if (columns.empty() || std::ranges::any_of(columns, has_no_features)) return;
    for (Column& column : columns) column.next = 0;
    std::vector<Features> features(columns.size());
    const int64_t candidates = count > 0 ? std::ssize(columns[0].rows) : batch;
    for (int64_t i = 0; i < candidates; ++i) {
      StepEnd::pace(64);
      const int64_t row = count > 0 ? columns[0].rows[i].row : i;
      bool complete = true;
      for (size_t k = 0; k < columns.size(); ++k) {
        features[k] = columns[k].features_of(row);
        complete = complete && features[k].count > 0;
      }
      if (complete) f(row, features);
    }
  }
};

// Moves to the next combination: places[k] counts up to features[k].count.
bool advance(std::vector<int64_t>& places, const std::vector<Features>& features) {
  for (size_t k = places.size(); k-- > 0;) {
    if (++places[k] < features[k].count) return true;
    places[k] = 0;
  }
  return false;
}

int64_t combinations(const std::vector<Features>& features) {
  int64_t product = 1;
  for (const Features& f : features)
    check(!__builtin_mul_overflow(product, f.count, &product), "too many crosses in row ", f.row);
  return product;
}

// Sets the outputs: T is int64_t or std::string, cross(the element of each column) makes one cross.
template <class T, class Cross>
void set_crosses(ExecuteContext& c, Inputs& inputs, Cross cross) {
  int64_t total = 0, most = 0;
  inputs.for_each_row([&](int64_t row, const std::vector<Features>& features) {
    const int64_t product = combinations(features);
    most = std::max(most, product);
    check(!__builtin_add_overflow(total, product, &total), "too many crosses up to row ", row);
  });
  Tensor indices(i64, Shape{total, 2}), values(dtype_of<T>, Shape{total});
  int64_t* to = indices.data<int64_t>();
  T* value = values.template data<T>();
  std::vector<int64_t> places(inputs.columns.size()), elements(inputs.columns.size());
  inputs.for_each_row([&](int64_t row, const std::vector<Features>& features) {
    int64_t number = 0;
    do {
      for (size_t k = 0; k < places.size(); ++k) elements[k] = features[k].start + places[k];
      *to++ = row;
      *to++ = number++;
      *value++ = cross(elements);
    } while (advance(places, features));
  });
  c.set_output(0, std::move(indices));
  c.set_output(1, std::move(values));
  c.set_output(2, Tensor::of<int64_t>({2}, {inputs.batch, most}));
}

// ---- Strings

void cross_strings(ExecuteContext& c, Inputs& inputs, const std::string& separator) {
  set_crosses<std::string>(c, inputs, [&](const std::vector<int64_t>& elements) {
    std::string joined;
    for (size_t k = 0; k < elements.size(); ++k) {
      if (k > 0) joined += separator;
      joined += feature_text(inputs.columns[k].values, elements[k]);
    }
    return joined;
  });
}

// ---- Hashes

struct Salt {
  bool strong;
  uint64_t key0, key1;

  uint64_t hash(const Column& column, int64_t element) const {
    const Tensor& values = column.values;
    if (values.dtype() == DType::string) {
      const std::string& text = values.data<std::string>()[element];
      return strong ? sip_hash(text, key0, key1) : farm_fingerprint(text);
    }
    const int64_t* number = values.data<int64_t>() + element;
    if (!strong && !column.is_sparse) return static_cast<uint64_t>(*number);
    // TensorFlow hashes the lower half of a number only (`sizeof` of its dtype's code).
    const std::string half(reinterpret_cast<const char*>(number), 4);
    return strong ? sip_hash(half, key0, key1) : farm_fingerprint(half);
  }
};

// ---- The ops

void infer(ShapeContext& c) {
  c.set_output(0, {any, 2});
  c.set_output(1, {any});
  c.set_output(2, {2});
}

void cross(ExecuteContext& c) {
  if (c.node().attr<DType>("internal_type") == DType::string) {
    for (const char* list : {"sparse_types", "dense_types"}) {
      for (const DType dtype : c.node().attr<std::vector<DType>>(list))
        check(dtype == DType::string, "Inputs should be of internal type string but one of ", list,
              " is ", dtype);
    }
  }
  Inputs inputs(c);
  if (c.node().attr<DType>("out_type") == DType::string) return cross_strings(c, inputs, "_X_");
  const auto key = static_cast<uint64_t>(c.node().attr<int64_t>("hash_key"));
  const int64_t num_buckets = c.node().attr<int64_t>("num_buckets");
  set_crosses<int64_t>(c, inputs, [&](const std::vector<int64_t>& elements) {
    uint64_t hash = key;
    for (size_t k = 0; k < elements.size(); ++k)
      hash = combined_hash(hash, feature_fingerprint(inputs.columns[k].values, elements[k]));
    return bucket_of(hash, num_buckets);
  });
}

const Tensor& scalar(const ExecuteContext& c, int i, const char* name) {
  check(c.input(i).shape().rank() == 0, "Input ", name,
        " should be a scalar. Received: ", c.input(i).shape());
  return c.input(i);
}

void cross_v2(ExecuteContext& c) {
  const std::string& separator = *scalar(c, c.num_inputs() - 1, "separator").data<std::string>();
  Inputs inputs(c);
  cross_strings(c, inputs, separator);
}

void cross_hashed(ExecuteContext& c) {
  const int last = c.num_inputs() - 1;
  const int64_t num_buckets = scalar(c, last - 2, "num_buckets").item<int64_t>();
  const bool strong = scalar(c, last - 1, "strong_hash").item<bool>();
  const Tensor& salt = c.input(last);
  check(salt.elements() == 2, "Input \"salt\" must have length 2 but has length ", salt.elements());
  const int64_t* key = salt.data<int64_t>();
  const Salt salted{strong, static_cast<uint64_t>(key[0]), static_cast<uint64_t>(key[1])};
  Inputs inputs(c);
  set_crosses<int64_t>(c, inputs, [&](const std::vector<int64_t>& elements) {
    uint64_t hash = salted.hash(inputs.columns[0], elements[0]);
    for (size_t k = 1; k < elements.size(); ++k)
      hash = combined_hash(hash, salted.hash(inputs.columns[k], elements[k]));
    return bucket_of(hash, num_buckets);
  });
}

const std::vector<std::string> column_attrs = {"N: int >= 0",
                                               "sparse_types: list({int64, string}) >= 0",
                                               "dense_types: list({int64, string}) >= 0"};

OpDef cross_op(std::string name, std::string doc, std::vector<std::string> more_inputs,
               std::string output, Execute execute) {
  OpDef op{
      .name = std::move(name),
      .doc = std::move(doc),
      .inputs = {"indices: N * int64", "values: sparse_types", "shapes: N * int64",
                 "dense_inputs: dense_types"},
      .outputs = {"output_indices: int64", "output_values: " + output, "output_shape: int64"},
      .attrs = column_attrs,
      .shape = infer,
      .kernels = {{.execute = std::move(execute)}},
      .has_data_dependent_shape = true,
      .is_not_differentiable = true,
  };
  op.inputs.insert(op.inputs.end(), more_inputs.begin(), more_inputs.end());
  return op;
}

const std::vector<Tensor> example_inputs = {longs({3, 2}, {0, 0, 0, 1, 1, 0}),
                                            texts({"a", "b", "c"}), longs({2, 2}),
                                            Tensor::of<int64_t>({2, 1}, {7, 8})};

std::vector<Tensor> with(std::vector<Tensor> inputs, const std::vector<Tensor>& more) {
  inputs.insert(inputs.end(), more.begin(), more.end());
  return inputs;
}

const AttrMap example_attrs = {{"N", 1},
                               {"sparse_types", std::vector<DType>{DType::string}},
                               {"dense_types", std::vector<DType>{i64}}};

AttrMap with(AttrMap attrs, const AttrMap& more) {
  for (const auto& [name, value] : more) attrs[name] = value;
  return attrs;
}

Tensor example_indices() { return longs({3, 2}, {0, 0, 0, 1, 1, 0}); }

const Op sparse_cross_op{[] {
  OpDef op = cross_op("SparseCross",
                      "Crosses of the columns: strings joined by \"_X_\", or, of out_type int64, "
                      "their hashes from hash_key on, modulo num_buckets if that is not 0.",
                      {}, "out_type", cross);
  const std::vector<std::string> attrs = {"hashed_output: bool", "num_buckets: int >= 0",
                                          "hash_key: int", "out_type: {int64, string}",
                                          "internal_type: {int64, string}"};
  op.attrs.insert(op.attrs.end(), attrs.begin(), attrs.end());
  op.examples = {
      {.inputs = example_inputs,
       .attrs = with(example_attrs, {{"hashed_output", false},
                                     {"num_buckets", 0},
                                     {"hash_key", 0},
                                     {"out_type", DType::string},
                                     {"internal_type", i64}}),
       .outputs = {example_indices(), texts({"a_X_7", "b_X_7", "c_X_8"}), longs({2, 2})}}};
  return op;
}()};

const Op sparse_cross_v2_op{[] {
  OpDef op = cross_op("SparseCrossV2", "Crosses of the columns: strings joined by sep.",
                      {"sep: string"}, "string", cross_v2);
  op.examples = {{.inputs = with(example_inputs, {Tensor::scalar(std::string("-"))}),
                  .attrs = example_attrs,
                  .outputs = {example_indices(), texts({"a-7", "b-7", "c-8"}), longs({2, 2})}}};
  return op;
}()};

const Op sparse_cross_hashed_op{[] {
  OpDef op =
      cross_op("SparseCrossHashed",
               "Hashes of the crosses of the columns, modulo num_buckets if that is not 0; "
               "with strong_hash SipHash-2-4 by the key salt.",
               {"num_buckets: int64", "strong_hash: bool", "salt: int64"}, "int64", cross_hashed);
  op.examples = {{.inputs = with(example_inputs, {Tensor::scalar(int64_t{100}),
                                                  Tensor::scalar(false), longs({1, 2})}),
                  .attrs = example_attrs,
                  .outputs = {example_indices(), longs({1, 72, 63}), longs({2, 2})}}};
  return op;
}()};

}  // namespace
}  // namespace leat
