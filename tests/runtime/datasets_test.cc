// Datasets and iterators in sessions: ends, invalid numbers, lifetimes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "graph/ops.h"
#include "runtime/local_session.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

const AttrMap int64_scalars = {{"output_types", std::vector<DType>{i64}},
                               {"output_shapes", std::vector<Shape>{Shape{}}}};
const AttrMap int64_vectors = {{"output_types", std::vector<DType>{i64}},
                               {"output_shapes", std::vector<Shape>{Shape{any}}}};

// An iterator "it" with its steps "make" and "next:0".
struct Pipeline {
  explicit Pipeline(std::chrono::milliseconds timeout = 20s)
      : session({.timeout = timeout}, {.cpus = 1, .gpus = false}) {}

  Output number(int64_t value) { return constant(graph, Tensor::scalar(value)); }
  Output truth(bool value) { return constant(graph, Tensor::scalar(value)); }
  Output add(const char* op, std::vector<Output> inputs, const AttrMap& attrs = int64_scalars) {
    return graph.add({.op = op, .inputs = std::move(inputs), .attrs = attrs}).output();
  }
  Output range(int64_t stop) { return add("RangeDataset", {number(0), number(stop), number(1)}); }

  void read(Output dataset, AttrMap types = int64_scalars) {
    AttrMap named = types;
    named.emplace("shared_name", "it");
    named.emplace("container", "");
    const Output iterator = graph.add({.op = "IteratorV2", .attrs = named}).output();
    graph.add({.op = "MakeIterator", .name = "make", .inputs = {dataset, iterator}});
    graph.add({.op = "IteratorGetNext", .name = "next", .inputs = {iterator}, .attrs = types});
    session.extend(graph);
  }
  void make() { session.run({}, {}, {"make"}); }
  Tensor next() { return session.run({}, {"next:0"}, {})[0]; }
  std::vector<int64_t> batch() {
    const Tensor out = next();
    const auto span = out.span<int64_t>();
    return {span.begin(), span.end()};
  }

  Graph graph;
  LocalSession session;
};

TEST(Datasets, KeepReportingTheirEnd) {
  Pipeline p;
  p.read(p.range(2));
  expect_error_with(Code::failed_precondition, "has not been initialized", [&] { p.next(); });
  for (int epoch = 0; epoch < 2; ++epoch) {
    p.make();
    EXPECT_EQ(p.next().item<int64_t>(), 0);
    EXPECT_EQ(p.next().item<int64_t>(), 1);
    for (int i = 0; i < 3; ++i)
      expect_error_with(Code::out_of_range, "End of sequence", [&] { p.next(); });
  }
}

TEST(Datasets, UseOnlyTheMemoryOfTheElementsForHugeSizes) {
  const int64_t huge = int64_t{1} << 62;
  {
    Pipeline p;
    p.read(p.add("BatchDatasetV2", {p.range(3), p.number(huge), p.truth(false)}, int64_vectors),
           int64_vectors);
    p.make();
    EXPECT_THAT(p.batch(), ElementsAre(0, 1, 2));
  }
  {
    Pipeline p;
    p.read(p.add("ShuffleDataset", {p.range(4), p.number(huge), p.number(1), p.number(2)}));
    p.make();
    std::set<int64_t> seen;
    for (int i = 0; i < 4; ++i) seen.insert(p.next().item<int64_t>());
    EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3));
  }
  {
    Pipeline p;
    p.read(
        p.add("SkipDataset", {p.add("TakeDataset", {p.range(9), p.number(huge)}), p.number(huge)}));
    p.make();
    expect_error_with(Code::out_of_range, "End of sequence", [&] { p.next(); });
  }
}

TEST(Datasets, RejectInvalidCounts) {
  for (const int64_t count : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    Pipeline p;
    p.read(p.add("BatchDataset", {p.range(3), p.number(count)}, int64_vectors), int64_vectors);
    expect_error_with(Code::invalid_argument, "Batch size must be greater than zero",
                      [&] { p.make(); });
  }
  for (const int64_t size : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    Pipeline p;
    p.read(p.add("ShuffleDataset", {p.range(3), p.number(size), p.number(1), p.number(2)}));
    expect_error_with(Code::invalid_argument, "buffer_size must be greater than zero",
                      [&] { p.make(); });
  }
  Pipeline p;
  p.read(p.add("RangeDataset", {p.number(0), p.number(1), p.number(0)}));
  expect_error_with(Code::invalid_argument, "step must be a non-zero integer", [&] { p.make(); });
}

TEST(Datasets, RangesStopAtTheLastNumber) {
  Pipeline p;
  p.read(
      p.add("RangeDataset", {p.number(INT64_MAX - 1), p.number(INT64_MAX), p.number(INT64_MAX)}));
  p.make();
  EXPECT_EQ(p.next().item<int64_t>(), INT64_MAX - 1);
  expect_error_with(Code::out_of_range, "End of sequence", [&] { p.next(); });
}

TEST(Datasets, RejectPaddingBeyondTheMemory) {
  Pipeline p;
  Tensor shape(i64, {2});
  shape.data<int64_t>()[0] = shape.data<int64_t>()[1] = int64_t{1} << 31;
  const AttrMap matrices = {{"output_types", std::vector<DType>{i64}},
                            {"output_shapes", std::vector<Shape>{Shape{any, any, any}}}};
  const Output matrix = constant(p.graph, Tensor::of<int64_t>(Shape{1, 1}, {7}));
  const Output one = p.add("TensorDataset", {matrix},
                           {{"Toutput_types", std::vector<DType>{i64}},
                            {"output_shapes", std::vector<Shape>{Shape{any, any}}}});
  p.read(p.add("PaddedBatchDatasetV2",
               {one, p.number(2), constant(p.graph, shape), p.number(0), p.truth(false)},
               {{"Toutput_types", std::vector<DType>{i64}},
                {"output_shapes", std::vector<Shape>{Shape{any, any, any}}},
                {"N", 1}}),
         matrices);
  p.make();
  EXPECT_THROW(p.next(), Error);
}

// A client's claims about a dataset's elements need not be true.
TEST(Datasets, RejectElementsThatContradictTheirDataset) {
  {
    Pipeline p;
    AttrMap attrs = int64_scalars;
    attrs.emplace("N", int64_t{2});
    const Output pairs = p.add("ZipDataset", {p.range(4), p.range(4)}, attrs);
    const Output shape = constant(p.graph, Tensor::of<int64_t>({0}, {}));
    p.read(p.add("PaddedBatchDataset", {pairs, p.number(2), shape, p.number(0)},
                 {{"Toutput_types", std::vector<DType>{i64}},
                  {"output_shapes", std::vector<Shape>{Shape{any}}},
                  {"N", int64_t{1}}}),
           int64_vectors);
    p.make();
    expect_error_with(Code::invalid_argument, "an element has 2 components, not 1",
                      [&] { p.next(); });
  }
  Pipeline p;
  const AttrMap texts = {{"output_types", std::vector<DType>{DType::string}},
                         {"output_shapes", std::vector<Shape>{Shape{}}}};
  const Output lie = p.add("BatchDataset", {p.range(4), p.number(2)}, texts);
  p.read(p.add("UniqueDataset", {lie}, texts), texts);
  p.make();
  expect_error_with(Code::invalid_argument, "component 0 of an element is int64, not string",
                    [&] { p.next(); });
}

TEST(Datasets, LimitNestedDatasets) {
  Pipeline p;
  Output both = p.range(1);
  for (int i = 0; i < 40; ++i) both = p.add("ConcatenateDataset", {both, both});
  p.read(both);
  expect_error_with(Code::invalid_argument, "each counted as often as it is used",
                    [&] { p.make(); });
}

TEST(Datasets, EndlessSkipEndsWithItsStep) {
  Pipeline p(300ms);
  // Skips for ever.
  p.read(p.add("SkipDataset",
               {p.add("RepeatDataset", {p.range(3), p.number(-1)}), p.number(INT64_MAX)}));
  p.make();
  EXPECT_THROW(p.next(), Error);
  // The iterator remains usable.
  p.make();
  EXPECT_THROW(p.next(), Error);
}

TEST(Datasets, IteratorOutlivesTheStepThatMadeItsDataset) {
  Pipeline p;
  p.read(p.add("RepeatDataset", {p.range(2), p.number(-1)}));
  p.make();
  for (int i = 0; i < 3000; ++i) {  // the step "make" is dropped meanwhile
    EXPECT_EQ(p.next().item<int64_t>(), i % 2);
  }
  EXPECT_THAT(p.session.containers().size(), 0);
}

TEST(Datasets, ManyThreadsReadOneIterator) {
  Pipeline p;
  p.read(p.range(400));
  p.make();
  std::vector<std::future<std::vector<int64_t>>> readers;
  for (int t = 0; t < 4; ++t) {
    readers.push_back(std::async(std::launch::async, [&] {
      std::vector<int64_t> out;
      for (int i = 0; i < 100; ++i) out.push_back(p.next().item<int64_t>());
      return out;
    }));
  }
  std::set<int64_t> seen;
  for (auto& reader : readers) {
    for (const int64_t value : reader.get()) seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 400);
}

}  // namespace
}  // namespace leat
