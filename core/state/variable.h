// Variables: state that outlives steps, in named containers of a task. Sessions that use the same
// name on the same device share the variable; between-graph replication needs no more.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <typeindex>

#include "core/state/resource.h"
#include "core/tensor.h"

namespace leat {

// One variable. Readers share the lock, writers hold it alone, for one tape at most: a read is
// never torn. A value that must outlive the lock (a Send, a fetch) is a handle on the buffer. A
// writer that finds such handles first moves the variable to a new buffer (copy on write), so a
// value that was read never changes.
class Variable {
 public:
  Variable(std::string name, DType dtype) : name_(std::move(name)), dtype_(dtype) {}

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  std::shared_mutex& mutex() { return mutex_; }
  bool is_initialized() const { return initialized_.load(std::memory_order_acquire); }
  // It has had values of different shapes, so the shapes that graphs declare are not reliable.
  bool has_changed_shape() const { return has_changed_shape_.load(std::memory_order_acquire); }
  // Marks the same for a shape that differs from the declared one.
  void note_other_shape() { has_changed_shape_.store(true, std::memory_order_release); }
  uint64_t version() const { return version_.load(std::memory_order_acquire); }  // counts writes

  // The value. Hold the lock (shared is enough). FAILED_PRECONDITION "Attempting to use
  // uninitialized value NAME" if there is none.
  const Tensor& value() const;
  // The elements, for changing in place. Hold the lock alone. Copies them first if another handle
  // exists.
  Tensor& mutable_value();
  // Replaces the value (initialises). Hold the lock alone.
  void assign(Tensor value);
  // Memory of this shape, without marking the variable initialised: for a tape that assigns all of
  // it. If the old memory cannot be used, the old value moves to `replaced`; restore() brings it
  // back if the tape fails.
  Tensor& memory(const Shape& shape, Device& device, Tensor* replaced = nullptr);
  void restore(Tensor replaced) { value_ = std::move(replaced); }
  // Returns to the state before the first assignment. Hold the lock alone.
  void forget_value();
  // The same, for good: a request with another dtype then gets a new variable.
  void reset();
  bool is_reset() const { return is_reset_.load(std::memory_order_acquire); }
  void mark_written();  // initialised, version + 1

 private:
  void note_shape(const Shape& shape);  // before value_ gets it

  const std::string name_;
  const DType dtype_;
  std::shared_mutex mutex_;
  Tensor value_;
  std::atomic<bool> initialized_{false}, has_changed_shape_{false}, is_reset_{false};
  std::atomic<uint64_t> version_{0};
};

// How graphs refer to a variable: by references to its memory (VariableV2), or by a resource handle
// (VarHandleOp).
enum class VariableKind : uint8_t { reference, resource };

// All variables and other resources of one task: (container, kind, name). The default container is
// "localhost". Thread-safe.
class Containers {
 public:
  // Finds or creates it. INVALID_ARGUMENT, with both dtypes, if it exists with another one.
  std::shared_ptr<Variable> variable(std::string_view container, std::string_view name, DType dtype,
                                     VariableKind kind = VariableKind::reference);
  // Finds the resource with the kind and name of `wanted`, or keeps `wanted`.
  std::shared_ptr<Resource> resource(std::string_view container, std::shared_ptr<Resource> wanted);
  // Forgets the variables and resources of a container ("" = the default one). Running steps keep
  // their resources until they end. A variable that something still holds, such as another
  // session's program, loses its value but stays the shared variable of that name.
  void clear(std::string_view container);
  size_t size() const;  // variables

 private:
  mutable std::mutex mutex_;
  template <class Kind>
  using Key = std::tuple<std::string, Kind, std::string>;
  std::map<Key<VariableKind>, std::shared_ptr<Variable>> variables_;
  std::map<Key<std::type_index>, std::shared_ptr<Resource>> resources_;
};

}  // namespace leat
