// Checkpoints of format V1: our writer, and CheckpointReader on the files of both writers.
#include "graph/formats/checkpoint_v1.h"
#include "core/visit_dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "graph/formats/checkpoint.h"
#include "graph/formats/table_writer.h"
#include "tests/support/expect_error.h"
#include "tests/support/hex.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

// The bytes that TensorFlow's SaveSlices writes for w, [[1, 2], [3, 4]] in two parts, and names,
// ["ab", ""].
constexpr std::string_view tensorflows =
    "00003e0a3c0a130a056e616d6573120412020802180722020a000a210a01771208120208"
    "0212020802180122060a0210010a0022080a04080110010a0012020801000c15006e616d"
    "657300010101807f12130a056e616d657312020a001a0642026162420001091977000101"
    "028081807f12170a017712060a0210010a001a0a2a080000803f0000004006041b818180"
    "7f12190a017712080a04080110010a001a0a2a0800004040000080400000000001000000"
    "0086f7f263000000000100000000c0f2a1b00001030100b401000000000100000000fa85"
    "f731b90108c6010f00000000000000000000000000000000000000000000000000000000"
    "00000000000057fb808b247547db";

TensorSlice whole(int rank) { return TensorSlice::whole(rank); }

void add_example(V1CheckpointWriter& writer) {
  writer.add("w", {2, 2}, TensorSlice::parse("0,1:-"), Tensor::of<float>({1, 2}, {1, 2}));
  writer.add("names", {2}, whole(1), Tensor::of<std::string>({2}, {"ab", ""}));
  writer.add("w", {2, 2}, TensorSlice::parse("1,1:-"), Tensor::of<float>({1, 2}, {3, 4}));
}

TEST(V1Checkpoint, WritesTheBytesOfTensorFlow) {
  const ScratchDirectory directory;
  V1CheckpointWriter writer(directory / "sub/m");
  add_example(writer);
  writer.finish();
  EXPECT_EQ(read_file(directory / "sub/m"), bytes_of(tensorflows));
}

TEST(V1Checkpoint, IsReadIfThereIsNoV2Checkpoint) {
  const ScratchDirectory directory;
  replace_file(directory / "m", bytes_of(tensorflows));
  const CheckpointReader reader(directory / "m");
  ASSERT_EQ(reader.variables().size(), 2u);
  EXPECT_EQ(reader.variables()[1].shape, (Shape{2, 2}));
  EXPECT_EQ(reader.read("w").to_string(), Tensor::of<float>({2, 2}, {1, 2, 3, 4}).to_string());
  EXPECT_EQ(reader.read("names").to_string(), Tensor::of<std::string>({2}, {"ab", ""}).to_string());
  EXPECT_EQ(reader.read_slice("w", {2, 2}, TensorSlice::parse("-:1,1")).to_string(),
            Tensor::of<float>({2, 1}, {2, 4}).to_string());
  reader.verify();
  expect_error_with(Code::not_found, "Key v not found in checkpoint", [&] { reader.read("v"); });

  CheckpointWriter second(directory / "m");
  second.add("v", Tensor::scalar(1.f));
  second.finish();
  EXPECT_EQ(CheckpointReader(directory / "m").variables().size(), 1u);
}

TEST(V1Checkpoint, HoldsEveryDTypeOfItsFormat) {
  const ScratchDirectory directory;
  const std::vector<Tensor> tensors = {
      Tensor::scalar(-1.5f),
      Tensor::of<double>({3}, {1e300, 0, -2}),
      Tensor::of<int64_t>({2}, {-1, int64_t{1} << 40}),
      Tensor::of<int32_t>({1, 2}, {-5, 7}),
      Tensor::of<int16_t>({2}, {-300, 300}),
      Tensor::of<int8_t>({2}, {-128, 127}),
      Tensor::of<uint8_t>({2}, {0, 255}),
      Tensor::of<uint16_t>({1}, {65535}),
      Tensor::of<bool>({2}, {true, false}),
      Tensor::of<half>({2}, {half(1.5f), half(-2.f)}),
      Tensor::of<complex64>({2}, {{1, 2}, {3, -4}}),
      Tensor::of<complex128>({1}, {{1, 2}}),
      Tensor(f32, {0, 3}),
  };
  const std::string no_utf8 = "\xff\xfe";
  V1CheckpointWriter writer(directory / "m");
  for (size_t i = 0; i < tensors.size(); ++i)
    writer.add(concat("t", i), tensors[i].shape(), whole(tensors[i].shape().rank()), tensors[i]);
  for (const DType dtype : {DType::bf16, DType::u32, DType::u64}) {
    expect_error_with(Code::unimplemented, "hold no " + std::string(dtype_name(dtype)),
                      [&] { writer.add("other", {1}, whole(1), Tensor(dtype, {1})); });
  }
  writer.add(no_utf8, {}, whole(0), Tensor::scalar(1.f));
  writer.finish();
  const CheckpointReader reader(directory / "m");
  EXPECT_EQ(reader.read(no_utf8).item<float>(), 1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor read = reader.read(concat("t", i));
    EXPECT_EQ(read.dtype(), tensors[i].dtype());
    EXPECT_EQ(read.to_string(), tensors[i].to_string());
  }
}

TEST(V1Checkpoint, FindsShardsByTheirPattern) {
  const ScratchDirectory directory;
  for (int row = 0; row < 2; ++row) {
    V1CheckpointWriter writer(concat(directory.path(), "/m-0000", row, "-of-00002"));
    writer.add("w", {2, 2}, TensorSlice::parse(concat(row, ",1:-")),
               Tensor::of<float>({1, 2}, {row + 1.f, 10}));
    writer.add(concat("only", row), {}, whole(0), Tensor::scalar(row));
    writer.finish();
  }
  const CheckpointReader reader(directory / "m-\?\?\?\?\?-of-00002");
  EXPECT_EQ(reader.read("w").to_string(), Tensor::of<float>({2, 2}, {1, 10, 2, 10}).to_string());
  EXPECT_EQ(reader.read("only1").item<int32_t>(), 1);
  const std::string second = directory / "m-00001-of-00002", bytes = read_file(second);
  replace_file(second, bytes.substr(0, bytes.size() / 2));
  expect_error_with(Code::data_loss, second + " is torn or changed",
                    [&] { CheckpointReader torn(directory / "m-\?\?\?\?\?-of-00002"); });
  expect_error_with(Code::not_found,
                    "the file of that name is torn or not a checkpoint of format V1",
                    [&] { CheckpointReader torn(second); });
  const CheckpointReader half(directory / "m-00000-of-00002");
  expect_error_with(Code::invalid_argument, "holds only 2 of the 4 elements",
                    [&] { half.read("w"); });
}

TEST(V1Checkpoint, RejectsMismatchesAndLeavesNothing) {
  const ScratchDirectory directory;
  {
    V1CheckpointWriter writer(directory / "m");
    add_example(writer);
    const auto expect = [&](const std::string& text, const Shape& full, const char* slice,
                            const Tensor& tensor) {
      expect_error_with(Code::invalid_argument, text,
                        [&] { writer.add("w", full, TensorSlice::parse(slice), tensor); });
    };
    expect("'w' is saved twice", {2, 2}, "0,1:-", Tensor::of<float>({1, 2}, {1, 2}));
    expect("different shapes", {3, 2}, "2,1:-", Tensor::of<float>({1, 2}, {1, 2}));
    expect("is saved with the shape [2]", {2, 2}, "0,1:-", Tensor::of<float>({2}, {1, 2}));
    writer.finish();  // the rejected tensors have no effect
    EXPECT_EQ(read_file(directory / "m"), bytes_of(tensorflows));
    remove_file(directory / "m");
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

TEST(V1Checkpoint, NamesChangedFiles) {
  const ScratchDirectory directory;
  const std::string good = bytes_of(tensorflows), path = directory / "m";
  int seen = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 1;
    FileWriter file(path);  // not synced, unlike replace_file()
    file.append(bad);
    file.close();
    try {
      CheckpointReader(path).verify();
    } catch (const Error& error) {
      // A file that does not end like a table is not one.
      EXPECT_TRUE(error.code() == Code::data_loss || at >= good.size() - 8) << error.what();
      EXPECT_THAT(error.what(), testing::HasSubstr(path));
      ++seen;
    }
  }
  // Every byte but the padding of the footer and the unused metadata block.
  EXPECT_GT(seen, static_cast<int>(good.size()) - 48 - 13);
}

// The checksum is right, but the contents are not.
TEST(V1Checkpoint, TableWithOtherContentsIsDataLoss) {
  const ScratchDirectory directory;
  const auto expect = [&](const std::string& text, const auto& write) {
    {
      TableWriter table(directory / "m");
      write(table);
      table.finish();
    }
    expect_error_with(Code::data_loss, text, [&] { CheckpointReader(directory / "m").verify(); });
  };
  expect("it has no list of its contents", [](TableWriter& table) { table.add("a", "b"); });
  expect("does not parse", [](TableWriter& table) { table.add("", "\x0a\x05"); });
  // The metadata says w: float[2] in one part.
  const std::string contents = bytes_of("0a150a0f0a0177120412020802180122020a0012020801");
  expect("'w' in " + directory / "m" + ": it is not there",
         [&](TableWriter& table) { table.add("", contents); });
  expect("a tensor float[2] has a list of 1 elements", [&](TableWriter& table) {
    table.add("", contents);
    table.add(slice_key("w", whole(1)), bytes_of("120f0a017712020a001a062a040000803f"));
  });
}

}  // namespace
}  // namespace leat
