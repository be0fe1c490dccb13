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

// Errors pass through LevelDB as text: the first is kept.
class TableOutput final : public leveldb::WritableFile {
 public:
  TableOutput(const std::string& path, const FileRoots& roots)
      : file_(path, FileWriter::Mode::create, roots) {}

  leveldb::Status Append(const leveldb::Slice& data) override {
    return keep_error([&] { file_.append(data.data(), data.size()); });
  }
  leveldb::Status Flush() override {
    return keep_error([&] { file_.flush(); });
  }
  leveldb::Status Sync() override {
    return keep_error([&] { file_.sync(); });
  }
  leveldb::Status Close() override {
    return keep_error([&] { file_.close(); });
  }

  void check_written(const leveldb::Status& status) const {
    if (!error_.is_ok()) throw Error(error_);
    if (!status.ok()) fail(Code::unknown, file_.path(), ": writing failed: ", status.ToString());
  }

 private:
  template <class Action>
  leveldb::Status keep_error(Action action) {
    try {
      action();
    } catch (const Error& error) {
      if (error_.is_ok()) error_ = error.status();
      return leveldb::Status::IOError(error.message());
    }
    return leveldb::Status::OK();
  }

  FileWriter file_;
  Status error_;
};

}  // namespace

struct TableWriter::State {
  State(const std::string& path, const FileRoots& roots)
      : file(path, roots), builder(table_options(), &file) {}
  ~State() {
    if (!is_finished) builder.Abandon();
  }

  TableOutput file;
  leveldb::TableBuilder builder;
  bool is_finished = false;
};

TableWriter::TableWriter(const std::string& path, const FileRoots& roots)
    : state_(std::make_unique<State>(path, roots)) {}

TableWriter::~TableWriter() = default;

void TableWriter::add(std::string_view key, std::string_view value) {
  state_->builder.Add({key.data(), key.size()}, {value.data(), value.size()});
  state_->file.check_written(state_->builder.status());
}

void TableWriter::finish() {
  state_->is_finished = true;
  TableOutput& file = state_->file;
  file.check_written(state_->builder.Finish());
  file.check_written(file.Sync());
  file.check_written(file.Close());
}

}  // namespace leat
