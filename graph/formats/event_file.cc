#include "graph/formats/event_file.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "core/error.h"
#include "graph/formats/proto/event.pb.h"
#include "graph/formats/records.h"

namespace leat {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// A second writer of the same second gets a name of its own.
std::string new_path(const std::string& where, const FileRoots& roots) {
  const std::string directory = local_path(where);
  check(!directory.empty(),
        "the directory of an event file is \"\": use \".\" for the current one");
  make_directories(directory, roots);
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  char name[320];
  std::snprintf(name, sizeof name, "/events.out.tfevents.%010lld.%s", static_cast<long long>(now()),
                host);
  std::string path = directory + name;
  for (int i = 1; is_name_there(path, roots); ++i)
    path = directory + name + "." + std::to_string(i);
  return path;
}

std::string encoded(tensorflow::Event& event, int64_t step) {
  event.set_wall_time(now());
  event.set_step(step);
  return event.SerializeAsString();
}

}  // namespace

EventWriter::EventWriter(const std::string& directory, const FileRoots& roots)
    : file_(new_path(directory, roots), FileWriter::Mode::create, roots) {
  tensorflow::Event event;
  event.set_file_version("brain.Event:2");
  write(encoded(event, 0));
  flush();
}

EventWriter::~EventWriter() {
  try {
    flush();
  } catch (...) {
    // The disk is full or gone, and nobody is left to tell.
  }
}

void EventWriter::write(std::string_view event) {
  const std::lock_guard lock(mutex_);
  file_.append(framed_record(event));
}

void EventWriter::add_scalar(std::string_view tag, float value, int64_t step) {
  tensorflow::Event event;
  auto* out = event.mutable_summary()->add_value();
  out->set_tag(std::string(tag));
  out->set_simple_value(value);
  write(encoded(event, step));
}

void EventWriter::add_summary(std::string_view summary, int64_t step) {
  tensorflow::Event event;
  check(summary.size() <= INT32_MAX && event.mutable_summary()->ParseFromArray(
                                           summary.data(), static_cast<int>(summary.size())),
        "this is not a serialized Summary: its ", summary.size(), " bytes do not parse");
  write(encoded(event, step));
}

void EventWriter::add_graph(std::string_view graph_def) {
  tensorflow::Event event;
  event.set_graph_def(std::string(graph_def));
  write(encoded(event, 0));
}

void EventWriter::add_start(int64_t step) {
  tensorflow::Event event;
  event.mutable_session_log()->set_status(tensorflow::SessionLog::START);
  write(encoded(event, step));
}

void EventWriter::add_checkpoint(std::string_view path, int64_t step) {
  tensorflow::Event event;
  event.mutable_session_log()->set_status(tensorflow::SessionLog::CHECKPOINT);
  event.mutable_session_log()->set_checkpoint_path(std::string(path));
  write(encoded(event, step));
}

void EventWriter::flush() {
  const std::lock_guard lock(mutex_);
  file_.flush();
}

std::vector<LoggedEvent> read_events(const std::string& path, const FileRoots& roots) {
  std::vector<LoggedEvent> out;
  RecordReader reader(path, Compression::none, roots);
  while (const std::optional<std::string> record = reader.next()) {
    tensorflow::Event event;
    if (!event.ParseFromString(*record))
      fail(Code::data_loss, path, ": record ", out.size(), " is not an event");
    LoggedEvent& logged = out.emplace_back();
    logged.wall_time = event.wall_time();
    logged.step = event.step();
    logged.file_version = event.file_version();
    logged.graph_def = event.graph_def();
    for (const auto& value : event.summary().value()) {
      if (value.has_histo()) {
        logged.histograms.push_back(value.tag());
      } else {
        logged.scalars.emplace_back(value.tag(), value.simple_value());
      }
    }
    logged.checkpoint = event.session_log().checkpoint_path();
    logged.is_start = event.session_log().status() == tensorflow::SessionLog::START;
  }
  return out;
}

}  // namespace leat
