// The number of a dataset's elements, queried or asserted; and the single element of a dataset with
// one.
#include "graph/shape_inference.h"
#include "kernels/blocking.h"
#include "kernels/data/dataset.h"

namespace leat {
namespace {

std::string elements_text(int64_t n) {
  if (n == infinite) return "an infinite number of elements";
  return concat(n, n == 1 ? " element" : " elements");
}

class AssertCardinalityDataset final : public ElementSource {
 public:
  AssertCardinalityDataset(ElementTypes types, Pointer input, int64_t count)
      : ElementSource(std::move(types), {input}), input_(std::move(input)), count_(count) {}

  int64_t cardinality() const override { return count_; }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator(
        [this, input = input_->make_iterator(), seen = int64_t{0}](Reading& reading) mutable {
          std::optional<Element> out = input->next(reading);
          seen += out ? 1 : 0;
          const bool is_too_long = count_ != infinite && seen > count_;
          if (is_too_long || (!out && seen != count_)) {
            fail(Code::failed_precondition, "Input dataset was expected to contain ",
                 elements_text(count_), " but contained ", is_too_long ? "at least " : "only ",
                 elements_text(seen), ".");
          }
          return out;
        });
  }

 private:
  const Pointer input_;
  const int64_t count_;
};

const Op assert_cardinality_op{dataset_op(
    {.name = "AssertCardinalityDataset",
     .doc = "The same elements; FAILED_PRECONDITION unless there are `cardinality`.",
     .inputs = {input_dataset_arg, "cardinality: int64"},
     .attrs = dataset_attrs()},
    [](ExecuteContext& c) {
      return std::make_shared<AssertCardinalityDataset>(
          ElementTypes::of(c.node()), input_dataset(c), scalar_input<int64_t>(c, 1, "cardinality"));
    })};

const Op cardinality_op{
    {.name = "DatasetCardinality",
     .doc = "cardinality = the number of elements; -1: infinitely many, -2: unknown.",
     .inputs = {input_dataset_arg},
     .outputs = {"cardinality: int64"},
     .attrs = {"cardinality_options: string = ''"},
     .shape = shapes::scalar(),
     .kernels = {{.execute =
                      [](ExecuteContext& c) {
                        c.set_output(0, Tensor::scalar(input_dataset(c)->cardinality()));
                      }}},
     .is_not_differentiable = true}};

void only_element(ExecuteContext& c) {
  Reading reading(c.cancellation());
  const auto elements = input_dataset(c)->make_iterator();
  std::optional<Element> element = elements->next(reading);
  check(element.has_value(), "Dataset was empty.");
  check(!elements->next(reading), "Dataset had more than one element.");
  set_element(c, ElementTypes::of(c.node()), std::move(*element));
}

const Op single_element_op{{.name = "DatasetToSingleElement",
                            .doc = "components = the only element of the dataset.",
                            .inputs = {"dataset: variant"},
                            .outputs = {"components: output_types"},
                            .attrs = dataset_attrs({metadata_attr}),
                            .shape = element_shapes,
                            .kernels = {{.execute_async = waiting(only_element)}},
                            .is_stateful = true,
                            .is_not_differentiable = true}};

}  // namespace
}  // namespace leat
