#include "kernels/moves/moved_variants.h"

#include "core/variant.h"
#include "graph/op_def.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

// The kernel for 8-byte elements, run on the numbers of the variants.
class Move {
 public:
  Move(const Prepare& prepare, ExecuteContext& c) : context_(c) {
    for (int i = 0; i < c.num_inputs(); ++i) inputs_.push_back(numbered(c.input(i)));
    std::vector<TensorSpec> inputs, outputs;
    for (const Tensor& input : inputs_) inputs.push_back({input.dtype(), input.shape(), &input});
    const OpDef& op = op_named(c.node().op);
    for (const Shape& shape : infer_shapes(c.node(), op, inputs, num_outputs(op))) {
      outputs.push_back({DType::i64, shape});
      outputs_.emplace_back(DType::i64, shape);
    }
    std::shared_ptr<void> none;
    run(prepare({c.node(), inputs, outputs, c.device(), none}));
  }

 private:
  int num_outputs(const OpDef& op) const {
    const std::string& number = op.schema.outputs[0].number_attr;
    return number.empty() ? 1 : static_cast<int>(context_.node().attr<int64_t>(number));
  }

  Tensor numbered(const Tensor& input) {
    if (input.dtype() != DType::variant) return input;
    Tensor numbers(DType::i64, input.shape());
    for (int64_t i = 0; i < input.elements(); ++i) {
      numbers.data<int64_t>()[i] = static_cast<int64_t>(variants_.size());
      variants_.push_back(input.data<VariantPointer>()[i]);
    }
    return numbers;
  }

  void run(const BoundKernel& kernel) {
    std::vector<void*> from, to;
    for (Tensor& input : inputs_) from.push_back(input.raw());
    for (Tensor& output : outputs_) to.push_back(output.raw());
    for (const View& view : kernel.views)
      to[view.output] = static_cast<char*>(from[view.input]) + view.offset;
    std::vector<char> workspace(kernel.workspace_bytes);
    Stream stream;
    if (kernel.function != nullptr)
      kernel.function(kernel.bound.get(), {from.data(), to.data(), workspace.data(), &stream});
    for (size_t i = 0; i < outputs_.size(); ++i) {
      Tensor out(DType::variant, outputs_[i].shape());
      const auto* numbers = static_cast<const int64_t*>(to[i]);
      for (int64_t k = 0; k < out.elements(); ++k)
        out.data<VariantPointer>()[k] = variants_[numbers[k]];
      context_.set_output(static_cast<int>(i), std::move(out));
    }
  }

  ExecuteContext& context_;
  std::vector<VariantPointer> variants_;
  std::vector<Tensor> inputs_, outputs_;
};

}  // namespace

std::vector<Kernel> and_for_variants(Kernel moving) {
  Kernel of_variants{
      .types = {{moving.types[0].attr, {DType::variant}}},
      .execute = [prepare = moving.prepare](ExecuteContext& c) { Move(prepare, c); }};
  return {std::move(moving), std::move(of_variants)};
}

}  // namespace leat
