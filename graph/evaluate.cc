#include "graph/evaluate.h"

#include <map>
#include <mutex>

#include "core/device.h"
#include "core/file_roots.h"
#include "core/state/variable.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

// What is in a file is no constant, and this has not the files of a task's device.
Device& device() {
  static ThreadPool pool(1);
  static const std::unique_ptr<Device> cpu =
      make_cpu_device(DeviceName::parse("/job:localhost/replica:0/task:0/device:CPU:0"), pool,
                      FileRoots(std::vector<std::string>{}));
  return *cpu;
}

class Evaluation {
 public:
  Evaluation(const Node& node, std::span<const Tensor> inputs)
      : node_(node), inputs_(inputs.begin(), inputs.end()) {
    if (inputs.size() != node.inputs.size()) {
      fail(Code::invalid_argument, describe(node), " takes ", node.inputs.size(), " inputs, got ",
           inputs.size());
    }
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (node.inputs[i].is_handle()) inputs_[i] = inputs_[i].clone();
    }
  }

  std::vector<Tensor> run() {
    const Kernel* kernel = find_kernel(*node_.op, node_.attrs, DeviceType::cpu);
    if (kernel == nullptr) {
      fail(Code::invalid_argument, describe(node_), " has no CPU kernel for its types; there is ",
           describe_kernels(*node_.op));
    }
    if (kernel->prepare && infer_outputs()) {
      run_prepared(*kernel);
    } else if (kernel->execute) {
      execute(*kernel);
    } else {
      fail(Code::unimplemented, describe(node_), " cannot be run by itself");
    }
    if (outputs_.empty()) outputs_ = updated_variable();
    return std::move(outputs_);
  }

 private:
  // Of an op without outputs: what it has updated.
  std::vector<Tensor> updated_variable() const {
    const bool updates =
        !inputs_.empty() && node_.inputs[0].is_handle() && !node_.op->only_reads_state;
    return updates ? std::vector<Tensor>{inputs_[0]} : std::vector<Tensor>{};
  }

  // False if a shape depends on data.
  bool infer_outputs() {
    specs_.clear();
    for (const Tensor& input : inputs_) {
      specs_.push_back({input.dtype(), input.shape(), &input});
    }
    const std::vector<Shape> shapes =
        infer_shapes(node_.view(), *node_.op, specs_, node_.num_outputs());
    for (int i = 0; i < node_.num_outputs(); ++i) {
      if (!shapes[i].is_complete()) return false;
      output_specs_.push_back({node_.outputs[i].dtype, shapes[i], nullptr});
    }
    return true;
  }

  // A ref output is the variable that came in.
  int ref_input() const {
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      if (node_.inputs[i].is_ref()) return static_cast<int>(i);
    }
    fail(Code::unimplemented, describe(node_), " makes a variable and cannot be run by itself");
  }

  void run_prepared(const Kernel& kernel) {
    std::shared_ptr<void> state;
    const BoundKernel bound =
        kernel.prepare({node_.view(), specs_, output_specs_, device(), state});
    outputs_.resize(output_specs_.size());
    for (const View& view : bound.views)
      outputs_[view.output] =
          inputs_[view.input].part(output_specs_[view.output].shape, view.offset);
    std::vector<void*> in, out;
    for (const Tensor& input : inputs_) in.push_back(input.raw());
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (node_.outputs[i].is_ref) outputs_[i] = inputs_[ref_input()];
      if (!outputs_[i].is_valid()) {
        outputs_[i] = Tensor(output_specs_[i].dtype, output_specs_[i].shape);
      }
      out.push_back(outputs_[i].raw());
    }
    if (bound.function == nullptr) return;
    const std::shared_ptr<Buffer> workspace =
        bound.workspace_bytes > 0 ? Buffer::allocate(bound.workspace_bytes) : nullptr;
    bound.function(
        bound.bound.get(),
        {in.data(), out.data(), workspace ? workspace->data() : nullptr, &device().stream()});
  }

  class Context;
  void execute(const Kernel& kernel);

  const Node& node_;
  std::vector<Tensor> inputs_;
  std::vector<TensorSpec> specs_, output_specs_;
  std::vector<Tensor> outputs_;
};

// For kernels that take whole tensors.
class Evaluation::Context : public ExecuteContext {
 public:
  Context(const Node& node, const std::vector<Tensor>& inputs)
      : node_(node), view_(node.view()), inputs_(inputs), outputs_(node.outputs.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!node.inputs[i].is_handle()) continue;
      Variable& variable =
          variables_.try_emplace(static_cast<int>(i), node.inputs[i].node->name, inputs[i].dtype())
              .first->second;
      const std::unique_lock lock(variable.mutex());
      variable.assign(inputs[i]);
    }
  }

  const NodeView& node() const override { return view_; }
  int num_inputs() const override { return static_cast<int>(inputs_.size()); }
  const Tensor& input(int i) const override { return inputs_.at(i); }
  Variable& variable(int i) const override { return variables_.at(i); }
  void set_output(int i, Tensor value) override { outputs_.at(i) = std::move(value); }
  Device& device() const override { return leat::device(); }

  std::vector<Tensor> take_outputs() {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (node_.outputs[i].is_ref && !outputs_[i].is_valid() && !variables_.empty()) {
        outputs_[i] = variables_.begin()->second.value();
      }
    }
    return std::move(outputs_);
  }

 private:
  const Node& node_;
  const NodeView view_;
  const std::vector<Tensor>& inputs_;
  mutable std::map<int, Variable> variables_;
  std::vector<Tensor> outputs_;
};

void Evaluation::execute(const Kernel& kernel) {
  Context context(node_, inputs_);
  kernel.execute(context);
  outputs_ = context.take_outputs();
}

}  // namespace

std::vector<Tensor> evaluate(const Node& node, std::span<const Tensor> inputs) {
  return Evaluation(node, inputs).run();
}

}  // namespace leat
