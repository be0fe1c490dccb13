// Datasets that read several datasets in turn.
#include <algorithm>
#include <thread>

#include "kernels/callable.h"

namespace leat {
namespace {

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

Dataset::Pointer interleaved(ExecuteContext& c) {
  auto cycle = scalar_input<int64_t>(c, behind_captured(c, 0), "cycle_length");
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

}  // namespace
}  // namespace leat
