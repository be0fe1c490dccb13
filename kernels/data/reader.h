// Readers: records of the files whose names are in a queue.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/resource.h"
#include "graph/formats/record_file.h"
#include "kernels/state/queue.h"

namespace leat {

// TensorFlow's readers: TextLineReader and so on. One read at a time; the others wait in line, and
// leave it when their step ends. Thread-safe.
class Reader : public Resource, public std::enable_shared_from_this<Reader> {
 public:
  using Open = std::function<OpenedFile(const std::string& path, const FileRoots& roots)>;
  using Done = std::function<void(const Status&, std::vector<RecordFile::Record>)>;

  // What nodes of one name must agree on, and how a file is opened.
  struct Options {
    std::string kind;  // "TextLineReader"
    std::string what;  // the rest of it, in words
    Open open;
    static Options of(const NodeView& node);
  };
  Reader(std::string name, Options options);

  void check_fits(const NodeView& node) const override;
  std::string state() const override;

  // Up to `count` records of one file, at least one: from the file that is open, else from those
  // that `names` gives, which this waits for. OUT_OF_RANGE once the queue is closed and empty.
  void read(int64_t count, std::shared_ptr<TensorQueue> names, const FileRoots& roots,
            Cancellation& cancellation, Done done);
  // Forgets the file that is open, and what was counted; waits for the read that is under way.
  void reset(Cancellation& cancellation, std::function<void(const Status&)> done);
  int64_t records() const;  // that were given
  int64_t files() const;    // that were read to their end

 private:
  // `then` has the turn, if its status is OK, until leave().
  void enter(Cancellation& cancellation, std::function<void(const Status&)> then);
  void leave();
  struct Read {
    int64_t count;
    std::shared_ptr<TensorQueue> names;
    FileRoots roots;
    Cancellation& cancellation;
    Done done;
  };
  void go_on(Read read);
  void work(Read read, const std::string* path);
  void finish(const Read& read, const Status& status, std::vector<RecordFile::Record> records);

  const Options options_;
  const std::shared_ptr<TensorQueue> turns_;  // its one element is with whoever has the turn
  OpenedFile file_;                           // touched by whoever has the turn
  mutable std::mutex mutex_;                  // guards what follows
  std::string path_;                          // of the file that is open
  int64_t records_ = 0, files_ = 0;
};

}  // namespace leat
