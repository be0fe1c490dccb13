// Barrier and its operations: tuples of tensors under keys. A tuple leaves once all of its
// components have arrived.
#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/moves/copy_elements.h"
#include "kernels/named_resource.h"
#include "kernels/state/staging.h"

namespace leat {
namespace {

class Barrier : public WaitingState {
 public:
  explicit Barrier(const NodeView& node)
      : WaitingState(resource_name(node)),
        dtypes_(node.attr<std::vector<DType>>("component_types")),
        shapes_(shapes_of(node)) {}

  const std::vector<DType>& dtypes() const { return dtypes_; }

  void check_fits(const NodeView& node) const override {
    check(node.op == "Barrier" && node.attr<std::vector<DType>>("component_types") == dtypes_ &&
              shapes_of(node) == shapes_,
          "Shared barrier '", name(), "' has other component_types or shapes than node '",
          node.name, "' expects, which is a ", node.op);
  }

  std::string state() const override {
    const std::lock_guard lock(mutex_);
    return concat("barrier '", name(), "' has ", ready_.size(), " complete and ",
                  incomplete_.size(), " incomplete tuples", is_closed_ ? ", is closed" : "", "; ",
                  waiting(), " operations wait");
  }

  // Component `component` of the tuple under each key is a row of `values`. Inserts all rows or
  // none.
  void insert(const Tensor& keys, int64_t component, const Tensor& values) {
    check_component(keys, component, values);
    change([&] { insert_checked(keys, static_cast<size_t>(component), values); });
  }

  struct Ready {
    int64_t index = 0;  // of the insertion that added the key
    std::string key;
    std::vector<Tensor> tuple;
  };
  using Taken = std::function<void(const std::vector<Ready>&)>;

  // Takes the tuples whose keys came first. OUT_OF_RANGE once the barrier is closed and can never
  // have as many; with `up_to`, one or more are then enough.
  void take(int64_t count, bool up_to, Taken taken, Cancellation& cancellation, Done done) {
    const auto out = std::make_shared<std::vector<Ready>>();
    when_possible(
        [this, count, up_to, out] {
          const auto ready = static_cast<int64_t>(ready_.size());
          int64_t wanted = count;
          if (is_closed_) {
            const auto coming = static_cast<int64_t>(incomplete_.size());
            if (up_to) wanted = std::min(wanted, ready);
            const int64_t available = up_to ? ready : ready + coming;
            if (available < std::max<int64_t>(wanted, 1)) {
              fail(Code::out_of_range, "Barrier '", name(),
                   "' is closed and has insufficient elements (requested ", count, ", total size ",
                   available, ")");
            }
          }
          if (ready < wanted) return false;
          for (int64_t i = 0; i < wanted; ++i) {
            std::pop_heap(ready_.begin(), ready_.end(), comes_later);
            out->push_back(std::move(ready_.back()));
            ready_.pop_back();
          }
          return true;
        },
        cancellation, giving(out, std::move(taken), std::move(done)));
  }

  // Accepts no more keys. With `cancels`, accepts no more components for existing keys, either;
  // such a close may follow one that did not cancel.
  void close(bool cancels) {
    change([&] {
      if (is_closed_ && (is_cancelled_ || !cancels))
        fail(Code::cancelled, "Barrier '", name(), "' is already closed.");
      is_closed_ = true;
      is_cancelled_ = cancels;
      if (cancels) incomplete_.clear();
    });
  }

  int64_t ready_size() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(ready_.size());
  }

  int64_t incomplete_size() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(incomplete_.size());
  }

  // Component i of ready tuples, as one tensor.
  Tensor batch(const std::vector<Ready>& tuples, size_t i) const {
    Shape row = shapes_[i];
    for (const Ready& ready : tuples) {
      const Shape& other = ready.tuple[i].shape();
      check(row.is_compatible(other), "Component ", i, " of barrier '", name(), "' has rows of ",
            row, " and of ", other, ", which cannot form one tensor");
      row = row.merged(other);
    }
    check(row.is_complete(), "Barrier '", name(), "' does not know the shape ", row,
          " of component ", i, ", and there is no tuple to determine it");
    Shape shape{static_cast<int64_t>(tuples.size())};
    for (const int64_t extent : row.dims()) shape.push_back(extent);
    Tensor out(dtypes_[i], shape);
    int64_t at = 0;
    for (const Ready& ready : tuples) {
      copy_elements(ready.tuple[i], 0, out, at, ready.tuple[i].elements());
      at += ready.tuple[i].elements();
    }
    return out;
  }

 private:
  struct Entry {
    int64_t index = 0;
    StagedTuple tuple;
  };

  static std::vector<Shape> shapes_of(const NodeView& node) {
    const auto& shapes = node.attr<std::vector<Shape>>("shapes");
    check(shapes.size() == node.attr<std::vector<DType>>("component_types").size(),
          "All of the component shapes must be specified");
    check(node.attr<int64_t>("capacity") == -1,
          "Barrier only accepts capacity=-1.  Feed the inputs to your Barrier through a queue to "
          "enforce a limited capacity.");
    return shapes;
  }

  // Keys of one insertion have the same index; they leave in the order of TensorFlow's heap.
  static bool comes_later(const Ready& a, const Ready& b) { return a.index > b.index; }

  void check_component(const Tensor& keys, int64_t component, const Tensor& values) const {
    check(component >= 0 && component < static_cast<int64_t>(dtypes_.size()),
          "The component ID is out of range ", component, " > num_components (= ", dtypes_.size(),
          ")");
    check(values.dtype() == dtypes_[component], "component ", component, " of barrier '", name(),
          "' is of dtype ", dtypes_[component], ", not ", values.dtype());
    check(values.shape().rank() > 0 && values.shape()[0] == keys.elements(), "there are ",
          keys.elements(), " keys for values of shape ", values.shape());
    if (keys.elements() == 0) return;
    check(values.elements() > 0, "Tensors with no elements are not supported ", name(),
          ": received shape ", values.shape());
    const Shape row(values.shape().dims().subspan(1));
    check(row.is_compatible(shapes_[component]), "Shape mismatch in component ", component,
          " of barrier '", name(), "'. Expected ", shapes_[component], ", got ", row);
  }

  // With the lock held.
  void insert_checked(const Tensor& keys, size_t component, const Tensor& values) {
    const int64_t count = keys.elements();
    if (is_closed_ && (is_cancelled_ || (count > 0 && incomplete_.empty()))) {
      fail(Code::cancelled, "Barrier ", name(),
           " is closed.  Pending enqueues cancelled: ", is_cancelled_ ? 1 : 0,
           ".  Number of new insertions: ", count,
           ".  Number of incomplete keys: ", incomplete_.size(), ".");
    }
    // The new entries of the keys, kept here until it is certain that all can be inserted; none:
    // the tuple is complete.
    std::unordered_map<std::string, std::optional<Entry>> changed;
    std::vector<Ready> completed;
    bool has_new = false;
    for (int64_t i = 0; i < count; ++i) {
      const std::string& key = keys.data<std::string>()[i];
      const auto [at, is_first] = changed.try_emplace(key);
      std::optional<Entry>& entry = at->second;
      if (const auto found = incomplete_.find(key); is_first && found != incomplete_.end())
        entry = found->second;
      if (!entry) {
        if (is_closed_) {
          fail(Code::cancelled, "Barrier ", name(),
               " is closed, but attempted to insert a brand new key: ", key, ".");
        }
        entry = Entry{next_index_, StagedTuple(dtypes_.size())};
        has_new = true;
      }
      check(!entry->tuple[component], "Key ", key, " already has a value for component ", component,
            " in barrier ", name());
      entry->tuple[component] = slice_of(values, i);
      if (!std::all_of(entry->tuple.begin(), entry->tuple.end(),
                       [](const auto& x) { return x.has_value(); }))
        continue;
      completed.push_back({entry->index, key, {}});
      for (auto& part : entry->tuple) completed.back().tuple.push_back(std::move(*part));
      entry.reset();
    }
    for (auto& [key, entry] : changed) {
      if (entry) {
        incomplete_.insert_or_assign(key, std::move(*entry));
      } else {
        incomplete_.erase(key);
      }
    }
    for (Ready& ready : completed) {
      ready_.push_back(std::move(ready));
      std::push_heap(ready_.begin(), ready_.end(), comes_later);
    }
    if (has_new) ++next_index_;
  }

  const std::vector<DType> dtypes_;
  const std::vector<Shape> shapes_;
  std::unordered_map<std::string, Entry> incomplete_;
  std::vector<Ready> ready_;  // a heap
  int64_t next_index_ = std::numeric_limits<int64_t>::min();
  bool is_closed_ = false, is_cancelled_ = false;
};

// ---- Kernels

Barrier& barrier(const ExecuteContext& c) {
  auto* out = dynamic_cast<Barrier*>(c.resource(0).get());
  check(out != nullptr, "'", c.resource(0)->name(), "' is not a barrier");
  return *out;
}

void insert_many(ExecuteContext& c) {
  barrier(c).insert(c.input(1), c.node().attr<int64_t>("component_index"), c.input(2));
}

void take_many(ExecuteContext& c, std::function<void(Status)> done) {
  check(c.node().attr<int64_t>("timeout_ms") == -1,
        "timeout_ms is not supported: give the step a timeout");
  check(c.node().attr<std::vector<DType>>("component_types") == barrier(c).dtypes(),
        "the barrier '", barrier(c).name(), "' holds other component_types than this op takes");
  check(c.input(1).shape().rank() == 0, "num_elements must be a scalar, got shape ",
        c.input(1).shape());
  const int64_t count = c.input(1).item<int32_t>();
  check(count >= 0, "num_elements must not be negative, got ", count);
  const auto give = [&c, resource = c.resource(0)](const std::vector<Barrier::Ready>& tuples) {
    const auto n = static_cast<int64_t>(tuples.size());
    const auto& from = static_cast<const Barrier&>(*resource);
    Tensor indices(DType::i64, {n}), keys(DType::string, {n});
    for (int64_t i = 0; i < n; ++i) {
      indices.data<int64_t>()[i] = tuples[i].index;
      keys.data<std::string>()[i] = tuples[i].key;
    }
    c.set_output(0, std::move(indices));
    c.set_output(1, std::move(keys));
    for (size_t i = 0; i < from.dtypes().size(); ++i)
      c.set_output(2 + static_cast<int>(i), from.batch(tuples, i));
  };
  barrier(c).take(count, c.node().attr<bool>("allow_small_batch"), give, c.cancellation(),
                  std::move(done));
}

template <int64_t (Barrier::*count)() const>
void count_of(ExecuteContext& c) {
  c.set_output(0, Tensor::scalar(static_cast<int32_t>((barrier(c).*count)())));
}

// ---- Ops

OpDef operation(OpDef op, Kernel kernel) {
  op.inputs.insert(op.inputs.begin(), "handle: Ref(string)");
  op.kernels = {std::move(kernel)};
  op.is_stateful = true;
  op.is_not_differentiable = true;
  return op;
}

const Op barrier_op{{
    .name = "Barrier",
    .doc = "handle = the barrier called shared_name in `container`, or the session's own: tuples "
           "under keys, each of which can be taken once all of its components are there.",
    .outputs = {"handle: Ref(string)"},
    .attrs = {"component_types: list(type) >= 1", "shapes: list(shape) >= 0 = []",
              "capacity: int = -1", "container: string = ''", "shared_name: string = ''"},
    .kernels = {cpu_kernel([](const KernelRequest&) { return BoundKernel{}; })},
    .is_stateful = true,
    .make_resource = [](const NodeView& node) { return std::make_shared<Barrier>(node); },
    .is_private_resource = true,
    .is_not_differentiable = true,
}};

const Op insert_op(
    operation({.name = "BarrierInsertMany",
               .doc = "Component component_index of the tuple under keys[i] = values[i].",
               .inputs = {"keys: string", "values: T"},
               .attrs = {"T: type", "component_index: int"},
               .shape =
                   [](ShapeContext& c) {
                     c.with_rank(1, 1);
                     c.with_rank_at_least(2, 1);
                   }},
              {.execute = insert_many}));
const Op take_op(operation(
    {.name = "BarrierTakeMany",
     .doc = "Removes and returns num_elements complete tuples, those whose keys came first; waits "
            "until there are so many. OUT_OF_RANGE once the barrier is closed and cannot have as "
            "many; with allow_small_batch, once it is closed and has none.",
     .inputs = {"num_elements: int32"},
     .outputs = {"indices: int64", "keys: string", "values: component_types"},
     .attrs = {"component_types: list(type) >= 1", "allow_small_batch: bool = false",
               "wait_for_incomplete: bool = false", "timeout_ms: int = -1"}},
    {.execute_async = take_many}));
const Op close_op(operation({.name = "BarrierClose",
                             .doc = "Allows no new keys; with cancel_pending_enqueues, also drops "
                                    "incomplete tuples and allows no more components.",
                             .attrs = {"cancel_pending_enqueues: bool = false"},
                             .shape = shapes::none()},
                            {.execute = [](ExecuteContext& c) {
                              barrier(c).close(c.node().attr<bool>("cancel_pending_enqueues"));
                            }}));
const Op ready_size_op(operation({.name = "BarrierReadySize",
                                  .doc = "size = the number of complete tuples.",
                                  .outputs = {"size: int32"},
                                  .shape = shapes::scalar()},
                                 {.execute = count_of<&Barrier::ready_size>}));
const Op incomplete_size_op(operation({.name = "BarrierIncompleteSize",
                                       .doc = "size = the number of incomplete tuples.",
                                       .outputs = {"size: int32"},
                                       .shape = shapes::scalar()},
                                      {.execute = count_of<&Barrier::incomplete_size>}));

}  // namespace
}  // namespace leat
