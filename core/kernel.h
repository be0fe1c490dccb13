// The kernel contract: prepare + run. All that can be known before a step is done once in
// `prepare`; a step only calls the bound function with pointers. kernels/ and runtime/ meet here
// and nowhere else.
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

// What a bound function gets at each run: bare pointers in the order of the op's inputs and
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

// May throw leat::Error for what only the data can show (a label out of range); otherwise cannot
// fail. Allocates nothing, blocks on nothing, and on a GPU only enqueues (so that a tape can be
// captured).
using KernelFunction = void (*)(const void* bound, const Arguments& arguments);

// What is known of a tensor when a kernel is prepared: complete shape, and the elements if it is a
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
  // State that belongs to (session, node) and survives steps and tapes, such as a random
  // generator's counter. Empty at first; the kernel makes it.
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
  std::shared_ptr<const void> bound;  // what the function gets; kept alive by the tape
  size_t workspace_bytes = 0;
  // output may be written over the input's memory if nobody else needs it
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

// For ops that a tape cannot hold: output shapes that depend on data, variables whose shape
// changes, waiting (queues). They get whole tensors, and set every output that is a value.
class ExecuteContext {
 public:
  virtual ~ExecuteContext() = default;
  virtual const NodeView& node() const = 0;
  virtual int num_inputs() const = 0;
  virtual const Tensor& input(int i) const = 0;  // not for ref inputs
  // The input, to be changed if its memory has no other handle. input(i) may be none afterwards.
  virtual Tensor take_input(int i) { return input(i); }
  virtual Variable& variable(int i) const = 0;  // a handle on a variable: a ref, or a resource
  // A handle on other state: the queue of a dequeue. -1: the node's own, found by its name.
  virtual const std::shared_ptr<Resource>& resource(int) const {
    fail(Code::internal, "no resources here");
  }
  virtual void set_output(int i, Tensor value) = 0;
  virtual Device& device() const = 0;
  // For execute_async: how it learns that the step has ended.
  virtual Cancellation& cancellation() { fail(Code::internal, "nothing can wait here"); }
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

// One implementation of an op. An op's kernels are tried in order; the first whose device and types
// fit is taken. A kernel has `prepare` (tape) or one of the others; an op may have both (Assign),
// the runtime prefers `prepare`. One without any of them only says where nodes can be whose work
// the runtime does itself (Switch, Merge).
struct Kernel {
  DeviceType device = DeviceType::cpu;
  std::vector<TypeConstraint> types;  // empty: all that the op allows
  Prepare prepare;
  Execute execute;
  ExecuteAsync execute_async;
  // inputs and outputs that live in host memory though the device is a GPU
  std::vector<int> host_inputs;
  std::vector<int> host_outputs;
};

}  // namespace leat
