// Stacks: values of each iteration that a while loop's forward pass keeps for the gradient. A stack
// belongs to the step that made it.
#include <mutex>
#include <vector>

#include "core/state/resource.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"

namespace leat {
namespace {

class Stack final : public Resource {
 public:
  Stack(std::string name, DType dtype, int64_t most)
      : Resource(std::move(name)), dtype_(dtype), most_(most) {}

  void check_fits(const NodeView&) const override {}
  std::string state() const override {
    const std::lock_guard lock(mutex_);
    return concat("Stack '", name(), "' has ", elements_.size(), " elements");
  }

  void push(Tensor element) {
    const std::lock_guard lock(mutex_);
    check_open();
    check(element.dtype() == dtype_, "Must have type ", dtype_, " but got ", element.dtype(),
          " (Stack '", name(), "')");
    check(most_ < 0 || static_cast<int64_t>(elements_.size()) < most_, "Stack[", name(),
          "] overflowed its max_size (", most_, ")");
    elements_.push_back(std::move(element));
  }

  Tensor pop(DType dtype) {
    const std::lock_guard lock(mutex_);
    check_open();
    check(dtype == dtype_, "Stack[", name(), "] has elements of type ", dtype_, ", not ", dtype);
    check(!elements_.empty(), "Stack[", name(), "] is empty when calling Pop().");
    Tensor out = std::move(elements_.back());
    elements_.pop_back();
    return out;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    elements_.clear();
    is_closed_ = true;
  }

 private:
  void check_open() const { check(!is_closed_, "Stack[", name(), "] has already been closed."); }

  const DType dtype_;
  const int64_t most_;  // < 0: any number
  mutable std::mutex mutex_;
  std::vector<Tensor> elements_;
  bool is_closed_ = false;
};

Stack& stack(const ExecuteContext& c) {
  auto* out = dynamic_cast<Stack*>(c.resource(0).get());
  check(out != nullptr, "'", c.resource(0)->name(), "' is not a Stack");
  return *out;
}

const Op stack_op{{
    .name = "StackV2",
    .doc = "handle of a new stack of tensors of elem_type, at most max_size of them (any number if "
           "it is negative).",
    .inputs = {"max_size: int32"},
    .outputs = {"handle: resource"},
    .attrs = {"elem_type: type", "stack_name: string = ''"},
    .shape = shapes::scalar(),
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       check(c.input(0).shape().rank() == 0,
                             "Stack size must be a scalar, got shape ", c.input(0).shape());
                       const std::string& name = c.node().attr<std::string>("stack_name");
                       c.set_output(
                           0, resource_handle(std::make_shared<Stack>(
                                  name.empty() ? std::string(c.node().name) : name,
                                  c.node().attr<DType>("elem_type"), c.input(0).item<int32_t>())));
                     }}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op push_op{{
    .name = "StackPushV2",
    .doc = "Pushes elem; output = elem.",
    .inputs = {"handle: resource", "elem: T"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "swap_memory: bool = false"},
    .shape = shapes::same_as(1),
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       stack(c).push(c.input(1));
                       c.set_output(0, c.input(1));
                     }}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op pop_op{{
    .name = "StackPopV2",
    .doc = "elem = the tensor pushed last, which leaves the stack.",
    .inputs = {"handle: resource"},
    .outputs = {"elem: elem_type"},
    .attrs = {"elem_type: type"},
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       c.set_output(0, stack(c).pop(c.node().attr<DType>("elem_type")));
                     }}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op close_op{{
    .name = "StackCloseV2",
    .doc = "Drops what the stack holds; it cannot be used any more.",
    .inputs = {"handle: resource"},
    .kernels = {{.execute = [](ExecuteContext& c) { stack(c).close(); }}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
