// leat::Session as programs use it, and mistakes in what they build for it.
#include "frontends/cpp/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <sstream>
#include <thread>

#include "frontends/cpp/cluster.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/variables.h"
#include "graph/import/graph_def.h"
#include "graph/ops.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/tcp_proxy.h"

namespace leat {
namespace {

// The first run takes over the graph, once, whichever thread comes first.
TEST(Session, FirstStepsMayRunConcurrently) {
  InProcessCluster cluster({{"worker", 1}});
  for (const std::string& target : {std::string(), cluster.target("worker", 0)}) {
    for (int round = 0; round < 20; ++round) {
      Graph graph;
      const Output x = placeholder(graph, "x", f32, {});
      const Output y = x + 1;
      for (int i = 0; i < 500; ++i) identity(y);  // makes taking over slow
      Session session(graph, {.target = target});
      std::vector<std::string> errors(4);
      std::latch start(4);
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          start.arrive_and_wait();
          try {
            const auto value = static_cast<float>(t);
            if (session.run({{x, Tensor::scalar(value)}}, {y})[0].item<float>() != value + 1)
              errors[t] = "another sum";
          } catch (const Error& error) {
            errors[t] = error.message();
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      for (const std::string& error : errors) ASSERT_EQ(error, "") << target;
    }
  }
}

// On the pool's threads, too; and the caller's own arithmetic stays as it was.
TEST(Session, CountsDenormalNumbersAsZero) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {any}), y = x * 1e-10F;
  SessionOptions options;
  options.threads = 3;
  Session session(graph, options);
  for (const int64_t n : {5, 4'000'000}) {
    Tensor small(f32, {n});
    std::fill_n(small.data<float>(), n, 1e-30F);
    const Tensor products = session.run({{x, small}}, y);
    const std::span<const float> all = products.span<float>();
    EXPECT_TRUE(std::ranges::all_of(all, [](float product) { return product == 0; })) << n;
  }
  volatile float small = 1e-30F;
  EXPECT_GT(small * 1e-10F, 0);
}

TEST(Session, RejectsNodesOfAnotherGraph) {
  Graph mine, other;
  const Output x = placeholder(mine, "x", f32, {}), y = x + 1;
  const Output same_name = placeholder(other, "x", f32, {});
  Session session(mine);
  const Tensor one = Tensor::scalar(1.0f);
  expect_error_with(Code::invalid_argument, "a fetch, 'x', belongs to another graph", [&] {
    session.run({{x, one}}, {same_name});
  });
  expect_error_with(Code::invalid_argument, "a feed, 'x', belongs to another graph", [&] {
    session.run({{same_name, one}}, {y});
  });
  expect_error_with(Code::invalid_argument, "a target, 'x', belongs to another graph", [&] {
    session.run({{x, one}}, Targets{*same_name.node});
  });
  expect_error_with(Code::invalid_argument, "a target is an empty Output", [&] {
    session.run({{x, one}}, Targets{Output{}});
  });
}

TEST(Session, ReportsTheAddressItWaitsFor) {
  Graph graph;
  const Output one = constant(graph, Tensor::scalar(1.0f));
  Session session(graph, {.target = "grpc://127.0.0.1:1", .timeout = std::chrono::seconds(3)});
  testing::internal::CaptureStderr();
  expect_error_with(Code::unavailable, "Nobody listens there", [&] { session.run({}, {one}); });
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("leat: waiting for grpc://127.0.0.1:1: "), std::string::npos) << told;
}

TEST(Session, NamesUninitializedVariablesAndTheReadersLine) {
  Graph graph;
  const Output w = variable(graph, "w", {});
  const Output y = square(w);
  const std::string line = concat("session_test.cc:", __LINE__ - 1);
  Session session(graph);
  expect_error_with(Code::failed_precondition, "Attempting to use uninitialized value w",
                    [&] { session.run({}, {y}); });
  expect_error_with(Code::failed_precondition, line, [&] { session.run({}, {y}); });
}

TEST(Session, CannotInitialiseWhatHasNoInitialisers) {
  Graph built;
  variable(built, "w", {}, initializers::ones());
  variable(built, "handle", {}, {.initializer = initializers::ones(), .use_resource = true});
  const std::string alone = to_graph_def(built);
  initialize_variables(built);
  Graph read, with_group, bare;
  from_graph_def(alone, read);
  from_graph_def(to_graph_def(built), with_group);
  const std::string text =
      "initialize(): the graph has 2 variables, the first is 'w', but its collection "
      "\"initializers\" is empty, as in a graph that was read from a GraphDef, which has no "
      "collections; restore a checkpoint (Saver::Options::variables), or run what initialises them "
      "by its name: "
      "session.run({*graph.find(\"";
  Session session(read), by_group(with_group);
  expect_error([&] { session.initialize(); }, Code::failed_precondition,
               text + "w/initial/Assign\")})");
  expect_error([&] { by_group.initialize(); }, Code::failed_precondition,
               text + "initialize_variables\")})");
  by_group.run({*with_group.find("initialize_variables")});
  EXPECT_EQ(by_group.run({}, {with_group.find("w")->output()})[0].item<float>(), 1);
  op_node(bare, "VariableV2", {}, {{"shape", Shape{}}, {"dtype", f32}});
  expect_error_with(Code::failed_precondition, "or assign values to the variables",
                    [&] { Session(bare).initialize(); });
  Graph empty;
  constant(empty, 1.0);
  Session(empty).initialize();
}

// The task knows the node; this process knows its line.
TEST(Session, ClusterErrorsHaveTheUsersLine) {
  InProcessCluster cluster({{"worker", 1}});
  const TcpProxy proxy(cluster.spec().address({"worker", 0}));  // prevents a local call
  Graph graph;
  const Output x = placeholder(graph, "x", i32, {});
  const int line = __LINE__ + 1;
  const Output y = floor_div(constant(graph, Tensor::scalar(1)), x);
  Session session(graph, {.target = "grpc://" + proxy.address()});
  const Callable prepared = session.prepare({x}, {y});
  const std::string expected = concat(", tests/frontends/session_test.cc:", line, ")\n");
  expect_error_with(Code::invalid_argument, expected, [&] {
    session.run({{x, Tensor::scalar(0)}}, {y});
  });
  expect_error_with(Code::invalid_argument, expected, [&] { prepared({Tensor::scalar(0)}); });
}

TEST(Session, RunStepsKeepsTheOrderAndNamesTheStepThatFailed) {
  InProcessCluster cluster({{"worker", 1}});
  Graph graph;
  const Output x = placeholder(graph, "x", i32, {});
  const Output y = floor_div(constant(graph, Tensor::scalar(12)), x);
  for (const std::string& target : {std::string(), cluster.target("worker")}) {
    Session session(graph, {.target = target});
    const Callable prepared = session.prepare({x}, {y});
    std::vector<int> values;
    const auto result = [&](int64_t, std::vector<Tensor>& fetches) {
      values.push_back(fetches[0].item<int>());
    };
    prepared.run_steps(
        4,
        [](int64_t step, std::vector<Tensor>& feeds) {
          feeds.push_back(Tensor::scalar(static_cast<int>(step + 1)));
        },
        result, 3);
    EXPECT_EQ(values, (std::vector<int>{12, 6, 4, 3}));
    expect_error_with(Code::invalid_argument, "step 2: ", [&] {
      prepared.run_steps(
          4,
          [](int64_t step, std::vector<Tensor>& feeds) {
            feeds.push_back(Tensor::scalar(static_cast<int>(2 - step)));
          },
          result);
    });
    EXPECT_EQ(values.size(), 6u);
    const Callable alone = session.prepare({}, {constant(graph, Tensor::scalar(1))});
    alone.run_steps(3);
    expect_error_with(Code::invalid_argument, "at least one step must be in flight",
                      [&] { alone.run_steps(3, 0); });
  }
}

TEST(Operands, RejectEmptyOutputs) {
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {});
  const Output never;
  expect_error_with(Code::invalid_argument, "session_test.cc:", [&] { x + never; });
  expect_error_with(Code::invalid_argument, "is an empty Output", [&] { never* x; });
  expect_error_with(Code::invalid_argument, "is an empty Output", [&] { never * 2; });
}

TEST(Operands, KeepIntegersExact) {
  Graph graph;
  const Output x = constant(graph, Tensor::scalar<int64_t>(0));
  const Output u = constant(graph, Tensor::scalar<uint64_t>(0));
  Session session(graph);
  constexpr int64_t odd = (int64_t{1} << 53) + 1;
  EXPECT_EQ(session.run({}, {x + odd})[0].item<int64_t>(), odd);
  EXPECT_EQ(session.run({}, {u + UINT64_MAX})[0].item<uint64_t>(), UINT64_MAX);
  expect_error_with(Code::invalid_argument, "cannot be a constant of dtype uint64",
                    [&] { u + -1; });
  expect_error_with(Code::invalid_argument, "cannot be a constant of dtype int64",
                    [&] { x + UINT64_MAX; });
  expect_error_with(Code::invalid_argument, "cannot be a constant of dtype int64",
                    [&] { x + 0.5; });
}

TEST(Variables, ReportMistakes) {
  Graph graph;
  expect_error_with(Code::invalid_argument, "has an empty initialiser",
                    [&] { variable(graph, "a", {2}, nullptr); });
  // Its extents exceed int32; they must not be truncated.
  const int64_t large = (int64_t{1} << 32) + 5;
  const Output w = variable(graph, "w", {large});
  EXPECT_EQ(w.shape()[0], large);
  for (const auto& node : graph.nodes()) {
    if (node->is("Fill")) {
      EXPECT_EQ(node->output().shape(), (Shape{large}));
    }
  }
}

TEST(Variables, NameAFailingInitialiser) {
  Graph graph;
  const int line = __LINE__ + 1;
  const auto make = [&] { variable(graph, "w", {2}, initializers::orthogonal()); };
  expect_error_with(Code::invalid_argument,
                    concat("the initialiser of variable 'w' (", __FILE__, ":", line), make);
  expect_error_with(Code::invalid_argument, "variable 'v'", [&] {
    variable(graph, "v", {2}, [](Graph&, DType, const Shape&) -> Output { return {}; });
  });
}

TEST(Variables, RejectEmptyOutputs) {
  Graph graph;
  for (const auto& action : std::initializer_list<std::function<void()>>{
           [&] { initializer_of(graph, {}); }, [] { part_of({}); }, [] { checkpoint_name({}); }}) {
    expect_error_with(Code::invalid_argument, "a variable is an empty Output", action);
  }
}

TEST(Session, ReportsThatItWasMovedFrom) {
  Graph graph;
  const Output one = constant(graph, Tensor::scalar(1.f));
  Session session(graph);
  Session owner(std::move(session));
  EXPECT_EQ(owner.run({}, {one})[0].item<float>(), 1);
  const auto expect = [](const auto& call) {
    expect_error_with(Code::failed_precondition, "this Session was moved from", call);
  };
  expect([&] { session.run({}, {one}); });
  expect([&] { session.prepare({}, {one}); });
  expect([&] { session.list_devices(); });
  expect([&] { session.close(); });
}

// A node's inputs are a plain member, so a program may create a cycle.
TEST(Session, NamesCyclesInTheGraph) {
  InProcessCluster cluster({{"worker", 1}});
  for (const std::string& target : {std::string(), cluster.target("worker", 0)}) {
    Graph graph;
    const Output x = constant(graph, Tensor::scalar(1.f));
    const Output a = op("Neg", {x}), b = op("Neg", {a});
    a.node->control_inputs.push_back(b.node);
    Session session(graph, {.target = target});
    expect_error_with(Code::invalid_argument, target.empty() ? "'Neg' depends on 'Neg_1'" : "cycle",
                      [&] { session.run({}, {b}); });
  }
}

TEST(Layers, ReportMistakes) {
  Graph graph;
  const Output image = placeholder(graph, "image", f32, {any, 8, 8, 1});
  expect_error_with(Code::invalid_argument, "a window of 9 does not fit into image:0",
                    [&] { max_pool(image, {.size = 9}); });
  expect_error_with(Code::invalid_argument, "a window of 9 does not fit into image:0",
                    [&] { nn::conv2d(image, 1, 9, {.padding = valid}); });
  EXPECT_EQ(avg_pool(image, {.size = 8}).shape()[1], 1);
  const Output logits = placeholder(graph, "logits", f32, {any, 3});
  const Output labels = placeholder(graph, "labels", f32, {any});
  expect_error_with(Code::invalid_argument, "labels must be class numbers",
                    [&] { nn::softmax_cross_entropy(logits, labels); });
}

TEST(Cluster, RejectsAClusterWithoutATask) {
  ASSERT_EQ(setenv("TF_CONFIG", R"({"cluster": {"worker": ["127.0.0.1:1"]}})", 1), 0);
  expect_error_with(Code::invalid_argument, "does not name this process's task",
                    [] { join_cluster(); });
  unsetenv("TF_CONFIG");
}

TEST(Session, ValuesArePrintedOnALineEach) {
  Graph g;
  const std::vector<Tensor> values = Session(g).run({constant(g, {1, 2}), constant(g, 0.5)});
  std::ostringstream all, first, second;
  all << values;
  first << values[0];
  second << values[1];
  EXPECT_EQ(all.str(), first.str() + "\n" + second.str());
}

}  // namespace
}  // namespace leat
