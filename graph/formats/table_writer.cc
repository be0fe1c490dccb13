#include "graph/formats/table_writer.h"

#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>

#include "core/error.h"

namespace leat {
namespace {

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

std::unique_ptr<leveldb::WritableFile> new_file(const std::string& path) {
  leveldb::WritableFile* opened = nullptr;
  check_written(leveldb::Env::Default()->NewWritableFile(path, &opened), path);
  return std::unique_ptr<leveldb::WritableFile>(opened);
}

}  // namespace

struct TableWriter::State {
  explicit State(const std::string& path)
      : file(new_file(path)), builder(table_options(), file.get()) {}
  ~State() {
    if (!is_finished) builder.Abandon();
  }

  std::unique_ptr<leveldb::WritableFile> file;
  leveldb::TableBuilder builder;
  bool is_finished = false;
};

TableWriter::TableWriter(const std::string& path)
    : path_(path), state_(std::make_unique<State>(path)) {}

TableWriter::~TableWriter() = default;

void TableWriter::add(std::string_view key, std::string_view value) {
  state_->builder.Add({key.data(), key.size()}, {value.data(), value.size()});
  check_written(state_->builder.status(), path_);
}

void TableWriter::finish() {
  state_->is_finished = true;
  check_written(state_->builder.Finish(), path_);
  check_written(state_->file->Sync(), path_);
  check_written(state_->file->Close(), path_);
}

}  // namespace leat
