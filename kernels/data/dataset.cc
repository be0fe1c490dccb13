#include "kernels/data/dataset.h"

#include "graph/shape_inference.h"
#include "graph/signature.h"
#include "kernels/extents.h"

namespace leat {
namespace {

constexpr int64_t deepest = 1000, most_parts = 100'000;

void check_dtypes(const Element& element, const std::vector<DType>& dtypes) {
  check(element.size() == dtypes.size(), "an element has ", element.size(), " components, not ",
        dtypes.size());
  for (size_t i = 0; i < element.size(); ++i) {
    check(element[i].dtype() == dtypes[i], "component ", i, " of an element is ",
          element[i].dtype(), ", not ", dtypes[i]);
  }
}

std::vector<Tensor> variants_among_inputs(const ExecuteContext& c) {
  std::vector<Tensor> out;
  const AttrMap& attrs = c.node().attrs;
  for (const auto& [arg, begin, end] : arg_ranges(op_named(c.node().op).schema.inputs, attrs)) {
    for (int i = begin; i < end; ++i) {
      const DType dtype = !arg->type_list_attr.empty()
                              ? c.node().attr<std::vector<DType>>(arg->type_list_attr).at(i - begin)
                          : !arg->type_attr.empty() ? c.node().attr<DType>(arg->type_attr)
                                                    : arg->dtype;
      if (dtype == DType::variant) out.push_back(c.input(i));
    }
  }
  return out;
}

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

Element joined(const Element& a, const Element& b) {
  Element out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

ElementTypes ElementTypes::of(const NodeView& node) {
  const char* const types = node.has("output_types") ? "output_types" : "Toutput_types";
  ElementTypes out{node.attr<std::vector<DType>>(types),
                   node.attr<std::vector<Shape>>("output_shapes")};
  check(out.dtypes.size() == out.shapes.size(), "output_types has ", out.dtypes.size(),
        " entries, but output_shapes has ", out.shapes.size());
  return out;
}

ElementTypes ElementTypes::of(const Element& element) {
  ElementTypes out;
  for (const Tensor& component : element) {
    out.dtypes.push_back(component.dtype());
    out.shapes.push_back(component.shape());
  }
  return out;
}

void check_same_types(const ElementTypes& expected, const ElementTypes& got) {
  check(expected.dtypes.size() == got.dtypes.size(),
        "Number of components does not match: expected ", expected.dtypes.size(), " types but got ",
        got.dtypes.size(), ".");
  for (size_t i = 0; i < expected.dtypes.size(); ++i) {
    check(expected.dtypes[i] == got.dtypes[i], "Data type mismatch at component ", i, ": expected ",
          expected.dtypes[i], " but got ", got.dtypes[i], ".");
  }
  for (size_t i = 0; i < expected.shapes.size(); ++i) {
    check(expected.shapes[i].is_compatible(got.shapes[i]), "Incompatible shapes at component ", i,
          ": expected ", expected.shapes[i], " but got ", got.shapes[i], ".");
  }
}

ElementSource::ElementSource(ElementTypes types, const std::vector<Pointer>& inputs)
    : types_(std::move(types)) {
  for (const Pointer& input : inputs) {
    depth_ = std::max(depth_, input->depth_ + 1);
    parts_ += input->parts_;
  }
  check(depth_ <= deepest, "datasets nested more than ", deepest, " levels deep are not supported");
  check(parts_ <= most_parts, "a dataset of more than ", most_parts,
        " datasets, each counted as often as it is used, is not supported");
}

std::unique_ptr<DatasetIterator> ElementSource::make_iterator() const {
  std::unique_ptr<DatasetIterator> out = iterate();
  out->of_ = shared_from_this();
  return out;
}

std::optional<Element> DatasetIterator::next(Reading& reading) {
  reading.check_goes_on();
  std::optional<Element> out = advance(reading);
  if (out) check_dtypes(*out, of_->types().dtypes);
  return out;
}

ElementSource::Pointer dataset_of(const Tensor& tensor) {
  check(tensor.shape().rank() == 0, "The given variant tensor must be a scalar.");
  return variant_as<DatasetVariant>(tensor).dataset;
}

void element_shapes(ShapeContext& c) {
  const auto& shapes = c.attr<std::vector<Shape>>("output_shapes");
  check(static_cast<int>(shapes.size()) == c.num_outputs(), "output_shapes has ", shapes.size(),
        " entries, but output_types has ", c.num_outputs());
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[i]);
}

void set_element(ExecuteContext& c, const ElementTypes& types, Element element) {
  check_dtypes(element, types.dtypes);
  for (size_t i = 0; i < element.size(); ++i) {
    check(types.shapes[i].is_compatible(element[i].shape()), "component ", i,
          " of an element has shape ", element[i].shape(), ", but should be ", types.shapes[i]);
  }
  for (size_t i = 0; i < element.size(); ++i)
    c.set_output(static_cast<int>(i), std::move(element[i]));
}

Tensor dataset_tensor(ElementSource::Pointer dataset, int depth) {
  return variant_tensor(std::make_unique<DatasetVariant>(std::move(dataset), depth));
}

OpDef dataset_op(OpDef op, MakeDataset make) {
  op.outputs = {"handle: variant"};
  op.shape = shapes::scalar();
  op.is_not_differentiable = true;
  op.kernels = {{.execute = [make = std::move(make)](ExecuteContext& c) {
    ElementSource::Pointer dataset = make(c);
    c.set_output(0, dataset_tensor(std::move(dataset), depth_around(variants_among_inputs(c))));
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
