// Readers in sessions: which step waits, what ends a wait, and the state after an error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "graph/formats/file.h"
#include "graph/ops.h"
#include "runtime/local_session.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using namespace std::chrono_literals;

// A reader of lines, two ways to read from it, and the queue of its files.
struct ReaderGraph {
  explicit ReaderGraph(const std::string& kind = "TextLineReaderV2", AttrMap attrs = {},
                       std::chrono::milliseconds timeout = 20s)
      : session({.timeout = timeout}, {.cpus = 1, .gpus = false}) {
    const Output names = graph
                             .add({.op = "FIFOQueueV2",
                                   .name = "names",
                                   .attrs = {{"component_types", std::vector<DType>{DType::string}},
                                             {"shapes", std::vector<Shape>{Shape{}}}}})
                             .output();
    const Output reader =
        graph.add({.op = kind, .name = "reader", .attrs = std::move(attrs)}).output();
    const auto add = [&](const char* op, const char* name, std::vector<Output> inputs) {
      graph.add({.op = op, .name = name, .inputs = std::move(inputs)});
    };
    add("QueueEnqueueV2", "put", {names, placeholder(graph, "path", DType::string, {})});
    add("QueueCloseV2", "close", {names});
    add("ReaderReadV2", "read", {reader, names});
    add("ReaderReadUpToV2", "read_up_to", {reader, names, placeholder(graph, "n", i64, {})});
    add("ReaderNumRecordsProducedV2", "records", {reader});
    add("ReaderNumWorkUnitsCompletedV2", "files", {reader});
    add("ReaderResetV2", "reset", {reader});
    session.extend(graph);
  }
  std::string file(const std::string& content) {
    const std::string path = directory / concat("file", files++);
    replace_file(path, content);
    return path;
  }
  void put(const std::string& path) { session.run({{"path", Tensor::scalar(path)}}, {}, {"put"}); }
  std::string read() { return session.run({}, {"read:1"}, {})[0].item<std::string>(); }
  std::vector<std::string> read_up_to(int64_t n) {
    const Tensor values = session.run({{"n", Tensor::scalar(n)}}, {"read_up_to:1"}, {})[0];
    const auto span = values.span<std::string>();
    return {span.begin(), span.end()};
  }
  std::pair<int64_t, int64_t> counts() {
    const auto out = session.run({}, {"records:0", "files:0"}, {});
    return {out[0].item<int64_t>(), out[1].item<int64_t>()};
  }

  const ScratchDirectory directory;
  int files = 0;
  Graph graph;
  LocalSession session;
};

TEST(Readers, ContinueFromFileToFile) {
  ReaderGraph r;
  r.put(r.file("a\nb\n"));
  r.put(r.file(""));
  r.put(r.file("c"));
  r.session.run({}, {}, {"close"});
  EXPECT_EQ(r.read(), "a");
  EXPECT_THAT(r.read_up_to(5), ElementsAre("b"));
  EXPECT_THAT(r.counts(), Pair(2, 1));
  EXPECT_EQ(r.read(), "c");
  expect_error_with(Code::out_of_range, "FIFOQueue 'names' is closed", [&] { r.read(); });
  EXPECT_THAT(r.counts(), Pair(3, 3));
  r.session.run({}, {}, {"reset"});
  EXPECT_THAT(r.counts(), Pair(0, 0));
  expect_error_with(Code::invalid_argument, "num_records must be positive",
                    [&] { r.read_up_to(0); });
}

TEST(Readers, ReadEachRecordOnceAndOneAtATime) {
  ReaderGraph r;
  std::vector<std::future<std::string>> reads;
  for (int i = 0; i < 8; ++i)
    reads.push_back(std::async(std::launch::async, [&] { return r.read(); }));
  EXPECT_EQ(reads[0].wait_for(50ms), std::future_status::timeout);
  r.put(r.file("0\n1\n2\n"));
  r.put(r.file("3\n4\n5\n6\n7\n"));
  std::vector<std::string> seen;
  for (auto& read : reads) seen.push_back(read.get());
  std::sort(seen.begin(), seen.end());
  EXPECT_THAT(seen, ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
}

// The waits behind it end as well; later ones are served.
TEST(Readers, WaitEndsWithItsStep) {
  ReaderGraph r("TextLineReaderV2", {}, 200ms);
  std::vector<std::future<Status>> reads;
  for (int i = 0; i < 3; ++i) {
    reads.push_back(std::async(std::launch::async, [&] { return error_of([&] { r.read(); }); }));
  }
  for (auto& read : reads) {
    const Status status = read.get();
    EXPECT_EQ(status.code, Code::deadline_exceeded) << status.message;
    EXPECT_THAT(status.message, HasSubstr("TextLineReader 'reader' has produced 0 records"));
  }
  r.put(r.file("there"));
  EXPECT_EQ(r.read(), "there");
}

TEST(Readers, SkipUnreadableFiles) {
  ReaderGraph r;
  r.put("/nonexistent");
  r.put(r.file("next"));
  expect_error_with(Code::not_found, "/nonexistent", [&] { r.read(); });
  EXPECT_EQ(r.read(), "next");
}

TEST(Readers, RejectBadOptions) {
  const AttrMap none = {{"record_bytes", 0}},
                vast = {{"record_bytes", INT64_MAX}, {"footer_bytes", INT64_MAX}},
                lz4 = {{"compression_type", "LZ4"}};
  expect_error_with(Code::invalid_argument, "record_bytes must be > 0",
                    [&] { ReaderGraph("FixedLengthRecordReaderV2", none).counts(); });
  expect_error_with(Code::invalid_argument, "are too large together",
                    [&] { ReaderGraph("FixedLengthRecordReaderV2", vast).counts(); });
  expect_error_with(Code::invalid_argument, "Unsupported compression_type: LZ4",
                    [&] { ReaderGraph("TFRecordReaderV2", lz4).counts(); });
  // A piece longer than its file takes no memory.
  ReaderGraph large("FixedLengthRecordReaderV2", {{"record_bytes", int64_t{1} << 60}});
  large.put(large.file("short"));
  large.session.run({}, {}, {"close"});
  expect_error_with(Code::out_of_range, "is closed", [&] { large.read(); });
}

}  // namespace
}  // namespace leat
