#include "graph/formats/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/formats/records.h"
#include "graph/formats/summary.h"
#include "tests/support/expect_error.h"
#include "tests/support/most_bytes.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

TEST(Records, AreFramedAsInTensorFlow) {
  const std::string framed = framed_record(std::string("\x1a\x11", 2) + "CRC test, one two");
  ASSERT_EQ(framed.size(), 8u + 4 + 19 + 4);
  EXPECT_EQ(framed.substr(31), std::string("\x8a\xd0\x94\x57", 4));  // 0x5794d08a
}

TEST(Records, NameATornFile) {
  const ScratchDirectory directory;
  const std::string path = directory / "r",
                    whole = framed_record("first") + framed_record("second");
  for (size_t length = 0; length < whole.size(); ++length) {
    replace_file(path, whole.substr(0, length));
    RecordReader reader(path);
    if (length == 0 || length == framed_record("first").size()) {
      if (length > 0) {
        EXPECT_EQ(reader.next(), "first");
      }
      EXPECT_EQ(reader.next(), std::nullopt);
    } else {
      expect_error_with(Code::data_loss, path, [&] {
        while (reader.next()) {
        }
      });
    }
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] ^= 4;
    replace_file(path, changed);
    RecordReader reader(path);
    expect_error_with(Code::data_loss, path, [&] {
      while (reader.next()) {
      }
    });
  }
}

TEST(EventWriter, RoundTripsThroughItsReader) {
  const ScratchDirectory directory;
  Histogram histogram;
  histogram.add(1);
  std::string path, second;
  {
    EventWriter writer(directory / "run");
    path = writer.path();
    EXPECT_THAT(path, HasSubstr("events.out.tfevents."));
    writer.add_start(3);
    writer.add_scalar("loss", 0.5f, 3);
    writer.add_summary(histogram.summary("w"), 4);
    writer.add_graph("graph");
    writer.add_checkpoint("/m-4", 4);
    const EventWriter other(directory / "run");  // within the same second
    second = other.path();
  }
  EXPECT_NE(path, second);
  const std::vector<LoggedEvent> events = read_events(path);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_TRUE(events[1].is_start);
  EXPECT_EQ(events[1].step, 3);
  EXPECT_THAT(events[2].scalars, ElementsAre(Pair("loss", 0.5f)));
  EXPECT_THAT(events[3].histograms, ElementsAre("w"));
  EXPECT_EQ(events[4].graph_def, "graph");
  EXPECT_EQ(events[5].checkpoint, "/m-4");
}

TEST(EventWriter, ContinuesWhenTheDiskHasRoomAgain) {
  const ScratchDirectory directory;
  EventWriter writer(directory.path());
  const uint64_t whole = FileReader(writer.path()).size();
  {
    const MostBytes full(whole + 7);  // cuts off the next record
    writer.add_scalar("loss", 1, 1);
    for (int i = 0; i < 2; ++i)
      expect_error_with(Code::resource_exhausted, writer.path(), [&] { writer.flush(); });
    EXPECT_EQ(FileReader(writer.path()).size(), whole) << "no torn record";
    EXPECT_EQ(read_events(writer.path()).size(), 1u);
  }
  writer.add_scalar("loss", 2, 2);
  writer.flush();
  const std::vector<LoggedEvent> events = read_events(writer.path());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[2].step, 2);
}

TEST(EventWriter, NeedsADirectory) {
  expect_error_with(Code::invalid_argument, "for the current one", [] { EventWriter(""); });
}

TEST(Summaries, RejectDuplicateTags) {
  const std::pair<std::string, float> value("a", 1);
  const std::string one = scalar_summary({&value, 1});
  const std::vector<std::string> twice = {one, one}, garbage = {"\xff\xff"};
  expect_error_with(Code::invalid_argument, "Duplicate tag a", [&] { merge_summaries(twice); });
  expect_error_with(Code::invalid_argument, "Could not parse", [&] { merge_summaries(garbage); });
}

}  // namespace
}  // namespace leat
