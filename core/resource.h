// State of a task that is not a variable, such as queues and accumulators; and how kernels that
// wait on it learn that their step has ended.
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

// Found in Containers by (container, kind, name), as variables are. Thread-safe; no function of it
// may block: what cannot go on keeps a callback.
class Resource {
 public:
  explicit Resource(std::string name) : name_(std::move(name)) {}
  virtual ~Resource() = default;
  Resource(const Resource&) = delete;

  const std::string& name() const { return name_; }
  // State of other kinds may have the same name. All queues are of one kind, all tables, all
  // readers: these override it with the class that they have in common.
  virtual std::type_index kind() const { return typeid(*this); }
  // INVALID_ARGUMENT, with both sides, if another node of that kind and name wants something else:
  // other dtypes, another op.
  virtual void check_fits(const NodeView& node) const = 0;
  // What it has and lacks at this moment, for the messages of those who wait at it:
  // "ConditionalAccumulator 'w' has 1 of 3 gradients". From any thread.
  virtual std::string state() const = 0;

 private:
  const std::string name_;
};

// How a task knows the state that a node stands for, beside the container: `shared_name`, or the
// node's name.
std::string resource_name(const NodeView& node);

// A handle on state that belongs to a step (a TensorArray, a Stack): a scalar of dtype resource,
// which lives as long as somebody has the handle.
Tensor resource_handle(std::shared_ptr<Resource> resource);
// INVALID_ARGUMENT if the tensor is no such handle.
const std::shared_ptr<Resource>& resource_of(const Tensor& handle);

// As many as the shape has elements, in one tensor; and what it holds, as long as it lives.
Tensor resource_handles(const Shape& shape, std::span<const std::shared_ptr<Resource>> resources);
std::span<const std::shared_ptr<Resource>> resources_of(const Tensor& handles);

// One step's end, told to its waiting kernels. Thread-safe.
//   const auto token = cancellation.add([…](const Status& why) { take the waiting operation out,
//   done(why) }); … when the operation is served: cancellation.remove(token)
// A callback may run at the same time as remove(), and after it: it must find out by itself that it
// comes too late.
class Cancellation {
 public:
  using Callback = std::function<void(const Status&)>;
  using Token = int64_t;

  // A new step: what is cancelled from now on is this one.
  void begin(int64_t step);
  // The status is passed to `callback`, at once if the step is cancelled already.
  Token add(Callback callback);
  void remove(Token token);
  // Nothing happens if another step has begun meanwhile.
  void cancel(int64_t step, const Status& status);

 private:
  std::mutex mutex_;
  int64_t step_ = -1;
  Status status_;
  Token next_ = 0;
  std::map<Token, Callback> callbacks_;
};

}  // namespace leat
