// The kernel contract: prepare + run. `prepare` does once all work that needs no step; a step only
// calls the bound function with pointers. kernels/ and runtime/ meet only here.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/attr.h"
#include "core/device.h"
#include "core/tensor.h"

namespace leat {

class Cancellation;
class Resource;
class Variable;

// ---- Kernels on a tape

// The arguments of one run of a bound function: bare pointers in the order of the op's inputs and
// outputs, list inputs flattened. A ref input, or a resource input that is a variable, points at
// the variable's elements, which may be updated in place; its TensorSpec is the variable's. A ref
// output, an output that is a view, and anything with 0 elements have no memory of their own (the
// pointer is the input's, or null). Elements of a string output are constructed strings of any
// content: kernels assign to them.
struct Arguments {
  void* const* inputs;
  void* const* outputs;
  void* workspace;
  Stream* stream;

  template <class T>
  const T* input(int i) const {
    return static_cast<const T*>(inputs[i]);
  }
  template <class T>
  T* ref(int i) const {
    return static_cast<T*>(inputs[i]);
  }
  template <class T>
  T* output(int i = 0) const {
    return static_cast<T*>(outputs[i]);
  }
};

// May throw leat::Error only for errors in the data (a label out of range). Allocates nothing and
// blocks on nothing. On a GPU it only enqueues, and the same for the same arguments at every run,
// because the runtime may record that and repeat it without a call
// (core/execution/work_recorder.h): state that changes from run to run lies in the GPU's memory.
using KernelFunction = void (*)(const void* bound, const Arguments& arguments);

// A tensor as known when a kernel is prepared: its complete shape, and its elements if it is
// constant.
struct TensorSpec {
  DType dtype = DType::invalid;
  Shape shape;
  const Tensor* value = nullptr;  // host tensor; never null for the op's `value_inputs`
};

struct KernelRequest {
  NodeView node;
  std::span<const TensorSpec> inputs;
  std::span<const TensorSpec> outputs;  // shapes from the op's shape function
  Device& device;
  // State of (session, node) that outlives steps and tapes, such as a random generator's counter.
  // Initially empty; the kernel creates it.
  std::shared_ptr<void>& node_state;

  template <class T>
  const T& attr(std::string_view name) const {
    return node.attr<T>(name);
  }
};

struct Alias {
  int output;
  int input;
};

// The output *is* the input's memory, `offset` bytes into it.
struct View {
  int output;
  int input;
  size_t offset = 0;
};

struct BoundKernel {
  KernelFunction function = nullptr;  // null: nothing to run (NoOp, or all outputs are views)
  std::shared_ptr<const void> bound;  // passed to the function; kept alive by the tape
  size_t workspace_bytes = 0;
  // output may overwrite the input's memory if nothing else needs it
  std::vector<Alias> may_share;
  std::vector<View> views;  // Reshape, Identity; parts of the input: Split
  double cost_ns = 0;       // rough time of one run on one thread; 0 = unknown

  // Wraps any callable void(const Arguments&) const.
  template <class F>
  static BoundKernel of(F f) {
    BoundKernel out;
    if constexpr (std::is_empty_v<F>) {
      out.function = [](const void*, const Arguments& a) { F{}(a); };
    } else {
      out.function = [](const void* self, const Arguments& a) {
        (*static_cast<const F*>(self))(a);
      };
      out.bound = std::make_shared<const F>(std::move(f));
    }
    return out;
  }
  static BoundKernel view(int output = 0, int input = 0) {
    BoundKernel out;
    out.views = {{output, input}};
    return out;
  }
  BoundKernel&& sharing(int output, int input) && {
    may_share.push_back({output, input});
    return std::move(*this);
  }
  BoundKernel&& with_workspace(size_t bytes) && {
    workspace_bytes = bytes;
    return std::move(*this);
  }
};

// Parses attributes, checks shapes, creates library primitives. Throws leat::Error on a bad
// request.
using Prepare = std::function<BoundKernel(const KernelRequest&)>;

// ---- Kernels between segments

// For ops that a tape cannot hold: data-dependent output shapes, variables whose shape changes,
// waiting (queues). Kernels get whole tensors, and set every output that is a value.
class ExecuteContext {
 public:
  virtual ~ExecuteContext() = default;
  virtual const NodeView& node() const = 0;
  virtual int num_inputs() const = 0;
  virtual const Tensor& input(int i) const = 0;  // not for ref inputs
  // The input, for changing in place if nothing else holds its memory. input(i) may be empty
  // afterwards.
  virtual Tensor take_input(int i) { return input(i); }
  virtual Variable& variable(int i) const = 0;  // of a handle on a variable: a ref, or a resource
  // Other state behind a handle, such as the queue of a dequeue. -1: the node's own, found by name.
  virtual const std::shared_ptr<Resource>& resource(int) const {
    fail(Code::internal, "an op has no resources in this context");
  }
  virtual void set_output(int i, Tensor value) = 0;
  virtual Device& device() const = 0;
  // For execute_async: signals that the step has ended.
  virtual Cancellation& cancellation() {
    fail(Code::internal, "an op cannot wait in this context");
  }
};

// finished on return
using Execute = std::function<void(ExecuteContext&)>;
// done exactly once
using ExecuteAsync = std::function<void(ExecuteContext&, std::function<void(Status)> done)>;

// ---- Registration

struct TypeConstraint {
  std::string attr;  // "T"
  std::vector<DType> allowed;
};

// One implementation of an op. Lookup takes the op's first kernel whose device and types fit. A
// kernel has `prepare` (tape) or one of the others; an op may have both (Assign), and the runtime
// prefers `prepare`. A kernel with none of them only declares where a node may be placed whose work
// the runtime does itself (Switch, Merge).
struct Kernel {
  DeviceType device = DeviceType::cpu;
  std::vector<TypeConstraint> types;  // empty: all that the op allows
  Prepare prepare;
  Execute execute;
  ExecuteAsync execute_async;
  // inputs and outputs in host memory even if the device is a GPU
  std::vector<int> host_inputs;
  std::vector<int> host_outputs;
};

}  // namespace leat
