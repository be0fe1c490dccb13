// State of a task other than variables, such as queues and accumulators; and how kernels that wait
// on it learn that their step has ended.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <typeindex>

#include "core/attr.h"
#include "core/error.h"
#include "core/tensor.h"

namespace leat {

// Found in Containers by (container, kind, name), as variables are. Thread-safe. None of its
// functions may block: an operation that cannot go on keeps a callback.
class Resource {
 public:
  explicit Resource(std::string name) : name_(std::move(name)) {}
  virtual ~Resource() = default;
  Resource(const Resource&) = delete;

  const std::string& name() const { return name_; }
  // State of different kinds may share a name. All queues are of one kind, as are all tables and
  // all readers: they override this with their common class.
  virtual std::type_index kind() const { return typeid(*this); }
  // INVALID_ARGUMENT if `node`, of the same kind and name, needs other dtypes or another op. The
  // message shows both sides.
  virtual void check_fits(const NodeView& node) const = 0;
  // What it has and lacks now, for messages about operations that wait: "ConditionalAccumulator 'w'
  // has 1 of 3 gradients". From any thread.
  virtual std::string state() const = 0;

 private:
  const std::string name_;
};

// The name, beside the container, of the state that a node stands for: `shared_name`, or the node's
// name.
std::string resource_name(const NodeView& node);

// A handle on state of one step (a TensorArray, a Stack): a scalar of dtype resource. The state
// lives as long as a handle.
Tensor resource_handle(std::shared_ptr<Resource> resource);
// INVALID_ARGUMENT if the tensor is not one of these handles.
const std::shared_ptr<Resource>& resource_of(const Tensor& handle);

// One tensor of several handles, one per element of the shape; and the state behind such a tensor,
// valid as long as the tensor.
Tensor resource_handles(const Shape& shape, std::span<const std::shared_ptr<Resource>> resources);
std::span<const std::shared_ptr<Resource>> resources_of(const Tensor& handles);

// Signals the end of one step to its waiting kernels. Thread-safe.
//   const auto token = cancellation.add([…](const Status& why) { take the waiting operation out,
//   done(why) }); … when the operation is served: cancellation.remove(token)
// A callback may run during remove(), and after it: it must detect by itself that it is too late.
class Cancellation {
 public:
  using Callback = std::function<void(const Status&)>;
  using Token = int64_t;

  // Begins a new step: cancel() applies to it from now on.
  void begin(int64_t step);
  // `callback` gets the status; at once if the step is already cancelled.
  Token add(Callback callback);
  void remove(Token token);
  // Does nothing if another step has begun.
  void cancel(int64_t step, const Status& status);

 private:
  std::mutex mutex_;
  int64_t step_ = -1;
  Status status_;
  Token next_ = 0;
  std::map<Token, Callback> callbacks_;
};

}  // namespace leat
