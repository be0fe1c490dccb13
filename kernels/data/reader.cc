#include "kernels/data/reader.h"

#include "core/execution/blocking_work.h"

namespace leat {

Reader::Options Reader::Options::of(const NodeView& node) {
  Options out{.kind = std::string(node.op), .what = {}, .open = {}};
  if (out.kind.ends_with("V2")) out.kind.resize(out.kind.size() - 2);
  if (node.has("skip_header_lines")) {
    const auto skipped = node.attr<int64_t>("skip_header_lines");
    check(skipped >= 0, "skip_header_lines must be >= 0 not ", skipped);
    out.what = concat("skip_header_lines ", skipped);
    out.open = [=](const std::string& path, const FileRoots& roots) {
      return open_lines(path, skipped, Compression::none, roots);
    };
  } else if (node.has("record_bytes")) {
    const FixedLength bytes = {.header = node.attr<int64_t>("header_bytes"),
                               .record = node.attr<int64_t>("record_bytes"),
                               .footer = node.attr<int64_t>("footer_bytes"),
                               .hop = node.attr<int64_t>("hop_bytes")};
    bytes.check_bytes();
    const Compression compression = parse_compression(node.attr<std::string>("encoding"));
    out.what = concat("header_bytes ", bytes.header, ", record_bytes ", bytes.record,
                      ", footer_bytes ", bytes.footer, ", hop_bytes ", bytes.hop, ", encoding '",
                      node.attr<std::string>("encoding"), "'");
    out.open = [=](const std::string& path, const FileRoots& roots) {
      return open_fixed_length(path, bytes, compression, roots);
    };
  } else if (node.has("compression_type")) {
    const auto& type = node.attr<std::string>("compression_type");
    const Compression compression = parse_compression(type);
    out.what = concat("compression_type '", type, "'");
    out.open = [=](const std::string& path, const FileRoots& roots) {
      return open_records(path, compression, roots);
    };
  } else {
    out.what = "no options";
    out.open = [is_name = out.kind == "IdentityReader"](const std::string& path,
                                                        const FileRoots& roots) {
      return is_name ? open_name(path) : open_whole(path, roots);
    };
  }
  return out;
}

Reader::Reader(std::string name, Options options)
    : Resource(std::move(name)),
      options_(std::move(options)),
      turns_(std::make_shared<TensorQueue>(this->name(),
                                           TensorQueue::Options{.kind = options_.kind})) {
  leave();
}

void Reader::check_fits(const NodeView& node) const {
  const Options wanted = Options::of(node);
  check(wanted.kind == options_.kind && wanted.what == options_.what, "Shared reader '", name(),
        "' is a ", options_.kind, " with ", options_.what, "; node '", node.name, "' expects a ",
        wanted.kind, " with ", wanted.what);
}

std::string Reader::state() const {
  const std::lock_guard lock(mutex_);
  std::string out = concat(options_.kind, " '", name(), "' has produced ", records_, " records of ",
                           files_, " whole files");
  return path_.empty() ? out + ", waits for the name of the next file" : out + ", reads " + path_;
}

int64_t Reader::records() const {
  const std::lock_guard lock(mutex_);
  return records_;
}

int64_t Reader::files() const {
  const std::lock_guard lock(mutex_);
  return files_;
}

// ---- Turns

void Reader::enter(Cancellation& cancellation, std::function<void(const Status&)> then) {
  turns_->dequeue(1, false, cancellation,
                  [then = std::move(then)](const Status& status,
                                           std::vector<TensorQueue::Element>) { then(status); });
}

void Reader::leave() { turns_->put({}); }

void Reader::reset(Cancellation& cancellation, std::function<void(const Status&)> done) {
  enter(cancellation, [self = shared_from_this(), done = std::move(done)](const Status& status) {
    if (!status.is_ok()) return done(status);
    self->file_.reset();
    {
      const std::lock_guard lock(self->mutex_);
      self->path_.clear();
      self->records_ = self->files_ = 0;
    }
    self->leave();
    done({});
  });
}

// ---- Reading

void Reader::read(int64_t count, std::shared_ptr<TensorQueue> names, const FileRoots& roots,
                  Cancellation& cancellation, Done done) {
  enter(cancellation,
        [self = shared_from_this(), read = Read{count, std::move(names), roots, cancellation,
                                                std::move(done)}](const Status& status) mutable {
          if (!status.is_ok()) return read.done(status, {});
          self->go_on(std::move(read));
        });
}

// Reads from the open file, or from the next one.
void Reader::go_on(Read read) {
  const auto self = shared_from_this();
  if (file_) return run_blocking([self, read = std::move(read)] { self->work(read, nullptr); });
  TensorQueue& names = *read.names;
  Cancellation& cancellation = read.cancellation;
  names.dequeue(1, false, cancellation,
                [self, read = std::move(read)](const Status& status,
                                               std::vector<TensorQueue::Element> elements) {
                  if (!status.is_ok()) return self->finish(read, status, {});
                  run_blocking([self, read, name = elements[0][0]] {
                    self->work(read, name.data<std::string>());
                  });
                });
}

// Runs on a thread that may wait for the disk. A file that cannot be read is not tried again.
void Reader::work(Read read, const std::string* path) {
  std::vector<RecordFile::Record> records;
  try {
    if (path != nullptr) {
      file_ = options_.open(*path, read.roots);
      const std::lock_guard lock(mutex_);
      path_ = *path;
    }
    while (file_ && static_cast<int64_t>(records.size()) < read.count) {
      std::optional<RecordFile::Record> record = file_->next();
      const bool is_at_end = !record || file_->is_at_end();
      if (record) records.push_back(std::move(*record));
      if (is_at_end) file_.reset();
    }
  } catch (...) {
    file_.reset();
    return finish(read, status_of_current_exception(), {});
  }
  {
    const std::lock_guard lock(mutex_);
    records_ += static_cast<int64_t>(records.size());
    if (!file_) ++files_, path_.clear();
  }
  if (records.empty() && read.count > 0) return go_on(std::move(read));
  finish(read, {}, std::move(records));
}

void Reader::finish(const Read& read, const Status& status,
                    std::vector<RecordFile::Record> records) {
  if (!status.is_ok()) {
    const std::lock_guard lock(mutex_);
    if (!file_) path_.clear();
  }
  leave();
  read.done(status, std::move(records));
}

}  // namespace leat
