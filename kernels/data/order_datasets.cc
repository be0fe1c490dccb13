// Datasets that pass on elements of others: all or some of them, repeated, or side by side.
#include "kernels/data/dataset.h"

namespace leat {
namespace {

class RepeatDataset final : public ElementSource {
 public:
  RepeatDataset(Pointer input, int64_t count)
      : ElementSource(input->types(), {input}), input_(std::move(input)), count_(count) {}

  int64_t cardinality() const override {
    const int64_t n = input_->cardinality();
    if (count_ < 0) return n == 0 ? 0 : infinite;
    return count_ == 0 ? 0 : times(n, count_);
  }
  std::unique_ptr<DatasetIterator> iterate() const override {
    struct State {
      std::unique_ptr<DatasetIterator> input;
      int64_t epoch = 0;
      bool has_element = false;  // in this epoch
    };
    return iterator([this, s = State{}](Reading& reading) mutable {
      std::optional<Element> out;
      while (count_ < 0 || s.epoch < count_) {
        if (!s.input) s.input = input_->make_iterator();
        if ((out = s.input->next(reading))) {
          s.has_element = true;
          break;
        }
        s.input.reset();
        ++s.epoch;
        // Repeating an empty dataset would never end.
        if (count_ < 0 && !std::exchange(s.has_element, false)) break;
      }
      return out;
    });
  }

 private:
  const Pointer input_;
  const int64_t count_;
};

class TakeDataset final : public ElementSource {
 public:
  TakeDataset(Pointer input, int64_t count)
      : ElementSource(input->types(), {input}), input_(std::move(input)), count_(count) {}

  int64_t cardinality() const override {
    const int64_t n = input_->cardinality();
    if (n == unknown || count_ == -1) return n;
    return n == infinite ? count_ : std::min(n, count_);
  }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator(
        [this, input = input_->make_iterator(), taken = int64_t{0}](Reading& reading) mutable {
          std::optional<Element> out;
          if (count_ >= 0 && taken >= count_) return out;
          out = input->next(reading);
          taken += out ? 1 : 0;
          return out;
        });
  }

 private:
  const Pointer input_;
  const int64_t count_;  // negative: all
};

class SkipDataset final : public ElementSource {
 public:
  SkipDataset(Pointer input, int64_t count)
      : ElementSource(input->types(), {input}), input_(std::move(input)), count_(count) {}

  int64_t cardinality() const override {
    const int64_t n = input_->cardinality();
    if (n < 0) return n;
    return count_ < 0 ? 0 : std::max<int64_t>(0, n - count_);
  }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator(
        [this, input = input_->make_iterator(), skipped = int64_t{0}](Reading& reading) mutable {
          std::optional<Element> out;
          if (count_ < 0) return out;
          for (; skipped < count_; ++skipped) {
            if (!input->next(reading)) return out;
          }
          out = input->next(reading);
          return out;
        });
  }

 private:
  const Pointer input_;
  const int64_t count_;  // negative: all
};

class ShardDataset final : public ElementSource {
 public:
  ShardDataset(Pointer input, int64_t shards, int64_t index)
      : ElementSource(input->types(), {input}),
        input_(std::move(input)),
        shards_(shards),
        index_(index) {
    check(shards > 0, "Number of shards must be greater than zero (currently num_shards = ", shards,
          ").");
    check(index >= 0 && index < shards, "Index must be between 0 and ", shards - 1,
          " (currently index = ", index, ").");
  }

  int64_t cardinality() const override {
    const int64_t n = input_->cardinality();
    return n < 0 ? n : n / shards_ + (index_ < n % shards_ ? 1 : 0);
  }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator(
        [this, input = input_->make_iterator(), at = int64_t{0}](Reading& reading) mutable {
          for (;;) {
            std::optional<Element> out = input->next(reading);
            if (!out) return out;
            const bool is_ours = at == index_;
            at = at + 1 == shards_ ? 0 : at + 1;
            if (is_ours) return out;
          }
        });
  }

 private:
  const Pointer input_;
  const int64_t shards_, index_;
};

class ZipDataset final : public ElementSource {
 public:
  ZipDataset(ElementTypes types, std::vector<Pointer> inputs)
      : ElementSource(std::move(types), inputs), inputs_(std::move(inputs)) {}

  int64_t cardinality() const override {
    int64_t out = infinite;
    for (const Pointer& input : inputs_) {
      const int64_t n = input->cardinality();
      if (n == unknown) return n;
      if (n != infinite) out = out == infinite ? n : std::min(out, n);
    }
    return out;
  }
  std::unique_ptr<DatasetIterator> iterate() const override {
    std::vector<std::unique_ptr<DatasetIterator>> iterators;
    for (const Pointer& input : inputs_) iterators.push_back(input->make_iterator());
    return iterator([iterators = std::move(iterators), is_over = false](Reading& reading) mutable {
      std::optional<Element> out;
      if (is_over) return out;
      out.emplace();
      std::exception_ptr first_error;
      // All iterators continue, even after an error or the end of one: errors may be ignored, and a
      // cache is complete only once its end has been requested.
      for (const auto& each : iterators) {
        try {
          const std::optional<Element> part = each->next(reading);
          if (!part) is_over = true;
          if (part && !is_over) out->insert(out->end(), part->begin(), part->end());
        } catch (const Error&) {
          if (first_error == nullptr && !is_over) first_error = std::current_exception();
        }
      }
      if (first_error != nullptr) std::rethrow_exception(first_error);
      if (is_over) out.reset();
      return out;
    });
  }

 private:
  const std::vector<Pointer> inputs_;
};

class ConcatenateDataset final : public ElementSource {
 public:
  ConcatenateDataset(ElementTypes types, Pointer first, Pointer second)
      : ElementSource(std::move(types), {first, second}),
        first_(std::move(first)),
        second_(std::move(second)) {
    check(first_->types().dtypes == second_->types().dtypes,
          "Cannot concatenate datasets with different types: they have ",
          first_->types().dtypes.size(), " and ", second_->types().dtypes.size(),
          " components, or their dtypes differ");
  }

  int64_t cardinality() const override {
    const int64_t first = first_->cardinality(), second = second_->cardinality();
    if (first == infinite || second == infinite) return infinite;
    int64_t out = 0;
    const bool is_known = first != unknown && second != unknown;
    return is_known && !__builtin_add_overflow(first, second, &out) ? out : unknown;
  }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator(
        [this, input = first_->make_iterator(), is_second = false](Reading& reading) mutable {
          std::optional<Element> out = input->next(reading);
          if (out || std::exchange(is_second, true)) return out;
          input = second_->make_iterator();
          return input->next(reading);
        });
  }

 private:
  const Pointer first_, second_;
};

// ---- Ops ----

template <class D>
MakeDataset counted() {
  return [](ExecuteContext& c) {
    return std::make_shared<D>(input_dataset(c), scalar_input<int64_t>(c, 1, "count"));
  };
}

const Op repeat_op{dataset_op({.name = "RepeatDataset",
                               .doc = "All elements `count` times; -1: without end.",
                               .inputs = {input_dataset_arg, "count: int64"},
                               .attrs = dataset_attrs({metadata_attr})},
                              counted<RepeatDataset>())};
const Op take_op{dataset_op({.name = "TakeDataset",
                             .doc = "The first `count` elements; -1: all.",
                             .inputs = {input_dataset_arg, "count: int64"},
                             .attrs = dataset_attrs({metadata_attr})},
                            counted<TakeDataset>())};
const Op skip_op{dataset_op({.name = "SkipDataset",
                             .doc = "The elements after the first `count`; -1: none.",
                             .inputs = {input_dataset_arg, "count: int64"},
                             .attrs = dataset_attrs({metadata_attr})},
                            counted<SkipDataset>())};
const Op shard_op{
    dataset_op({.name = "ShardDataset",
                .doc = "Elements index, index + num_shards, …",
                .inputs = {input_dataset_arg, "num_shards: int64", "index: int64"},
                .attrs = dataset_attrs({"require_non_empty: bool = false", metadata_attr})},
               [](ExecuteContext& c) {
                 return std::make_shared<ShardDataset>(input_dataset(c),
                                                       scalar_input<int64_t>(c, 1, "num_shards"),
                                                       scalar_input<int64_t>(c, 2, "index"));
               })};
const Op zip_op{dataset_op({.name = "ZipDataset",
                            .doc = "Elements side by side, as long as each dataset has one.",
                            .inputs = {"input_datasets: N * variant"},
                            .attrs = dataset_attrs({"N: int >= 1", metadata_attr})},
                           [](ExecuteContext& c) {
                             std::vector<ElementSource::Pointer> inputs;
                             for (int i = 0; i < c.num_inputs(); ++i)
                               inputs.push_back(dataset_of(c.input(i)));
                             return std::make_shared<ZipDataset>(ElementTypes::of(c.node()),
                                                                 std::move(inputs));
                           })};
const Op concatenate_op{dataset_op({.name = "ConcatenateDataset",
                                    .doc = "The elements of one dataset, then those of another.",
                                    .inputs = {input_dataset_arg, "another_dataset: variant"},
                                    .attrs = dataset_attrs({metadata_attr})},
                                   [](ExecuteContext& c) {
                                     return std::make_shared<ConcatenateDataset>(
                                         ElementTypes::of(c.node()), input_dataset(c),
                                         dataset_of(c.input(1)));
                                   })};

// ---- Datasets that change nothing: they tell TensorFlow's runtime how to read ----

MakeDataset passed() {
  return [](ExecuteContext& c) { return input_dataset(c); };
}
const char* const passes = "The same dataset; its other inputs and attributes change no element.";

const Op prefetch_op{
    dataset_op({.name = "PrefetchDataset",
                .doc = passes,
                .inputs = {input_dataset_arg, "buffer_size: int64"},
                .attrs = dataset_attrs({"slack_period: int = 0", "legacy_autotune: bool = true",
                                        "buffer_size_min: int = 0", metadata_attr})},
               [](ExecuteContext& c) {
                 check(scalar_input<int64_t>(c, 1, "buffer_size") >= -1,
                       "buffer_size must be >= 0 or set buffer_size to be tf.data.AUTOTUNE for "
                       "auto-tuning, got ",
                       c.input(1).item<int64_t>());
                 return input_dataset(c);
               })};
const Op options_op{
    dataset_op({.name = "OptionsDataset",
                .doc = passes,
                .inputs = {input_dataset_arg},
                .attrs = dataset_attrs({"serialized_options: string", metadata_attr})},
               passed())};
const Op model_op{dataset_op(
    {.name = "ModelDataset",
     .doc = passes,
     .inputs = {input_dataset_arg},
     .attrs = dataset_attrs({"algorithm: int = 0", "cpu_budget: int = 0", "ram_budget: int = 0"})},
    passed())};
const Op optimize_op{dataset_op({.name = "OptimizeDataset",
                                 .doc = passes,
                                 .inputs = {input_dataset_arg, "optimizations: string"},
                                 .attrs = dataset_attrs({"optimization_configs: list(string) = "
                                                         "[]"})},
                                passed())};
const Op optimize_v2_op{
    dataset_op({.name = "OptimizeDatasetV2",
                .doc = passes,
                .inputs = {input_dataset_arg, "optimizations_enabled: string",
                           "optimizations_disabled: string", "optimizations_default: string"},
                .attrs = dataset_attrs({"optimization_configs: list(string) = []"})},
               passed())};
const Op rewrite_op{dataset_op({.name = "RewriteDataset",
                                .doc = passes,
                                .inputs = {input_dataset_arg, "rewrite_name: string"},
                                .attrs = dataset_attrs()},
                               passed())};
const Op assert_next_op{dataset_op({.name = "AssertNextDataset",
                                    .doc = passes,
                                    .inputs = {input_dataset_arg, "transformations: string"},
                                    .attrs = dataset_attrs()},
                                   passed())};

}  // namespace

ElementSource::Pointer repeated(ElementSource::Pointer input, int64_t count) {
  return std::make_shared<RepeatDataset>(std::move(input), count);
}

}  // namespace leat
