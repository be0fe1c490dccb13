// Stage, Unstage and their like: a staging area, found by its name, which is a first-in-first-out
// buffer of tuples of tensors.
#include <deque>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/named_resource.h"
#include "kernels/state/staging.h"

namespace leat {
namespace {

class StagedTuples : public WaitingState {
 public:
  explicit StagedTuples(const NodeView& node)
      : WaitingState(resource_name(node)), limits_(StagingLimits::of(node)) {}

  std::string state() const override {
    const std::lock_guard lock(mutex_);
    return concat("staging area '", name(), "' has ", tuples_.size(), " elements",
                  limits_.to_string(), "; ", waiting(), " operations wait");
  }

  void put(StagedTuple tuple, Cancellation& cancellation, Done done) {
    const uint64_t bytes = bytes_of(tuple);
    limits_.check_bytes(bytes);
    when_possible(
        [this, bytes, tuple = std::move(tuple)]() mutable {
          if (!limits_.has_space(tuples_.size(), bytes_, bytes)) return false;
          bytes_ += bytes;
          tuples_.push_back(std::move(tuple));
          return true;
        },
        cancellation, std::move(done));
  }

  using Taken = std::function<void(const StagedTuple&)>;

  // The first tuple; `taken` gets it before `done` is called.
  void get(Taken taken, Cancellation& cancellation, Done done) {
    const auto out = std::make_shared<StagedTuple>();
    when_possible(
        [this, out] {
          if (tuples_.empty()) return false;
          *out = std::move(tuples_.front());
          tuples_.pop_front();
          bytes_ -= bytes_of(*out);
          return true;
        },
        cancellation, giving(out, std::move(taken), std::move(done)));
  }

  void peek(size_t index, Taken taken, Cancellation& cancellation, Done done) {
    const auto out = std::make_shared<StagedTuple>();
    when_possible(
        [this, out, index] {
          if (index >= tuples_.size()) return false;
          *out = tuples_[index];
          return true;
        },
        cancellation, giving(out, std::move(taken), std::move(done)));
  }

  int64_t size() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(tuples_.size());
  }

  void clear() {
    change([this] {
      tuples_.clear();
      bytes_ = 0;
    });
  }

 private:
  const StagingLimits limits_;
  std::deque<StagedTuple> tuples_;
  uint64_t bytes_ = 0;
};

using Done = std::function<void(Status)>;

StagedTuples& area(ExecuteContext& c) { return own_resource<StagedTuples>(c); }

void stage(ExecuteContext& c, Done done) {
  StagedTuple tuple;
  for (int i = 0; i < c.num_inputs(); ++i) tuple.emplace_back(c.input(i));
  area(c).put(std::move(tuple), c.cancellation(), std::move(done));
}

void unstage(ExecuteContext& c, Done done) {
  area(c).get([&c](const StagedTuple& tuple) { set_staged(c, tuple, 0); }, c.cancellation(),
              std::move(done));
}

void peek(ExecuteContext& c, Done done) {
  check(c.input(0).shape().rank() == 0, "index must be scalar, got shape ", c.input(0).shape());
  const auto index = c.input(0).item<int32_t>();
  check(index >= 0, "index must not be negative, got ", index);
  area(c).peek(
      static_cast<size_t>(index), [&c](const StagedTuple& tuple) { set_staged(c, tuple, 0); },
      c.cancellation(), std::move(done));
}

OpDef on_area(OpDef op, Kernel kernel) {
  return staging_op(std::move(op), std::move(kernel),
                    [](const NodeView& node) { return std::make_shared<StagedTuples>(node); });
}

const char* const tuple_types = "dtypes: list(type) >= 1";
const char* const any_types = "dtypes: list(type)";

const Op stage_op(on_area({.name = "Stage",
                           .doc = "Puts the values, as one element, into the staging area called "
                                  "shared_name (or like the node) in `container`; waits while it "
                                  "has `capacity` elements or memory_limit bytes (0: no limit).",
                           .inputs = {"values: dtypes"},
                           .attrs = {tuple_types},
                           .shape = shapes::none()},
                          {.execute_async = stage}));
const Op unstage_op(
    on_area({.name = "Unstage",
             .doc = "Removes and returns the first element of the staging area; waits for one.",
             .outputs = {"values: dtypes"},
             .attrs = {tuple_types}},
            {.execute_async = unstage}));
const Op peek_op(on_area({.name = "StagePeek",
                          .doc = "values = element `index` of the staging area, which stays there; "
                                 "waits until there are so many.",
                          .inputs = {"index: int32"},
                          .outputs = {"values: dtypes"},
                          .attrs = {tuple_types}},
                         {.execute_async = peek}));
const Op size_op(on_area({.name = "StageSize",
                          .doc = "size = the number of elements in the staging area.",
                          .outputs = {"size: int32"},
                          .attrs = {any_types},
                          .shape = shapes::scalar()},
                         {.execute = [](ExecuteContext& c) {
                           c.set_output(0, Tensor::scalar(static_cast<int32_t>(area(c).size())));
                         }}));
const Op clear_op(on_area({.name = "StageClear",
                           .doc = "Removes all elements from the staging area.",
                           .attrs = {any_types},
                           .shape = shapes::none()},
                          {.execute = [](ExecuteContext& c) { area(c).clear(); }}));

}  // namespace
}  // namespace leat
