// Join and split sparse tensors: SparseConcat, SparseSlice with its gradient, SparseSplit.
#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"
#include "kernels/sparse/sparse_tensor.h"

namespace leat {
namespace {

// Checks that a tensor could have this dense shape.
void check_extents(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    check(extent >= 0, "the dense shape has a negative extent: ", extent);
    elements = product_of_extents(elements, extent);
  }
}

Tensor vector_tensor(const std::vector<int64_t>& values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())},
                             std::span<const int64_t>(values));
}

// ---- SparseConcat

template <class T>
void concat(ExecuteContext& c) {
  const int n = c.num_inputs() / 3;
  const auto indices = [&](int i) -> const Tensor& { return c.input(i); };
  const auto values = [&](int i) -> const Tensor& { return c.input(n + i); };
  int64_t count = 0;
  for (int i = 0; i < n; ++i) {
    check_sparse(indices(i), values(i), c.input(2 * n + i));
    count += values(i).elements();
  }
  std::vector<int64_t> out_shape = to_int64s(c.input(2 * n));
  const auto rank = static_cast<int64_t>(out_shape.size());
  const int64_t given = c.node().attr<int64_t>("concat_dim"),
                axis = given < 0 ? given + rank : given;
  check(axis >= 0 && axis < rank, "Concat dimension must be in range [", -rank, ", ", rank,
        "), got ", given);
  check_extents(out_shape);

  Tensor all_indices(DType::i64, {count, rank});
  std::vector<const T*> all_values;
  int64_t* to = all_indices.data<int64_t>();
  for (int64_t i = 0, begin = 0; i < n; ++i) {
    StepEnd::pace(32);
    const std::vector<int64_t> shape = to_int64s(c.input(static_cast<int>(2 * n + i)));
    check_extents(shape);
    check(static_cast<int64_t>(shape.size()) == rank,
          "Ranks of all input tensors must match: expected ", rank, " but got ", shape.size(),
          " at position ", i);
    for (int64_t d = 0; d < rank; ++d) {
      check(d == axis || shape[d] == out_shape[d], "Input shapes must match: expected ",
            out_shape[d], " for dimension ", d, " but got ", shape[d], " at position ", i);
    }
    const auto* from = indices(static_cast<int>(i)).template data<int64_t>();
    const Tensor& part = values(static_cast<int>(i));
    for (int64_t k = 0; k < part.elements(); ++k, from += rank, to += rank) {
      copy_elements(from, rank, to);
      check(!__builtin_add_overflow(to[axis], begin, &to[axis]), "index ", from[axis],
            " along dimension ", axis, " at position ", i, " is too large");
      all_values.push_back(part.data<T>() + k);
    }
    check(!__builtin_add_overflow(begin, shape[axis], &begin),
          "the sum of the extents along dimension ", axis, " overflows");
    out_shape[axis] = begin;
  }

  const std::vector<int64_t> order = sorted_entries(all_indices, all_columns(all_indices));
  Tensor out_indices(DType::i64, {count, rank}), out_values(dtype_of<T>, {count});
  for (int64_t i = 0; i < count; ++i) {
    copy_elements(all_indices.data<int64_t>() + order[i] * rank, rank,
                  out_indices.data<int64_t>() + i * rank);
    out_values.data<T>()[i] = *all_values[order[i]];
  }
  c.set_output(0, std::move(out_indices));
  c.set_output(1, std::move(out_values));
  c.set_output(2, vector_tensor(out_shape));
}

void infer_concat(ShapeContext& c) {
  const int n = c.num_inputs() / 3;
  int64_t count = 0, rank = any;
  for (int i = 0; i < n; ++i) {
    const Shape indices = c.with_rank(i, 2), values = c.with_rank(n + i, 1),
                shape = c.with_rank(2 * n + i, 1);
    const int64_t entries = indices[0] == any ? values[0] : indices[0];
    count = count == any || entries == any ? any : count + entries;
    for (const int64_t known : {indices[1], shape[0]}) {
      check(known == any || rank == any || known == rank,
            "Ranks of all input tensors must match: ", rank, " and ", known, " at position ", i);
      if (known != any) rank = known;
    }
  }
  c.set_output(0, {count, rank});
  c.set_output(1, {count});
  c.set_output(2, {rank});
}

const Op concat_op{{
    .name = "SparseConcat",
    .doc = "output = the sparse tensors one after the other along concat_dim, entries in row-major "
           "order.",
    .inputs = {"indices: N * int64", "values: N * T", "shapes: N * int64"},
    .outputs = {"output_indices: int64", "output_values: T", "output_shape: int64"},
    .attrs = {"concat_dim: int", "N: int >= 2", "T: type"},
    .shape = infer_concat,
    .kernels = {execute_kernel("T", AllTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) { concat<T>(c); })},
    .examples = {{.inputs = {longs({2, 2}, {0, 1, 1, 0}), longs({1, 2}, {0, 2}), floats({1, 2}),
                             floats({3}), longs({2, 2}), longs({2, 3})},
                  .attrs = {{"concat_dim", 1}, {"N", 2}},
                  .outputs = {longs({3, 2}, {0, 1, 0, 4, 1, 0}), floats({1, 3, 2}),
                              longs({2, 5})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

// ---- SparseSlice

template <class T>
void slice_entries(ExecuteContext& c) {
  const Tensor &indices = c.input(0), &values = c.input(1);
  check_sparse(indices, values, c.input(2));
  const int64_t rank = indices.shape()[1];
  for (int i : {3, 4}) {
    const char* name = i == 3 ? "start" : "size";
    check(c.input(i).shape().rank() == 1, "Input ", name, " should be a vector but received shape ",
          c.input(i).shape());
    check(c.input(i).elements() == rank, "Expected ", name, " to be a vector of length ", rank,
          " but got length ", c.input(i).elements());
  }
  std::vector<int64_t> shape = to_int64s(c.input(2));
  const std::vector<int64_t> start = to_int64s(c.input(3)), size = to_int64s(c.input(4));
  check_extents(shape);
  for (int64_t d = 0; d < rank; ++d) {
    check(size[d] >= 0, "size[", d, "] = ", size[d], " must not be negative");
    // The part of the slice that lies within the tensor.
    shape[d] = start[d] < shape[d] - size[d] ? size[d]
               : start[d] < shape[d]         ? shape[d] - start[d]
                                             : 0;
  }
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < indices.shape()[0]; ++i) {
    StepEnd::pace(16);
    const int64_t* index = indices.data<int64_t>() + i * rank;
    bool inside = true;
    for (int64_t d = 0; d < rank && inside; ++d) {
      int64_t at = 0;
      inside =
          index[d] >= start[d] && !__builtin_sub_overflow(index[d], start[d], &at) && at < size[d];
    }
    if (inside) kept.push_back(i);
  }
  const auto count = static_cast<int64_t>(kept.size());
  Tensor out_indices(DType::i64, {count, rank}), out_values(dtype_of<T>, {count});
  for (int64_t i = 0; i < count; ++i) {
    StepEnd::pace(16);
    for (int64_t d = 0; d < rank; ++d) {
      out_indices.data<int64_t>()[i * rank + d] =
          indices.data<int64_t>()[kept[i] * rank + d] - start[d];
    }
    out_values.data<T>()[i] = values.data<T>()[kept[i]];
  }
  c.set_output(0, std::move(out_indices));
  c.set_output(1, std::move(out_values));
  c.set_output(2, vector_tensor(shape));
}

const Op slice_op{{
    .name = "SparseSlice",
    .doc = "The entries at start <= index < start + size, with start taken from their indices; the "
           "shape is that of the part of the slice that lies within the tensor.",
    .inputs = {"indices: int64", "values: T", "shape: int64", "start: int64", "size: int64"},
    .outputs = {"output_indices: int64", "output_values: T", "output_shape: int64"},
    .attrs = {"T: type"},
    .shape =
        [](ShapeContext& c) {
          const int64_t rank = infer_sparse(c)[1];
          c.with_rank(3, 1);
          c.with_rank(4, 1);
          c.set_output(0, {any, rank});
          c.set_output(1, {any});
          c.set_output(2, {rank});
        },
    .gradient =
        [](Gradient& g) {
          g.dx(1) = op("SparseSliceGrad", {g.dy(1), g.x(0), g.x(3), g.y(0)});
        },
    .kernels = {execute_kernel(
        "T", AllTypes{}, []<class T>(TypeTag<T>, ExecuteContext& c) { slice_entries<T>(c); })},
    .examples = {{.inputs = {longs({3, 2}, {0, 1, 1, 0, 1, 3}), floats({1, 2, 3}), longs({2, 4}),
                             longs({1, 1}), longs({1, 5})},
                  .outputs = {longs({1, 2}, {0, 2}), floats({3}), longs({1, 3})}}},
    .has_data_dependent_shape = true,
}};

template <class T>
void slice_gradient(ExecuteContext& c) {
  const Tensor &dy = c.input(0), &indices = c.input(1), &start = c.input(2),
               &out_indices = c.input(3);
  check(indices.shape().rank() == 2 && out_indices.shape().rank() == 2,
        "Input and output indices should be matrices but received shapes: ", indices.shape(),
        " and ", out_indices.shape());
  check(dy.shape().rank() == 1,
        "Input backprop_val_grad should be a vector but received shape: ", dy.shape());
  const int64_t rank = indices.shape()[1], count = indices.shape()[0], taken = dy.elements();
  check(out_indices.shape()[1] == rank,
        "The input and output should have the same ndims: got: ", rank, " and ",
        out_indices.shape()[1]);
  check(out_indices.shape()[0] <= count,
        "# rows of output_indices should be not greater than of input_indices, got ",
        out_indices.shape()[0], " and ", count);
  check(taken == out_indices.shape()[0],
        "# elements of backprop_val_grad and # rows of output_indices should match (#nnz of sum): "
        "got ",
        taken, " and ", out_indices.shape()[0]);
  check(start.shape().rank() == 1 && start.elements() == rank,
        "Expected start to be a vector of "
        "length ",
        rank, " but got shape ", start.shape());
  Tensor dx(dy.dtype(), {count});
  std::fill_n(dx.data<T>(), count, T(0));
  int64_t next = 0;  // entry of the slice
  for (int64_t i = 0; i < count && next < taken; ++i) {
    StepEnd::pace(16);
    bool same = true;
    for (int64_t d = 0; d < rank; ++d) {
      // wraps where an index is not within the tensor
      same &= static_cast<uint64_t>(indices.data<int64_t>()[i * rank + d]) ==
              static_cast<uint64_t>(out_indices.data<int64_t>()[next * rank + d]) +
                  static_cast<uint64_t>(start.data<int64_t>()[d]);
    }
    if (same) dx.data<T>()[i] = dy.data<T>()[next++];
  }
  check(next == taken, "Elements of backprop_val_grad aren't all used up: all: ", taken,
        ", used: ", next);
  c.set_output(0, std::move(dx));
}

const Op slice_gradient_op{{
    .name = "SparseSliceGrad",
    .doc = "val_grad = backprop_val_grad at the entries that SparseSlice took, 0 at the others.",
    .inputs = {"backprop_val_grad: T", "input_indices: int64", "input_start: int64",
               "output_indices: int64"},
    .outputs = {"val_grad: T"},
    .attrs = {"T: numbertype"},
    .shape = [](ShapeContext& c) { c.set_output(0, {c.with_rank(1, 2)[0]}); },
    .kernels = {execute_kernel(
        "T", NumberAndComplexTypes{},
        []<class T>(TypeTag<T>, ExecuteContext& c) { slice_gradient<T>(c); })},
    .examples = {{.inputs = {floats({5}), longs({3, 2}, {0, 1, 1, 0, 1, 3}), longs({1, 1}),
                             longs({1, 2}, {0, 2})},
                  .outputs = {floats({0, 0, 5})}}},
    .is_not_differentiable = true,
}};

// ---- SparseSplit

// An axis split into parts whose extents differ by at most 1, the larger ones first.
struct Parts {
  int64_t size, larger;  // extent of the others, number of the larger ones
  Parts(int64_t extent, int64_t n) : size(extent / n), larger(extent % n) {}
  int64_t extent(int64_t part) const { return size + (part < larger ? 1 : 0); }
  int64_t begin(int64_t part) const { return part * size + std::min(part, larger); }
  int64_t part_of(int64_t index) const {
    const int64_t border = larger * (size + 1);
    return index < border ? index / (size + 1) : larger + (index - border) / size;
  }
};

template <class T>
void split_entries(ExecuteContext& c) {
  const Tensor &indices = c.input(1), &values = c.input(2);
  const auto n = c.node().attr<int64_t>("num_split");
  check(c.input(0).shape().rank() == 0, "split_dim must be a scalar, got shape ",
        c.input(0).shape());
  check_sparse(indices, values, c.input(3));
  const std::vector<int64_t> shape = to_int64s(c.input(3));
  check_extents(shape);
  const int64_t count = indices.shape()[0], rank = indices.shape()[1];
  const int64_t given = *c.input(0).data<int64_t>(), axis = given < 0 ? given + rank : given;
  check(axis >= 0 && axis < rank, "Input axis should be in range [", -rank, ", ", rank, "), got ",
        given);
  check(n >= 1 && n <= shape[axis],
        "Input num_split should be between 1 and the splitting dimension size (", shape[axis],
        "), got ", n);
  const Parts parts(shape[axis], n);
  std::vector<std::vector<int64_t>> entries(n);
  for (int64_t i = 0; i < count; ++i) {
    StepEnd::pace(16);
    const int64_t* tuple = indices.data<int64_t>() + i * rank;
    for (int64_t d = 0; d < rank; ++d) {
      check(tuple[d] >= 0 && tuple[d] < shape[d], "indices[", i, "] is out of bounds: it holds ",
            tuple[d], " for dimension ", d, ", which is not in [0, ", shape[d], ")");
    }
    entries[parts.part_of(tuple[axis])].push_back(i);
  }
  for (int64_t part = 0; part < n; ++part) {
    const auto size = static_cast<int64_t>(entries[part].size());
    Tensor out_indices(DType::i64, {size, rank}), out_values(dtype_of<T>, {size});
    for (int64_t i = 0; i < size; ++i) {
      int64_t* to = out_indices.data<int64_t>() + i * rank;
      copy_elements(indices.data<int64_t>() + entries[part][i] * rank, rank, to);
      to[axis] -= parts.begin(part);
      out_values.data<T>()[i] = values.data<T>()[entries[part][i]];
    }
    std::vector<int64_t> out_shape = shape;
    out_shape[axis] = parts.extent(part);
    c.set_output(static_cast<int>(part), std::move(out_indices));
    c.set_output(static_cast<int>(n + part), std::move(out_values));
    c.set_output(static_cast<int>(2 * n + part), vector_tensor(out_shape));
  }
}

const Op split_op{{
    .name = "SparseSplit",
    .doc = "The sparse tensor in num_split parts along split_dim; if the extent is no multiple of "
           "it, the first parts are longer by one.",
    .inputs = {"split_dim: int64", "indices: int64", "values: T", "shape: int64"},
    .outputs = {"output_indices: num_split * int64", "output_values: num_split * T",
                "output_shape: num_split * int64"},
    .attrs = {"num_split: int >= 1", "T: type"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          const int64_t rank = infer_sparse(c, 1)[1];
          const int n = c.num_outputs() / 3;
          for (int i = 0; i < n; ++i) {
            c.set_output(i, {any, rank});
            c.set_output(n + i, {any});
            c.set_output(2 * n + i, {rank});
          }
        },
    .kernels = {execute_kernel(
        "T", AllTypes{}, []<class T>(TypeTag<T>, ExecuteContext& c) { split_entries<T>(c); })},
    .examples = {{.inputs = {Tensor::scalar<int64_t>(1), longs({3, 2}, {0, 1, 0, 2, 1, 0}),
                             floats({1, 2, 3}), longs({2, 3})},
                  .attrs = {{"num_split", 2}},
                  .outputs = {longs({2, 2}, {0, 1, 1, 0}), longs({1, 2}, {0, 0}), floats({1, 3}),
                              floats({2}), longs({2, 2}), longs({2, 1})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
