// Readers: records of files whose names are in a queue.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/state/resource.h"
#include "graph/formats/record_file.h"
#include "kernels/state/queue.h"

namespace leat {

// TensorFlow's readers: TextLineReader and so on. Reads run one at a time; the others wait in line,
// and leave it when their step ends. Thread-safe.
class Reader : public Resource, public std::enable_shared_from_this<Reader> {
 public:
  using Open = std::function<OpenedFile(const std::string& path, const FileRoots& roots)>;
  using Done = std::function<void(const Status&, std::vector<RecordFile::Record>)>;

  // Options that nodes with one name must agree on, and how a file is opened.
  struct Options {
    std::string kind;  // "TextLineReader"
    std::string what;  // the other options, as text
    Open open;
    static Options of(const NodeView& node);
  };
  Reader(std::string name, Options options);

  void check_fits(const NodeView& node) const override;
  std::string state() const override;

  // Reads up to `count` records of one file, at least one: from the open file, else from the next
  // files in `names`, which this waits for. OUT_OF_RANGE once the queue is closed and empty.
  void read(int64_t count, std::shared_ptr<TensorQueue> names, const FileRoots& roots,
            Cancellation& cancellation, Done done);
  // Closes the open file and resets the counts; waits for a read in progress.
  void reset(Cancellation& cancellation, std::function<void(const Status&)> done);
  int64_t records() const;  // produced so far
  int64_t files() const;    // read to their end

 private:
  // If its status is OK, `then` holds the turn until leave().
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
  const std::shared_ptr<TensorQueue> turns_;  // holds one element, taken by the holder of the turn
  OpenedFile file_;                           // used by the holder of the turn
  mutable std::mutex mutex_;                  // guards the members below
  std::string path_;                          // of the open file
  int64_t records_ = 0, files_ = 0;
};

}  // namespace leat
