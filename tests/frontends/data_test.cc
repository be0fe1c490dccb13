#include "frontends/cpp/data/data.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace leat::data {
namespace {

class IdxTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ("leat_idx_" + std::to_string(getpid()) + "_" +
                  testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& content) {
    const std::string path = (directory_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::string write_gzip(const std::string& name, const std::string& content) {
    const std::string path = (directory_ / name).string();
    gzFile file = gzopen(path.c_str(), "wb");
    EXPECT_EQ(gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
              static_cast<int>(content.size()));
    gzclose(file);
    return path;
  }
  static std::string images(int count, char pixel) {
    std::string out{"\0\0\x08\x03\0\0\0", 7};
    out += static_cast<char>(count);
    out += std::string{"\0\0\0\x02\0\0\0\x03", 8};
    return out + std::string(static_cast<size_t>(count) * 6, pixel);
  }
  static std::string labels(const std::string& values) {
    std::string out{"\0\0\x08\x01\0\0\0", 7};
    out += static_cast<char>(values.size());
    return out + values;
  }
  static std::string message_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  }

  std::filesystem::path directory_;
};

TEST_F(IdxTest, ReadsPlainAndCompressedFilesAlike) {
  const Tensor plain = read_idx(write("a", images(2, 7)));
  EXPECT_EQ(plain.shape(), (Shape{2, 2, 3}));
  EXPECT_EQ(plain.data<uint8_t>()[11], 7);
  EXPECT_EQ(read_idx(write_gzip("b.gz", images(2, 7))).to_string(), plain.to_string());
}

TEST_F(IdxTest, SwapsTheBytesOfWideElements) {
  const Tensor wide =
      read_idx(write("a", std::string("\0\0\x0C\x01\0\0\0\x02\0\0\x01\x02\xff\xff\xff\xfe", 16)));
  EXPECT_EQ(wide.dtype(), i32);
  EXPECT_EQ(wide.data<int32_t>()[0], 258);
  EXPECT_EQ(wide.data<int32_t>()[1], -2);
}

TEST_F(IdxTest, ReportsDamagedFiles) {
  const std::string cut = write("cut", images(2, 7).substr(0, 20));
  EXPECT_EQ(message_of([&] { read_idx(cut); }),
            cut +
                " is not a valid idx file: it ends after 4 of the 12 bytes of the elements of "
                "shape [2,2,3] from byte 0");
  const std::string junk = write("junk", "hello");
  EXPECT_EQ(message_of([&] { read_idx(junk); }),
            junk +
                " is not a valid idx file: it starts with 68 65 00 6c; expected 00 00, a type (08 "
                "to 0e) and the number of dimensions");
  const std::string more = write("long", images(1, 1) + "x");
  EXPECT_EQ(message_of([&] { read_idx(more); }),
            more + " is not a valid idx file: it has more bytes after the last element");
  const std::string huge = write(
      "huge", std::string("\0\0\x08\x03\x7f\xff\xff\xff\x7f\xff\xff\xff\x7f\xff\xff\xff", 16));
  EXPECT_THROW(read_idx(huge), Error);
  std::string gz = write_gzip("torn.gz", images(100, 7));
  std::filesystem::resize_file(gz, std::filesystem::file_size(gz) - 6);
  EXPECT_THROW(read_idx(gz), Error);
}

TEST_F(IdxTest, LoadsDirectoriesWithEitherFileNaming) {
  write_gzip("train-images-idx3-ubyte.gz", images(3, '\xff'));
  write("train-labels.idx1-ubyte", labels(std::string("\x01\x02\x03")));
  write("t10k-images-idx3-ubyte", images(1, 0));
  const auto load = [&] { return load_mnist(directory_.string()); };
  EXPECT_EQ(message_of(load), "no t10k-labels file in '" + directory_.string() +
                                  "'; looked for t10k-labels-idx1-ubyte, "
                                  "t10k-labels-idx1-ubyte.gz, t10k-labels.idx1-ubyte, "
                                  "t10k-labels.idx1-ubyte.gz");
  const std::string wrong = write("t10k-labels-idx1-ubyte", labels(std::string("\x01\x02")));
  EXPECT_EQ(message_of(load),
            wrong + " holds uint8[2]; expected uint8 labels [1], one for each image of " +
                (directory_ / "t10k-images-idx3-ubyte").string());
  write("t10k-labels-idx1-ubyte", labels(std::string("\x09")));
  const Digits digits = load();
  EXPECT_EQ(digits.train.images.shape(), (Shape{3, 6}));
  EXPECT_EQ(digits.train.images.data<float>()[0], 1.0F);
  EXPECT_EQ(digits.train.labels.data<int32_t>()[2], 3);
  EXPECT_EQ(digits.test.labels.data<int32_t>()[0], 9);
}

TEST(DrawDigits, IsReproducibleAndVaried) {
  const Digits a = draw_digits(200, 10, 5), b = draw_digits(200, 10, 5);
  EXPECT_EQ(std::memcmp(a.train.images.raw(), b.train.images.raw(), a.train.images.bytes()), 0);
  const std::set<int32_t> classes(a.train.labels.span<int32_t>().begin(),
                                  a.train.labels.span<int32_t>().end());
  EXPECT_EQ(classes.size(), 10U);
  for (float pixel : a.train.images.span<float>()) ASSERT_TRUE(pixel >= 0 && pixel <= 1);
}

TEST(Batches, ImagesAndLabelsMustBelongTogether) {
  const Labelled good = draw_digits(4, 1, 7).train;
  EXPECT_NO_THROW(Batches(good, 2, 1));
  const auto expect_refused = [](Labelled examples) {
    EXPECT_THROW(Batches(examples, 2, 1), Error)
        << examples.images.shape() << ' ' << examples.labels.shape();
  };
  expect_refused({good.images, Tensor(i32, {40'000})});
  expect_refused({good.images, Tensor(i64, {4})});
  expect_refused({Tensor(DType::u8, {4, 784}), good.labels});
  expect_refused({Tensor(f32, {4, 28, 28}), good.labels});
  Batches batches(good, 2, 1);
  EXPECT_THROW(batches.seek(-1), Error);
}

TEST(Batches, ShardsCoverEveryExampleOncePerEpoch) {
  Labelled examples{Tensor(f32, {20, 1}), Tensor(i32, {20})};
  for (int i = 0; i < 20; ++i)
    examples.images.data<float>()[i] = static_cast<float>(examples.labels.data<int32_t>()[i] = i);
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::multiset<int32_t> seen;
    for (int shard = 0; shard < 2; ++shard) {
      Batches batches(examples, 5, 7, shard, 2);
      ASSERT_EQ(batches.per_epoch(), 2);
      for (int i = 0; i < 2; ++i) {
        const Labelled batch = batches.next();
        for (int row = 0; row < 5; ++row) {
          EXPECT_EQ(batch.images.data<float>()[row],
                    static_cast<float>(batch.labels.data<int32_t>()[row]));
          seen.insert(batch.labels.data<int32_t>()[row]);
        }
      }
    }
    EXPECT_EQ(seen.size(), 20U);
    EXPECT_EQ(std::set<int32_t>(seen.begin(), seen.end()).size(), 20U);
  }
  EXPECT_THROW(Batches(examples, 11, 1, 0, 2), Error);
}

}  // namespace
}  // namespace leat::data
