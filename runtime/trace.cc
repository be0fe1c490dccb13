#include "runtime/trace.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

namespace leat {

int64_t trace_now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

uint32_t trace_thread() {
  static thread_local const auto number = static_cast<uint32_t>(syscall(SYS_gettid));
  return number;
}

TraceEvent trace_event(const Node& node, std::string device, int64_t start_ns, int64_t end_ns,
                       int64_t output_bytes) {
  TraceEvent out{node.name, node.op->name, std::move(device), start_ns,
                 end_ns,    output_bytes,  trace_thread(),    ""};
  const bool is_send = node.is("_Send"), is_receive = node.is("_Recv");
  if (is_send || is_receive) {
    const auto& tensor = node.attr<std::string>("tensor_name");
    out.node = (is_send ? "SendTensor " : "RecvTensor ") + tensor;
    out.inputs = tensor + " @" + node.attr<std::string>(is_send ? "recv_device" : "send_device");
    return out;
  }
  for (const Output& input : node.inputs)
    out.inputs += (out.inputs.empty() ? "" : ", ") + input.node->name;
  return out;
}

// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: a process per
// task, a thread per (device, thread). Times are in microseconds since the first event.
std::string to_chrome_trace(const std::vector<TraceEvent>& events) {
  using nlohmann::json;
  json list = json::array();
  std::map<std::string, int> processes;
  std::map<std::pair<std::string, uint32_t>, int> threads;
  int64_t origin = events.empty() ? 0 : events.front().start_ns;
  for (const TraceEvent& event : events) origin = std::min(origin, event.start_ns);

  const auto name = [&](const char* what, int process, int thread, const std::string& text) {
    list.push_back({{"ph", "M"},
                    {"name", what},
                    {"pid", process},
                    {"tid", thread},
                    {"args", {{"name", text}}}});
  };
  for (const TraceEvent& event : events) {
    const size_t end_of_task = event.device.find("/device:");
    const std::string task = event.device.substr(0, end_of_task);
    const auto [process, is_new_process] =
        processes.try_emplace(task, static_cast<int>(processes.size()) + 1);
    if (is_new_process) name("process_name", process->second, 0, task.empty() ? "session" : task);
    const auto [thread, is_new_thread] =
        threads.try_emplace({event.device, event.thread}, static_cast<int>(threads.size()) + 1);
    if (is_new_thread) {
      const std::string device =
          end_of_task == std::string::npos ? event.device : event.device.substr(end_of_task + 8);
      name("thread_name", process->second, thread->second,
           device + ", thread " + std::to_string(event.thread));
    }
    list.push_back({{"ph", "X"},
                    {"name", event.op},
                    {"cat", "op"},
                    {"pid", process->second},
                    {"tid", thread->second},
                    {"ts", static_cast<double>(event.start_ns - origin) / 1000.0},
                    {"dur", static_cast<double>(event.end_ns - event.start_ns) / 1000.0},
                    {"args", {{"node", event.node}, {"output_bytes", event.output_bytes}}}});
  }
  return json{{"traceEvents", std::move(list)}, {"displayTimeUnit", "ns"}}.dump();
}

}  // namespace leat
