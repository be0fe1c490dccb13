// Accumulators of sparse gradients (rows of an embedding table). AccumulatorSetGlobalStep and
// AccumulatorNumAccumulated are those of dense ones.
#include <map>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/accumulator.h"
#include "kernels/cpu.h"
#include "kernels/named_resource.h"

namespace leat {
namespace {

// The mean of a row is over the gradients that had it. Rows come out in ascending order.
class SparseAccumulator : public Accumulator {
 public:
  using Accumulator::Accumulator;

 private:
  // indices, values, shape (empty: not known)
  void check_gradient(const Gradient& gradient) const override {
    const Tensor &indices = gradient[0], &values = gradient[1], &full = gradient[2];
    check(values.dtype() == dtype(), "Attempt to apply a gradient of ", values.dtype(),
          " to the accumulator '", name(), "' of ", dtype());
    check(indices.shape().rank() == 1 && values.shape().rank() >= 1 &&
              values.shape()[0] == indices.elements(),
          "a sparse gradient needs a vector of indices and a row of values for each, got indices ",
          indices.shape(), " and values ", values.shape());
    Shape rows = values.shape();
    rows.set(0, shape().has_rank() && shape().rank() > 0 ? shape()[0] : any);
    check(shape().is_compatible(rows), "Attempt to apply a sparse gradient with values ",
          values.shape(), " to the accumulator '", name(), "' of shape ", shape());
    const int64_t limit = full.elements() > 0 ? to_int64s(full)[0] : rows[0];
    for (const int64_t index : to_int64s(indices)) {
      check(index >= 0 && (limit < 0 || index < limit), "index ", index,
            " of a sparse gradient is not in [0, ", limit, ")");
    }
  }

  void add(const Gradient& gradient, bool is_first) override {
    if (is_first) {
      rows_.clear();
      row_shape_ = Shape(gradient[1].shape().dims().subspan(1));
      full_ = gradient[2];
    }
    check(row_shape_ == Shape(gradient[1].shape().dims().subspan(1)),
          "Attempt to apply a sparse gradient with values ", gradient[1].shape(),
          " to the accumulator '", name(), "', whose rows have shape ", row_shape_);
    visit_type(FloatTypes{}, dtype(), [&]<class T>(TypeTag<T>) {
      using C = ComputeType<T>;
      const int64_t n = row_shape_.elements();
      const T* values = gradient[1].data<T>();
      for (const int64_t index : to_int64s(gradient[0])) {
        Row& row = rows_[index];
        if (row.count++ == 0) {
          row.sum = Tensor(dtype(), row_shape_);
          std::copy_n(values, n, row.sum.data<T>());
        } else {
          T* sum = row.sum.data<T>();
          for (int64_t i = 0; i < n; ++i) sum[i] = T(C(sum[i]) + C(values[i]));
        }
        values += n;
      }
      return true;
    });
  }

  Gradient result(int64_t) override {
    const auto count = static_cast<int64_t>(rows_.size());
    Shape shape{count};
    for (const int64_t extent : row_shape_.dims()) shape.push_back(extent);
    Tensor indices(i64, {count}), values(dtype(), shape);
    int64_t* next_index = indices.data<int64_t>();
    visit_type(FloatTypes{}, dtype(), [&]<class T>(TypeTag<T>) {
      using C = ComputeType<T>;
      const int64_t n = row_shape_.elements();
      T* next = values.data<T>();
      for (const std::pair<const int64_t, Row>& entry : rows_) {
        const Row& row = entry.second;
        *next_index++ = entry.first;
        const C divisor = static_cast<C>(is_mean() ? row.count : 1);
        const T* sum = row.sum.data<T>();
        for (int64_t i = 0; i < n; ++i) *next++ = T(C(sum[i]) / divisor);
      }
      return true;
    });
    rows_.clear();
    return {indices, values, full_shape()};
  }

  Tensor full_shape() const {
    if (full_.elements() > 0) return full_;
    Tensor out(i64, {row_shape_.rank() + 1});
    out.data<int64_t>()[0] = this->shape().has_rank() ? this->shape()[0] : -1;
    for (int i = 0; i < row_shape_.rank(); ++i) out.data<int64_t>()[i + 1] = row_shape_[i];
    return out;
  }

  struct Row {
    Tensor sum;
    int64_t count = 0;
  };
  std::map<int64_t, Row> rows_;
  Shape row_shape_;
  Tensor full_;
};

void apply(ExecuteContext& c) {
  const Tensor shape = c.node().attr<bool>("has_known_shape") ? c.input(4) : Tensor(i64, {0});
  accumulator_of(c).apply(c.input(1).value<int64_t>(), {c.input(2), c.input(3), shape});
}

const char* const dtype = "dtype: numbertype";

const Op accumulator_op{{
    .name = "SparseConditionalAccumulator",
    .doc = "handle = the accumulator called shared_name (or as the node) in `container`, for "
           "sparse gradients of this dtype and shape.",
    .outputs = {"handle: Ref(string)"},
    .attrs = {dtype, "shape: shape", "container: string = ''", "shared_name: string = ''",
              "reduction_type: {'MEAN', 'SUM'} = 'MEAN'"},
    .kernels = {cpu_kernel([](const KernelRequest&) { return BoundKernel{}; })},
    .is_stateful = true,
    .make_resource =
        [](const NodeView& node) {
          return std::make_shared<SparseAccumulator>(resource_name(node), node);
        },
    .is_not_differentiable = true,
}};

const Op apply_op{{
    .name = "SparseAccumulatorApplyGradient",
    .doc =
        "Adds the rows of gradient_values to those called gradient_indices, unless local_step is "
        "before the accumulator's step.",
    .inputs = {"handle: Ref(string)", "local_step: int64", "gradient_indices: int64",
               "gradient_values: dtype", "gradient_shape: int64"},
    .attrs = {dtype, "has_known_shape: bool"},
    .shape = [](ShapeContext& c) { c.with_rank(1, 0); },
    .kernels = {{.types = {{"dtype", FloatTypes::list()}}, .execute = apply}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op take_op{{
    .name = "SparseAccumulatorTakeGradient",
    .doc = "Waits for num_required gradients. indices, values, shape = the sum of all that have "
           "come, each row divided by the number of gradients that had it (MEAN).",
    .inputs = {"handle: Ref(string)", "num_required: int32"},
    .outputs = {"indices: int64", "values: dtype", "shape: int64"},
    .attrs = {dtype},
    .shape = [](ShapeContext& c) { c.with_rank(1, 0); },
    .kernels = {{.types = {{"dtype", FloatTypes::list()}}, .execute_async = take_gradient}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
