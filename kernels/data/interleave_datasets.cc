// Datasets that read several datasets in turn.
#include <algorithm>
#include <optional>
#include <thread>

#include "kernels/data/dataset_function.h"

namespace leat {
namespace {

// block_length elements of each of cycle_length inner datasets in turn; a dataset at its end is
// replaced when its turn comes again.
class InterleaveDataset final : public ElementSource {
 public:
  // With `keeps_errors`, an error counts as an element and uses up its place in the turn; else the
  // turn continues.
  InterleaveDataset(ElementTypes types, Pointer input, DatasetFunction f, int64_t cycle,
                    int64_t block, bool keeps_errors = false)
      : ElementSource(std::move(types), {input}),
        input_(std::move(input)),
        f_(std::move(f)),
        cycle_(cycle),
        block_(block),
        keeps_errors_(keeps_errors) {
    check(cycle > 0, "`cycle_length` must be > 0");
    check(block > 0, "`block_length` must be > 0");
  }

  std::unique_ptr<DatasetIterator> iterate() const override {
    struct State {
      std::unique_ptr<DatasetIterator> input;  // null at its end
      // Only as many as were needed so far: cycle_length may be vast.
      std::vector<std::unique_ptr<DatasetIterator>> places;
      int64_t open = 0, at = 0, in_block = 0;
    };
    State state;
    state.input = input_->make_iterator();
    return iterator([this, s = std::move(state)](Reading& reading) mutable {
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
          try {
            out = place->next(reading);
          } catch (...) {
            if (keeps_errors_ && ++s.in_block == block_) advance();
            throw;
          }
          if (out) {
            if (++s.in_block == block_) advance();
            return out;
          }
          place.reset();
          --s.open;
          advance();
        } else if (s.input) {
          if (const std::optional<Element> element = s.input->next(reading)) {
            place = opened(*element, reading);
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
  std::unique_ptr<DatasetIterator> opened(const Element& element, Reading& reading) const {
    try {
      return f_.call_for_dataset(element, reading)->make_iterator();
    } catch (...) {
      reading.check_goes_on();
      if (!keeps_errors_) throw;
      return iterator([failure = status_of_current_exception()](Reading&) mutable {
        throw_if_error(std::exchange(failure, Status()));
        return std::optional<Element>();
      });
    }
  }

  const Pointer input_;
  const DatasetFunction f_;
  const int64_t cycle_, block_;
  const bool keeps_errors_;
};

// ---- Ops ----

// The value that TensorFlow uses for a cycle_length of -1. It depends on the task's cores, and so
// does the order of the elements. `calls`: num_parallel_calls, none if the op has no such input.
int64_t chosen_cycle(std::optional<int64_t> calls) {
  const int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  if (!calls) return cores;
  return *calls == -1 ? (cores + 2) / 3 : std::min(*calls, cores);
}

ElementSource::Pointer interleaved(ExecuteContext& c) {
  auto cycle = scalar_input<int64_t>(c, behind_captured(c, 0), "cycle_length");
  if (c.node().op == "InterleaveDataset") {
    if (cycle == -1) cycle = chosen_cycle({});
  } else {
    const int64_t calls =
        checked_calls(scalar_input<int64_t>(c, c.num_inputs() - 1, "num_parallel_calls"));
    if (cycle == -1) cycle = chosen_cycle(calls);
    check(calls <= cycle,
          "num_parallel_calls must be tf.data.AUTOTUNE or at most "
          "cycle_length, but they are ",
          calls, " and ", cycle);
  }
  return std::make_shared<InterleaveDataset>(
      ElementTypes::of(c.node()), input_dataset(c), DatasetFunction(c, "f"), cycle,
      scalar_input<int64_t>(c, behind_captured(c, 1), "block_length"));
}

const char* const interleave_doc =
    "The elements of f(each element), datasets, cycle_length of them open at a time: block_length "
    "of one, then of the next.";
OpDef interleave_op(std::string name, std::vector<std::string> inputs,
                    std::vector<std::string> attrs) {
  inputs.insert(inputs.begin(),
                {input_dataset_arg, captured_arg, "cycle_length: int64", "block_length: int64"});
  return dataset_op({.name = std::move(name),
                     .doc = interleave_doc,
                     .inputs = std::move(inputs),
                     .attrs = function_attrs(std::move(attrs))},
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

// TensorFlow reads ahead, on threads; the elements are the same.
ElementSource::Pointer interleaved_ahead(ExecuteContext& c) {
  const int last = c.num_inputs() - 1;
  check(scalar_input<int64_t>(c, last - 1, "buffer_output_elements") > 0,
        "`buffer_output_elements` must be > 0");
  check(scalar_input<int64_t>(c, last, "prefetch_input_elements") >= 0,
        "`prefetch_input_elements` must be >= 0");
  return std::make_shared<InterleaveDataset>(
      ElementTypes::of(c.node()), input_dataset(c), DatasetFunction(c, "f"),
      scalar_input<int64_t>(c, behind_captured(c, 0), "cycle_length"),
      scalar_input<int64_t>(c, behind_captured(c, 1), "block_length"), true);
}
const Op parallel_interleave{dataset_op(
    {.name = "ParallelInterleaveDataset",
     .doc = "InterleaveDataset; `sloppy` changes nothing.",
     .inputs = {input_dataset_arg, captured_arg, "cycle_length: int64", "block_length: int64",
                "sloppy: bool", "buffer_output_elements: int64", "prefetch_input_elements: int64"},
     .attrs = function_attrs({"f: func"})},
    interleaved_ahead)};
const Op legacy_parallel_interleave{dataset_op(
    {.name = "LegacyParallelInterleaveDatasetV2",
     .doc = "InterleaveDataset, in order.",
     .inputs = {input_dataset_arg, captured_arg, "cycle_length: int64", "block_length: int64",
                "buffer_output_elements: int64", "prefetch_input_elements: int64"},
     .attrs = function_attrs({"f: func", "deterministic: string = 'default'"})},
    interleaved_ahead)};

}  // namespace
}  // namespace leat
