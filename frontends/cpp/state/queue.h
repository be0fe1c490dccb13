// Queues: elements that some steps put in and others take out, at their own pace.
//   Queue tokens(g, "tokens", {i64}, {.capacity = 100});
//   Node& put = tokens.enqueue({step});
//   Output token = tokens.dequeue()[0];
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontends/cpp/state/tuple.h"

namespace leat {

struct QueueOptions {
  int64_t capacity = -1;  // enqueues wait while the queue has this many; -1: no limit
  // Of each component. Needed by dequeue_many() and dequeue_up_to(); none: any.
  std::vector<Shape> shapes = {};
  std::string container = {};  // "" = the task's default container
  // Sessions whose graphs give the same name share the queue; "" = each session has its own.
  std::string shared_name = {};
};

struct ShuffleQueueOptions {
  int64_t capacity = -1;
  // So many elements stay in the queue until it is closed: the more, the better it shuffles. Must
  // be below the capacity.
  int64_t min_after_dequeue = 0;
  int64_t seed = 0;  // 0: another order in each run
  std::vector<Shape> shapes = {};
  std::string container = {};
  std::string shared_name = {};
};

struct CloseOptions {
  bool cancel_pending = false;  // waiting enqueues fail with CANCELLED, else they finish first
};

// First in, first out. An element has one tensor for each dtype. A queue lives as long as its
// session (or its container, with a shared_name), where its node is placed; it is not part of
// checkpoints. Cheap to copy; valid as long as its graph.
//
// All operations are nodes; they are served in the order in which the steps reach them. Errors of a
// step: CANCELLED for an enqueue after close(), OUT_OF_RANGE for a dequeue of a closed queue that
// has too few elements: so readers learn that an epoch has ended.
class Queue {
 public:
  Queue(Graph& graph, std::string_view name, std::vector<DType> dtypes,
        const QueueOptions& options = {}, Location at = here());

  // Puts one element in. Waits while the queue is full.
  Node& enqueue(const Tuple& values, Location at = here()) const;
  // Puts in an element for each position of the values' common first axis.
  Node& enqueue_many(const Tuple& values, Location at = here()) const;
  // Takes one element out: an Output for each component. Waits for one.
  std::vector<Output> dequeue(Location at = here()) const;
  // Takes `n` elements out as one batch: components [n, …]. Waits for all of them.
  std::vector<Output> dequeue_many(const Operand& n, Location at = here()) const;
  // The same, but takes what is there, at least one, once the queue is closed.
  std::vector<Output> dequeue_up_to(const Operand& n, Location at = here()) const;

  // No more enqueues from now on. A second close() fails with CANCELLED.
  Node& close(const CloseOptions& options = {}, Location at = here()) const;
  Output size(Location at = here()) const;       // int32: the number of elements
  Output is_closed(Location at = here()) const;  // bool

  Output handle() const { return handle_; }  // for other ops on queues
  const std::vector<DType>& dtypes() const { return spec_.dtypes; }
  const std::vector<Shape>& shapes() const { return spec_.shapes; }

 protected:
  // `kind`: the op. `spec` has all components that an element has.
  Queue(Graph& graph, std::string_view kind, std::string_view name, TupleSpec spec, AttrMap attrs,
        Location at);

 private:
  std::string what(std::string_view operation, Location at) const;
  Node& add(std::string_view op, std::string_view operation, std::vector<Output> inputs,
            AttrMap attrs, Location at) const;
  std::vector<Output> dequeue_batch(std::string_view op, std::string_view operation,
                                    const Operand& n, bool up_to, Location at) const;

  std::string name_;  // as the user gave it
  TupleSpec spec_;
  bool pads_ = false;
  Output handle_;
};

// A queue of elements whose shapes may differ where `shapes`, which must be given, has `any`. A
// batch has the largest extents of its elements, padded with 0 or "".
class PaddingQueue : public Queue {
 public:
  PaddingQueue(Graph& graph, std::string_view name, std::vector<DType> dtypes,
               const QueueOptions& options, Location at = here());
};

// A queue that gives its elements in random order.
class ShuffleQueue : public Queue {
 public:
  ShuffleQueue(Graph& graph, std::string_view name, std::vector<DType> dtypes,
               const ShuffleQueueOptions& options = {}, Location at = here());
};

// A queue that gives the element with the smallest priority first. `dtypes` and `shapes` are those
// of the other components: an element is {priority, values…}, in and out, with an int64 priority.
class PriorityQueue : public Queue {
 public:
  PriorityQueue(Graph& graph, std::string_view name, std::vector<DType> dtypes,
                const QueueOptions& options = {}, Location at = here());
};

}  // namespace leat
