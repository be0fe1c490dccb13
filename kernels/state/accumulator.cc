#include "kernels/state/accumulator.h"

#include <cstdio>
#include <memory>

namespace leat {

GradientAccumulator::GradientAccumulator(std::string name, const NodeView& node)
    : WaitingState(std::move(name), Order::of_arrival),
      kind_(node.op),
      dtype_(node.attr<DType>("dtype")),
      shape_(node.attr<Shape>("shape")),
      is_mean_(node.attr<std::string>("reduction_type") == "MEAN") {}

void GradientAccumulator::check_fits(const NodeView& node) const {
  check(node.op == kind_, "'", name(), "' is a ", kind_, "; node '", node.name, "' expects a ",
        node.op);
  check(node.attr<DType>("dtype") == dtype_ && node.attr<Shape>("shape") == shape_ &&
            (node.attr<std::string>("reduction_type") == "MEAN") == is_mean_,
        "'", name(), "' is a ", kind_, " of ", dtype_, shape_, is_mean_ ? ", MEAN" : ", SUM",
        "; node '", node.name, "' expects a ", node.op, " of ", node.attr<DType>("dtype"),
        node.attr<Shape>("shape"), ", ", node.attr<std::string>("reduction_type"));
}

std::string GradientAccumulator::state() const {
  const std::lock_guard lock(mutex_);
  std::string out = concat(kind_, " '", name(), "' has ", count_);
  if (waiting() > 0) out += concat(" of ", wanted_);
  out += concat(" gradients at step ", step_);
  if (dropped_ > 0)
    out += concat(", ", dropped_, dropped_ == 1 ? " was" : " were", " dropped as stale");
  if (waiting() > 1) out += concat("; ", waiting(), " wait in line");
  return out;
}

void GradientAccumulator::apply(int64_t local_step, const Gradient& gradient) {
  check_gradient(gradient);
  change([&] {
    if (local_step < step_) {
      ++dropped_;
    } else {
      add(gradient, count_ == 0);
      ++count_;
    }
  });
}

void GradientAccumulator::take(int64_t required, Cancellation& cancellation, Taken taken) {
  check(required > 0, "Argument num_required must be positive, got ", required);
  const auto gradient = std::make_shared<Gradient>();
  when_possible(
      [this, required, gradient] {
        wanted_ = required;
        if (count_ < required) return false;
        *gradient = result(count_);
        count_ = 0;
        ++step_;
        return true;
      },
      cancellation,
      [gradient, taken = std::move(taken)](const Status& status) { taken(status, *gradient); });
}

void GradientAccumulator::set_step(int64_t step) {
  const std::lock_guard lock(mutex_);
  if (step < step_) {
    std::fprintf(stderr, "leat: the accumulator '%s' goes back from step %lld to %lld\n",
                 name().c_str(), static_cast<long long>(step_), static_cast<long long>(step));
  }
  step_ = step;
}

int64_t GradientAccumulator::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

GradientAccumulator& accumulator_of(const ExecuteContext& c) {
  auto* out = dynamic_cast<GradientAccumulator*>(c.resource(0).get());
  check(out != nullptr, "'", c.resource(0)->name(), "' is not an accumulator");
  return *out;
}

void take_gradient(ExecuteContext& c, std::function<void(Status)> done) {
  GradientAccumulator& accumulator = accumulator_of(c);
  check(c.node().attr<DType>("dtype") == accumulator.dtype(), "the accumulator '",
        accumulator.name(), "' holds ", accumulator.dtype(), ", not ",
        c.node().attr<DType>("dtype"));
  accumulator.take(c.input(1).item<int32_t>(), c.cancellation(),
                   [&c, done = std::move(done)](const Status& status,
                                                const GradientAccumulator::Gradient& gradient) {
                     for (size_t i = 0; i < gradient.size(); ++i)
                       c.set_output(static_cast<int>(i), gradient[i]);
                     done(status);
                   });
}

}  // namespace leat
