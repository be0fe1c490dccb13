// DynamicPartition and ListDiff: select rows; the data determines how many.
#include <cstring>
#include <unordered_set>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"
#include "kernels/extents.h"
#include "kernels/moves/moved_elements.h"

namespace leat {
namespace {

// ---- DynamicPartition

template <class T>
void dynamic_partition(ExecuteContext& c) {
  const Tensor &data = c.input(0), &partitions = c.input(1);
  const int64_t count = c.node().attr<int64_t>("num_partitions"), n = partitions.elements();
  const int rank = partitions.shape().rank();
  for (int i = 0; i < rank; ++i) {
    check(i < data.shape().rank() && data.shape()[i] == partitions.shape()[i],
          "data.shape must start with partitions.shape, got data.shape = ", data.shape(),
          ", partitions.shape = ", partitions.shape());
  }
  const int32_t* partition = partitions.data<int32_t>();
  std::vector<int64_t> rows(count, 0);
  for (int64_t i = 0; i < n; ++i) {
    StepEnd::pace(4);
    check(partition[i] >= 0 && partition[i] < count, "partitions[", i, "] = ", partition[i],
          " is not in [0, ", count, ")");
    ++rows[partition[i]];
  }
  std::vector<Tensor> outputs;
  std::vector<T*> ends;
  for (int64_t p = 0; p < count; ++p) {
    outputs.emplace_back(data.dtype(), rows_of(rows[p], data.shape(), rank));
    ends.push_back(static_cast<T*>(outputs.back().raw()));
  }
  const int64_t row = n == 0 ? 0 : data.elements() / n;
  const T* from = static_cast<const T*>(data.raw());
  for (int64_t i = 0; i < n && row > 0; ++i) {
    StepEnd::pace(4 + row);
    T*& end = ends[partition[i]];
    copy_elements(from + i * row, row, end);
    end += row;
  }
  for (int64_t p = 0; p < count; ++p) c.set_output(static_cast<int>(p), std::move(outputs[p]));
}

void execute_partition(ExecuteContext& c) {
  visit_moved(c.input(0).dtype(), [&]<class T>(TypeTag<T>) { dynamic_partition<T>(c); });
}

// Partitioning the row numbers shows which rows went where; stitching puts the gradients back.
void partition_gradient(Gradient& g) {
  const Output data = g.x(0), partitions = g.x(1);
  const int64_t n = g.attr<int64_t>("num_partitions");
  const Output numbers = reshape(arange(g.graph(), size_of(partitions)), shape_of(partitions));
  const std::vector<Output> indices =
      op_outputs("DynamicPartition", {numbers, partitions}, {{"num_partitions", n}});
  std::vector<Output> parts;
  for (int i = 0; i < static_cast<int>(n); ++i) parts.push_back(g.dy_or_zeros(i));
  g.dx(0) = reshape(dynamic_stitch(indices, parts), shape_of(data));
}

const Op dynamic_partition_op{{
    .name = "DynamicPartition",
    .doc = "outputs[p] = the rows data[i…] with partitions[i…] = p, in their order.",
    .inputs = {"data: T", "partitions: int32"},
    .outputs = {"outputs: num_partitions * T"},
    .attrs = {"num_partitions: int >= 1", "T: type"},
    .shape =
        [](ShapeContext& c) {
          const Shape data = c.input(0), partitions = c.input(1);
          Shape out = Shape::unknown();
          if (data.has_rank() && partitions.has_rank()) {
            for (int i = 0; i < partitions.rank(); ++i) {
              check(i < data.rank() &&
                        (data[i] == any || partitions[i] == any || data[i] == partitions[i]),
                    "data.shape must start with partitions.shape, got data.shape = ", data,
                    ", partitions.shape = ", partitions);
            }
            out = rows_of(any, data, partitions.rank());
          }
          for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
        },
    .gradient = partition_gradient,
    .kernels = {{.types = {{"T", AllTypes::list()}}, .execute = execute_partition}},
    .examples = {{.inputs = {floats({3, 2}, {1, 2, 3, 4, 5, 6}), ints({1, 0, 1})},
                  .attrs = {{"num_partitions", 2}},
                  .outputs = {floats({1, 2}, {3, 4}), floats({2, 2}, {1, 2, 5, 6})}}},
    .has_data_dependent_shape = true,
}};

// ---- ListDiff

template <class T, class Index>
void list_difference(ExecuteContext& c) {
  const Tensor &x = c.input(0), &y = c.input(1);
  check(x.shape().rank() == 1, "x should be a 1D vector, got shape ", x.shape());
  check(y.shape().rank() == 1, "y should be a 1D vector, got shape ", y.shape());
  using Key = ComputeType<T>;
  const std::unordered_set<Key> excluded(y.data<T>(), y.data<T>() + y.elements());
  std::vector<Index> kept;
  for (int64_t i = 0; i < x.elements(); ++i) {
    StepEnd::pace(8);
    if (!excluded.contains(Key(x.data<T>()[i]))) kept.push_back(static_cast<Index>(i));
  }
  Tensor out(x.dtype(), {static_cast<int64_t>(kept.size())});
  for (size_t i = 0; i < kept.size(); ++i) out.data<T>()[i] = x.data<T>()[kept[i]];
  c.set_output(0, std::move(out));
  c.set_output(
      1, Tensor::of<Index>({static_cast<int64_t>(kept.size())}, std::span<const Index>(kept)));
}

const Op list_diff_op{{
    .name = "ListDiff",
    .doc = "out = the elements of x that are not in y, in their order; out[i] = x[idx[i]].",
    .inputs = {"x: T", "y: T"},
    .outputs = {"out: T", "idx: out_idx"},
    .attrs = {"T: type", "out_idx: {int32, int64} = int32"},
    .shape =
        [](ShapeContext& c) {
          for (int i : {0, 1}) c.with_rank(i, 1);
          for (int i : {0, 1}) c.set_output(i, Shape{any});
        },
    .kernels = {execute_kernel("T", AllButComplexTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) {
                                 c.node().attr<DType>("out_idx") == DType::i64
                                     ? list_difference<T, int64_t>(c)
                                     : list_difference<T, int32_t>(c);
                               })},
    .examples = {{.inputs = {ints({5, 1, 3, 5}), ints({1, 7})},
                  .outputs = {ints({5, 3, 5}), ints({0, 2, 3})}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
