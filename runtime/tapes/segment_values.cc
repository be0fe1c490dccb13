#include "runtime/tapes/segment_values.h"

#include <algorithm>

#include "graph/shape_inference.h"
#include "runtime/node_error.h"

namespace leat {
namespace {

// Larger results are not folded: a constant occupies memory as long as the tape.
constexpr size_t largest_constant = 64 << 10;

// What a kernel between segments sees that runs while a tape is compiled.
class FoldingContext : public ExecuteContext {
 public:
  FoldingContext(const Node& node, std::vector<Tensor> inputs, Device& host)
      : view_(node.view()),
        inputs_(std::move(inputs)),
        outputs_(node.outputs.size()),
        host_(host) {}

  const NodeView& node() const override { return view_; }
  int num_inputs() const override { return static_cast<int>(inputs_.size()); }
  const Tensor& input(int i) const override { return inputs_[i]; }
  Variable& variable(int) const override {
    fail(Code::internal, "a constant was computed from a variable");
  }
  void set_output(int i, Tensor value) override { outputs_.at(i) = std::move(value); }
  Device& device() const override { return host_; }
  std::vector<Tensor>& outputs() { return outputs_; }

 private:
  NodeView view_;
  std::vector<Tensor> inputs_, outputs_;
  Device& host_;
};

class Inference {
 public:
  Inference(const ProgramPlan& program, const SegmentPlan& segment)
      : program_(program), segment_(segment) {}

  SegmentValues run(std::span<const Tensor* const> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& tensor = *inputs[i];
      const Output& source = segment_.inputs[i].source;
      if (tensor.dtype() != source.dtype()) {
        fail(Code::invalid_argument, "'", source.name(), "' is declared as ", source.dtype(),
             ", but its value is a tensor of ", tensor.dtype());
      }
      out_.inputs.emplace_back(tensor.dtype(), tensor.shape(),
                               segment_.inputs[i].is_by_value ? tensor : Tensor());
    }
    for (int v = 0; v < std::ssize(segment_.variables); ++v) {
      const int number = segment_.variables[v].variable;
      const Variable& variable = *program_.variables[number];
      Shape shape = program_.variable_shapes[number];
      const bool may_differ = variable.has_changed_shape() && variable.is_initialized();
      if (!shape.is_complete() || (may_differ && !is_assigned_first(v)))
        shape = value_for(v, variable).shape();
      out_.variables.emplace_back(variable.dtype(), std::move(shape), Tensor());
    }
    for (const int number : segment_.constants) {
      const Tensor& tensor = program_.constants[number];
      out_.constants.emplace_back(tensor.dtype(), tensor.shape(), tensor);
    }
    out_.first_made = {0};
    for (const SegmentNode& node : segment_.nodes)
      out_.first_made.push_back(out_.first_made.back() + node.node->outputs.size());
    out_.made.reserve(out_.first_made.back());  // specs point to values
    out_.is_folded.resize(segment_.nodes.size());
    for (size_t n = 0; n < segment_.nodes.size(); ++n) {
      try {
        infer(static_cast<int>(n));
      } catch (...) {
        throw Error(status_at(*segment_.nodes[n].node, *program_.device));
      }
    }
    return std::move(out_);
  }

 private:
  // A resource of another shape gets the declared one back before anybody looks: the value is known
  // to have that (find_role).
  bool is_assigned_first(int v) const {
    for (const SegmentNode& node : segment_.nodes) {
      for (const SegmentSource& source : node.inputs) {
        if (source.kind == SegmentSource::Kind::variable && source.index == v)
          return node.node->is("AssignVariableOp") && !node.node->attr<bool>("validate_shape");
      }
    }
    return false;
  }

  // The value, or the error that names the first node that reads it.
  const Tensor& value_for(int v, const Variable& variable) const {
    if (variable.is_initialized()) return variable.value();
    for (const SegmentNode& node : segment_.nodes) {
      for (const SegmentSource& source : node.inputs) {
        if (source.kind != SegmentSource::Kind::variable || source.index != v) continue;
        throw uninitialized(variable, *node.node, *program_.device);
      }
    }
    return variable.value();
  }

  void infer(int n) {
    const Node& node = *segment_.nodes[n].node;
    std::vector<TensorSpec>& inputs = inputs_;
    out_.find_specs(segment_.nodes[n], inputs);
    const bool are_known =
        !inputs.empty() && std::all_of(inputs.begin(), inputs.end(),
                                       [](const TensorSpec& s) { return s.value != nullptr; });
    const bool may_fold = !node.op->is_stateful && (are_known || node.op->tells_shape);
    if (node.op->has_data_dependent_shape && !segment_.nodes[n].kernel->prepare) {
      check_internal(may_fold, "the shape depends on data that is not known");
      return fold_by_executing(n, inputs);
    }
    std::vector<Shape> shapes =
        infer_shapes(node.view(), *node.op, inputs, static_cast<int>(node.outputs.size()));
    size_t bytes = 0;
    for (size_t o = 0; o < shapes.size(); ++o) {
      check(shapes[o].is_complete(), "the shape of output ", o, " is ", shapes[o],
            " although the shapes of all inputs are known");
      out_.made.emplace_back(node.outputs[o].dtype, std::move(shapes[o]), Tensor());
      bytes += out_.made.back().bytes();
    }
    if (may_fold && (bytes <= largest_constant || is_left_on_host(n))) fold(n, inputs);
  }

  // By a GPU's kernel: a kernel of the GPU that reads it needs a constant of the tape.
  bool is_left_on_host(int n) const {
    return program_.device->type() != DeviceType::cpu &&
           !segment_.nodes[n].kernel->host_outputs.empty();
  }

  void fold(int n, const std::vector<TensorSpec>& inputs) {
    const Node& node = *segment_.nodes[n].node;
    const Kernel* kernel = cpu_kernel_of(n);
    if (kernel == nullptr || !kernel->prepare) return;
    std::shared_ptr<void> no_state;
    out_.find_output_specs(n, outputs_);
    const BoundKernel bound =
        kernel->prepare({node.view(), inputs, outputs_, *program_.host, no_state});
    std::vector<void*> from, to;
    for (const TensorSpec& input : inputs)
      from.push_back(input.value ? input.value->raw() : nullptr);
    const std::span<SegmentValue> outputs = out_.of_node(n);
    for (size_t o = 0; o < outputs.size(); ++o) {
      SegmentValue& value = outputs[o];
      const auto view = std::find_if(bound.views.begin(), bound.views.end(), [&](const View& v) {
        return v.output == static_cast<int>(o);
      });
      value.known = view == bound.views.end()
                        ? Tensor(value.dtype, value.shape)
                        : inputs[view->input].value->part(value.shape, view->offset);
      to.push_back(value.known.raw());
    }
    if (bound.function != nullptr) {
      std::shared_ptr<Buffer> workspace;
      if (bound.workspace_bytes > 0) workspace = Buffer::allocate(bound.workspace_bytes);
      void* const memory = workspace ? workspace->data() : nullptr;
      bound.function(bound.bound.get(), {from.data(), to.data(), memory, &program_.host->stream()});
    }
    out_.is_folded[n] = true;
  }

  void fold_by_executing(int n, const std::vector<TensorSpec>& specs) {
    const Node& node = *segment_.nodes[n].node;
    std::vector<Tensor> inputs;
    for (const TensorSpec& spec : specs) inputs.push_back(*spec.value);
    FoldingContext context(node, std::move(inputs), *program_.host);
    cpu_kernel_of(n)->execute(context);
    for (const Tensor& output : context.outputs()) {
      check_internal(output.is_valid(), "the kernel set no output");
      out_.made.emplace_back(output.dtype(), output.shape(), output);
    }
    out_.is_folded[n] = true;
  }

  const Kernel* cpu_kernel_of(int n) const {
    const SegmentNode& node = segment_.nodes[n];
    if (program_.device->type() == DeviceType::cpu) return node.kernel.get();
    return find_kernel(*node.node->op, node.node->attrs, DeviceType::cpu);
  }

  const ProgramPlan& program_;
  const SegmentPlan& segment_;
  SegmentValues out_;
  std::vector<TensorSpec> inputs_, outputs_;  // of the present node
};

}  // namespace

const SegmentValue& SegmentValues::of(const SegmentSource& source) const {
  switch (source.kind) {
    case SegmentSource::Kind::local:
      return made[first_made[source.index] + source.output];
    case SegmentSource::Kind::input:
      return inputs[source.index];
    case SegmentSource::Kind::variable:
      return variables[source.index];
    case SegmentSource::Kind::constant:
      break;
  }
  return constants[source.index];
}

void SegmentValues::find_specs(const SegmentNode& node, std::vector<TensorSpec>& inputs) const {
  inputs.clear();
  for (const SegmentSource& source : node.inputs) {
    const SegmentValue& value = of(source);
    inputs.push_back({value.dtype, value.shape, value.known.is_valid() ? &value.known : nullptr});
  }
}

void SegmentValues::find_output_specs(int node, std::vector<TensorSpec>& outputs) const {
  outputs.clear();
  for (const SegmentValue& value : of_node(node))
    outputs.push_back({value.dtype, value.shape, nullptr});
}

SegmentValues infer_values(const ProgramPlan& program, const SegmentPlan& segment,
                           std::span<const Tensor* const> inputs) {
  return Inference(program, segment).run(inputs);
}

}  // namespace leat
