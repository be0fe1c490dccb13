// LevelDB, which writes the table, is seen here only.
#include "graph/formats/checkpoint_index.h"

#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include <limits>
#include <memory>

#include "core/error.h"
#include "graph/formats/file.h"
#include "graph/formats/proto/tensor_bundle.pb.h"
#include "graph/formats/table_reader.h"
#include "graph/proto_codec.h"

namespace leat {
namespace {

const std::string header_key;        // sorts first
constexpr int most_shards = 99'999;  // the names of their files have five digits

leveldb::Options table_options() {
  leveldb::Options options;
  options.compression = leveldb::kNoCompression;
  options.block_size = 262144;
  options.block_restart_interval = 16;
  return options;
}

void check_written(const leveldb::Status& status, const std::string& path) {
  if (status.ok()) return;
  const std::string text = status.ToString();
  const bool is_full = text.find("No space") != text.npos;
  fail(is_full ? Code::resource_exhausted : Code::unknown, path, ": writing failed: ", text);
}

bool is_known_type(int data_type) {
  return data_type > 0 && data_type < 256 && dtype_size(static_cast<DType>(data_type)) > 0;
}

CheckpointEntry read_entry(const tensorflow::BundleEntryProto& proto) {
  CheckpointEntry entry{.dtype = static_cast<DType>(proto.dtype()),
                        .shape = read_shape(proto.shape()),
                        .shard = proto.shard_id(),
                        .offset = proto.offset(),
                        .size = proto.size(),
                        .crc = proto.crc32c(),
                        .slices = {}};
  check(entry.shape.is_complete() && entry.shard >= 0 && entry.offset >= 0 && entry.size >= 0,
        "a negative extent, shard, offset or size");
  check(entry.size <= std::numeric_limits<int64_t>::max() - entry.offset, entry.size, " bytes at ",
        entry.offset);
  entry.shape.elements();  // throws if they are too many
  for (const auto& slice : proto.slices()) {
    TensorSlice& out = entry.slices.emplace_back();
    for (const auto& extent : slice.extent()) {
      const bool is_whole = extent.has_length_case() != extent.kLength;
      check(is_whole || extent.length() >= 0, "a part of negative length");
      out.extents.push_back({extent.start(), is_whole ? -1 : extent.length()});
    }
    out.resolved(entry.shape);  // throws if it does not lie within
  }
  return entry;
}

std::string encoded(const CheckpointEntry& entry) {
  tensorflow::BundleEntryProto proto;
  proto.set_dtype(static_cast<tensorflow::DataType>(entry.dtype));
  write_shape(entry.shape, *proto.mutable_shape());
  proto.set_shard_id(entry.shard);
  proto.set_offset(entry.offset);
  proto.set_size(entry.size);
  proto.set_crc32c(entry.crc);
  for (const TensorSlice& slice : entry.slices) {
    auto* out = proto.add_slices();
    for (const TensorSlice::Extent& extent : slice.extents) {
      auto* range = out->add_extent();
      if (extent.length < 0) continue;
      range->set_start(extent.start);
      range->set_length(extent.length);
    }
  }
  return proto.SerializeAsString();
}

std::string encoded_header(int shards) {
  tensorflow::BundleHeaderProto header;
  header.set_num_shards(shards);
  header.mutable_version()->set_producer(1);
  return header.SerializeAsString();
}

}  // namespace

CheckpointIndex CheckpointIndex::read(const std::string& path) {
  const std::string bytes = read_file(path);
  CheckpointIndex out;
  bool has_header = false;
  const auto add = [&](std::string_view key, std::string_view value) {
    if (key.empty()) {
      tensorflow::BundleHeaderProto header;
      if (!header.ParseFromArray(value.data(), static_cast<int>(value.size())) ||
          header.num_shards() < 1 || header.num_shards() > most_shards)
        fail(Code::data_loss, "its header does not parse");
      check(header.endianness() == header.LITTLE, "it was written by a big-endian machine");
      out.shards = header.num_shards();
      has_header = true;
      return;
    }
    tensorflow::BundleEntryProto proto;
    if (!proto.ParseFromArray(value.data(), static_cast<int>(value.size())))
      fail(Code::data_loss, "the entry of '", key, "' does not parse");
    if (!is_known_type(proto.dtype())) return;
    try {
      out.entries.emplace(key, read_entry(proto));
    } catch (const Error& error) {
      fail(Code::data_loss, "the entry of '", key, "' is not valid: ", error.message());
    }
  };
  try {
    read_table(bytes, add);
    if (!has_header) fail(Code::data_loss, "it has no header, so it is no checkpoint's index");
  } catch (const Error& error) {
    const bool is_lost = error.code() == Code::data_loss;
    fail(error.code(), path, is_lost ? " is torn or changed: " : ": ", error.message());
  }
  return out;
}

void CheckpointIndex::write(const std::string& path) const {
  leveldb::WritableFile* opened = nullptr;
  check_written(leveldb::Env::Default()->NewWritableFile(path, &opened), path);
  const std::unique_ptr<leveldb::WritableFile> file(opened);
  leveldb::TableBuilder builder(table_options(), file.get());
  builder.Add(header_key, encoded_header(shards));
  for (const auto& [key, entry] : entries) builder.Add(key, encoded(entry));
  check_written(builder.Finish(), path);
  check_written(file->Sync(), path);
  check_written(file->Close(), path);
}

}  // namespace leat
