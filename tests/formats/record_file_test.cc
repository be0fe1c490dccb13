// Files of records as readers read them.
#include "graph/formats/record_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "core/crc32c.h"
#include "graph/formats/records.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;

class RecordFiles : public testing::Test {
 protected:
  std::string file(std::string_view content) {
    replace_file(path_, content);
    return path_;
  }
  // Compresses each piece as its own gzip stream.
  std::string gzip_file(const std::vector<std::string>& pieces) {
    std::remove(path_.c_str());
    for (const std::string& piece : pieces) {
      gzFile out = gzopen(path_.c_str(), "ab");
      EXPECT_EQ(gzwrite(out, piece.data(), static_cast<unsigned>(piece.size())),
                static_cast<int>(piece.size()));
      gzclose(out);
    }
    return path_;
  }
  // "KEY=VALUE", the key without the path.
  std::vector<std::string> all(const OpenedFile& opened) {
    std::vector<std::string> out;
    while (const auto record = opened->next())
      out.push_back(record->key.substr(path_.size()) + "=" + record->value);
    return out;
  }

  const ScratchDirectory directory_;
  const std::string path_ = directory_ / "file";
};

TEST_F(RecordFiles, ReadLines) {
  const std::string path = file("a\r\nb\n\n\rc\r\r\nlast");
  EXPECT_THAT(all(open_lines(path, 0, Compression::none)),
              ElementsAre(":1=a", ":2=b", ":3=", ":4=\rc\r", ":5=last"));
  EXPECT_THAT(all(open_lines(path, 3, Compression::none)), ElementsAre(":4=\rc\r", ":5=last"));
  EXPECT_THAT(all(open_lines(path, 9, Compression::none)), ElementsAre());
  EXPECT_THAT(all(open_lines(file(""), 0, Compression::none)), ElementsAre());
}

TEST_F(RecordFiles, ReadRecordsWithTheirPositions) {
  const std::string content = framed_record("one") + framed_record("") + framed_record("three");
  EXPECT_THAT(all(open_records(file(content), Compression::none)),
              ElementsAre(":0=one", ":19=", ":35=three"));
  EXPECT_THAT(
      all(open_records(gzip_file({content.substr(0, 20), content.substr(20)}), Compression::gzip)),
      ElementsAre(":0=one", ":19=", ":35=three"));
}

// Larger than any buffer: lines and records cross its end.
TEST_F(RecordFiles, ReadLargeLinesAndRecords) {
  const std::string large(1'000'003, 'x');
  EXPECT_THAT(all(open_lines(gzip_file({large + "\n", large, "\nend"}), 0, Compression::gzip)),
              ElementsAre(":1=" + large, ":2=" + large, ":3=end"));
  EXPECT_THAT(
      all(open_records(file(framed_record(large) + framed_record("end")), Compression::none)),
      ElementsAre(":0=" + large, ":1000019=end"));
}

TEST_F(RecordFiles, ReadRecordsOfFixedLength) {
  const std::string path = file("HH0123456789FF");
  EXPECT_THAT(all(open_fixed_length(path, {.header = 2, .record = 4}, Compression::none)),
              ElementsAre(":0=0123", ":1=4567", ":2=89FF"));
  EXPECT_THAT(
      all(open_fixed_length(path, {.header = 2, .record = 4, .footer = 2}, Compression::none)),
      ElementsAre(":0=0123", ":1=4567"));
  EXPECT_THAT(all(open_fixed_length(path, {.record = 8, .hop = 3}, Compression::none)),
              ElementsAre(":0=HH012345", ":1=12345678", ":2=456789FF"));
  EXPECT_THAT(all(open_fixed_length(path, {.record = 2, .hop = 6}, Compression::none)),
              ElementsAre(":0=HH", ":1=45", ":2=FF"));
  EXPECT_THAT(all(open_fixed_length(path, {.header = 99, .record = 1}, Compression::none)),
              ElementsAre());
}

// A record that claims 2^60 bytes, with a valid checksum.
TEST_F(RecordFiles, FalseLengthTakesNoMemory) {
  const uint64_t length = uint64_t{1} << 60;
  std::string content(reinterpret_cast<const char*>(&length), 8);
  const uint32_t sum = masked_crc(crc32c(content.data(), 8));
  content.append(reinterpret_cast<const char*>(&sum), 4);
  expect_error_with(Code::data_loss, "the record at byte 0 is torn",
                    [&] { open_records(file(content + "abc"), Compression::none)->next(); });
}

TEST_F(RecordFiles, NameDamagedFiles) {
  const std::string whole = read_file(gzip_file({std::string(1000, 'a') + "\n"}));
  for (size_t length = 1; length < whole.size(); ++length) {
    expect_error_with(Code::data_loss, path_ + " is torn", [&] {
      all(open_lines(file(whole.substr(0, length)), 0, Compression::gzip));
    });
  }
  expect_error_with(Code::data_loss, path_ + " cannot be decompressed",
                    [&] { all(open_lines(file("no gzip"), 0, Compression::gzip)); });
  expect_error_with(Code::not_found, "/nonexistent",
                    [] { open_lines("/nonexistent", 0, Compression::none); });
  expect_error_with(Code::invalid_argument, "Unsupported compression_type: LZ4",
                    [] { parse_compression("LZ4"); });
}

}  // namespace
}  // namespace leat
