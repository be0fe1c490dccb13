// Functions that kernels call, compiled and called.
#include "runtime/functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/device_name.h"
#include "core/execution/thread_pool.h"
#include "core/state/resource.h"
#include "core/state/variable.h"
#include "graph/graph.h"
#include "graph/import/graph_def.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

Output argument(Graph& graph, DType dtype) {
  return graph
      .insert(
          {.op = "_Feed", .name = "argument", .attrs = {{"dtype", dtype}, {"name", "argument:0"}}},
          DeviceName())
      .output();
}

// The contents of the file argument:0, twice. It waits for the disk, and then has work to do.
WrittenFunction reader(const std::string& name) {
  Graph graph;
  const Output path = argument(graph, DType::string);
  const Output read = graph.add({.op = "ReadFile", .name = "read", .inputs = {path}}).output();
  graph.add({.op = "StringJoin", .name = "join", .inputs = {read, read}});
  return {.name = name, .graph = to_graph_def(graph), .arguments = 1, .results = {"join:0"}};
}

// argument:0 + argument:0
WrittenFunction twice(const std::string& name) {
  Graph graph;
  const Output x = argument(graph, f32);
  graph.add({.op = "AddV2", .name = "sum", .inputs = {x, x}});
  return {.name = name, .graph = to_graph_def(graph), .arguments = 1, .results = {"sum:0"}};
}

class FunctionsTest : public testing::Test {
 protected:
  FunctionsTest() { std::ofstream(directory / "file") << "content"; }

  std::string read(const CallableFunction& function) {
    Cancellation never;
    return function.run({Tensor::scalar(directory / "file")}, never).at(0).item<std::string>();
  }

  const ScratchDirectory directory;
  ThreadPool pool{2};
  Containers containers;
  const std::unique_ptr<Device> cpu =
      make_cpu_device(DeviceName::parse("/job:worker/replica:0/task:0/device:CPU:0"), pool);
  Functions functions{containers, *cpu, pool};
};

TEST_F(FunctionsTest, AreCompiledOnceUnlessTheyHaveState) {
  const auto function = functions.compiled(twice("f"));
  EXPECT_EQ(functions.compiled(twice("f")), function);
  Cancellation never;
  EXPECT_EQ(function->run({Tensor::scalar(1.5f)}, never).at(0).item<float>(), 3);
  expect_error_with(Code::invalid_argument, "a function of 1 arguments is called with 0",
                    [&] { function->run({}, never); });
  EXPECT_NE(functions.compiled(reader("r")), functions.compiled(reader("r")));
}

// A thread of its own would end with the function, and could not wait for itself if it held the
// last reference.
TEST_F(FunctionsTest, StartNoThreadsOfTheirOwn) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
  };
  for (int i = 0; i < 10; ++i) read(*functions.compiled(reader("r")));
  const auto before = threads();
  std::vector<std::shared_ptr<const CallableFunction>> kept;
  for (int i = 0; i < 50; ++i) {
    kept.push_back(functions.compiled(reader("r")));
    EXPECT_EQ(read(*kept.back()), "contentcontent");
  }
  EXPECT_LE(threads(), before + 4);  // threads that wait for disks
}

TEST_F(FunctionsTest, MayBeReleasedWhileTheirCallEnds) {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([this] {
      for (int i = 0; i < 200; ++i)
        EXPECT_EQ(read(*functions.compiled(reader("r"))), "contentcontent");
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace leat
