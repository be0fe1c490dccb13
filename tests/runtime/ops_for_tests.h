// What the ops of ops_for_tests.cc wait for, and a task to run graphs on without a session.
#pragma once

#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/device.h"
#include "runtime/program.h"
#include "runtime/registered_graph.h"

namespace leat {

// What a TestWait node waits for, by the node's name.
class TestGate {
 public:
  static TestGate& of(std::string_view name);
  void wait(std::function<void(Status)> done);
  // A step waits here; false if none comes within a minute.
  [[nodiscard]] bool has_visitor();
  // Lets one waiting step go on; false if none comes within a minute.
  [[nodiscard]] bool open(Status status = {});

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::function<void(Status)>> waiting_;
};

inline const std::string cpu0 = "/job:localhost/replica:0/task:0/device:CPU:0";

// The resources of a task with one CPU.
struct TestTask {
  explicit TestTask(int threads = 1)
      : pool(threads), cpu(make_cpu_device(DeviceName::parse(cpu0), pool)) {}

  std::unique_ptr<RegisteredGraph> registered(Graph graph, std::vector<std::string> fetches) {
    std::map<std::string, Graph> partitions;
    partitions.emplace(cpu0, std::move(graph));
    return std::make_unique<RegisteredGraph>(std::move(partitions), std::move(fetches),
                                             std::vector<CutEdge>{}, resources());
  }
  TaskResources resources() { return {{cpu.get()}, &pool, containers, node_states}; }

  ThreadPool pool;
  std::unique_ptr<Device> cpu;
  std::shared_ptr<Containers> containers = std::make_shared<Containers>();
  std::shared_ptr<NodeStates> node_states = std::make_shared<NodeStates>();
};

// One step, waited for with a deadline. Throws its error.
inline StepResult run_step(RegisteredGraph& graph, NamedTensors feeds,
                           std::shared_ptr<Rendezvous> rendezvous = nullptr, bool trace = false) {
  static std::atomic<int64_t> next_id{1};
  auto promise = std::make_shared<std::promise<StepResult>>();
  auto result = promise->get_future();
  graph.run({next_id++, std::move(feeds), std::move(rendezvous), trace},
            [promise](StepResult r) { promise->set_value(std::move(r)); });
  if (result.wait_for(std::chrono::seconds(60)) != std::future_status::ready)
    fail(Code::deadline_exceeded, "the step did not end");
  StepResult out = result.get();
  throw_if_error(out.status);
  return out;
}

// A value that the step is given, as prune() makes it.
inline Output feed(Graph& graph, const std::string& name, const Shape& shape, DType dtype = f32,
                   Location at = here()) {
  return graph
      .add({.op = "_Feed",
            .name = name,
            .attrs = {{"dtype", dtype}, {"shape", shape}, {"name", name + ":0"}},
            .location = at})
      .output();
}

inline Output variable(Graph& graph, const std::string& name, const Shape& shape,
                       DType dtype = f32) {
  return graph
      .add({.op = "VariableV2", .name = name, .attrs = {{"shape", shape}, {"dtype", dtype}}})
      .output();
}

inline std::vector<float> floats(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

// The error that `f` throws; code ok if it throws none.
template <class F>
Error thrown_by(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return Error(Code::ok, "no error was thrown");
}

}  // namespace leat
