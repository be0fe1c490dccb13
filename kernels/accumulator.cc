#include "kernels/accumulator.h"

#include <algorithm>
#include <cstdio>

namespace leat {

Accumulator::Accumulator(std::string name, const NodeView& node)
    : Resource(std::move(name)),
      kind_(node.op),
      dtype_(node.attr<DType>("dtype")),
      shape_(node.attr<Shape>("shape")),
      is_mean_(node.attr<std::string>("reduction_type") == "MEAN") {}

void Accumulator::check_fits(const NodeView& node) const {
  check(node.op == kind_ && node.attr<DType>("dtype") == dtype_ &&
            node.attr<Shape>("shape") == shape_ &&
            (node.attr<std::string>("reduction_type") == "MEAN") == is_mean_,
        "'", name(), "' is a ", kind_, " of ", dtype_, shape_, is_mean_ ? ", MEAN" : ", SUM",
        "; node '", node.name, "' wants a ", node.op, " of ", node.attr<DType>("dtype"),
        node.attr<Shape>("shape"), ", ", node.attr<std::string>("reduction_type"));
}

std::string Accumulator::state() const {
  const std::lock_guard lock(mutex_);
  std::string out = concat(kind_, " '", name(), "' has ", count_);
  if (!waiting_.empty()) out += concat(" of ", waiting_.front().required);
  out += concat(" gradients at step ", step_);
  if (dropped_ > 0)
    out += concat(", ", dropped_, dropped_ == 1 ? " was" : " were", " dropped as stale");
  if (waiting_.size() > 1) out += concat("; ", waiting_.size(), " wait in line");
  return out;
}

void Accumulator::apply(int64_t local_step, const Gradient& gradient) {
  check_gradient(gradient);
  Calls calls;
  {
    const std::lock_guard lock(mutex_);
    if (local_step < step_) {
      ++dropped_;
      return;
    }
    add(gradient, count_ == 0);
    ++count_;
    serve(calls);
  }
  for (const auto& call : calls) call();
}

void Accumulator::take(int64_t required, Cancellation& cancellation, Taken taken) {
  check(required > 0, "Argument num_required must be positive, got ", required);
  Calls calls;
  int64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
    waiting_.push_back({id, required, std::move(taken), {}});
    serve(calls);
  }
  for (const auto& call : calls) call();
  const Cancellation::Token token = cancellation.add(
      [self = shared_from_this(), id](const Status& why) { self->leave(id, why); });
  const std::lock_guard lock(mutex_);
  for (Taker& taker : waiting_) {
    if (taker.id != id) continue;
    taker.forget = [&cancellation, token] { cancellation.remove(token); };
    return;
  }
  cancellation.remove(token);  // it has been served
}

void Accumulator::set_step(int64_t step) {
  const std::lock_guard lock(mutex_);
  if (step < step_) {
    std::fprintf(stderr, "leat: the accumulator '%s' goes back from step %lld to %lld\n",
                 name().c_str(), static_cast<long long>(step_), static_cast<long long>(step));
  }
  step_ = step;
}

int64_t Accumulator::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

// With the lock held.
void Accumulator::serve(Calls& calls) {
  while (!waiting_.empty() && count_ >= waiting_.front().required) {
    Gradient gradient;
    Status status;
    try {
      gradient = result(count_);
    } catch (...) {  // no memory: the taker's failure; the gradients stay
      status = status_of_current_exception();
    }
    if (status.is_ok()) {
      count_ = 0;
      ++step_;
    }
    Taker taker = std::move(waiting_.front());
    waiting_.pop_front();
    calls.push_back(
        [taker = std::move(taker), status = std::move(status), gradient = std::move(gradient)] {
          if (taker.forget) taker.forget();
          taker.taken(status, gradient);
        });
  }
}

void Accumulator::leave(int64_t id, const Status& why) {
  Calls calls;
  {
    const std::lock_guard lock(mutex_);
    const auto taker =
        std::find_if(waiting_.begin(), waiting_.end(), [&](const Taker& t) { return t.id == id; });
    if (taker == waiting_.end()) return;
    calls.push_back([taken = std::move(taker->taken), why] { taken(why, {}); });
    waiting_.erase(taker);
    serve(calls);  // who stood behind it may want fewer
  }
  for (const auto& call : calls) call();
}

Accumulator& accumulator_of(const ExecuteContext& c) {
  auto* out = dynamic_cast<Accumulator*>(c.resource(0).get());
  check(out != nullptr, "'", c.resource(0)->name(), "' is no accumulator");
  return *out;
}

void take_gradient(ExecuteContext& c, std::function<void(Status)> done) {
  Accumulator& accumulator = accumulator_of(c);
  check(c.node().attr<DType>("dtype") == accumulator.dtype(), "the accumulator '",
        accumulator.name(), "' holds ", accumulator.dtype(), ", not ",
        c.node().attr<DType>("dtype"));
  accumulator.take(
      c.input(1).value<int32_t>(), c.cancellation(),
      [&c, done = std::move(done)](const Status& status, const Accumulator::Gradient& gradient) {
        for (size_t i = 0; i < gradient.size(); ++i) c.set_output(static_cast<int>(i), gradient[i]);
        done(status);
      });
}

}  // namespace leat
