// Accumulators of sparse gradients (rows of an embedding table). AccumulatorSetGlobalStep and
// AccumulatorNumAccumulated are shared with the dense ones.
#include <span>
#include <vector>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/extents.h"
#include "kernels/named_resource.h"
#include "kernels/state/accumulator.h"

namespace leat {
namespace {

// The mean of a row is over the gradients that had it.
class SparseGradientAccumulator : public GradientAccumulator {
 public:
  using GradientAccumulator::GradientAccumulator;

 private:
  // indices, values, shape (empty: not known). A scalar, or no shape, fits all:
  // SyncReplicasOptimizer requests that.
  void check_gradient(const Gradient& gradient) const override {
    const Tensor &indices = gradient[0], &values = gradient[1], &full = gradient[2];
    check(values.dtype() == dtype(), "Attempt to apply a gradient of ", values.dtype(),
          " to the accumulator '", name(), "' of ", dtype());
    check(indices.shape().rank() == 1,
          "Input indices should be vector but received shape: ", indices.shape());
    check(values.shape().rank() > 0, "Values cannot be 0-dimensional.");
    check(values.shape()[0] == indices.elements(), "Expected ", indices.elements(),
          " non-empty input values, got ", values.shape()[0]);
    const Shape& wanted = shape();
    if (!wanted.has_rank()) return;
    if (full.elements() > 0) check_full_shape(to_int64s(full));
    check(wanted.rank() <= values.shape().rank(), "Shape mismatch: expected values rank at least ",
          wanted.rank(), ", got ", values.shape().rank());
    for (int i = 1; i < wanted.rank(); ++i) check_extent(i, wanted[i], values.shape());
    if (wanted.rank() == 0 || wanted[0] == any) return;
    const int64_t* index = indices.data<int64_t>();
    for (int64_t i = 0; i < indices.elements(); ++i) {
      check(index[i] < wanted[0], "Shape mismatch: index of slice ", i,
            " exceeded limits of shape; index is ", index[i], " exceeded ", wanted[0]);
    }
  }

  void check_full_shape(const std::vector<int64_t>& full) const {
    const Shape& wanted = shape();
    const auto rank = static_cast<int>(full.size());
    check(wanted.rank() <= rank, "Shape mismatch: expected shape rank at least ", wanted.rank(),
          ", got ", rank);
    for (int i = 0; i < wanted.rank(); ++i) {
      check(wanted[i] == any || wanted[i] == full[i], "Shape mismatch: expected shape dim ", i,
            " to be ", wanted[i], ", got ", full[i]);
    }
  }

  static void check_extent(int axis, int64_t wanted, const Shape& values) {
    check(wanted == any || wanted == values[axis], "Shape mismatch: expected values dim ", axis,
          " to be ", wanted, ", got ", values[axis]);
  }

  void add(const Gradient& gradient, bool is_first) override {
    const std::vector<int64_t> indices = to_int64s(gradient[0]);
    const Tensor& values = gradient[1];
    if (is_first) {
      indices_ = indices;
      counts_.assign(indices.size(), 1);
      values_ = values;
      return;
    }
    const Shape &held = values_.shape(), &added = values.shape();
    check(held.rank() == added.rank(), "Shape mismatch: expected values rank ", held.rank(),
          ", got ", added.rank());
    for (int i = 1; i < held.rank(); ++i) check_extent(i, held[i], added);
    merge(indices, values);
  }

  // Like TensorFlow, assumes that both are in ascending order: an index that appears twice in one
  // gradient, or out of order, makes a row of its own.
  void merge(const std::vector<int64_t>& indices, const Tensor& values) {
    struct Source {
      size_t held, added;  // none: the number of rows
    };
    std::vector<Source> sources;
    const size_t no_held = indices_.size(), no_added = indices.size();
    for (size_t i = 0, j = 0; i < no_held || j < no_added;) {
      const bool takes_held = j == no_added || (i < no_held && indices_[i] <= indices[j]);
      const bool takes_added = i == no_held || (j < no_added && indices[j] <= indices_[i]);
      sources.push_back({takes_held ? i++ : no_held, takes_added ? j++ : no_added});
    }
    std::vector<int64_t> merged_indices, merged_counts;
    for (const Source& s : sources) {
      merged_indices.push_back(s.held < no_held ? indices_[s.held] : indices[s.added]);
      merged_counts.push_back((s.held < no_held ? counts_[s.held] : 0) +
                              (s.added < no_added ? 1 : 0));
    }
    const auto rows = static_cast<int64_t>(sources.size());
    Tensor merged(dtype(), rows_of(rows, values.shape()));
    const int64_t n = rows == 0 ? 0 : merged.elements() / rows;
    visit_type(NumberAndComplexTypes{}, dtype(), [&]<class T>(TypeTag<T>) {
      using C = ComputeType<T>;
      T* out = merged.data<T>();
      for (const Source& s : sources) {
        const T* held = values_.data<T>() + s.held * n;
        const T* added = values.data<T>() + s.added * n;
        if (s.added == no_added) {
          std::copy_n(held, n, out);
        } else if (s.held == no_held) {
          std::copy_n(added, n, out);
        } else {
          for (int64_t i = 0; i < n; ++i) out[i] = T(C(held[i]) + C(added[i]));
        }
        out += n;
      }
      return true;
    });
    indices_ = std::move(merged_indices);
    counts_ = std::move(merged_counts);
    values_ = std::move(merged);
  }

  Gradient result(int64_t) override {
    const auto rows = static_cast<int64_t>(indices_.size());
    const Tensor indices = Tensor::of<int64_t>({rows}, std::span<const int64_t>(indices_));
    Tensor values = values_;
    if (is_mean() && values.elements() > 0) {
      values = Tensor(dtype(), values_.shape());
      const int64_t n = values.elements() / rows;
      visit_type(NumberAndComplexTypes{}, dtype(), [&]<class T>(TypeTag<T>) {
        using C = ComputeType<T>;
        const T* sum = values_.data<T>();
        T* mean = values.data<T>();
        for (const int64_t count : counts_) {
          for (int64_t i = 0; i < n; ++i) *mean++ = T(C(*sum++) / static_cast<C>(count));
        }
        return true;
      });
    }
    Gradient out = {indices, std::move(values), full_shape()};
    indices_.clear();
    counts_.clear();
    values_ = {};
    return out;
  }

  // The declared shape of the accumulator, with unknown extents taken from the rows.
  Tensor full_shape() const {
    const Shape &rows = values_.shape(), &declared = shape();
    Tensor out(i64, {rows.rank()});
    for (int i = 0; i < rows.rank(); ++i) {
      const int64_t extent = i < declared.rank() ? declared[i] : any;
      out.data<int64_t>()[i] = extent == any && i > 0 ? rows[i] : extent;
    }
    return out;
  }

  std::vector<int64_t> indices_, counts_;  // of the rows, and how many gradients had them
  Tensor values_;
};

void apply(ExecuteContext& c) {
  const Tensor shape = c.node().attr<bool>("has_known_shape") ? c.input(4) : Tensor(i64, {0});
  accumulator_of(c).apply(c.input(1).item<int64_t>(), {c.input(2), c.input(3), shape});
}

const char* const dtype = "dtype: numbertype";

const Op accumulator_op{{
    .name = "SparseConditionalAccumulator",
    .doc = "handle = the accumulator called shared_name in `container`, or the session's own, for "
           "sparse gradients of this dtype and shape.",
    .outputs = {"handle: Ref(string)"},
    .attrs = {dtype, "shape: shape", "container: string = ''", "shared_name: string = ''",
              "reduction_type: {'MEAN', 'SUM'} = 'MEAN'"},
    .kernels = {cpu_kernel([](const KernelRequest&) { return BoundKernel{}; })},
    .is_stateful = true,
    .make_resource =
        [](const NodeView& node) {
          return std::make_shared<SparseGradientAccumulator>(resource_name(node), node);
        },
    .is_private_resource = true,
    .is_not_differentiable = true,
}};

const Op apply_op{{
    .name = "SparseAccumulatorApplyGradient",
    .doc = "Adds the rows of gradient_values to the rows gradient_indices of the sum, unless "
           "local_step is before the accumulator's step.",
    .inputs = {"handle: Ref(string)", "local_step: int64", "gradient_indices: int64",
               "gradient_values: dtype", "gradient_shape: int64"},
    .attrs = {dtype, "has_known_shape: bool"},
    .shape = [](ShapeContext& c) { c.with_rank(1, 0); },
    .kernels = {{.types = {{"dtype", NumberAndComplexTypes::list()}}, .execute = apply}},
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
    .kernels = {{.types = {{"dtype", NumberAndComplexTypes::list()}},
                 .execute_async = take_gradient}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
