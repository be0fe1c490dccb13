// Loops and lists on a GPU: elements stay there, counters and lists on the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/control_flow/tensor_list.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "graph/gradient.h"
#include "runtime/local_session.h"
#include "tests/cuda/host_gpu.h"

namespace leat {
namespace {

struct Ran {
  std::vector<std::vector<float>> values;
  std::map<std::string, std::string> types;  // of devices, by node
};

// Fetches all on the device that nodes without a request go to.
Ran run(const Graph& graph, const std::vector<Output>& fetches, bool on_gpu,
        const NamedTensors& feeds = {}) {
  (void)host_gpu();
  LocalSession session({.threads = 1}, {.gpus = on_gpu});
  session.extend(graph);
  std::vector<std::string> names;
  for (const Output& fetch : fetches) names.push_back(fetch.name());
  Ran out;
  RunMetadata ran;
  for (const Tensor& value : session.run(feeds, names, {}, {.trace = true}, &ran))
    out.values.push_back(value.to_vector<float>());
  for (const TraceEvent& event : ran.events)
    out.types[event.op] = *DeviceName::parse(event.device).type;
  return out;
}

void expect_same(const Graph& graph, const std::vector<Output>& fetches,
                 const std::vector<std::string>& ops_on_gpu, const NamedTensors& feeds = {}) {
  const Ran cpu = run(graph, fetches, false, feeds), gpu = run(graph, fetches, true, feeds);
  EXPECT_EQ(gpu.values, cpu.values);
  for (const std::string& op : ops_on_gpu) EXPECT_EQ(gpu.types.at(op), "GPU") << op;
}

TEST(GpuLoops, CollectRowsInAList) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {4, 3});
  const TensorList rows(g, f32, {3}, {.size = 6});  // the last two stay zeros
  auto [i, filled] = while_loop(
      [](Output i, Output) { return i < 4; },
      [&](Output i, Output list) {
        return std::tuple<Output, Output>{i + 1, rows.with(list).set(i, take(x, i) * 2.0)};
      },
      0, rows);
  const TensorList all = rows.with(filled);
  Tensor value(f32, {4, 3});
  for (int k = 0; k < 12; ++k) value.data<float>()[k] = static_cast<float>(k);
  const Output stacked = all.stack();
  const Output dx = gradients(sum(square(stacked)), {x})[0];
  expect_same(g, {stacked, all.get(1), all.get(5), dx},
              {"TensorListSetItem", "TensorListStack", "Mul"}, {{"x:0", value}});
}

TEST(GpuLoops, GoOnUntilTheDeviceSaysSo) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {2});
  const Output y =
      while_loop([](Output y) { return sum(y) < 100.0; }, [](Output y) { return y * y + 1.0; }, x);
  expect_same(g, {y, gradients(y, {x})[0]}, {"Less"}, {{"x:0", Tensor::of<float>({1, 2})}});
}

TEST(GpuLoops, LieInLoops) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {3});
  auto [i, y] = while_loop([](Output i, Output) { return i < 3; },
                           [](Output i, Output y) {
                             auto [j, z] =
                                 while_loop([&](Output j, Output) { return j < i; },
                                            [](Output j, Output z) {
                                              return std::tuple<Output, Output>{j + 1, z * 1.5};
                                            },
                                            0, y);
                             return std::tuple<Output, Output>{i + 1, z + 1.0};
                           },
                           0, x);
  expect_same(g, {y, gradients(y, {x})[0]}, {"Mul"}, {{"x:0", Tensor::of<float>({1, 2, 3})}});
}

TEST(GpuLoops, BranchesPassValuesOn) {
  Graph g;
  const Output x = placeholder(g, "x", f32, {2});
  const Output y = cond(
      sum(x) > 0.0, [&] { return x * 2.0; }, [&] { return x - 1.0; });
  for (const float first : {1.0F, -5.0F}) {
    expect_same(g, {y, gradients(y, {x})[0]}, {"Sum"}, {{"x:0", Tensor::of<float>({first, 2})}});
  }
}

}  // namespace
}  // namespace leat
