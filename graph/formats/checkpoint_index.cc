#include "graph/formats/checkpoint_index.h"

#include <limits>

#include "core/error.h"
#include "graph/formats/file.h"
#include "graph/formats/proto/tensor_bundle.pb.h"
#include "graph/formats/table_reader.h"
#include "graph/formats/table_writer.h"
#include "graph/import/proto_codec.h"

namespace leat {
namespace {

const std::string header_key;        // sorts first
constexpr int most_shards = 99'999;  // the names of their files have five digits

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
    entry.slices.push_back(read_slice(slice));
    entry.slices.back().resolved(entry.shape);  // throws if it does not lie within
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
  for (const TensorSlice& slice : entry.slices) write_slice(slice, *proto.add_slices());
  return proto.SerializeAsString();
}

std::string encoded_header(int shards) {
  tensorflow::BundleHeaderProto header;
  header.set_num_shards(shards);
  header.mutable_version()->set_producer(1);
  return header.SerializeAsString();
}

}  // namespace

bool is_stored_type(int data_type) {
  return data_type > 0 && data_type < 256 && dtype_size(static_cast<DType>(data_type)) > 0;
}

CheckpointIndex CheckpointIndex::read(const std::string& path, const FileRoots& roots) {
  const std::string bytes = read_file(path, roots);
  CheckpointIndex out;
  bool has_header = false;
  const auto add = [&](std::string_view key, std::string_view value) {
    if (value.size() > INT32_MAX) fail(Code::data_loss, "an entry of ", value.size(), " bytes");
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
    if (!is_stored_type(proto.dtype())) return;
    try {
      out.entries.emplace(key, read_entry(proto));
    } catch (const Error& error) {
      fail(Code::data_loss, "the entry of '", key, "' is not valid: ", error.message());
    }
  };
  try {
    read_table(bytes, add);
    if (!has_header) fail(Code::data_loss, "it has no header, so it is not a checkpoint's index");
  } catch (const Error& error) {
    const bool is_lost = error.code() == Code::data_loss;
    fail(error.code(), path, is_lost ? " is torn or changed: " : ": ", error.message());
  }
  return out;
}

void CheckpointIndex::write(const std::string& path, const FileRoots& roots) const {
  TableWriter table(path, roots);
  table.add(header_key, encoded_header(shards));
  for (const auto& [key, entry] : entries) table.add(key, encoded(entry));
  table.finish();
}

}  // namespace leat
