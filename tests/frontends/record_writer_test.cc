// Record files that this program writes, read by a dataset.
#include "frontends/cpp/data/record_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

#include "frontends/cpp/data/dataset.h"
#include "frontends/cpp/session.h"
#include "graph/formats/file.h"
#include "graph/formats/records.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

using testing::ElementsAre;

class RecordFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(directory); }
  void TearDown() override { std::filesystem::remove_all(directory); }
  const std::string directory =
      testing::TempDir() + "leat_record_files_" + std::to_string(::getpid());
  const std::string path = directory + "/a.tfrecord";
};

TEST_F(RecordFiles, DatasetsReadWhatWasWritten) {
  {
    RecordWriter writer(path);
    for (int i = 0; i < 3; ++i) {
      writer.write(serialize_example({{"x", {i + 0.5, 2.0 * i}},
                                      {"label", i},
                                      {"name", concat("example ", i)},
                                      {"flags", Tensor::of<bool>({2}, {true, false})},
                                      {"pixels", Tensor::of<uint8_t>({2, 2}, {0, 1, 254, 255})}}));
    }
  }  // the destructor closes it
  Graph g;
  const Batch batch = datasets::records({path})
                          .map([](Output record) {
                            return parse_example(record, {{"x", f32, {2}},
                                                          {"label", i64},
                                                          {"name", DType::string},
                                                          {"flags", i64, {2}},
                                                          {"pixels", i64, {2, 2}}});
                          })
                          .batch(3)
                          .next(g);
  const std::vector<Tensor> got = Session(g).run(batch.components());
  EXPECT_THAT(got[0].to_vector<float>(), ElementsAre(0.5, 0, 1.5, 2, 2.5, 4));
  EXPECT_THAT(got[1].to_vector<int64_t>(), ElementsAre(0, 1, 2));
  EXPECT_THAT(got[2].to_vector<std::string>(), ElementsAre("example 0", "example 1", "example 2"));
  EXPECT_THAT(got[3].to_vector<int64_t>(), ElementsAre(1, 0, 1, 0, 1, 0));
  EXPECT_THAT(got[4].to_vector<int64_t>(),
              ElementsAre(0, 1, 254, 255, 0, 1, 254, 255, 0, 1, 254, 255));
}

// Length, masked CRC-32C of it, data, masked CRC-32C: the bytes that TensorFlow's
// TFRecordWriter writes for b"leat" and b"".
TEST_F(RecordFiles, AreThoseOfTensorFlow) {
  RecordWriter writer(path);
  writer.write("leat");
  writer.write("");
  writer.close();
  writer.close();  // again does nothing
  constexpr unsigned char expected[] = {
      0x04, 0,    0, 0, 0, 0, 0, 0, 0x42, 0x45, 0x52, 0x04, 'l',  'e',  'a',  't',  0xd8, 0xec,
      0x6b, 0x65, 0, 0, 0, 0, 0, 0, 0,    0,    0x29, 0x03, 0x98, 0x07, 0xd8, 0xea, 0x82, 0xa2};
  EXPECT_EQ(read_file(path), std::string(reinterpret_cast<const char*>(expected), sizeof expected));
  RecordReader reader(path);
  EXPECT_EQ(reader.next(), "leat");
  EXPECT_EQ(reader.next(), "");
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST_F(RecordFiles, ReadersSeeWhatWasFlushed) {
  RecordWriter writer(path);
  writer.write("first");
  writer.flush();
  EXPECT_EQ(RecordReader(path).next(), "first");
}

TEST_F(RecordFiles, ReportWhatDoesNotFit) {
  expect_error_with(Code::not_found, "nowhere", [&] { RecordWriter(directory + "/nowhere/a"); });
  RecordWriter writer(path);
  writer.close();
  expect_error_with(Code::failed_precondition, "is closed", [&] { writer.write("late"); });
  expect_error_with(Code::invalid_argument, "there are two features 'x'", [&] {
    serialize_example({{"x", 1}, {"x", 2}});
  });
  expect_error_with(Code::invalid_argument, "a feature needs a name", [&] {
    serialize_example({{"", 1}});
  });
  expect_error_with(Code::invalid_argument, "must be floating-point numbers, integers", [&] {
    serialize_example({{"z", Tensor::zeros({2}, DType::complex64)}});
  });
}

}  // namespace
}  // namespace leat
