// Checkpoints whose index and data come from the input: read as a whole and in parts, merged,
// written again; the index also in format V1. The first byte decides whether to correct the
// checksums of the index first; without that few changes pass them. Four more bytes are the lengths
// of the index and of the first data file.
#include <cstring>
#include <filesystem>

#include "core/crc32c.h"
#include "graph/formats/checkpoint.h"
#include "graph/formats/checkpoint_state.h"
#include "graph/formats/checkpoint_v1.h"
#include "tests/fuzz/target.h"
#include "tests/support/scratch_directory.h"

namespace leat::fuzz {
namespace {

constexpr size_t head_bytes = 5, footer_bytes = 48, trailer_bytes = 5;

std::string head(bool mends, size_t index, size_t data) {
  std::string out(1, mends ? '\1' : '\0');
  for (const size_t length : {index, data}) {
    out += static_cast<char>(length);
    out += static_cast<char>(length >> 8);
  }
  return out;
}

std::string input_of(const std::string& prefix, bool mends) {
  const int shards = CheckpointIndex::read(checkpoint_index_path(prefix)).shards;
  const std::string index = read_file(checkpoint_index_path(prefix));
  const std::string data = read_file(checkpoint_data_path(prefix, 0, shards));
  const std::string more = shards > 1 ? read_file(checkpoint_data_path(prefix, 1, shards)) : "";
  return head(mends, index.size(), data.size()) + index + data + more;
}

void write_part(const std::string& prefix, int row) {
  CheckpointWriter writer(prefix);
  const TensorSlice slice = TensorSlice::parse(row == 0 ? "0,1:-" : "1,1:-");
  writer.add_slice("w", {2, 3}, slice, Tensor::of<float>({1, 3}, {1, 2, 3}));
  writer.add("only" + std::to_string(row), Tensor::of<std::string>({2}, {"a", "bcd"}));
  writer.finish();
}

// Removes a number from the front.
uint64_t varint(std::string_view& bytes) {
  uint64_t out = 0;
  for (int shift = 0; shift <= 63 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    out |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) break;
  }
  return out;
}

// Corrects the checksums of the key block, to which the footer leads, and of the one data block
// that small tables have.
void mend_checksums(std::string& index) {
  if (index.size() < footer_bytes) return;
  const uint64_t end = index.size() - footer_bytes;
  const auto mend = [&](uint64_t offset, uint64_t size) {
    if (offset > end || size > end - offset || trailer_bytes > end - offset - size) return;
    const uint32_t crc = masked_crc(crc32c(index.data() + offset, size + 1));
    std::memcpy(index.data() + offset + size + 1, &crc, sizeof crc);
  };
  std::string_view footer = std::string_view(index).substr(end);
  const uint64_t metadata = varint(footer);
  varint(footer);
  const uint64_t keys = varint(footer), size = varint(footer);
  if (metadata >= trailer_bytes) mend(0, metadata - trailer_bytes);
  mend(keys, size);
}

// Writes what was read, and reads it again with the same result.
void check_copy(const CheckpointReader& reader, const std::string& prefix) {
  CheckpointWriter writer(prefix);
  std::vector<std::pair<std::string, std::string>> written;
  for (const CheckpointReader::Variable& variable : reader.variables()) {
    expect_no_mistake_of_ours([&] {
      const Tensor tensor = reader.read(variable.name);
      check_internal(tensor.dtype() == variable.dtype && tensor.shape() == variable.shape,
                     "another dtype or shape");
      writer.add(variable.name, tensor);
      written.emplace_back(variable.name, tensor.to_string());
    });
    expect_no_mistake_of_ours([&] {
      const int rank = variable.shape.rank();
      TensorSlice half = TensorSlice::whole(rank);
      if (rank > 0) half.extents[0] = {variable.shape[0] / 2, variable.shape[0] / 2};
      reader.read_slice(variable.name, variable.shape, half);
    });
  }
  writer.finish();
  const CheckpointReader again(prefix);
  for (const auto& [name, text] : written)
    check_internal(again.read(name).to_string() == text, "another tensor");
}

}  // namespace

std::vector<std::string> seeds() {
  const ScratchDirectory directory;
  CheckpointWriter writer(directory / "m");
  writer.add("w", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  writer.add("names", Tensor::of<std::string>({2}, {"ab", ""}));
  writer.add("step", Tensor::scalar<int64_t>(7));
  writer.add("empty", Tensor(f32, {0, 3}));
  writer.finish();
  const std::string a = directory / "part-00000-of-00002", b = directory / "part-00001-of-00002";
  write_part(a, 0);
  write_part(b, 1);
  const std::string part = input_of(a, true);
  V1CheckpointWriter old(directory / "old");
  old.add("w", {2, 2}, TensorSlice::parse("0,1:-"), Tensor::of<float>({1, 2}, {1, 2}));
  old.add("w", {2, 2}, TensorSlice::parse("1,1:-"), Tensor::of<float>({1, 2}, {3, 4}));
  old.add("names", {2}, TensorSlice::whole(1), Tensor::of<std::string>({2}, {"ab", ""}));
  old.finish();
  const std::string table = read_file(directory / "old");
  merge_checkpoints({a, b}, directory / "merged", false);
  return {
      input_of(directory / "m", false),
      input_of(directory / "m", true),
      part,
      input_of(directory / "merged", true),
      head(true, table.size(), 0) + table,
      head(false, 0, 0) + "model_checkpoint_path: \"m\"\nall_model_checkpoint_paths: \"a\\\"b\"\n"};
}

}  // namespace leat::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leat;
  if (size < fuzz::head_bytes || size > 65536) return 0;
  const ScratchDirectory directory;
  std::string_view rest = fuzz::text_of(data + fuzz::head_bytes, size - fuzz::head_bytes);
  const auto take = [&](size_t length) {
    const std::string out(rest.substr(0, length));
    rest.remove_prefix(out.size());
    return out;
  };
  const auto write = [&](const std::string& path, std::string_view bytes) {
    FileWriter writer(path);
    writer.append(bytes);
    writer.flush();
  };
  write(directory / "checkpoint", rest);
  fuzz::expect_no_mistake_of_ours([&] { CheckpointState::read(directory.path()); });

  const std::string prefix = directory / "m";
  std::string index = take(data[1] | data[2] << 8);
  if (data[0] % 2 == 1) fuzz::mend_checksums(index);
  write(checkpoint_index_path(prefix), index);
  const std::string first = take(data[3] | data[4] << 8);
  write(checkpoint_data_path(prefix, 0, rest.empty() ? 1 : 2), first);
  if (!rest.empty()) write(checkpoint_data_path(prefix, 1, 2), rest);
  fuzz::expect_no_mistake_of_ours([&] {
    const CheckpointReader reader(prefix);
    fuzz::check_copy(reader, directory / "copy");
    reader.verify();
  });
  write(directory / "old", index);
  fuzz::expect_no_mistake_of_ours([&] {
    const CheckpointReader reader(directory / "old");
    fuzz::check_copy(reader, directory / "copy");
    reader.verify();
  });
  fuzz::expect_no_mistake_of_ours([&] { complete_checkpoint_beside(directory / "other"); });
  fuzz::expect_no_mistake_of_ours([&] {
    merge_checkpoints({prefix}, directory / "merged", false);
    CheckpointReader(directory / "merged").verify();
  });
  fuzz::expect_no_mistake_of_ours([&] { remove_checkpoint(prefix); });
  return 0;
}
