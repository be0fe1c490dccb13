#include "frontends/cpp/state/queue.h"

#include <algorithm>

#include "frontends/cpp/outside_control_scopes.h"
#include "graph/ops/seed.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

AttrMap attrs_of(const std::vector<DType>& dtypes, const std::vector<Shape>& shapes,
                 int64_t capacity, const std::string& container, const std::string& shared_name) {
  return {{"component_types", dtypes},
          {"shapes", shapes},
          {"capacity", capacity},
          {"container", container},
          {"shared_name", shared_name}};
}

AttrMap attrs_of(const std::vector<DType>& dtypes, const QueueOptions& options) {
  return attrs_of(dtypes, options.shapes, options.capacity, options.container, options.shared_name);
}

bool all_complete(const std::vector<Shape>& shapes) {
  return std::all_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.is_complete(); });
}

void check_capacity(std::string_view what, int64_t capacity) {
  check(capacity == -1 || capacity > 0, what,
        ": the capacity must be positive, or -1 for no limit, got ", capacity);
}

// The number of elements of a batch, as int32.
Output count_of(Graph& graph, const Operand& n, std::string_view what) {
  check(n.is_constant() || n.output(), what, ": the number of elements is an empty Output");
  check(!n.is_constant() || n.is_integer(), what, ": the number of elements must be an integer");
  const Output count = n.as(graph, i32);
  check(is_integer(count.dtype()), what, ": the number of elements, '", count.name(), "', is ",
        count.dtype(), ", not an integer");
  return count.dtype() == i32 ? count : cast(count, i32);
}

}  // namespace

Queue::Queue(Graph& graph, std::string_view name, std::vector<DType> dtypes,
             const QueueOptions& options, Location at)
    : Queue(graph, "FIFOQueueV2", name, {dtypes, options.shapes}, attrs_of(dtypes, options), at) {}

PaddingQueue::PaddingQueue(Graph& graph, std::string_view name, std::vector<DType> dtypes,
                           const QueueOptions& options, Location at)
    : Queue(graph, "PaddingFIFOQueueV2", name, {dtypes, options.shapes}, attrs_of(dtypes, options),
            at) {}

ShuffleQueue::ShuffleQueue(Graph& graph, std::string_view name, std::vector<DType> dtypes,
                           const ShuffleQueueOptions& options, Location at)
    : Queue(
          graph, "RandomShuffleQueueV2", name, {dtypes, options.shapes},
          [&] {
            check(options.min_after_dequeue >= 0 &&
                      (options.capacity < 0 || options.min_after_dequeue < options.capacity),
                  "queue '", name, "' (", at, "): min_after_dequeue must be from 0 to below the ",
                  "capacity, ", options.capacity, ", got ", options.min_after_dequeue);
            AttrMap attrs = attrs_of(dtypes, options.shapes, options.capacity, options.container,
                                     options.shared_name);
            attrs.emplace("min_after_dequeue", options.min_after_dequeue);
            const random::Seeds seeds = random::seeds(graph, options.seed);
            attrs.emplace("seed", seeds.seed);
            attrs.emplace("seed2", seeds.seed2);
            return attrs;
          }(),
          at) {}

PriorityQueue::PriorityQueue(Graph& graph, std::string_view name, std::vector<DType> dtypes,
                             const QueueOptions& options, Location at)
    : Queue(
          graph, "PriorityQueueV2", name,
          [&] {
            check(options.shapes.size() == dtypes.size(), "queue '", name, "' (", at, "): a ",
                  "priority queue needs the shapes of its components: ", dtypes.size(), ", got ",
                  options.shapes.size());
            TupleSpec spec{dtypes, options.shapes};
            spec.dtypes.insert(spec.dtypes.begin(), i64);
            spec.shapes.insert(spec.shapes.begin(), Shape{});
            return spec;
          }(),
          attrs_of(dtypes, options), at) {}

Queue::Queue(Graph& graph, std::string_view kind, std::string_view name, TupleSpec spec,
             AttrMap attrs, Location at)
    : name_(name), spec_(std::move(spec)), pads_(kind == "PaddingFIFOQueueV2") {
  const std::string what = concat("queue '", name, "' (", at, ")");
  spec_.check_valid(what);
  check_capacity(what, attrs.find("capacity")->second.get<int64_t>());
  for (const Shape& shape : spec_.shapes) {
    check(!pads_ || shape.has_rank(), what, " pads its elements, so the rank of each component ",
          "must be known");
    check(pads_ || !shape.has_rank() || shape.is_complete(), what, " has elements of shape ", shape,
          ": only a PaddingQueue takes elements with unknown extents");
  }
  check(!pads_ || !spec_.shapes.empty(), what, " pads its elements, so it needs their shapes");
  const OutsideControlScopes outside(graph);
  handle_ = graph
                .add({.op = std::string(kind),
                      .name = std::string(name),
                      .attrs = std::move(attrs),
                      .location = at})
                .output();
}

std::string Queue::what(std::string_view operation, Location at) const {
  return concat(operation, " of the queue '", name_, "' (", at, ")");
}

Node& Queue::add(std::string_view op, std::string_view operation, std::vector<Output> inputs,
                 AttrMap attrs, Location at) const {
  inputs.insert(inputs.begin(), handle_);
  return handle_.graph().add({.op = std::string(op),
                              .name = concat(name_, "_", operation),
                              .inputs = std::move(inputs),
                              .attrs = std::move(attrs),
                              .location = at});
}

Node& Queue::enqueue(const Tuple& values, Location at) const {
  return add("QueueEnqueueV2", "enqueue",
             spec_.inputs(handle_.graph(), values, false, what("enqueue", at)), {}, at);
}

Node& Queue::enqueue_many(const Tuple& values, Location at) const {
  return add("QueueEnqueueManyV2", "enqueue_many",
             spec_.inputs(handle_.graph(), values, true, what("enqueue_many", at)), {}, at);
}

std::vector<Output> Queue::dequeue(Location at) const {
  return spec_.outputs(
      add("QueueDequeueV2", "dequeue", {}, {{"component_types", spec_.dtypes}}, at));
}

std::vector<Output> Queue::dequeue_many(const Operand& n, Location at) const {
  return dequeue_batch("QueueDequeueManyV2", "dequeue_many", n, false, at);
}

std::vector<Output> Queue::dequeue_up_to(const Operand& n, Location at) const {
  return dequeue_batch("QueueDequeueUpToV2", "dequeue_up_to", n, true, at);
}

std::vector<Output> Queue::dequeue_batch(std::string_view op, std::string_view operation,
                                         const Operand& n, bool up_to, Location at) const {
  const std::string what = this->what(operation, at);
  check(!spec_.shapes.empty() && (pads_ || all_complete(spec_.shapes)), what,
        " makes a batch, so the queue needs the shapes of its components: {.shapes = …}");
  const Output count = count_of(handle_.graph(), n, what);
  Node& node = add(op, operation, {count}, {{"component_types", spec_.dtypes}}, at);
  const bool is_known = n.is_constant() && !up_to;
  return spec_.outputs(node,
                       is_known ? int64_t{constant_value(count).item<int32_t>()} : int64_t{any});
}

Node& Queue::close(const CloseOptions& options, Location at) const {
  return add("QueueCloseV2", "close", {}, {{"cancel_pending_enqueues", options.cancel_pending}},
             at);
}

Output Queue::size(Location at) const { return add("QueueSizeV2", "size", {}, {}, at).output(); }

Output Queue::is_closed(Location at) const {
  return add("QueueIsClosedV2", "is_closed", {}, {}, at).output();
}

}  // namespace leat
