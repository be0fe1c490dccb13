// Ops on queues (queue.h).
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/extents.h"
#include "kernels/moves/copy_elements.h"
#include "kernels/moves/padding.h"
#include "kernels/named_resource.h"
#include "kernels/state/queue.h"

namespace leat {
namespace {

using Done = std::function<void(Status)>;

TensorQueue& queue(const ExecuteContext& c) {
  auto* out = dynamic_cast<TensorQueue*>(c.resource(0).get());
  check(out != nullptr, "'", c.resource(0)->name(), "' is not a queue");
  return *out;
}

std::vector<Tensor> components(const ExecuteContext& c) {
  std::vector<Tensor> out;
  for (int i = 1; i < c.num_inputs(); ++i) out.push_back(c.input(i));
  return out;
}

// ---- Between a batch and its elements ----

// The largest extents of a component's elements; without elements, those of `shape`, with 0 for
// unknown ones.
Shape padded_shape(const std::vector<TensorQueue::Element>& elements, size_t component,
                   const Shape& shape) {
  Shape out = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    int64_t extent = std::max<int64_t>(shape[axis], 0);
    for (const TensorQueue::Element& element : elements)
      extent = std::max(extent, element[component].shape()[axis]);
    out.set(axis, extent);
  }
  return out;
}

// Elements are padded to the largest extents with 0 or empty strings.
Tensor batch_of(const std::vector<TensorQueue::Element>& elements, size_t component, DType dtype,
                const Shape& shape) {
  const Shape room = padded_shape(elements, component, shape);
  const Shape all = rows_of(std::ssize(elements), room, 0);
  Tensor out = shape.is_complete() ? Tensor(dtype, all) : zeros(dtype, all);
  for (size_t i = 0; i < elements.size(); ++i) {
    copy_into_corner(elements[i][component], out, static_cast<int64_t>(i) * room.elements(), room);
  }
  return out;
}

// ---- Kernels ----

void enqueue(ExecuteContext& c, Done done) {
  TensorQueue::Element element = components(c);
  queue(c).check_element(element, false);
  queue(c).enqueue({std::move(element)}, c.cancellation(), std::move(done));
}

void enqueue_many(ExecuteContext& c, Done done) {
  const std::vector<Tensor> batch = components(c);
  queue(c).check_element(batch, true);
  check_memory_for(batch[0].shape()[0],
                   sizeof(TensorQueue::Element) + batch.size() * sizeof(Tensor));
  std::vector<TensorQueue::Element> elements(batch[0].shape()[0]);
  for (size_t i = 0; i < elements.size(); ++i) {
    for (const Tensor& component : batch)
      elements[i].push_back(slice_of(component, static_cast<int64_t>(i)));
  }
  queue(c).enqueue(std::move(elements), c.cancellation(), std::move(done));
}

void check_types(const ExecuteContext& c) {
  check(c.node().attr<std::vector<DType>>("component_types") == queue(c).options().dtypes,
        "the queue '", queue(c).name(), "' holds other component_types than this op dequeues");
}

void dequeue(ExecuteContext& c, Done done) {
  check_types(c);
  queue(c).dequeue(1, false, c.cancellation(),
                   [&c, done = std::move(done)](const Status& status,
                                                std::vector<TensorQueue::Element> elements) {
                     for (size_t i = 0; status.is_ok() && i < elements[0].size(); ++i)
                       c.set_output(static_cast<int>(i), std::move(elements[0][i]));
                     done(status);
                   });
}

template <bool up_to>
void dequeue_many(ExecuteContext& c, Done done) {
  check_types(c);
  TensorQueue& from = queue(c);
  const int64_t count = c.input(1).item<int32_t>();
  check(count >= 0, "DequeueManyOp requires a non-negative number of elements, got ", count);
  from.check_batches();
  from.dequeue(count, up_to, c.cancellation(),
               [&c, queue = c.resource(0), done = std::move(done)](
                   Status status, std::vector<TensorQueue::Element> elements) {
                 const TensorQueue::Options& options =
                     static_cast<const TensorQueue&>(*queue).options();
                 try {  // the operation that serves the queue must not fail for too large a batch
                   for (size_t i = 0; status.is_ok() && i < options.dtypes.size(); ++i) {
                     c.set_output(static_cast<int>(i),
                                  batch_of(elements, i, options.dtypes[i], options.shapes[i]));
                   }
                 } catch (...) {
                   status = status_of_current_exception();
                 }
                 done(status);
               });
}

void close(ExecuteContext& c, Done done) {
  queue(c).close(c.node().attr<bool>("cancel_pending_enqueues"), c.cancellation(), std::move(done));
}

// ---- Ops ----

std::shared_ptr<Resource> make_queue(const NodeView& node) {
  return std::make_shared<TensorQueue>(resource_name(node), TensorQueue::Options::of(node));
}

const Kernel no_kernel = cpu_kernel([](const KernelRequest&) { return BoundKernel{}; });
const char* const types = "component_types: list(type) >= 1";
const char* const shapes_attr = "shapes: list(shape) >= 0 = []";
const char* const timeout = "timeout_ms: int = -1";

OpDef queue_op(OpDef op) {
  op.outputs = {"handle: resource"};
  op.kernels = {no_kernel};
  op.is_stateful = true;
  op.make_resource = make_queue;
  op.is_private_resource = true;
  return op;
}

OpDef operation(OpDef op, Kernel kernel) {
  op.inputs.insert(op.inputs.begin(), "handle: resource");
  op.kernels = {std::move(kernel)};
  op.is_stateful = true;
  op.is_not_differentiable = true;
  return op;
}

const Op fifo_op(queue_op({
    .name = "FIFOQueueV2",
    .doc = "handle = the queue called shared_name in `container`, or the session's own: first in, "
           "first out, at most `capacity` elements (-1: any number), each a tuple of tensors.",
    .attrs = {types, shapes_attr, "capacity: int = -1", "container: string = ''",
              "shared_name: string = ''"},
}));
const Op padding_op(queue_op({
    .name = "PaddingFIFOQueueV2",
    .doc = "handle = a queue like FIFOQueueV2; where `shapes` leaves extents open, a batch has the "
           "largest extents of its elements, and 0 elsewhere.",
    .attrs = {types, shapes_attr, "capacity: int = -1", "container: string = ''",
              "shared_name: string = ''"},
}));
const Op shuffle_op(queue_op({
    .name = "RandomShuffleQueueV2",
    .doc = "handle = a queue that gives its elements in random order; at least min_after_dequeue "
           "stay in it until it is closed.",
    .attrs = {types, shapes_attr, "capacity: int = -1", "min_after_dequeue: int = 0",
              "seed: int = 0", "seed2: int = 0", "container: string = ''",
              "shared_name: string = ''"},
}));

const Op priority_op(queue_op({
    .name = "PriorityQueueV2",
    .doc = "handle = a queue whose elements have an int64 before the components: their priority. "
           "The element with the smallest comes out first.",
    .attrs = {"component_types: list(type) >= 0 = []", "shapes: list(shape) >= 0",
              "capacity: int = -1", "container: string = ''", "shared_name: string = ''"},
}));

const Op enqueue_op(operation({.name = "QueueEnqueueV2",
                               .doc = "Adds one element; waits while the queue is full.",
                               .inputs = {"components: Tcomponents"},
                               .attrs = {"Tcomponents: list(type) >= 1", timeout}},
                              {.execute_async = enqueue}));
const Op enqueue_many_op(operation({.name = "QueueEnqueueManyV2",
                                    .doc = "Adds an element for each index of the first axis.",
                                    .inputs = {"components: Tcomponents"},
                                    .attrs = {"Tcomponents: list(type) >= 1", timeout}},
                                   {.execute_async = enqueue_many}));
const Op dequeue_op(operation({.name = "QueueDequeueV2",
                               .doc = "Removes and returns one element; waits for one. "
                                      "OUT_OF_RANGE once the queue is closed and empty.",
                               .outputs = {"components: component_types"},
                               .attrs = {types, timeout}},
                              {.execute_async = dequeue}));
const Op dequeue_many_op(
    operation({.name = "QueueDequeueManyV2",
               .doc = "Removes n elements and returns them as one batch; waits until there are n.",
               .inputs = {"n: int32"},
               .outputs = {"components: component_types"},
               .attrs = {types, timeout}},
              {.execute_async = dequeue_many<false>}));
const Op dequeue_up_to_op(
    operation({.name = "QueueDequeueUpToV2",
               .doc = "As QueueDequeueManyV2, but takes fewer if the queue is "
                      "closed and has no more.",
               .inputs = {"n: int32"},
               .outputs = {"components: component_types"},
               .attrs = {types, timeout}},
              {.execute_async = dequeue_many<true>}));
const Op close_op(operation({.name = "QueueCloseV2",
                             .doc = "Allows no more enqueues; those that wait finish first, or are "
                                    "cancelled. Dequeues take what is left.",
                             .attrs = {"cancel_pending_enqueues: bool = false"}},
                            {.execute_async = close}));
const Op size_op(operation({.name = "QueueSizeV2",
                            .doc = "size = the number of elements.",
                            .outputs = {"size: int32"},
                            .shape = shapes::scalar()},
                           {.execute = [](ExecuteContext& c) {
                             c.set_output(0, Tensor::scalar(static_cast<int32_t>(queue(c).size())));
                           }}));
const Op is_closed_op(operation({.name = "QueueIsClosedV2",
                                 .doc = "is_closed = whether the queue is closed.",
                                 .outputs = {"is_closed: bool"},
                                 .shape = shapes::scalar()},
                                {.execute = [](ExecuteContext& c) {
                                  c.set_output(0, Tensor::scalar(queue(c).is_closed()));
                                }}));

}  // namespace
}  // namespace leat
