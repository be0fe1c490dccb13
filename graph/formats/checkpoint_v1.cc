#include "graph/formats/checkpoint_v1.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/error.h"
#include "graph/formats/proto/saved_tensor_slice.pb.h"
#include "graph/formats/table_writer.h"
#include "graph/import/proto_codec.h"

namespace leat {
namespace {

const std::string contents_key;  // sorts first

constexpr int written_version = 1;  // TensorFlow's number: there was no other

std::vector<std::string> matches(const std::string& pattern, const FileRoots& roots) {
  std::vector<std::string> out = matching_files(pattern, roots);
  std::sort(out.begin(), out.end());
  return out;
}

bool is_table(const std::string& path, const FileRoots& roots) {
  try {
    const FileReader file(path, roots);
    std::string end(std::min<uint64_t>(file.size(), 8), '\0');
    file.read(file.size() - end.size(), end.data(), end.size());
    return ends_as_table(end);
  } catch (const Error& error) {
    const bool is_none =
        error.code() == Code::not_found || error.code() == Code::failed_precondition;
    if (!is_none) throw;
    return false;
  }
}

tensorflow::SavedTensorSlices parse(const std::string& value) {
  tensorflow::SavedTensorSlices out;
  if (value.size() > std::numeric_limits<int>::max() || !out.ParseFromString(value))
    fail(Code::data_loss, "an entry does not parse");
  return out;
}

// TensorFlow cannot write the others, either.
bool has_format(DType dtype) {
  return dtype != DType::bf16 && dtype != DType::u32 && dtype != DType::u64 &&
         dtype_size(dtype) > 0;
}

void add_variable(const tensorflow::SavedSliceMeta& meta, int table, CheckpointIndex& index) {
  const Shape shape = read_shape(meta.shape());
  check(shape.is_complete() && !meta.name().empty(), "its shape is incomplete, or it has no name");
  shape.elements();  // throws if they are too many
  const auto dtype = static_cast<DType>(meta.type());
  CheckpointEntry& whole =
      index.entries
          .try_emplace(meta.name(), CheckpointEntry{.dtype = dtype, .shape = shape, .slices = {}})
          .first->second;
  check(whole.dtype == dtype && whole.shape == shape, "its parts have different dtypes or shapes");
  for (const auto& proto : meta.slice()) {
    const TensorSlice slice = read_slice(proto);
    const CheckpointEntry part{
        .dtype = dtype, .shape = slice.resolved(shape).shape(), .shard = table, .slices = {}};
    check(index.entries.emplace(slice_key(meta.name(), slice), part).second,
          "it has the same part twice");
    whole.slices.push_back(slice);
  }
  check(!whole.slices.empty(), "it has no parts");
}

}  // namespace

// ---- Reading ----

std::unique_ptr<V1Checkpoint> V1Checkpoint::open(const std::string& pattern,
                                                 const FileRoots& roots) {
  std::unique_ptr<V1Checkpoint> out(new V1Checkpoint);
  if (pattern.find_first_of("*?[") != pattern.npos) {
    for (const std::string& path : matches(pattern, roots)) out->add_table(path, roots);
  } else if (is_table(pattern, roots)) {
    out->add_table(pattern, roots);
  }
  return out->tables_.empty() ? nullptr : std::move(out);
}

void V1Checkpoint::add_table(const std::string& path, const FileRoots& roots) {
  try {
    const TableFile& table = *tables_.emplace_back(std::make_unique<TableFile>(path, roots));
    const std::optional<std::string> contents = table.find(contents_key);
    if (!contents) fail(Code::data_loss, "it has no list of its contents");
    const tensorflow::SavedTensorSlices parsed = parse(*contents);
    check(parsed.meta().versions().min_consumer() <= written_version, "its version is unknown");
    for (const auto& meta : parsed.meta().tensor()) {
      if (!is_stored_type(meta.type())) continue;
      try {
        add_variable(meta, static_cast<int>(tables_.size()) - 1, index_);
      } catch (const Error& error) {
        fail(Code::data_loss, "the entry of '", meta.name(), "' is not valid: ", error.message());
      }
    }
  } catch (const Error& error) {
    const bool is_lost = error.code() == Code::data_loss;
    fail(error.code(), path, is_lost ? " is torn or changed: " : ": ", error.message());
  }
}

Tensor V1Checkpoint::read(const std::string& key, const CheckpointEntry& entry) const {
  const auto value = tables_[static_cast<size_t>(entry.shard)]->find(key);
  if (!value) fail(Code::data_loss, "it is not there");
  const tensorflow::SavedTensorSlices parsed = parse(*value);
  try {
    return read_elements(parsed.data().data(), entry.dtype, entry.shape);
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument) throw;
    fail(Code::data_loss, error.message());
  }
}

// ---- Writing ----

struct V1CheckpointWriter::Contents {
  std::map<std::string, tensorflow::SavedSliceMeta> variables;
  std::map<std::string, std::string> entries;  // by key
};

V1CheckpointWriter::V1CheckpointWriter(const std::string& path, const FileRoots& roots)
    : path_(local_path(path)), roots_(roots), contents_(std::make_unique<Contents>()) {}

V1CheckpointWriter::~V1CheckpointWriter() = default;

void V1CheckpointWriter::add(const std::string& name, const Shape& full, const TensorSlice& slice,
                             const Tensor& tensor) {
  check(!name.empty(), "a variable of a checkpoint needs a name");
  check(slice.resolved(full).shape() == tensor.shape(), "the slice '", slice.to_string(), "' of '",
        name, "', ", full, ", is saved with the shape ", tensor.shape());
  if (!has_format(tensor.dtype())) {
    fail(Code::unimplemented, "checkpoints of format V1 hold no ", tensor.dtype(), " ('", name,
         "'): save it in format V2");
  }
  const auto check_size = [&](uint64_t bytes) {
    if (bytes <= std::numeric_limits<int>::max()) return;
    fail(Code::resource_exhausted, "'", name, "' would have ", bytes,
         " bytes or more; a tensor in a checkpoint of format V1 has at most ",
         std::numeric_limits<int>::max(), ": save it in format V2");
  };
  check_size(static_cast<uint64_t>(tensor.elements()));
  const std::string key = slice_key(name, slice);
  check(!contents_->entries.contains(key), readable_key(key), " is saved twice");
  const auto known = contents_->variables.find(name);
  check(known == contents_->variables.end() ||
            (read_shape(known->second.shape()) == full &&
             static_cast<DType>(known->second.type()) == tensor.dtype()),
        "'", name, "' is saved with different shapes or dtypes");

  tensorflow::SavedTensorSlices entry;
  entry.mutable_data()->set_name(name);
  write_slice(slice, *entry.mutable_data()->mutable_slice());
  write_elements(tensor, *entry.mutable_data()->mutable_data());
  check_size(entry.ByteSizeLong());
  contents_->entries.emplace(key, entry.SerializeAsString());
  tensorflow::SavedSliceMeta& meta = contents_->variables[name];
  if (known == contents_->variables.end()) {
    meta.set_name(name);
    write_shape(full, *meta.mutable_shape());
    meta.set_type(static_cast<tensorflow::DataType>(tensor.dtype()));
  }
  write_slice(slice, *meta.add_slice());
}

void V1CheckpointWriter::finish() {
  tensorflow::SavedTensorSlices contents;
  for (const auto& [name, meta] : contents_->variables)
    *contents.mutable_meta()->add_tensor() = meta;
  contents.mutable_meta()->mutable_versions()->set_producer(written_version);

  make_directories(directory_of(path_), roots_);
  remove_stale_temporaries(path_, roots_);
  TemporaryFile temporary(path_, roots_);
  TableWriter table(temporary.path(), roots_);
  table.add(contents_key, contents.SerializeAsString());
  for (const auto& [key, value] : contents_->entries) table.add(key, value);
  table.finish();
  temporary.rename_to_target();
  sync_directory_of(path_, roots_);
}

}  // namespace leat
