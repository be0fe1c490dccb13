// Datasets in random order. The order is TensorFlow's for the same seeds: see
// tensorflow/core/kernels/data/shuffle_dataset_op.cc.
#include <deque>
#include <mutex>
#include <random>

#include "kernels/data/dataset.h"
#include "kernels/random/philox.h"

namespace leat {
namespace {

struct Seeds {
  int64_t first, second;
  // (0, 0) requests new random seeds each time.
  static Seeds of(int64_t first, int64_t second) {
    if (first != 0 || second != 0) return {first, second};
    std::random_device device;
    const auto draw = [&] { return static_cast<int64_t>(uint64_t{device()} << 32 | device()); };
    return {draw(), draw()};
  }
};

// 32 random bits at a time.
class Numbers {
 public:
  explicit Numbers(Seeds seeds)
      : generator_(static_cast<uint64_t>(seeds.first), static_cast<uint64_t>(seeds.second)) {}
  uint32_t next() {
    if (used_ == block_.size()) {
      block_ = generator_.next();
      used_ = 0;
    }
    return block_[used_++];
  }

 private:
  Philox generator_;
  Philox::Block block_{};
  size_t used_ = block_.size();
};

// The seeds of each epoch of each iterator, in the order in which they begin. Thread-safe.
class EpochSeeds {
 public:
  EpochSeeds(Seeds seeds, bool changes) : seeds_(seeds), changes_(changes), numbers_(seeds) {}
  Seeds next() {
    if (!changes_) return seeds_;
    const std::lock_guard lock(mutex_);
    const int64_t first = numbers_.next();
    return {first, numbers_.next()};
  }

 private:
  const Seeds seeds_;
  const bool changes_;
  std::mutex mutex_;
  Numbers numbers_;
};

struct ShuffleOptions {
  Seeds seeds;
  bool reshuffles;      // each epoch in an order of its own
  int64_t buffer_size;  // -2: all
  int64_t count;        // of epochs; -1: without end
};

class ShuffleDataset final : public ElementSource {
 public:
  ShuffleDataset(Pointer input, const ShuffleOptions& options)
      : ElementSource(input->types(), {input}),
        input_(std::move(input)),
        options_(options),
        seeds_(std::make_shared<EpochSeeds>(options.seeds, options.reshuffles)) {
    check(options.buffer_size > 0 || options.buffer_size == -2,
          "buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
  }

  int64_t cardinality() const override {
    const int64_t n = input_->cardinality();
    return options_.count < 0 ? infinite : times(n, options_.count);
  }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return std::make_unique<Iterator>(*this);
  }

 private:
  // The buffer has the elements of an epoch, and as many of the following epochs as fit.
  class Iterator final : public DatasetIterator {
   public:
    explicit Iterator(const ShuffleDataset& dataset)
        : dataset_(dataset), numbers_(dataset_.seeds_->next()) {}

    std::optional<Element> advance(Reading& reading) override {
      fill(reading);
      std::optional<Element> out;
      if (buffer_.empty()) return out;
      while (epochs_.front() == 0) {
        epochs_.pop_front();
        numbers_ = Numbers(dataset_.seeds_->next());
      }
      const auto chosen =
          static_cast<int64_t>(numbers_.next() % static_cast<uint64_t>(epochs_.front()));
      out = std::move(buffer_[chosen]);
      std::swap(buffer_[chosen], buffer_.front());
      buffer_.pop_front();
      --epochs_.front();
      return out;
    }

   private:
    bool has_room() const {
      const int64_t size = dataset_.options_.buffer_size;
      // Holds all of an epoch at once, and starts the next only when it is used up.
      if (size < 0) return buffer_.empty() || input_ != nullptr;
      return static_cast<int64_t>(buffer_.size()) < size;
    }
    void fill(Reading& reading) {
      const int64_t count = dataset_.options_.count;
      while (has_room() && (input_ || (!is_over_ && (count < 0 || begun_ < count)))) {
        if (!input_) {
          input_ = dataset_.input_->make_iterator();
          ++begun_;
          has_element_ = false;
          epochs_.push_back(0);
        }
        std::optional<Element> element = input_->next(reading);
        if (!element) {
          input_.reset();
          is_over_ = count < 0 && !has_element_;  // the input would never have any elements
          continue;
        }
        check_memory_for_element(*element);
        has_element_ = true;
        buffer_.push_back(std::move(*element));
        ++epochs_.back();
      }
    }

    const ShuffleDataset& dataset_;
    Numbers numbers_;
    std::unique_ptr<DatasetIterator> input_;  // of the last epoch in the buffer
    int64_t begun_ = 0;                       // epochs
    bool has_element_ = false, is_over_ = false;
    std::deque<Element> buffer_;
    std::deque<int64_t> epochs_;  // how many elements of the buffer belong to each
  };

  const Pointer input_;
  const ShuffleOptions options_;
  const std::shared_ptr<EpochSeeds> seeds_;
};

class RandomDataset final : public ElementSource {
 public:
  RandomDataset(Seeds seeds, bool changes)
      : ElementSource({{DType::i64}, {Shape{}}}),
        seeds_(std::make_shared<EpochSeeds>(seeds, changes)) {}

  int64_t cardinality() const override { return infinite; }
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([numbers = Numbers(seeds_->next())](Reading&) mutable {
      return std::optional<Element>(Element{Tensor::scalar(int64_t{numbers.next()})});
    });
  }

 private:
  const std::shared_ptr<EpochSeeds> seeds_;
};

Seeds seeds_at(const ExecuteContext& c, int input) {
  return Seeds::of(scalar_input<int64_t>(c, input, "seed"),
                   scalar_input<int64_t>(c, input + 1, "seed2"));
}

ElementSource::Pointer shuffled(ExecuteContext& c, int64_t count) {
  const auto& node = c.node();
  return std::make_shared<ShuffleDataset>(
      input_dataset(c), ShuffleOptions{.seeds = seeds_at(c, 2),
                                       .reshuffles = node.attr<bool>("reshuffle_each_iteration"),
                                       .buffer_size = scalar_input<int64_t>(c, 1, "buffer_size"),
                                       .count = count});
}

const Op shuffle_op{dataset_op(
    {.name = "ShuffleDataset",
     .doc = "Each element is drawn at random from a buffer of the next buffer_size ones.",
     .inputs = {input_dataset_arg, "buffer_size: int64", "seed: int64", "seed2: int64"},
     .attrs = dataset_attrs({"reshuffle_each_iteration: bool = true", metadata_attr})},
    [](ExecuteContext& c) { return shuffled(c, 1); })};
const Op shuffle_v3_op{dataset_op(
    {.name = "ShuffleDatasetV3",
     .doc = "ShuffleDataset. seed_generator: a DummySeedGenerator; the dataset has its own.",
     .inputs = {input_dataset_arg, "buffer_size: int64", "seed: int64", "seed2: int64",
                "seed_generator: resource"},
     .attrs = dataset_attrs({"reshuffle_each_iteration: bool = true", metadata_attr})},
    [](ExecuteContext& c) { return shuffled(c, 1); })};
ElementSource::Pointer shuffled_and_repeated(ExecuteContext& c) {
  const auto count = scalar_input<int64_t>(c, 4, "count");
  check(count > 0 || count == -1, "count must be greater than zero or equal to -1.");
  return shuffled(c, count);
}
const Op shuffle_and_repeat_op{
    dataset_op({.name = "ShuffleAndRepeatDataset",
                .doc = "ShuffleDataset `count` times (-1: without end); the buffer may hold "
                       "elements of two epochs.",
                .inputs = {input_dataset_arg, "buffer_size: int64", "seed: int64", "seed2: int64",
                           "count: int64"},
                .attrs = dataset_attrs({"reshuffle_each_iteration: bool = true", metadata_attr})},
               shuffled_and_repeated)};
const Op shuffle_and_repeat_v2_op{dataset_op(
    {.name = "ShuffleAndRepeatDatasetV2",
     .doc = "ShuffleAndRepeatDataset. seed_generator: a DummySeedGenerator; the dataset has its "
            "own.",
     .inputs = {input_dataset_arg, "buffer_size: int64", "seed: int64", "seed2: int64",
                "count: int64", "seed_generator: resource"},
     .attrs = dataset_attrs({"reshuffle_each_iteration: bool = true", metadata_attr}),
     .is_stateful = true},
    shuffled_and_repeated)};

const Op random_op{dataset_op(
    {.name = "RandomDataset",
     .doc = "Random numbers of 32 bits, the same in each iteration.",
     .inputs = {"seed: int64", "seed2: int64"},
     .attrs = dataset_attrs({metadata_attr}),
     .is_stateful = true},
    [](ExecuteContext& c) { return std::make_shared<RandomDataset>(seeds_at(c, 0), false); })};
const Op random_v2_op{
    dataset_op({.name = "RandomDatasetV2",
                .doc = "RandomDataset; with rerandomize_each_iteration, others in each iteration. "
                       "seed_generator: a DummySeedGenerator; the dataset has its own.",
                .inputs = {"seed: int64", "seed2: int64", "seed_generator: resource"},
                .attrs = dataset_attrs({"rerandomize_each_iteration: bool = false", metadata_attr}),
                .is_stateful = true},
               [](ExecuteContext& c) {
                 return std::make_shared<RandomDataset>(
                     seeds_at(c, 0), c.node().attr<bool>("rerandomize_each_iteration"));
               })};

}  // namespace
}  // namespace leat
