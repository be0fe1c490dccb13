// Conditional accumulators: sums of gradients, handed out as a mean once enough gradients have
// arrived. SyncReplicasOptimizer is built on them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/kernel.h"
#include "core/state/waiting_state.h"
#include "core/tensor.h"

namespace leat {

// Counts, steps and waiting; a derived class knows what a gradient is. Thread-safe.
class GradientAccumulator : public WaitingState {
 public:
  using Gradient = std::vector<Tensor>;
  using Taken = std::function<void(const Status&, const Gradient&)>;

  GradientAccumulator(std::string name, const NodeView& node);

  std::type_index kind() const override { return typeid(GradientAccumulator); }
  void check_fits(const NodeView& node) const override;
  std::string state() const override;
  DType dtype() const { return dtype_; }

  // Drops and counts a gradient from before the accumulator's step.
  void apply(int64_t local_step, const Gradient& gradient);
  // Waits for `required` gradients, hands out the mean (or sum) of all that have arrived, and
  // increments the step. The operation leaves the line when the step ends.
  void take(int64_t required, Cancellation& cancellation, Taken taken);
  void set_step(int64_t step);
  int64_t count() const;

 protected:
  const Shape& shape() const { return shape_; }
  bool is_mean() const { return is_mean_; }

 private:
  // INVALID_ARGUMENT if it does not fit. The functions below are called with the lock held.
  virtual void check_gradient(const Gradient& gradient) const = 0;
  virtual void add(const Gradient& gradient, bool is_first) = 0;
  virtual Gradient result(int64_t count) = 0;

  const std::string kind_;
  const DType dtype_;
  const Shape shape_;
  const bool is_mean_;
  // Guarded by the lock.
  int64_t count_ = 0, step_ = 0;
  int64_t wanted_ = 0;   // number that the first operation in line waits for
  int64_t dropped_ = 0;  // gradients that came too late, in total
};

// The accumulator behind input 0.
GradientAccumulator& accumulator_of(const ExecuteContext& context);
// execute_async of the Take ops: the outputs are the parts of the gradient.
void take_gradient(ExecuteContext& context, std::function<void(Status)> done);

}  // namespace leat
