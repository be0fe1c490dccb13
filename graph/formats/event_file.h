// Event files: what TensorBoard shows. Usable without a session: to log numbers, this header is
// enough.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/formats/file.h"

namespace leat {

// One file per writer: <directory>/events.out.tfevents.<seconds>.<host>. Thread-safe. Data is in
// the file after flush(), at the latest when the writer is destroyed.
//   EventWriter log("runs/1");
//   log.add_scalar("loss", 0.25F, 100);
class EventWriter {
 public:
  explicit EventWriter(const std::string& directory, const FileRoots& roots = any_file);
  ~EventWriter();
  EventWriter(const EventWriter&) = delete;

  const std::string& path() const { return file_.path(); }
  void add_scalar(std::string_view tag, float value, int64_t step);
  // A serialized Summary: what ScalarSummary, HistogramSummary and MergeSummary return.
  void add_summary(std::string_view summary, int64_t step);
  // A serialized GraphDef. TensorBoard colours nodes by device if the devices are filled in.
  void add_graph(std::string_view graph_def);
  // Marks values of `step` and later in other files of the directory as superseded.
  void add_start(int64_t step);
  void add_checkpoint(std::string_view path, int64_t step);
  void flush();

 private:
  void write(std::string_view event);

  std::mutex mutex_;
  FileWriter file_;
};

// Reads one; for tests and tools. DATA_LOSS if it is torn or changed.
struct LoggedEvent {
  double wall_time = 0;
  int64_t step = 0;
  std::string file_version, graph_def;
  std::vector<std::pair<std::string, float>> scalars;  // (tag, value)
  std::vector<std::string> histograms;                 // tags
  std::string checkpoint;
  bool is_start = false;
};
std::vector<LoggedEvent> read_events(const std::string& path, const FileRoots& roots = any_file);

}  // namespace leat
