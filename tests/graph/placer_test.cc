// place: where nodes go, why, and the messages for nodes that cannot be placed.
#include "graph/passes/placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/shape_inference.h"
#include "graph/text.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

// Kernels on CPU and GPU (Pair), on CPU only (Host), on GPU only (Accel), and on neither (None).
// They compute nothing: no test runs them.
Kernel kernel_on(DeviceType device) {
  Kernel kernel;
  kernel.device = device;
  kernel.prepare = [](const KernelRequest&) { return BoundKernel{}; };
  return kernel;
}
const Kernel on_cpu = kernel_on(DeviceType::cpu);
const Kernel on_gpu = kernel_on(DeviceType::gpu);

const Op pair_op{{.name = "PlacePair",
                  .inputs = {"x: T"},
                  .outputs = {"y: T"},
                  .attrs = {"T: type"},
                  .shape = shapes::same_as(0),
                  .kernels = {on_cpu, on_gpu}}};
const Op host_op{{.name = "PlaceHost",
                  .inputs = {"x: T"},
                  .outputs = {"y: T"},
                  .attrs = {"T: type"},
                  .kernels = {on_cpu}}};
const Op accel_op{{.name = "PlaceAccel",
                   .inputs = {"x: T"},
                   .outputs = {"y: T"},
                   .attrs = {"T: type"},
                   .kernels = {on_gpu}}};
const Op none_op{
    {.name = "PlaceNone", .inputs = {"x: T"}, .outputs = {"y: T"}, .attrs = {"T: type"}}};
const Op source_op{{.name = "PlaceSource", .outputs = {"y: float"}, .kernels = {on_cpu, on_gpu}}};
const Op variable_op{{.name = "PlaceVariable",
                      .outputs = {"ref: Ref(float)"},
                      .kernels = {on_cpu, on_gpu},
                      .is_stateful = true}};
const Op update_op{{.name = "PlaceUpdate",
                    .inputs = {"ref: Ref(float)", "value: float"},
                    .outputs = {"out: Ref(float)"},
                    .kernels = {on_cpu, on_gpu}}};
const Op host_update_op{{.name = "PlaceHostUpdate",
                         .inputs = {"ref: Ref(float)", "value: float"},
                         .outputs = {"out: Ref(float)"},
                         .kernels = {on_cpu}}};

DeviceSpec spec(std::string_view name) {
  const DeviceName device = DeviceName::parse(name);
  return {device, device_type_from_name(*device.type)};
}

// Two parameter servers, two workers with a GPU each; worker 1 is dialled.
PlacementOptions cluster() {
  PlacementOptions options;
  for (const auto* name :
       {"/job:ps/task:0/cpu:0", "/job:ps/task:1/cpu:0", "/job:worker/task:0/cpu:0",
        "/job:worker/task:0/gpu:0", "/job:worker/task:1/cpu:0", "/job:worker/task:1/gpu:0"}) {
    options.devices.push_back(spec(name));
  }
  options.default_device = DeviceName::parse("/job:worker/task:1");
  return options;
}

// "worker/1/GPU:0" and the reason.
std::string where(const Graph& graph, std::string_view name) {
  const DeviceName& device = graph.find(name)->assigned_device;
  if (device.is_empty()) return "nowhere";
  return concat(*device.job, "/", *device.task, "/", *device.type, ":", *device.id);
}
std::string why(const Graph& graph, std::string_view name) {
  return graph.find(name)->placement_reason;
}

// parse() takes a complete device as assigned; here it is a request.
Graph requested(std::string_view text) {
  Graph graph = parse(text);
  for (const auto& node : graph.nodes()) node->assigned_device = {};
  return graph;
}

Graph placed(std::string_view text, const PlacementOptions& options = cluster()) {
  Graph graph = requested(text);
  place(graph, options);
  verify(graph, "place");
  return graph;
}

TEST(Place, DefaultsToTheDialledTaskAndAGpuIfPossible) {
  const Graph graph =
      placed("x = _Feed(dtype=float, name='x:0'); a = PlacePair(x); b = PlaceHost(a)");
  EXPECT_EQ(where(graph, "a"), "worker/1/GPU:0");
  EXPECT_EQ(why(graph, "a"), "default of the dialled task");
  EXPECT_EQ(where(graph, "b"), "worker/1/CPU:0");
}

TEST(Place, HonoursRequestsPartByPart) {
  const Graph graph = placed(
      "x = _Feed(dtype=float, name='x:0'); a = PlacePair(x) @/job:ps;"
      "b = PlacePair(x) @/job:worker/task:0; c = PlacePair(x) @/cpu:0; d = PlacePair(x) "
      "@/job:worker/cpu:*");
  EXPECT_EQ(where(graph, "a"), "ps/0/CPU:0");
  EXPECT_EQ(why(graph, "a"), "explicit");
  EXPECT_EQ(where(graph, "b"), "worker/0/GPU:0");
  EXPECT_EQ(where(graph, "c"), "worker/1/CPU:0");
  EXPECT_EQ(where(graph, "d"), "worker/1/CPU:0");
}

TEST(Place, OrdersTasksByNumber) {
  PlacementOptions options;
  for (const int task : {10, 9, 2})
    options.devices.push_back(spec(concat("/job:ps/task:", task, "/cpu:0")));
  EXPECT_EQ(where(placed("a = PlaceSource()", options), "a"), "ps/2/CPU:0");
}

TEST(Place, UpdatesJoinTheirVariable) {
  const Graph graph = placed(
      "w = PlaceVariable() @/job:ps/task:1; x = _Feed(dtype=float, name='x:0');"
      "u = PlaceUpdate(w, x); v = PlaceUpdate(u, x); r = PlacePair(v)");
  EXPECT_EQ(where(graph, "u"), "ps/1/CPU:0");
  EXPECT_EQ(where(graph, "v"), "ps/1/CPU:0");
  EXPECT_EQ(why(graph, "v"), "colocated with w");
  EXPECT_EQ(where(graph, "r"), "worker/1/GPU:0") << "a read may be elsewhere";
  EXPECT_EQ(where(graph, "x"), "ps/1/CPU:0") << "a feed goes where it is consumed";
}

TEST(Place, ClassesColocateNodesEvenByAPrunedName) {
  const Graph graph = placed(
      "x = _Feed(dtype=float, name='x:0'); a = PlacePair(x) @/job:ps/task:1;"
      "b = PlacePair(x, _class={'loc:@a'}); c = PlacePair(x, _class={'loc:@b'});"
      "d = PlacePair(x, _class={'loc:@pruned'}) @/job:ps/task:0; e = PlacePair(x, "
      "_class={'loc:@pruned'})");
  EXPECT_EQ(where(graph, "b"), "ps/1/CPU:0");
  EXPECT_EQ(where(graph, "c"), "ps/1/CPU:0");
  EXPECT_EQ(where(graph, "e"), "ps/0/CPU:0");
  EXPECT_EQ(why(graph, "e"), "colocated with d");
}

TEST(Place, ColocatedNodesGoWhereAllHaveKernels) {
  const Graph graph =
      placed("w = PlaceVariable(); x = _Feed(dtype=float, name='x:0'); u = PlaceHostUpdate(w, x)");
  EXPECT_EQ(where(graph, "w"), "worker/1/CPU:0");
}

// A first value that only the CPU can compute must not keep its variable away from the GPU.
TEST(Place, ValuesThatClassesTieToStateGoToTheCpuIfTheyMust) {
  const Graph graph = placed(
      "w = PlaceVariable(); x = _Feed(dtype=float, name='x:0');"
      "first = PlaceHost(x, _class={'loc:@w'}); u = PlaceUpdate(w, first);"
      "second = PlacePair(x, _class={'loc:@w'})");
  EXPECT_EQ(where(graph, "w"), "worker/1/GPU:0");
  EXPECT_EQ(where(graph, "u"), "worker/1/GPU:0");
  EXPECT_EQ(where(graph, "second"), "worker/1/GPU:0");
  EXPECT_EQ(where(graph, "first"), "worker/1/CPU:0");
  EXPECT_EQ(why(graph, "first"),
            "near w, with which it is colocated: PlaceHost has no kernel on GPUs");
  const Graph far = placed(
      "w = PlaceVariable() @/job:worker/task:0/gpu:0; x = _Feed(dtype=float, name='x:0');"
      "first = PlaceHost(x, _class={'loc:@w'})");
  EXPECT_EQ(where(far, "first"), "worker/0/CPU:0") << "on the variable's task";
}

// Extents of what is on a GPU: neither they nor the tensor need to go to another device.
TEST(Place, CountsAreComputedBesideTheGpu) {
  const Graph graph = placed(
      "x = _Feed(dtype=float, name='x:0', shape=[2,3]); a = PlacePair(x); s = Shape(a);"
      "t = PlaceHost(s); labels = _Feed(dtype=int32, name='labels:0', shape=[100]);"
      "u = PlaceHost(labels)");
  EXPECT_EQ(where(graph, "s"), "worker/1/GPU:0");
  EXPECT_EQ(where(graph, "t"), "worker/1/GPU:0");
  EXPECT_EQ(where(graph, "u"), "worker/1/CPU:0") << "too many to be a count";
}

TEST(Place, AvoidsGpusUnlessTheyAreRequested) {
  PlacementOptions options = cluster();
  options.gpus = Gpus::avoid;
  const Graph graph = placed(
      "x = _Feed(dtype=float, name='x:0'); a = PlacePair(x); b = PlacePair(x) @/gpu:0;"
      "c = PlaceAccel(x)",
      options);
  EXPECT_EQ(where(graph, "a"), "worker/1/CPU:0");
  EXPECT_EQ(where(graph, "b"), "worker/1/GPU:0");
  EXPECT_EQ(where(graph, "c"), "worker/1/GPU:0") << "it runs nowhere else";
}

// A master without a GPU plug-in places for workers that have one.
TEST(Place, KnowsTheKernelsOfOtherProcesses) {
  PlacementOptions options = cluster();
  const auto with = [&](int device, KernelTable table) {
    options.devices[static_cast<size_t>(device)].kernels =
        std::make_shared<const KernelTable>(std::move(table));
  };
  with(3, {{"PlaceHost", {{}}}});                     // worker 0
  with(5, {{"PlacePair", {{{"T", {DType::f64}}}}}});  // worker 1
  const Graph graph = placed(
      "x = _Feed(dtype=float, name='x:0'); a = PlaceHost(x) @/job:worker/task:0;"
      "b = PlaceHost(x); c = PlacePair(x);"
      "y = _Feed(dtype=double, name='y:0'); d = PlacePair(y)",
      options);
  EXPECT_EQ(where(graph, "a"), "worker/0/GPU:0");
  EXPECT_EQ(where(graph, "b"), "worker/1/CPU:0") << "worker 1's GPU has no such kernel";
  EXPECT_EQ(where(graph, "c"), "worker/1/CPU:0") << "not for this type";
  EXPECT_EQ(where(graph, "d"), "worker/1/GPU:0");
}

// Nothing is placed on a GPU after a fault, and the error for a node that requests it says why.
TEST(Place, GoesAroundDevicesThatAreOutOfUse) {
  PlacementOptions options = cluster();
  options.devices[5].problem = "an illegal memory access was encountered";
  const char* const text = "x = _Feed(dtype=float, name='x:0'); a = PlacePair(x)";
  EXPECT_EQ(where(placed(text, options), "a"), "worker/1/CPU:0");
  try {
    placed(concat(text, "; b = PlacePair(x) @/job:worker/task:1/gpu:0"), options);
    FAIL() << "it was placed";
  } catch (const Error& error) {
    EXPECT_THAT(
        error.message(),
        testing::HasSubstr("out of use: /job:worker/task:1/device:GPU:0: an illegal memory"));
  }
}

TEST(Place, ConstantsJoinConsumersThatShareADevice) {
  const Graph graph = placed(
      "c = PlaceSource(); a = PlacePair(c) @/job:ps/task:1; b = PlaceHost(c) @/job:ps/task:1;"
      "d = PlaceSource(); e = PlacePair(d) @/job:ps/task:0; f = PlacePair(d) @/job:ps/task:1;"
      "g = PlaceSource() @/job:ps/task:0; h = PlacePair(g) @/job:ps/task:1;"
      "k = PlaceSource() @/job:ps; l = PlacePair(k) @/job:ps/task:1");
  EXPECT_EQ(where(graph, "c"), "ps/1/CPU:0");
  EXPECT_EQ(why(graph, "c"), "joins its consumer a");
  EXPECT_EQ(where(graph, "d"), "worker/1/GPU:0");
  EXPECT_EQ(where(graph, "g"), "ps/0/CPU:0") << "its own request counts more";
  EXPECT_EQ(where(graph, "k"), "ps/1/CPU:0") << "the consumer's device satisfies its request";
}

TEST(Place, MetadataOpsFollowTheirInput) {
  const Graph graph = placed(
      "x = _Feed(dtype=float, name='x:0'); a = PlacePair(x) @/job:ps/task:1; s = Shape(a);"
      "t = Shape(a) @/job:ps/task:0; c = PlaceSource(); r = Rank(c); b = PlacePair(c) "
      "@/job:ps/task:0");
  EXPECT_EQ(where(graph, "s"), "ps/1/CPU:0");
  EXPECT_EQ(why(graph, "s"), "follows its input a");
  EXPECT_EQ(where(graph, "t"), "ps/0/CPU:0");
  EXPECT_EQ(where(graph, "r"), "ps/0/CPU:0");
}

TEST(Place, SoftPlacementDropsTypeAndIdButNotTheTask) {
  PlacementOptions options = cluster();
  const char* const text =
      "x = _Feed(dtype=float, name='x:0'); a = PlaceHost(x) @/job:worker/task:0/gpu:0;"
      "b = PlacePair(x) @/job:ps/task:1/gpu:3";
  EXPECT_THROW(placed(text, options), Error);
  options.allow_soft_placement = true;
  const Graph graph = placed(text, options);
  EXPECT_EQ(where(graph, "a"), "worker/0/CPU:0");
  EXPECT_EQ(why(graph, "a"),
            "explicit (soft placement: /job:worker/task:0/device:GPU:0 was requested)");
  EXPECT_EQ(where(graph, "b"), "ps/1/CPU:0");
  EXPECT_THROW(
      placed("x = _Feed(dtype=float, name='x:0'); a = PlacePair(x) @/job:ps/task:7", options),
      Error);
}

TEST(Place, RequestOfAVariableWins) {
  PlacementOptions options = cluster();
  options.allow_soft_placement = true;
  const Graph graph = placed(
      "x = _Feed(dtype=float, name='x:0'); w = PlaceVariable() @/job:worker/task:0/cpu:0;"
      "u = PlaceUpdate(w, x) @/job:worker/task:0/gpu:0",
      options);
  EXPECT_EQ(where(graph, "w"), "worker/0/CPU:0");
  EXPECT_EQ(where(graph, "u"), "worker/0/CPU:0");
}

void expect_unplaceable(std::string_view text, std::string_view message,
                        const PlacementOptions& options = cluster()) {
  Graph graph = requested(text);
  expect_error([&] { place(graph, options); }, Code::invalid_argument, message);
}

const std::string devices =
    "/job:worker/task:1/device:GPU:0, /job:worker/task:1/device:CPU:0, "
    "/job:worker/task:0/device:GPU:0, /job:ps/task:0/device:CPU:0, /job:ps/task:1/device:CPU:0, "
    "/job:worker/task:0/device:CPU:0";

TEST(PlaceFails, NoDeviceMatches) {
  expect_unplaceable(
      "a = PlaceSource() @/job:ps/task:7",
      "Cannot assign a device for operation a: it (text:1) requests /job:ps/task:7, and "
      "no device matches that\n  devices: " +
          devices + "\n\t [[{{node a}}]]");
}

TEST(PlaceFails, NoKernelOnTheRequestedDevice) {
  expect_unplaceable(
      "x = _Feed(dtype=float, name='x:0'); a = PlaceAccel(x) @/job:ps",
      "Cannot assign a device for operation a: PlaceAccel has no kernel for its types on "
      "/job:ps\n  kernels of PlaceAccel: GPU; here T = float\n  devices: " +
          devices + "\n\t [[{{node a}}]]");
  expect_unplaceable(
      "x = _Feed(dtype=float, name='x:0'); a = PlaceNone(x)",
      "Cannot assign a device for operation a: PlaceNone has no kernel for its types on "
      "any device\n  kernels of PlaceNone: none; here T = float\n  devices: " +
          devices + "\n\t [[{{node a}}]]");
}

// Programs create reads of resource variables in the worker's device scope.
TEST(Place, UsersJoinTheirVariableDespiteTheirRequests) {
  const Graph graph = placed(
      "w = PlaceVariable() @/job:ps/task:1; x = _Feed(dtype=float, name='x:0');"
      "u = PlaceUpdate(w, x) @/job:worker/task:0");
  EXPECT_EQ(where(graph, "u"), "ps/1/CPU:0");
  EXPECT_EQ(why(graph, "u"),
            "colocated with w (u requests /job:worker/task:0, but uses state elsewhere)");
}

TEST(PlaceFails, RequestsContradictEachOtherAlongAChain) {
  expect_unplaceable(
      "x = _Feed(dtype=float, name='x:0'); w = PlaceVariable() @/job:ps/task:0; u = PlaceUpdate(w, "
      "x);"
      "s = PlacePair(x, _class={'loc:@u'}) @/job:ps/task:1",
      "Cannot assign a device for operation s: it requests /job:ps/task:1, but it must be on one "
      "device "
      "with w, which requests /job:ps/task:0.\n"
      "  tied by: u has the variable w as input ref; s has _class loc:@u\n\t [[{{node s}}]]");
}

TEST(PlaceFails, RequestLeavesNoKernelForAnotherNode) {
  expect_unplaceable(
      "x = _Feed(dtype=float, name='x:0'); w = PlaceVariable() @/job:worker/task:0/gpu:0;"
      "u = PlaceHostUpdate(w, x)",
      "Cannot assign a device for operation u: PlaceHostUpdate has no kernel for its types on "
      "/job:worker/task:0/device:GPU:0, which w requests\n"
      "  tied by: u has the variable w as input ref\n"
      "  kernels of PlaceHostUpdate: CPU\n  kernels of PlaceVariable: CPU; GPU\n  devices: " +
          devices + "\n\t [[{{node u}}]]");
}

TEST(PlaceFails, AssignedNodeLeavesNoKernelForAnother) {
  Graph graph = parse(
      "x = _Feed(dtype=float, name='x:0'); w = PlaceVariable() @/job:worker/task:0/gpu:0;"
      "u = PlaceHostUpdate(w, x)");
  graph.find("w")->assigned_device = DeviceName::parse("/job:worker/task:0/gpu:0");
  expect_error(
      [&] { place(graph, cluster()); }, Code::invalid_argument,
      "Cannot assign a device for operation u: PlaceHostUpdate has no kernel for its types on "
      "/job:worker/task:0/device:GPU:0, where w is\n  tied by: u has the variable w as input ref\n"
      "  kernels of PlaceHostUpdate: CPU\n  kernels of PlaceVariable: CPU; GPU\n  devices: " +
          devices + "\n\t [[{{node u}}]]");
}

TEST(PlaceFails, NoDeviceTypeSuitsAllNodes) {
  expect_unplaceable(
      "x = _Feed(dtype=float, name='x:0'); a = PlaceAccel(x); b = PlaceHost(x, _class={'loc:@a'})",
      "Cannot assign a device for operation a: no type of device has kernels for all nodes that "
      "must be together with it\n  nodes that must be together: a (PlaceAccel), b (PlaceHost)\n"
      "  kernels of PlaceAccel: GPU; here T = float\n  kernels of PlaceHost: CPU; here T = float\n"
      "  devices: " +
          devices + "\n\t [[{{node a}}]]");
}

TEST(PlaceFails, ReportsAllFailuresAtOnce) {
  Graph graph = parse("a = PlaceSource() @/job:gone; b = PlaceSource() @/job:lost");
  try {
    place(graph, cluster());
    FAIL() << "placed";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("operation a:"), std::string::npos);
    EXPECT_NE(error.message().find("operation b:"), std::string::npos);
  }
}

// Their kernels may take any type, but no GPU holds a string.
TEST(Place, StringsStayOnTheHost) {
  const Graph graph = placed(
      "x = _Feed(dtype=string, name='x:0'); a = PlacePair(x); n = _Feed(dtype=float, name='n:0');"
      "b = PlacePair(n)");
  EXPECT_EQ(where(graph, "a"), "worker/1/CPU:0");
  EXPECT_EQ(where(graph, "b"), "worker/1/GPU:0");
}

// The whole graph is placed once; a step that sees less of it must reach the same result.
TEST(PlaceStateful, PinsNodesThatSmallerStepsMustNotMove) {
  Graph graph = parse(
      "x = _Feed(dtype=float, name='x:0'); w = PlaceVariable(); u = PlaceHostUpdate(w, x);"
      "a = PlacePair(x) @/job:ps/task:1; b = PlacePair(x, _class={'loc:@a'}); c = PlacePair(x);"
      "bad = PlaceSource() @/job:gone; lost = PlaceVariable() @/job:gone");
  place_stateful(graph, cluster());
  EXPECT_EQ(where(graph, "w"), "worker/1/CPU:0")
      << "the step that only reads w would put it on a GPU";
  EXPECT_EQ(where(graph, "b"), "ps/1/CPU:0");
  EXPECT_EQ(where(graph, "c"), "nowhere");
  EXPECT_EQ(where(graph, "lost"), "nowhere") << "left for the step that needs it";

  Graph step = prune(graph, {.fetches = {"w:0", "b:0"}});
  place(step, cluster());
  EXPECT_EQ(where(step, "w"), "worker/1/CPU:0");
  EXPECT_EQ(where(step, "b"), "ps/1/CPU:0");
  Graph failing = prune(graph, {.fetches = {"lost:0"}});
  EXPECT_THROW(place(failing, cluster()), Error);
}

// A set whose requests contradict each other fails only in the steps that need all of it. The other
// steps must not move its variable.
TEST(PlaceStateful, VariableOfAContradictorySetKeepsItsRequest) {
  Graph graph = parse(
      "w = PlaceVariable() @/job:ps/task:0; a = PlaceSource(_class={'loc:@w'}) @/job:ps/task:1;"
      "b = PlaceSource(_class={'loc:@w'})");
  place_stateful(graph, cluster());
  EXPECT_EQ(where(graph, "w"), "ps/0/CPU:0");
  Graph step = prune(graph, {.fetches = {"w:0", "b:0"}});
  place(step, cluster());
  EXPECT_EQ(where(step, "w"), "ps/0/CPU:0");
}

TEST(PlaceStateful, PlacedNodesStayWhenTheGraphGrows) {
  Graph graph = parse("w = PlaceVariable()");
  place_stateful(graph, cluster());
  EXPECT_EQ(where(graph, "w"), "worker/1/GPU:0");
  Node& x = graph.add({.op = "PlaceSource", .name = "x"});
  graph.add({.op = "PlaceUpdate", .name = "u", .inputs = {graph.output("w"), x.output()}});
  PlacementOptions other = cluster();
  other.default_device = DeviceName::parse("/job:worker/task:0");
  place_stateful(graph, other);
  EXPECT_EQ(where(graph, "w"), "worker/1/GPU:0");
  EXPECT_EQ(where(graph, "u"), "worker/1/GPU:0");
}

TEST(Place, PlacesTenThousandColocatedNodes) {
  Graph graph;
  Node& w = graph.add({.op = "PlaceVariable", .name = "w"});
  Node& x = graph.add({.op = "PlaceSource", .name = "x"});
  for (int i = 0; i < 10000; ++i) {
    graph.add({.op = "PlaceUpdate", .name = concat("u", i), .inputs = {w.output(), x.output()}});
  }
  place(graph, cluster());
  EXPECT_EQ(where(graph, "u9999"), "worker/1/GPU:0");
}

}  // namespace
}  // namespace leat
