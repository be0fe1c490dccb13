// Ops on iterators (iterator.h).
#include "graph/shape_inference.h"
#include "kernels/control/optional.h"
#include "kernels/cpu.h"
#include "kernels/data/iterator.h"

namespace leat {
namespace {

Iterator& iterator_of(const ExecuteContext& c, int input) {
  auto* out = dynamic_cast<Iterator*>(c.resource(input).get());
  check(out != nullptr, "'", c.resource(input)->name(), "' is not an iterator");
  return *out;
}

// ---- Kernels

// Starting to read may compile functions; the elements are read later.
void make_iterator(ExecuteContext& c) { iterator_of(c, 1).begin(input_dataset(c)); }

void get_next(ExecuteContext& c, std::function<void(Status)> done) {
  Iterator& iterator = iterator_of(c, 0);
  iterator.check_types(ElementTypes::of(c.node()));
  const auto take = [&c, &iterator](std::optional<Element> element) {
    if (!element) fail(Code::out_of_range, "End of sequence");
    set_element(c, iterator.types(), std::move(*element));
  };
  iterator.next(c, take, std::move(done));
}

void get_next_as_optional(ExecuteContext& c, std::function<void(Status)> done) {
  Iterator& iterator = iterator_of(c, 0);
  iterator.check_types(ElementTypes::of(c.node()));
  const auto take = [&c](std::optional<Element> element) {
    auto out = std::make_unique<OptionalTensors>();
    if (element) depth_around(*element);
    out->values = std::move(element);
    c.set_output(0, variant_tensor(std::move(out)));
  };
  iterator.next(c, take, std::move(done));
}

void to_string(ExecuteContext& c) {
  c.set_output(0, Tensor::scalar(iterator_of(c, 0).handle(c.device().name().to_string())));
}

void from_string(ExecuteContext& c) {
  const auto& handle = scalar_input<std::string>(c, 0, "string_handle");
  auto iterator = Iterator::find(handle, c.device().name().to_string());
  // Without types any iterator will do.
  if (!c.node().attr<std::vector<DType>>("output_types").empty())
    iterator->check_types(ElementTypes::of(c.node()));
  c.set_output(0, resource_handle(std::move(iterator)));
}

// ---- Ops

OpDef iterator_op(std::string name, std::string doc, std::vector<std::string> attrs) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .outputs = {"handle: resource"},
      .attrs = std::move(attrs),
      .kernels = {cpu_kernel([](const KernelRequest&) { return BoundKernel{}; })},
      .is_stateful = true,
      .make_resource = [](const NodeView& node) -> std::shared_ptr<Resource> {
        return Iterator::of(node);
      },
      .is_private_resource = true,
  };
}

const char* const doc =
    "handle = the iterator called shared_name in `container`, or the session's own.";
const Op iterator_v2_op{
    iterator_op("IteratorV2", doc, dataset_attrs({"shared_name: string", "container: string"}))};
const Op iterator_v1_op{
    iterator_op("Iterator", doc, dataset_attrs({"shared_name: string", "container: string"}))};
const Op one_shot_op{iterator_op(
    "OneShotIterator", "handle = an iterator of the dataset that dataset_factory makes, once.",
    dataset_attrs(
        {"dataset_factory: func", "container: string = ''", "shared_name: string = ''"}))};

OpDef operation(OpDef op, Kernel kernel) {
  op.kernels = {std::move(kernel)};
  op.is_stateful = true;
  op.is_not_differentiable = true;
  return op;
}

const Op make_iterator_op{
    operation({.name = "MakeIterator",
               .doc = "Makes the iterator read the dataset from its beginning.",
               .inputs = {"dataset: variant", "iterator: resource"}},
              {.execute = make_iterator})};
OpDef get_next_op(std::string name) {
  return operation({.name = std::move(name),
                    .doc = "components = the iterator's next element; OUT_OF_RANGE at the end.",
                    .inputs = {"iterator: resource"},
                    .outputs = {"components: output_types"},
                    .attrs = dataset_attrs(),
                    .shape = element_shapes},
                   {.execute_async = get_next});
}
const Op get_next_plain_op{get_next_op("IteratorGetNext")};
const Op get_next_sync_op{get_next_op("IteratorGetNextSync")};
const Op get_next_as_optional_op{operation(
    {.name = "IteratorGetNextAsOptional",
     .doc =
         "optional = an Optional of the iterator's next element, which holds nothing at the end.",
     .inputs = {"iterator: resource"},
     .outputs = {"optional: variant"},
     .attrs = dataset_attrs(),
     .shape = shapes::scalar()},
    {.execute_async = get_next_as_optional})};
const Op to_string_op{
    operation({.name = "IteratorToStringHandle",
               .doc = "string_handle = a string that stands for the iterator and can be fed.",
               .inputs = {"resource_handle: resource"},
               .outputs = {"string_handle: string"},
               .shape = shapes::scalar()},
              {.execute = to_string})};
OpDef from_string_op(std::string name) {
  return operation(
      {.name = std::move(name),
       .doc = "resource_handle = the iterator that string_handle stands for.",
       .inputs = {"string_handle: string"},
       .outputs = {"resource_handle: resource"},
       .attrs = {"output_types: list(type) >= 0 = []", "output_shapes: list(shape) >= 0 = []"},
       .shape = shapes::scalar()},
      {.execute = from_string});
}
const Op from_string_op_v1{from_string_op("IteratorFromStringHandle")};
const Op from_string_op_v2{from_string_op("IteratorFromStringHandleV2")};

}  // namespace
}  // namespace leat
