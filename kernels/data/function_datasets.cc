// Datasets that call functions defined in the client's program.
#include "kernels/data/dataset_function.h"

namespace leat {
namespace {

class MapDataset final : public ElementSource {
 public:
  MapDataset(ElementTypes types, Pointer input, DatasetFunction f, bool preserves_count)
      : ElementSource(std::move(types), {input}),
        input_(std::move(input)),
        f_(std::move(f)),
        preserves_count_(preserves_count) {}

  bool fails_by_batch() const override { return true; }

  int64_t cardinality() const override {
    return preserves_count_ ? input_->cardinality() : unknown;
  }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, input = input_->make_iterator()](Reading& reading) mutable {
      const std::optional<Element> element = input->next(reading);
      return element ? f_.call_or_end(*element, preserves_count_, reading) : std::nullopt;
    });
  }

 private:
  const Pointer input_;
  const DatasetFunction f_;
  const bool preserves_count_;
};

class FilterDataset final : public ElementSource {
 public:
  FilterDataset(Pointer input, DatasetFunction predicate)
      : ElementSource(input->types(), {input}),
        input_(std::move(input)),
        predicate_(std::move(predicate)) {}

  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, input = input_->make_iterator()](Reading& reading) mutable {
      for (;;) {
        std::optional<Element> out = input->next(reading);
        if (!out || predicate_.call_for_scalar<bool>(*out, "predicate", reading)) return out;
      }
    });
  }

 private:
  const Pointer input_;
  const DatasetFunction predicate_;
};

class TakeWhileDataset final : public ElementSource {
 public:
  TakeWhileDataset(Pointer input, DatasetFunction predicate)
      : ElementSource(input->types(), {input}),
        input_(std::move(input)),
        predicate_(std::move(predicate)) {}

  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, input = input_->make_iterator()](Reading& reading) mutable {
      std::optional<Element> out;
      if (!input) return out;
      out = input->next(reading);
      if (out && !predicate_.call_for_scalar<bool>(*out, "predicate", reading)) out.reset();
      if (!out) input.reset();
      return out;
    });
  }

 private:
  const Pointer input_;
  const DatasetFunction predicate_;
};

class FlatMapDataset final : public ElementSource {
 public:
  FlatMapDataset(ElementTypes types, Pointer input, DatasetFunction f)
      : ElementSource(std::move(types), {input}), input_(std::move(input)), f_(std::move(f)) {}

  std::unique_ptr<DatasetIterator> iterate() const override {
    struct State {
      std::unique_ptr<DatasetIterator> input, inner;
    };
    return iterator([this, s = State{input_->make_iterator(), nullptr}](Reading& reading) mutable {
      for (;;) {
        if (s.inner) {
          std::optional<Element> out = s.inner->next(reading);
          if (out) return out;
          s.inner.reset();
        }
        const std::optional<Element> element = s.input->next(reading);
        if (!element) return std::optional<Element>();
        s.inner = f_.call_for_dataset(*element, reading)->make_iterator();
      }
    });
  }

 private:
  const Pointer input_;
  const DatasetFunction f_;
};

// ---- Ops ----

ElementSource::Pointer mapped(ExecuteContext& c) {
  return std::make_shared<MapDataset>(ElementTypes::of(c.node()), input_dataset(c),
                                      DatasetFunction(c, "f"),
                                      c.node().attr<bool>("preserve_cardinality"));
}

const char* const map_doc = "f(each element); OUT_OF_RANGE in f ends the dataset.";
const Op map_op{dataset_op(
    {.name = "MapDataset",
     .doc = map_doc,
     .inputs = {input_dataset_arg, captured_arg},
     .attrs =
         function_attrs({"f: func", "use_inter_op_parallelism: bool = true",
                         "preserve_cardinality: bool = false", "force_synchronous: bool = false"})},
    mapped)};
const Op parallel_map_op{dataset_op(
    {.name = "ParallelMapDataset",
     .doc = map_doc,
     .inputs = {input_dataset_arg, captured_arg, "num_parallel_calls: int32"},
     .attrs = function_attrs({"f: func", "use_inter_op_parallelism: bool = true",
                              "sloppy: bool = false", "preserve_cardinality: bool = false"})},
    [](ExecuteContext& c) {
      checked_calls(scalar_input<int32_t>(c, behind_captured(c, 0), "num_parallel_calls"));
      return mapped(c);
    })};
const Op parallel_map_v2_op{dataset_op(
    {.name = "ParallelMapDatasetV2",
     .doc = map_doc,
     .inputs = {input_dataset_arg, captured_arg, "num_parallel_calls: int64"},
     .attrs = function_attrs(
         {"f: func", "use_inter_op_parallelism: bool = true", "deterministic: string = 'default'",
          "preserve_cardinality: bool = false", "use_unbounded_threadpool: bool = false"})},
    mapped)};
const Op filter_op{dataset_op({.name = "FilterDataset",
                               .doc = "The elements for which predicate is true.",
                               .inputs = {input_dataset_arg, captured_arg},
                               .attrs = function_attrs({"predicate: func"})},
                              [](ExecuteContext& c) {
                                return std::make_shared<FilterDataset>(
                                    input_dataset(c), DatasetFunction(c, "predicate"));
                              })};
const Op take_while_op{dataset_op(
    {.name = "TakeWhileDataset",
     .doc = "The elements before the first for which predicate is false.",
     .inputs = {input_dataset_arg, captured_arg},
     .attrs = function_attrs({"predicate: func"})},
    [](ExecuteContext& c) {
      return std::make_shared<TakeWhileDataset>(input_dataset(c), DatasetFunction(c, "predicate"));
    })};
const Op flat_map_op{
    dataset_op({.name = "FlatMapDataset",
                .doc = "The elements of f(each element), a dataset, one after the other.",
                .inputs = {input_dataset_arg, captured_arg},
                .attrs = function_attrs({"f: func"})},
               [](ExecuteContext& c) {
                 return std::make_shared<FlatMapDataset>(ElementTypes::of(c.node()),
                                                         input_dataset(c), DatasetFunction(c, "f"));
               })};

ElementSource::Pointer mapped_in_batches(ExecuteContext& c) {
  const ElementSource::Pointer input = mapped(c);
  checked_calls(scalar_input<int64_t>(c, behind_captured(c, 1), "num_parallel_calls"));
  return batches_of(input, scalar_input<int64_t>(c, behind_captured(c, 0), "batch_size"),
                    scalar_input<bool>(c, behind_captured(c, 2), "drop_remainder"),
                    ElementTypes::of(c.node()));
}
const Op map_and_batch_op{
    dataset_op({.name = "MapAndBatchDataset",
                .doc = "BatchDatasetV2 of MapDataset.",
                .inputs = {input_dataset_arg, captured_arg, "batch_size: int64",
                           "num_parallel_calls: int64", "drop_remainder: bool"},
                .attrs = function_attrs({"f: func", "preserve_cardinality: bool = false"})},
               mapped_in_batches)};
const Op experimental_map_and_batch_op{
    dataset_op({.name = "ExperimentalMapAndBatchDataset",
                .doc = "BatchDatasetV2 of MapDataset.",
                .inputs = {input_dataset_arg, captured_arg, "batch_size: int64",
                           "num_parallel_calls: int64", "drop_remainder: bool"},
                .attrs = dataset_attrs({"f: func", "Targuments: list(type) >= 0",
                                        "preserve_cardinality: bool = false"})},
               mapped_in_batches)};

}  // namespace
}  // namespace leat
