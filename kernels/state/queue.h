// Queues of tuples of tensors. Operations that cannot proceed wait in line, without blocking a
// thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/kernel.h"
#include "core/state/resource.h"
#include "core/tensor.h"
#include "kernels/random/philox.h"

namespace leat {

// TensorFlow's FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue and PriorityQueue. For the same
// seeds the shuffled one draws the same elements as TensorFlow's, and elements of equal priority
// come in the order of TensorFlow's heap. Enqueues are served in order of arrival, and so are
// dequeues. A close waits in line behind the waiting enqueues, which finish first. Thread-safe.
class TensorQueue : public Resource, public std::enable_shared_from_this<TensorQueue> {
 public:
  using Element = std::vector<Tensor>;  // one tensor per component
  using Done = std::function<void(const Status&)>;
  using Taken = std::function<void(const Status&, std::vector<Element>)>;

  struct Options {
    std::string kind;  // "FIFOQueue", for messages
    std::vector<DType> dtypes;
    std::vector<Shape> shapes;  // empty: any shapes
    int64_t capacity = -1;      // -1: unbounded
    bool is_padded = false;     // unknown extents may differ within one batch
    bool is_shuffled = false;
    bool is_sorted = false;  // by the first component, the priority: smallest first
    int64_t min_after_dequeue = 0;
    uint64_t seed = 0, seed2 = 0;
    static Options of(const NodeView& node);
  };
  TensorQueue(std::string name, Options options);

  const Options& options() const { return options_; }
  void check_fits(const NodeView& node) const override;
  std::string state() const override;
  // INVALID_ARGUMENT if elements of these shapes cannot form a batch.
  void check_batches() const;
  // INVALID_ARGUMENT if an element's dtypes or shapes differ from the queue's.
  void check_element(const std::vector<Tensor>& components, bool are_many) const;

  // Calls `done` once: with CANCELLED if the queue is closed. With `cancellation` the operation
  // leaves the line when the step ends.
  void enqueue(std::vector<Element> elements, Cancellation& cancellation, Done done);
  // For an unbounded queue that is never closed: does not wait.
  void put(Element element);
  // Waits for `count` elements. `up_to`: fewer, but at least one, are enough once the queue is
  // closed. OUT_OF_RANGE if it is closed and has too few; it then keeps its elements.
  void dequeue(int64_t count, bool up_to, Cancellation& cancellation, Taken taken);
  // With `cancel_pending` waiting enqueues fail with CANCELLED, and the queue may already be
  // closed; else `done` waits for them.
  void close(bool cancel_pending, Cancellation& cancellation, Done done);
  int64_t size() const;
  bool is_closed() const;

 private:
  struct Operation {
    int64_t id;
    std::vector<Element> elements;  // still to be enqueued, or taken so far
    int64_t wanted = 0;             // elements that a dequeue waits for
    bool up_to = false;
    bool closes = false;
    std::function<void(const Status&, std::vector<Element>)> done;
    std::function<void()> forget;  // unregisters the cancellation
  };
  using Line = std::deque<Operation>;
  using Calls = std::vector<std::function<void()>>;

  void join(Line& line, Operation operation, Cancellation& cancellation);
  void serve();
  bool serve_enqueues(Calls& calls);
  bool serve_dequeues(Calls& calls);
  void finish(Line& line, Status status, Calls& calls);
  void give_back(Operation& operation);
  void leave(int64_t id, const Status& why);
  void put_one(Element element);
  Element take_one();
  bool has_space() const {
    return options_.capacity < 0 || static_cast<int64_t>(elements_.size()) < options_.capacity;
  }

  const Options options_;
  mutable std::mutex mutex_;  // guards the members below
  std::deque<Element> elements_;
  Line enqueues_, dequeues_;
  std::map<int64_t, Status> joining_;  // not yet in line; not OK: the step has ended
  Philox random_;
  Philox::Block drawn_{};
  size_t used_ = drawn_.size();  // numbers used of those drawn
  int64_t next_id_ = 0;
  bool is_closed_ = false;
};

}  // namespace leat
