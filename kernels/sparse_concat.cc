// Sparse tensors beside each other, and in parts: SparseConcat and SparseSplit.
#include <algorithm>
#include <numeric>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"

namespace leat {
namespace {

// INVALID_ARGUMENT unless these are indices, values and shape of a sparse tensor.
void check_sparse(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  check(indices.shape().rank() == 2 && values.shape().rank() == 1 && shape.shape().rank() == 1,
        "indices, values and shape must be a matrix and two vectors, got shapes ", indices.shape(),
        ", ", values.shape(), " and ", shape.shape());
  check(indices.shape()[0] == values.elements() && indices.shape()[1] == shape.elements(),
        "indices ", indices.shape(), " do not fit ", values.elements(), " values and a shape of ",
        shape.elements(), " extents");
}

// ---- SparseConcat

template <class T>
void concatenate(ExecuteContext& c) {
  const auto parts = static_cast<int>(c.node().attr<int64_t>("N"));
  const Tensor& first_shape = c.input(2 * parts);
  check(first_shape.shape().rank() == 1, "Input shapes should be vectors, got shape ",
        first_shape.shape());
  const int64_t rank = first_shape.elements();
  const int axis = normalized_axis(c.node().attr<int64_t>("concat_dim"), static_cast<int>(rank));
  std::vector<int64_t> shape = to_int64s(first_shape), starts;
  shape[axis] = 0;
  int64_t count = 0;
  for (int p = 0; p < parts; ++p) {
    check_sparse(c.input(p), c.input(parts + p), c.input(2 * parts + p));
    const std::vector<int64_t> extents = to_int64s(c.input(2 * parts + p));
    check(static_cast<int64_t>(extents.size()) == rank,
          "Ranks of all input tensors must match: ", rank, " and ", extents.size());
    for (int a = 0; a < rank; ++a) {
      check(a == axis || extents[a] == shape[a], "All dimensions except ", axis,
            " must match. Input ", p, " has extent ", extents[a], " along ", a, ", not ", shape[a]);
    }
    starts.push_back(shape[axis]);
    check(!__builtin_add_overflow(shape[axis], extents[axis], &shape[axis]),
          "the shapes add up to more than 2^63");
    count += c.input(p).shape()[0];
  }
  std::vector<int64_t> indices;
  std::vector<const T*> values;
  for (int p = 0; p < parts; ++p) {
    const auto* index = c.input(p).data<int64_t>();
    for (int64_t i = 0; i < c.input(p).shape()[0]; ++i, index += rank) {
      indices.insert(indices.end(), index, index + rank);
      int64_t& moved = *(indices.end() - rank + axis);
      moved = static_cast<int64_t>(static_cast<uint64_t>(moved) + static_cast<uint64_t>(starts[p]));
      values.push_back(c.input(parts + p).data<T>() + i);
    }
  }
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), int64_t{0});
  const int64_t* all = indices.data();
  std::stable_sort(order.begin(), order.end(), [=](int64_t a, int64_t b) {
    return std::lexicographical_compare(all + a * rank, all + (a + 1) * rank, all + b * rank,
                                        all + (b + 1) * rank);
  });
  Tensor out_indices(DType::i64, {count, rank}), out_values(dtype_of<T>, {count});
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(all + order[i] * rank, rank, out_indices.data<int64_t>() + i * rank);
    out_values.data<T>()[i] = *values[order[i]];
  }
  c.set_output(0, std::move(out_indices));
  c.set_output(1, std::move(out_values));
  c.set_output(2, Tensor::of<int64_t>({rank}, std::span<const int64_t>(shape)));
}

const Op concat_op{{
    .name = "SparseConcat",
    .doc = "The sparse tensors joined along the axis concat_dim, entries in row-major order.",
    .inputs = {"indices: N * int64", "values: N * T", "shapes: N * int64"},
    .outputs = {"output_indices: int64", "output_values: T", "output_shape: int64"},
    .attrs = {"concat_dim: int", "N: int >= 2", "T: type"},
    .shape =
        [](ShapeContext& c) {
          const int parts = c.num_inputs() / 3;
          for (int p = 0; p < parts; ++p) {
            c.with_rank(p, 2);
            c.with_rank(parts + p, 1);
            c.with_rank(2 * parts + p, 1);
          }
          const int64_t rank = c.with_rank(2 * parts, 1)[0];
          c.set_output(0, {any, rank});
          c.set_output(1, {any});
          c.set_output(2, {rank});
        },
    .kernels = {execute_kernel("T", AllTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { concatenate<T>(c); })},
    .examples = {{.inputs = {longs({2, 2}, {0, 1, 1, 0}), longs({1, 2}, {0, 0}), floats({5, 6}),
                             floats({7}), longs({2, 2}), longs({2, 3})},
                  .attrs = {{"concat_dim", 1}, {"N", 2}},
                  .outputs = {longs({3, 2}, {0, 1, 0, 2, 1, 0}), floats({5, 7, 6}),
                              longs({2, 5})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

// ---- SparseSplit

template <class T>
void split(ExecuteContext& c) {
  check(c.input(0).elements() == 1, "split_dim must be a scalar, got shape ", c.input(0).shape());
  const Tensor &indices = c.input(1), &values = c.input(2);
  check_sparse(indices, values, c.input(3));
  const std::vector<int64_t> shape = to_int64s(c.input(3));
  const auto rank = static_cast<int64_t>(shape.size()), parts = c.node().attr<int64_t>("num_split");
  const int axis = normalized_axis(to_int64s(c.input(0))[0], static_cast<int>(rank));
  check(parts <= shape[axis], "Input num_split should be between 1 and the extent of split_dim, ",
        shape[axis], ", got ", parts);
  // The first parts are one larger if the extent is no multiple.
  const int64_t size = shape[axis] / parts, larger = shape[axis] % parts;
  std::vector<std::vector<int64_t>> entries(parts);
  for (int64_t i = 0; i < values.elements(); ++i) {
    const int64_t at = indices.data<int64_t>()[i * rank + axis];
    check(at >= 0 && at < shape[axis], "indices[", i, ", ", axis, "] = ", at, " is not in [0, ",
          shape[axis], ")");
    const int64_t before = larger * (size + 1);
    entries[at < before ? at / (size + 1) : larger + (at - before) / size].push_back(i);
  }
  for (int64_t p = 0, start = 0; p < parts; ++p) {
    const auto count = static_cast<int64_t>(entries[p].size());
    Tensor out_indices(DType::i64, {count, rank}), out_values(dtype_of<T>, {count});
    for (int64_t i = 0; i < count; ++i) {
      int64_t* index = out_indices.data<int64_t>() + i * rank;
      std::copy_n(indices.data<int64_t>() + entries[p][i] * rank, rank, index);
      index[axis] -= start;
      out_values.data<T>()[i] = values.data<T>()[entries[p][i]];
    }
    std::vector<int64_t> extents = shape;
    extents[axis] = size + (p < larger ? 1 : 0);
    start += extents[axis];
    c.set_output(static_cast<int>(p), std::move(out_indices));
    c.set_output(static_cast<int>(parts + p), std::move(out_values));
    c.set_output(static_cast<int>(2 * parts + p),
                 Tensor::of<int64_t>({rank}, std::span<const int64_t>(extents)));
  }
}

const Op split_op{{
    .name = "SparseSplit",
    .doc = "The sparse tensor in num_split parts along the axis split_dim; if its extent is no "
           "multiple of them, the first parts are one larger.",
    .inputs = {"split_dim: int64", "indices: int64", "values: T", "shape: int64"},
    .outputs = {"output_indices: num_split * int64", "output_values: num_split * T",
                "output_shape: num_split * int64"},
    .attrs = {"num_split: int >= 1", "T: type"},
    .shape =
        [](ShapeContext& c) {
          const Shape indices = c.with_rank(1, 2), shape = c.with_rank(3, 1);
          c.with_rank(2, 1);
          const int parts = c.num_outputs() / 3;
          for (int p = 0; p < parts; ++p) {
            c.set_output(p, {any, indices[1]});
            c.set_output(parts + p, {any});
            c.set_output(2 * parts + p, shape);
          }
        },
    .kernels = {execute_kernel("T", AllTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { split<T>(c); })},
    .examples = {{.inputs = {Tensor::scalar<int64_t>(1), longs({2, 2}, {0, 2, 1, 0}),
                             floats({5, 6}), longs({2, 3})},
                  .attrs = {{"num_split", 2}},
                  .outputs = {longs({1, 2}, {1, 0}), longs({1, 2}, {0, 0}), floats({6}),
                              floats({5}), longs({2, 2}), longs({2, 1})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
