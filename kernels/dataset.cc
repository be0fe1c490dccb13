#include "kernels/dataset.h"

#include "graph/shape_inference.h"
#include "kernels/extents.h"

namespace leat {
namespace {

constexpr int64_t deepest = 1000, most_parts = 100'000;

}  // namespace

Reading::Reading(Cancellation& cancellation) : cancellation_(cancellation) {
  token_ = cancellation.add([end = end_](const Status& why) {
    end->status = why;
    end->has_come.store(true, std::memory_order_release);
  });
}

Reading::~Reading() { cancellation_.remove(token_); }

void Reading::check_goes_on() const {
  if (end_->has_come.load(std::memory_order_acquire)) throw_if_error(end_->status);
}

ElementTypes ElementTypes::of(const NodeView& node) {
  const char* const types = node.has("output_types") ? "output_types" : "Toutput_types";
  ElementTypes out{node.attr<std::vector<DType>>(types),
                   node.attr<std::vector<Shape>>("output_shapes")};
  check(out.dtypes.size() == out.shapes.size(), "output_types has ", out.dtypes.size(),
        " entries, output_shapes ", out.shapes.size());
  return out;
}

Dataset::Dataset(ElementTypes types, const std::vector<Pointer>& inputs)
    : types_(std::move(types)) {
  for (const Pointer& input : inputs) {
    depth_ = std::max(depth_, input->depth_ + 1);
    parts_ += input->parts_;
  }
  check(depth_ <= deepest, "a dataset of datasets of datasets …, more than ", deepest,
        " times, is not supported");
  check(parts_ <= most_parts, "a dataset of more than ", most_parts,
        " others, each counted as often as it is used, is not supported");
}

Dataset::Pointer dataset_of(const Tensor& tensor) {
  check(tensor.shape().rank() == 0, "The given variant tensor must be a scalar.");
  return variant_as<DatasetVariant>(tensor).dataset;
}

OpDef dataset_op(OpDef op, MakeDataset make) {
  op.outputs = {"handle: variant"};
  op.shape = shapes::scalar();
  op.is_not_differentiable = true;
  op.kernels = {{.execute = [make = std::move(make)](ExecuteContext& c) {
    c.set_output(0, variant_tensor(std::make_unique<DatasetVariant>(make(c))));
  }}};
  return op;
}

std::vector<std::string> dataset_attrs(std::vector<std::string> more) {
  more.insert(more.end(), {"output_types: list(type) >= 1", "output_shapes: list(shape) >= 1"});
  return more;
}

void check_memory_for_element(const Element& element) {
  size_t bytes = sizeof(Element);
  for (const Tensor& component : element) bytes += sizeof(Tensor) + component.bytes();
  check_memory_for(1, bytes);
}

}  // namespace leat
