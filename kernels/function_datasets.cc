// Datasets that call functions of the client's program.
#include <algorithm>
#include <thread>

#include "core/function.h"
#include "kernels/dataset.h"

namespace leat {
namespace {

// A function together with the values around it that it uses.
class Callable {
 public:
  // The captured values begin with input 1 of the node.
  Callable(ExecuteContext& c, std::string_view attr)
      : name_(concat(c.node().op, " node '", c.node().name, "'")) {
    const WrittenFunction written = WrittenFunction::of(c.node(), attr);
    function_ = compile_function(c, written);
    const auto& types = c.node().attr<std::vector<DType>>("Targuments");
    const auto first = written.arguments - static_cast<int64_t>(types.size());
    for (size_t i = 0; i < types.size(); ++i) {
      const int input = static_cast<int>(i) + 1;
      const auto& variables = written.variables;
      const bool is_variable = std::find(variables.begin(), variables.end(),
                                         concat("argument:", first + input - 1)) != variables.end();
      captured_.push_back(is_variable                   ? Tensor::scalar(false)  // never looked at
                          : types[i] == DType::resource ? resource_handle(c.resource(input))
                                                        : c.input(input));
    }
  }

  Element call(const Element& element, Reading& reading) const {
    std::vector<Tensor> arguments = element;
    arguments.insert(arguments.end(), captured_.begin(), captured_.end());
    check(static_cast<int>(arguments.size()) == function_->arguments(), name_,
          ": its function has ", function_->arguments(), " arguments, but elements have ",
          element.size(), " components, and it captures ", captured_.size(), " values");
    return function_->run(std::move(arguments), reading.cancellation());
  }
  Dataset::Pointer call_for_dataset(const Element& element, Reading& reading) const {
    const Element result = call(element, reading);
    check(result.size() == 1 && result[0].dtype() == DType::variant, name_,
          ": its function must return a dataset");
    return dataset_of(result[0]);
  }

 private:
  std::shared_ptr<const Function> function_;
  const std::string name_;
  std::vector<Tensor> captured_;
};

class MapDataset final : public Dataset {
 public:
  MapDataset(ElementTypes types, Pointer input, Callable f, bool preserves_count)
      : Dataset(std::move(types), {input}),
        input_(std::move(input)),
        f_(std::move(f)),
        preserves_count_(preserves_count) {}

  bool fails_by_batch() const override { return true; }

  std::unique_ptr<DatasetIterator> make_iterator() const override {
    return iterator([self = shared_from_this(), this,
                     input = input_->make_iterator()](Reading& reading) mutable {
      std::optional<Element> out = input->next(reading);
      if (!out) return out;
      try {
        out = f_.call(*out, reading);
      } catch (const Error& error) {
        // A function may end the sequence so.
        if (error.code() != Code::out_of_range) throw;
        check(!preserves_count_, "Function invocation produced OutOfRangeError: ", error.message());
        out.reset();
      }
      return out;
    });
  }

 private:
  const Pointer input_;
  const Callable f_;
  const bool preserves_count_;
};

class FilterDataset final : public Dataset {
 public:
  FilterDataset(Pointer input, Callable predicate)
      : Dataset(input->types(), {input}),
        input_(std::move(input)),
        predicate_(std::move(predicate)) {}

  std::unique_ptr<DatasetIterator> make_iterator() const override {
    return iterator([self = shared_from_this(), this,
                     input = input_->make_iterator()](Reading& reading) mutable {
      for (;;) {
        std::optional<Element> out = input->next(reading);
        if (!out || is_wanted(*out, reading)) return out;
      }
    });
  }

 private:
  bool is_wanted(const Element& element, Reading& reading) const {
    const Element result = predicate_.call(element, reading);
    check(
        result.size() == 1 && result[0].dtype() == DType::boolean && result[0].shape().rank() == 0,
        "`predicate` must return a scalar bool.");
    return result[0].value<bool>();
  }
  const Pointer input_;
  const Callable predicate_;
};

class FlatMapDataset final : public Dataset {
 public:
  FlatMapDataset(ElementTypes types, Pointer input, Callable f)
      : Dataset(std::move(types), {input}), input_(std::move(input)), f_(std::move(f)) {}

  std::unique_ptr<DatasetIterator> make_iterator() const override {
    struct State {
      std::unique_ptr<DatasetIterator> input, inner;
    };
    return iterator([self = shared_from_this(), this,
                     s = State{input_->make_iterator(), nullptr}](Reading& reading) mutable {
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
  const Callable f_;
};

// block_length elements of each of cycle_length inner datasets in turn; one that is at its end is
// replaced when its turn comes again.
class InterleaveDataset final : public Dataset {
 public:
  InterleaveDataset(ElementTypes types, Pointer input, Callable f, int64_t cycle, int64_t block)
      : Dataset(std::move(types), {input}),
        input_(std::move(input)),
        f_(std::move(f)),
        cycle_(cycle),
        block_(block) {
    check(cycle > 0, "`cycle_length` must be > 0");
    check(block > 0, "`block_length` must be > 0");
  }

  std::unique_ptr<DatasetIterator> make_iterator() const override {
    struct State {
      std::unique_ptr<DatasetIterator> input;  // null at its end
      // As many as were needed so far: cycle_length may be vast.
      std::vector<std::unique_ptr<DatasetIterator>> places;
      int64_t open = 0, at = 0, in_block = 0;
    };
    State state;
    state.input = input_->make_iterator();
    return iterator(
        [self = shared_from_this(), this, s = std::move(state)](Reading& reading) mutable {
          const auto advance = [&] {
            s.in_block = 0;
            const auto places = s.input ? cycle_ : static_cast<int64_t>(s.places.size());
            if (++s.at >= places) s.at = 0;
          };
          std::optional<Element> out;
          while (s.input || s.open > 0) {
            reading.check_goes_on();
            if (s.at == static_cast<int64_t>(s.places.size())) s.places.emplace_back();
            auto& place = s.places[s.at];
            if (place) {
              if ((out = place->next(reading))) {
                if (++s.in_block == block_) advance();
                return out;
              }
              place.reset();
              --s.open;
              advance();
            } else if (s.input) {
              if (const std::optional<Element> element = s.input->next(reading)) {
                place = f_.call_for_dataset(*element, reading)->make_iterator();
                ++s.open;
              } else {
                s.input.reset();
              }
            } else {
              advance();
            }
          }
          return out;
        });
  }

 private:
  const Pointer input_;
  const Callable f_;
  const int64_t cycle_, block_;
};

// ---- Ops ----

const char* const arguments = "other_arguments: Targuments";
std::vector<std::string> with_arguments(std::vector<std::string> more) {
  more.insert(more.end(), {"Targuments: list(type) >= 0", metadata_attr});
  return dataset_attrs(std::move(more));
}

// The inputs behind the captured values, by number.
int behind_arguments(const ExecuteContext& c, int i) {
  return 1 + static_cast<int>(c.node().attr<std::vector<DType>>("Targuments").size()) + i;
}

// Calls run one at a time, but what is asked for must make sense.
int64_t checked_calls(int64_t calls) {
  check(calls > 0 || calls == -1, "num_parallel_calls must be greater than zero.");
  return calls;
}

Dataset::Pointer mapped(ExecuteContext& c) {
  return std::make_shared<MapDataset>(ElementTypes::of(c.node()), input_dataset(c),
                                      Callable(c, "f"),
                                      c.node().attr<bool>("preserve_cardinality"));
}

const char* const map_doc = "f(each element); OUT_OF_RANGE in f ends it.";
const Op map_op{dataset_op(
    {.name = "MapDataset",
     .doc = map_doc,
     .inputs = {input_dataset_arg, arguments},
     .attrs =
         with_arguments({"f: func", "use_inter_op_parallelism: bool = true",
                         "preserve_cardinality: bool = false", "force_synchronous: bool = false"})},
    mapped)};
const Op parallel_map_op{dataset_op(
    {.name = "ParallelMapDataset",
     .doc = map_doc,
     .inputs = {input_dataset_arg, arguments, "num_parallel_calls: int32"},
     .attrs = with_arguments({"f: func", "use_inter_op_parallelism: bool = true",
                              "sloppy: bool = false", "preserve_cardinality: bool = false"})},
    [](ExecuteContext& c) {
      checked_calls(scalar_input<int32_t>(c, behind_arguments(c, 0), "num_parallel_calls"));
      return mapped(c);
    })};
const Op parallel_map_v2_op{dataset_op(
    {.name = "ParallelMapDatasetV2",
     .doc = map_doc,
     .inputs = {input_dataset_arg, arguments, "num_parallel_calls: int64"},
     .attrs = with_arguments(
         {"f: func", "use_inter_op_parallelism: bool = true", "deterministic: string = 'default'",
          "preserve_cardinality: bool = false", "use_unbounded_threadpool: bool = false"})},
    mapped)};
const Op filter_op{dataset_op({.name = "FilterDataset",
                               .doc = "The elements for which predicate is true.",
                               .inputs = {input_dataset_arg, arguments},
                               .attrs = with_arguments({"predicate: func"})},
                              [](ExecuteContext& c) {
                                return std::make_shared<FilterDataset>(input_dataset(c),
                                                                       Callable(c, "predicate"));
                              })};
const Op flat_map_op{
    dataset_op({.name = "FlatMapDataset",
                .doc = "The elements of f(each element), a dataset, one behind the other.",
                .inputs = {input_dataset_arg, arguments},
                .attrs = with_arguments({"f: func"})},
               [](ExecuteContext& c) {
                 return std::make_shared<FlatMapDataset>(ElementTypes::of(c.node()),
                                                         input_dataset(c), Callable(c, "f"));
               })};

Dataset::Pointer interleaved(ExecuteContext& c) {
  auto cycle = scalar_input<int64_t>(c, behind_arguments(c, 0), "cycle_length");
  if (c.node().op != "InterleaveDataset") {
    const int64_t calls =
        checked_calls(scalar_input<int64_t>(c, c.num_inputs() - 1, "num_parallel_calls"));
    check(cycle == -1 || calls <= cycle,
          "num_parallel_calls must be tf.data.AUTOTUNE or at most "
          "cycle_length, but they are ",
          calls, " and ", cycle);
    // TensorFlow chooses: about as many as there are cores.
    if (cycle == -1) cycle = std::max(1U, std::thread::hardware_concurrency());
  }
  return std::make_shared<InterleaveDataset>(
      ElementTypes::of(c.node()), input_dataset(c), Callable(c, "f"), cycle,
      scalar_input<int64_t>(c, behind_arguments(c, 1), "block_length"));
}

const char* const interleave_doc =
    "The elements of f(each element), datasets, cycle_length of them open at a time: block_length "
    "of one, then of the next.";
OpDef interleave_op(std::string name, std::vector<std::string> inputs,
                    std::vector<std::string> attrs) {
  inputs.insert(inputs.begin(),
                {input_dataset_arg, arguments, "cycle_length: int64", "block_length: int64"});
  return dataset_op({.name = std::move(name),
                     .doc = interleave_doc,
                     .inputs = std::move(inputs),
                     .attrs = with_arguments(std::move(attrs))},
                    interleaved);
}
const Op interleave{interleave_op("InterleaveDataset", {}, {"f: func"})};
const Op parallel_interleave_v2{interleave_op("ParallelInterleaveDatasetV2",
                                              {"num_parallel_calls: int64"},
                                              {"f: func", "sloppy: bool = false"})};
const Op parallel_interleave_v3{interleave_op("ParallelInterleaveDatasetV3",
                                              {"num_parallel_calls: int64"},
                                              {"f: func", "deterministic: string = 'default'"})};
const Op parallel_interleave_v4{
    interleave_op("ParallelInterleaveDatasetV4",
                  {"buffer_output_elements: int64", "prefetch_input_elements: int64",
                   "num_parallel_calls: int64"},
                  {"f: func", "deterministic: string = 'default'"})};

Dataset::Pointer mapped_in_batches(ExecuteContext& c) {
  const Dataset::Pointer input = mapped(c);
  checked_calls(scalar_input<int64_t>(c, behind_arguments(c, 1), "num_parallel_calls"));
  return batches_of(input, scalar_input<int64_t>(c, behind_arguments(c, 0), "batch_size"),
                    scalar_input<bool>(c, behind_arguments(c, 2), "drop_remainder"),
                    ElementTypes::of(c.node()));
}
const Op map_and_batch_op{
    dataset_op({.name = "MapAndBatchDataset",
                .doc = "BatchDatasetV2 of MapDataset.",
                .inputs = {input_dataset_arg, arguments, "batch_size: int64",
                           "num_parallel_calls: int64", "drop_remainder: bool"},
                .attrs = with_arguments({"f: func", "preserve_cardinality: bool = false"})},
               mapped_in_batches)};
const Op experimental_map_and_batch_op{
    dataset_op({.name = "ExperimentalMapAndBatchDataset",
                .doc = "BatchDatasetV2 of MapDataset.",
                .inputs = {input_dataset_arg, arguments, "batch_size: int64",
                           "num_parallel_calls: int64", "drop_remainder: bool"},
                .attrs = dataset_attrs({"f: func", "Targuments: list(type) >= 0",
                                        "preserve_cardinality: bool = false"})},
               mapped_in_batches)};

}  // namespace
}  // namespace leat
