// SerializeSparse, SerializeManySparse and back: sparse tensors as three strings, the TensorProtos
// of indices, values and dense shape, or as three variants, as in datasets.
#include "graph/gradient.h"
#include "graph/import/graph_def.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"
#include "kernels/sparse/sparse_batch.h"
#include "kernels/sparse/sparse_tensor.h"
#include "kernels/sparse/tensor_variant.h"

namespace leat {
namespace {

void write(const SparseValue& sparse, std::string* to) {
  for (const Tensor* part : {&sparse.indices, &sparse.values, &sparse.shape})
    *to++ = to_tensor_content_proto(*part);
}
using leat::write;  // as variants

size_t heap_bytes(const std::string& text) { return text.size() + 16; }
size_t heap_bytes(const VariantPointer&) { return 0; }  // rows without entries share their parts

template <class T>
void serialize(ExecuteContext& c) {
  check(c.input(0).shape().rank() == 2, "Input indices should be a matrix but received shape ",
        c.input(0).shape());
  check(c.input(1).shape().rank() == 1, "Input values should be a vector but received shape ",
        c.input(1).shape());
  check(c.input(2).shape().rank() == 1, "Input shape should be a vector but received shape ",
        c.input(2).shape());
  Tensor out(dtype_of<T>, {3});
  write({c.input(0), c.input(1), c.input(2)}, out.data<T>());
  c.set_output(0, std::move(out));
}

template <class T>
void serialize_many(ExecuteContext& c) {
  const SparseRows rows(c.input(0), c.input(1), c.input(2));
  T empty[3];
  write(rows.empty(), empty);
  uint64_t bytes = 0;
  for (const T& part : empty) bytes += sizeof(part) + heap_bytes(part);
  check_memory_for(rows.size(), bytes);
  Tensor out(dtype_of<T>, {rows.size(), 3});
  auto* to = out.data<T>();
  for (int64_t row = 0, group = 0; row < rows.size(); ++row, to += 3) {
    if (group < rows.groups() && rows.row_of(group) == row) {
      write(rows.element(group++), to);
    } else {
      std::copy_n(empty, 3, to);
    }
  }
  c.set_output(0, std::move(out));
}

// ---- Back

Tensor read_part(const Tensor& serialized, int64_t at) {
  if (serialized.dtype() == DType::variant) return variant_as<TensorVariant>(serialized, at).tensor;
  return from_tensor_proto(serialized.data<std::string>()[at]);
}

// The input comes from a client, so everything is checked.
SparseValue read(const Tensor& serialized, int64_t number) {
  SparseValue out;
  int column = 0;
  for (Tensor* part : {&out.indices, &out.values, &out.shape}) {
    try {
      *part = read_part(serialized, 3 * number + column);
    } catch (const Error& error) {
      fail(error.code(), "serialized_sparse[", number, ", ", column, "]: ", error.message());
    }
    ++column;
  }
  check(out.indices.dtype() == DType::i64 && out.indices.shape().rank() == 2,
        "Expected serialized_sparse[", number,
        ", 0] to represent an index matrix of int64 but received ", out.indices.dtype(),
        out.indices.shape());
  check(out.values.shape().rank() == 1, "Expected serialized_sparse[", number,
        ", 1] to represent a values vector but received shape ", out.values.shape());
  check(out.shape.dtype() == DType::i64 && out.shape.shape().rank() == 1,
        "Expected serialized_sparse[", number, ", 2] to be a shape vector of int64 but it is ",
        out.shape.dtype(), out.shape.shape());
  check(out.indices.shape()[0] == out.values.elements(), "Expected row counts of SparseTensor[",
        number, "].indices and SparseTensor[", number,
        "].values to match but they do not: ", out.indices.shape()[0], " vs. ",
        out.values.elements());
  check(out.indices.shape()[1] == out.shape.elements(), "Expected column counts of SparseTensor[",
        number, "].indices to match size of SparseTensor[", number,
        "].shape but they do not: ", out.indices.shape()[1], " vs. ", out.shape.elements());
  check_dense_shape(out.shape);
  return out;
}

void deserialize(ExecuteContext& c) {
  const Tensor& serialized = c.input(0);
  const Shape& shape = serialized.shape();
  const int rank = shape.rank();
  check(rank > 0, "Serialized sparse should have non-zero rank ", shape);
  check(shape[rank - 1] == 3, "Serialized sparse should have 3 as the last dimension ", shape);
  check(serialized.elements() > 0,
        "Serialized sparse should have at least 1 serialized tensor, but has a zero dimension ",
        shape);
  std::vector<SparseValue> elements;
  for (int64_t i = 0; i < serialized.elements() / 3; ++i) elements.push_back(read(serialized, i));
  const std::span<const int64_t> batch = shape.dims().first(rank - 1);
  SparseValue out = batch_of(elements, c.node().attr<DType>("dtype"), {batch.begin(), batch.end()});
  c.set_output(0, std::move(out.indices));
  c.set_output(1, std::move(out.values));
  c.set_output(2, std::move(out.shape));
}

// ---- Ops

void infer_sparse_output(ShapeContext& c) {
  c.set_output(0, {any, any});
  c.set_output(1, {any});
  c.set_output(2, {any});
}

using Serialized = Types<std::string, VariantPointer>;

const char* const out_type = "out_type: {string, variant} = string";

// The entry 1.5 at [1, 0] of a [2, 1] tensor.
const std::string indices_example(
    "\x08\x09\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02\x22\x10"
    "\x01\0\0\0\0\0\0\0"
    "\0\0\0\0\0\0\0\0",
    30);
const std::string values_example("\x08\x01\x12\x04\x12\x02\x08\x01\x22\x04\0\0\xc0\x3f", 14);
const std::string shape_example(
    "\x08\x09\x12\x04\x12\x02\x08\x02\x22\x10"
    "\x02\0\0\0\0\0\0\0"
    "\x01\0\0\0\0\0\0\0",
    26);
// Its only row with an entry: that at [0] of a [1] tensor.
const std::string row_indices_example(
    "\x08\x09\x12\x08\x12\x02\x08\x01\x12\x02\x08\x01\x22\x08\0\0\0\0\0\0\0\0", 22);
const std::string row_shape_example("\x08\x09\x12\x04\x12\x02\x08\x01\x22\x08\x01\0\0\0\0\0\0\0",
                                    18);

const Op serialize_op{{
    .name = "SerializeSparse",
    .doc = "serialized_sparse = indices, values and shape, as TensorProtos or as variants.",
    .inputs = {"sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"},
    .outputs = {"serialized_sparse: out_type"},
    .attrs = {"T: type", out_type},
    .shape =
        [](ShapeContext& c) {
          infer_sparse_ranks(c);
          c.set_output(0, {3});
        },
    .kernels = {execute_kernel("out_type", Serialized{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { serialize<T>(c); })},
    .examples = {{.inputs = {longs({1, 2}, {1, 0}), floats({1.5}), longs({2, 1})},
                  .outputs = {texts({indices_example, values_example, shape_example})}}},
    .is_not_differentiable = true,
}};

const Op serialize_many_op{{
    .name = "SerializeManySparse",
    .doc = "serialized_sparse[i] = SerializeSparse of the i-th element along the first axis, "
           "whose entries must be in row-major order.",
    .inputs = {"sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"},
    .outputs = {"serialized_sparse: out_type"},
    .attrs = {"T: type", out_type},
    .shape =
        [](ShapeContext& c) {
          infer_sparse_ranks(c);
          c.set_output(0, {any, 3});
        },
    .kernels = {execute_kernel(
        "out_type", Serialized{},
        []<class T>(TypeTag<T>, ExecuteContext& c) { serialize_many<T>(c); })},
    .examples = {{.inputs = {longs({1, 2}, {0, 0}), floats({1.5}), longs({1, 1})},
                  .outputs = {Tensor::of<std::string>(
                      {1, 3}, {row_indices_example, values_example, row_shape_example})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op deserialize_many_op{{
    .name = "DeserializeManySparse",
    .doc = "The sparse tensor whose i-th element along its first axis is serialized_sparse[i]; "
           "every other extent is the largest among the elements.",
    .inputs = {"serialized_sparse: string"},
    .outputs = {"sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"},
    .attrs = {"dtype: type"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 2);
          infer_sparse_output(c);
        },
    .kernels = {{.execute = deserialize}},
    .examples = {{.inputs = {Tensor::of<std::string>(
                      {1, 3}, {row_indices_example, values_example, row_shape_example})},
                  .attrs = {{"dtype", f32}},
                  .outputs = {longs({1, 2}, {0, 0}), floats({1.5}), longs({1, 1})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op deserialize_op{{
    .name = "DeserializeSparse",
    .doc = "As DeserializeManySparse, with an axis for each axis of serialized_sparse except the "
           "last.",
    .inputs = {"serialized_sparse: Tserialized"},
    .outputs = {"sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"},
    .attrs = {"dtype: type", "Tserialized: {string, variant} = string"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank_at_least(0, 1);
          infer_sparse_output(c);
        },
    .kernels = {execute_kernel("Tserialized", Serialized{},
                               [](auto, ExecuteContext& c) { deserialize(c); })},
    .examples = {{.inputs = {texts({indices_example, values_example, shape_example})},
                  .attrs = {{"dtype", f32}},
                  .outputs = {longs({1, 2}, {1, 0}), floats({1.5}), longs({2, 1})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
