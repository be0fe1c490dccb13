#include "graph/formats/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "graph/formats/checkpoint_state.h"
#include "tests/support/expect_error.h"
#include "tests/support/hex.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::HasSubstr;

const Tensor w = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
const Tensor names = Tensor::of<std::string>({2}, {"ab", ""});

void write_example(const std::string& prefix) {
  CheckpointWriter writer(prefix);
  writer.add("w", w);
  writer.add("names", names);
  writer.add("step", Tensor::scalar<int64_t>(7));
  writer.add("empty", Tensor(f32, {0, 3}));
  writer.finish();
}

std::vector<std::string> files(const std::string& directory) {
  std::vector<std::string> out;
  for (const auto& file : std::filesystem::directory_iterator(directory))
    out.push_back(file.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

void change_byte(const std::string& path, size_t at) {
  std::string bytes = read_file(path);
  bytes[at] ^= 1;
  replace_file(path, bytes);
}

TEST(Checkpoint, ReadsWhatItWrote) {
  const ScratchDirectory directory;
  write_example(directory / "sub/m-1");
  EXPECT_EQ(files(directory / "sub"),
            (std::vector<std::string>{"m-1.data-00000-of-00001", "m-1.index"}));
  const CheckpointReader reader(directory / "sub/m-1");
  EXPECT_EQ(reader.read("w").to_string(), w.to_string());
  EXPECT_EQ(reader.read("names").to_string(), names.to_string());
  EXPECT_EQ(reader.read("step").item<int64_t>(), 7);
  EXPECT_EQ(reader.read("empty").shape(), (Shape{0, 3}));
  ASSERT_EQ(reader.variables().size(), 4u);
  EXPECT_EQ(reader.variables()[3].name, "w");
  expect_error_with(Code::not_found, "Key v not found in checkpoint", [&] { reader.read("v"); });
  reader.verify();
}

// The bytes that TensorFlow writes for ["ab", ""], and the checksum in the index.
TEST(Checkpoint, StringsEqualTensorFlow) {
  const ScratchDirectory directory;
  CheckpointWriter writer(directory / "m");
  writer.add("names", names);
  writer.finish();
  EXPECT_EQ(read_file(directory / "m.data-00000-of-00001"),
            (std::string{"\x02\x00\x78\x27\x0b\x34\x61\x62", 8}));
  EXPECT_EQ(CheckpointReader(directory / "m").entry("names").crc, 0x4db08891u);
}

// The index of v0 to v11, two numbers each, as LevelDB writes it with Snappy.
TEST(Checkpoint, ReadsCompressedIndexes) {
  const ScratchDirectory directory;
  replace_file(directory / "m.index",
               bytes_of("8c028000000608011a02080100020f7630080112041202080228083523183164"
                        "0101113111130420080d150802011115280420101915192a00180d150c010111"
                        "32153f0020191500331515002819150034151500301915003515150038191500"
                        "3615150040191500371515004819150038151500501915003915153c58280835"
                        "23183164000000000100000001d12d8a75000000000100000000c0f2a1b00001"
                        "0377008c01000000000100000000064438ef9101089e010f0000000000000000"
                        "000000000000000000000000000000000000000000000000000057fb808b2475"
                        "47db"));
  std::string data;
  for (int i = 0; i < 12; ++i) data += bytes_of("0000e0400000e040");
  replace_file(directory / "m.data-00000-of-00001", data);
  const CheckpointReader reader(directory / "m");
  ASSERT_EQ(reader.variables().size(), 12u);
  for (const CheckpointReader::Variable& variable : reader.variables())
    EXPECT_EQ(reader.read(variable.name).to_string(), Tensor::of<float>({2}, {7, 7}).to_string());
  EXPECT_EQ(reader.entry("v11").offset, 24);
}

TEST(Checkpoint, LeavesNothingWithoutFinish) {
  const ScratchDirectory directory;
  {
    CheckpointWriter writer(directory / "m");
    writer.add("w", w);
    expect_error_with(Code::invalid_argument, "saved twice", [&] { writer.add("w", w); });
    const auto add_part = [&] {
      writer.add_slice("p", {4}, TensorSlice::parse("1,2"), Tensor::of<float>({2}, {1, 2}));
    };
    add_part();
    expect_error_with(Code::invalid_argument, "a part of 'p' is saved twice", add_part);
  }
  EXPECT_TRUE(files(directory.path()).empty());
}

TEST(Checkpoint, SavesPartsAndReadsOtherParts) {
  const ScratchDirectory directory;
  CheckpointWriter writer(directory / "m");
  writer.add_slice("w", {2, 3}, TensorSlice::parse("0,1:-"), Tensor::of<float>({1, 3}, {1, 2, 3}));
  writer.add_slice("w", {2, 3}, TensorSlice::parse("1,1:-"), Tensor::of<float>({1, 3}, {4, 5, 6}));
  writer.add_slice("v", {2}, TensorSlice::parse("0,2"), Tensor::of<float>({2}, {1, 2}));
  writer.add_slice("u", {2}, TensorSlice::parse("0,1"), Tensor::of<float>({1}, {1}));
  writer.finish();
  const CheckpointReader reader(directory / "m");
  EXPECT_EQ(reader.read("w").to_string(), w.to_string());
  EXPECT_EQ(reader.read_slice("w", {2, 3}, TensorSlice::parse("-:1,2")).to_string(),
            Tensor::of<float>({2, 2}, {2, 3, 5, 6}).to_string());
  EXPECT_TRUE(reader.entry("v").slices.empty()) << "a part that is all of it is no part";
  EXPECT_EQ(reader.read_slice("v", {2}, TensorSlice::parse("1,1")).item<float>(), 2);
  expect_error_with(Code::invalid_argument, "holds only 1 of the 2 elements",
                    [&] { reader.read("u"); });
  expect_error_with(Code::invalid_argument, "has shape [2,3]", [&] {
    reader.read_slice("w", {3, 2}, TensorSlice::parse("-:-"));
  });
  EXPECT_EQ(reader.variables().size(), 3u);
}

TEST(Checkpoint, NamesATornFileAndSuggestsTheOneBefore) {
  const ScratchDirectory directory;
  write_example(directory / "m-1");
  write_example(directory / "m-2");
  const std::string data = directory / "m-2.data-00000-of-00001";
  std::filesystem::resize_file(data, 10);
  const CheckpointReader reader(directory / "m-2");
  expect_error_with(Code::data_loss, data, [&] { reader.verify(); });
  expect_error_with(Code::data_loss,
                    "the newest complete checkpoint beside it is '" + directory.path() + "/m-1'",
                    [&] { reader.verify(); });
  std::filesystem::remove(data);
  expect_error_with(Code::data_loss, data, [&] { CheckpointReader(directory / "m-2").read("w"); });
  // m-2 has lost its data, so there is no checkpoint to suggest for m-1.
  change_byte(directory / "m-1.index", 3);
  expect_error_with(Code::data_loss, "there is no other complete checkpoint",
                    [&] { CheckpointReader(directory / "m-1"); });
}

TEST(Checkpoint, ReportsDirectoriesAndLinkLoopsAsTorn) {
  const ScratchDirectory directory;
  write_example(directory / "m-1");
  for (const std::string file : {"m-2.index", "m-2.data-00000-of-00001"}) {
    for (const bool is_link : {false, true}) {
      write_example(directory / "m-2");
      std::filesystem::remove(directory / file);
      if (is_link) {
        std::filesystem::create_symlink(file, directory / file);  // to itself
      } else {
        std::filesystem::create_directory(directory / file);
      }
      for (const std::string& named : {directory / file, directory / "m-1'"})
        expect_error_with(Code::data_loss, named,
                          [&] { CheckpointReader(directory / "m-2").verify(); });
      std::filesystem::remove(directory / file);
    }
  }
}

constexpr size_t footer_bytes = 48;  // in a LevelDB table

// The position of a table's empty metaindex block: the first handle of the footer.
std::pair<size_t, size_t> unread_block(const std::string& table) {
  const char* at = table.data() + table.size() - footer_bytes;
  const auto varint = [&] {
    size_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at++);
      value |= size_t{byte & 127u} << shift;
      if (byte < 128) return value;
    }
  };
  const size_t begin = varint();
  return {begin, begin + varint() + 5};  // behind a block: its compression and checksum
}

TEST(Checkpoint, DetectsEveryChangedByte) {
  const ScratchDirectory directory;
  write_example(directory / "m");
  const std::string data = directory / "m.data-00000-of-00001";
  for (size_t at = 0; at < read_file(data).size(); ++at) {
    change_byte(data, at);
    expect_error_with(Code::data_loss, data, [&] { CheckpointReader(directory / "m").verify(); });
    change_byte(data, at);
  }
  const std::string index = directory / "m.index";
  for (size_t at = 0; at < read_file(index).size(); ++at) {
    const std::string whole = read_file(index);
    change_byte(index, at);
    try {
      CheckpointReader(directory / "m").verify();
      // Unused bytes may change: the footer's padding, and the table's empty index of indices.
      const auto [begin, end] = unread_block(whole);
      EXPECT_TRUE(at + footer_bytes >= whole.size() || (at >= begin && at < end)) << at;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::data_loss) << at << ": " << error.message();
    }
    replace_file(index, whole);
  }
  for (size_t length = 0; length < read_file(index).size(); ++length) {
    const std::string whole = read_file(index);
    replace_file(index, whole.substr(0, length));
    expect_error_with(Code::data_loss, index, [&] { CheckpointReader(directory / "m").verify(); });
    replace_file(index, whole);
  }
}

// A checkpoint with 16 bytes of data, and indexes with false claims about them.
void expect_refused(const CheckpointIndex& index, const std::string& text) {
  const ScratchDirectory directory;
  const std::string prefix = directory / "m";
  replace_file(checkpoint_data_path(prefix, 0, 1), std::string(16, 'x'));
  index.write(checkpoint_index_path(prefix));
  expect_error_with(Code::data_loss, text, [&] {
    const CheckpointReader reader(prefix);
    for (const CheckpointReader::Variable& variable : reader.variables())
      reader.read(variable.name);
  });
  complete_checkpoint_beside(directory / "other");
}

TEST(Checkpoint, ChecksTheIndexAgainstTheFiles) {
  const auto one = [](const Shape& shape, int64_t offset, int64_t size, DType dtype = f32) {
    CheckpointIndex out;
    out.entries["w"] = {
        .dtype = dtype, .shape = shape, .offset = offset, .size = size, .slices = {}};
    return out;
  };
  constexpr int64_t most = INT64_MAX, tera = int64_t{1} << 40;
  expect_refused(one({2}, most, 8), "m.index is torn or changed: the entry of 'w' is not valid");
  expect_refused(one({tera, tera, tera}, 0, 8), "more than 2^63 elements");
  expect_refused(one({tera}, 0, 4 * tera),
                 "it ends at byte 4398046511104, but the file ends at 16");
  expect_refused(one({2}, 0, tera, DType::string), "it ends at byte 1099511627776");
  expect_refused(one({tera}, 0, 16, DType::string), "it has fewer bytes than strings");
  expect_refused(one({int64_t{1} << 62}, 0, 0), "it has 0 bytes for float[4611686018427387904]");
  CheckpointIndex index = one({2}, 0, 8);
  index.shards = 1 << 30;
  expect_refused(index, "m.index is torn or changed: its header does not parse");
}

TEST(Checkpoint, RejectsPartsThatContradictTheirVariable) {
  const Shape full{4};
  const auto part = [](const Shape& shape, DType dtype = f32) {
    return CheckpointEntry{.dtype = dtype, .shape = shape, .size = 8, .slices = {}};
  };
  const auto index = [&](std::vector<std::pair<std::string, CheckpointEntry>> parts) {
    CheckpointIndex out;
    CheckpointEntry& whole = out.entries["w"] = {.dtype = f32, .shape = full, .slices = {}};
    for (auto& [text, entry] : parts) {
      whole.slices.push_back(TensorSlice::parse(text));
      out.entries[slice_key("w", whole.slices.back())] = entry;
    }
    return out;
  };
  expect_refused(index({{"0,2", part({1})}, {"2,2", part({2})}}), "a wrong dtype or shape");
  expect_refused(index({{"0,2", part({2}, DType::i64)}, {"2,2", part({2})}}),
                 "a wrong dtype or shape");
  expect_refused(index({{"0,2", part({2})}, {"1,2", part({2})}}),
                 "the slice '1,2' of 'w' overlaps another one");
  CheckpointIndex outside = index({{"0,2", part({2})}});
  outside.entries["w"].slices[0].extents[0].start = -1;
  expect_refused(outside, "slice '-1,2' does not lie within [4]");
}

TEST(Checkpoint, MergesShardsOfSeveralTasks) {
  const ScratchDirectory directory;
  const std::string a = directory / "m_temp/part-00000-of-00002",
                    b = directory / "m_temp/part-00001-of-00002";
  for (const auto& [prefix, row, slice] : {std::tuple(a, 0, "0,1:-"), std::tuple(b, 1, "1,1:-")}) {
    CheckpointWriter writer(prefix);
    writer.add("only" + std::to_string(row), Tensor::scalar(row));
    const float x = static_cast<float>(3 * row);
    writer.add_slice("w", {2, 3}, TensorSlice::parse(slice),
                     Tensor::of<float>({1, 3}, {x + 1, x + 2, x + 3}));
    writer.finish();
  }
  merge_checkpoints({a, b}, directory / "m", true);
  EXPECT_EQ(
      files(directory.path()),
      (std::vector<std::string>{"m.data-00000-of-00002", "m.data-00001-of-00002", "m.index"}));
  const CheckpointReader reader(directory / "m");
  EXPECT_EQ(reader.read("w").to_string(), w.to_string());
  EXPECT_EQ(reader.read("only0").item<int>(), 0);
  EXPECT_EQ(reader.read("only1").item<int>(), 1);
  remove_checkpoint(directory / "m");
  EXPECT_TRUE(files(directory.path()).empty());
}

TEST(Checkpoint, MergeMovesNothingIfAShardIsMissing) {
  const ScratchDirectory directory;
  const std::string a = directory / "t/part-00000-of-00002",
                    b = directory / "t/part-00001-of-00002";
  CheckpointWriter writer(a);
  writer.add("w", w);
  writer.finish();
  expect_error_with(Code::not_found, "part 2 of 2", [&] {
    merge_checkpoints({a, b}, directory / "m", true);
  });
  EXPECT_EQ(CheckpointReader(a).read("w").to_string(), w.to_string());
}

TEST(Checkpoint, MergeMaySkipMissingCheckpoints) {
  const ScratchDirectory directory;
  write_example(directory / "t/part");
  const std::string missing = directory / "t/missing";
  expect_error_with(Code::invalid_argument, "no checkpoints to merge",
                    [&] { merge_checkpoints({missing}, directory / "m", true, true); });
  merge_checkpoints({missing, directory / "t/part"}, directory / "m", true, true);
  EXPECT_EQ(files(directory.path()),
            (std::vector<std::string>{"m.data-00000-of-00001", "m.index"}));
  CheckpointReader(directory / "m").verify();
}

TEST(Checkpoint, MissingCheckpointIsNotFound) {
  const ScratchDirectory directory;
  const auto expect = [&](const std::string& name, const std::string& text) {
    expect_error_with(Code::not_found, text, [&] { CheckpointReader(directory / name); });
  };
  expect("m", "Failed to find any matching files for");
  replace_file(directory / "m", "some text");
  expect("m", "m.index");
  expect("m-\?\?\?\?\?-of-00002", "Failed to find any matching files for");
}

TEST(Checkpoint, ExplainsOtherFileNames) {
  const ScratchDirectory directory;
  const auto expect = [](const std::string& name, const std::string& text) {
    expect_error_with(Code::not_found, text, [&] { CheckpointReader reader(name); });
  };
  expect(directory.path(), "it is a directory without a complete checkpoint");
  write_example(directory / "m-1");
  expect(directory.path(), "its newest complete checkpoint is '" + directory.path() + "/m-1'");
  expect(directory / "m-1.index", "the checkpoint's prefix '" + directory.path() + "/m-1'");
  expect(directory / "m-1.data-00000-of-00001", "prefix '" + directory.path() + "/m-1'");
}

TEST(Checkpoint, RejectsNamesWithAZeroByte) {
  const ScratchDirectory directory;
  expect_error_with(Code::invalid_argument, "byte of 0",
                    [&] { write_example(directory / std::string("a\0b", 3)); });
  EXPECT_TRUE(files(directory.path()).empty());
}

TEST(CheckpointState, EqualsTensorFlowsText) {
  const ScratchDirectory directory;
  EXPECT_EQ(CheckpointState::read(directory.path()).model_checkpoint_path, "");
  CheckpointState state;
  state.all_model_checkpoint_paths = {directory / "m-1", "/other/m \"2\""};
  state.model_checkpoint_path = directory / "m-1";
  state.write(directory.path());
  EXPECT_EQ(read_file(directory / "checkpoint"),
            "model_checkpoint_path: \"m-1\"\n"
            "all_model_checkpoint_paths: \"m-1\"\n"
            "all_model_checkpoint_paths: \"/other/m \\\"2\\\"\"\n");
  const CheckpointState read = CheckpointState::read(directory.path());
  EXPECT_EQ(read.model_checkpoint_path, directory / "m-1");
  EXPECT_EQ(read.all_model_checkpoint_paths, state.all_model_checkpoint_paths);
}

TEST(CheckpointState, MayBeWrittenByHand) {
  const ScratchDirectory directory;
  replace_file(directory / "checkpoint",
               "# rolled back\nmodel_checkpoint_path:'m-\\303\\251' last_preserved_timestamp: 1.5");
  const CheckpointState state = CheckpointState::read(directory.path());
  EXPECT_EQ(state.model_checkpoint_path, directory / "m-é");
  EXPECT_TRUE(state.all_model_checkpoint_paths.empty());
}

TEST(CheckpointState, NamesATornFileAndSuggestsTheNewestCheckpoint) {
  const ScratchDirectory directory;
  write_example(directory / "m-1");
  for (const std::string text : {"", "model_checkpoint_path: \"m-", "some text"}) {
    replace_file(directory / "checkpoint", text);
    for (const std::string& named : {directory / "checkpoint is torn", directory / "m-1'"})
      expect_error_with(Code::data_loss, named, [&] { CheckpointState::read(directory.path()); });
  }
}

}  // namespace
}  // namespace leat
