// Graphs that need more memory than there is: the error names the node for their client, and the
// steps of another client continue beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ops.h"
#include "tests/support/counter_graph.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t side = 1 << 20;

Graph counter() {
  Graph graph;
  const DeviceScope on(graph, "/job:ps/task:0");
  add_counter(graph);
  return graph;
}

struct Case {
  const char* name;
  std::function<void(Graph& graph, Output dims, Output row)> build;  // the node `big`
};

// Extents are fed, so that the graph itself is small and nothing is known before the step; then
// again as constants.
const Case cases[] = {
    {"Fill",
     [](Graph& graph, Output dims, Output) {
       graph.add(
           {.op = "Fill", .name = "big", .inputs = {dims, constant(graph, Tensor::scalar(1.0f))}});
     }},
    {"MatMul",
     [](Graph& graph, Output, Output row) {
       graph.add(
           {.op = "MatMul", .name = "big", .inputs = {row, row}, .attrs = {{"transpose_a", true}}});
     }},
    {"Tile",
     [](Graph& graph, Output dims, Output) {
       graph.add({.op = "Tile",
                  .name = "big",
                  .inputs = {constant(graph, Tensor::of<float>({1, 1}, {1})), dims}});
     }},
    {"BroadcastTo",
     [](Graph& graph, Output dims, Output) {
       graph.add({.op = "BroadcastTo",
                  .name = "big",
                  .inputs = {constant(graph, Tensor::scalar(1.0f)), dims}});
     }},
    {"Range",
     [](Graph& graph, Output, Output) {
       graph.add({.op = "Range",
                  .name = "big",
                  .inputs = {constant(graph, Tensor::scalar<int64_t>(0)),
                             constant(graph, Tensor::scalar<int64_t>(side * side)),
                             constant(graph, Tensor::scalar<int64_t>(1))}});
     }},
    {"RandomUniform",
     [](Graph& graph, Output dims, Output) {
       graph.add(
           {.op = "RandomUniform", .name = "big", .inputs = {dims}, .attrs = {{"dtype", f32}}});
     }},
    {"strings",
     [](Graph& graph, Output dims, Output) {
       graph.add({.op = "Fill",
                  .name = "big",
                  .inputs = {dims, constant(graph, Tensor::scalar<std::string>("x"))}});
     }},
    {"Add",
     [](Graph& graph, Output, Output row) {
       const Output column =
           graph
               .add({.op = "Reshape",
                     .name = "column",
                     .inputs = {row, constant(graph, Tensor::of<int32_t>({2}, {-1, 1}))}})
               .output();
       graph.add({.op = "AddV2", .name = "big", .inputs = {row, column}});
     }},
    {"OneHot",
     [](Graph& graph, Output, Output row) {
       const Output indices =
           graph.add({.op = "Cast", .name = "cast", .inputs = {row}, .attrs = {{"DstT", i32}}})
               .output();
       graph.add({.op = "OneHot",
                  .name = "big",
                  .inputs = {indices, constant(graph, Tensor::scalar<int32_t>(side)),
                             constant(graph, Tensor::scalar(1.0f)),
                             constant(graph, Tensor::scalar(0.0f))}});
     }},
    {"Pad",
     [](Graph& graph, Output, Output row) {
       graph.add({.op = "Pad",
                  .name = "big",
                  .inputs = {row, constant(graph, Tensor::of<int32_t>({2, 2}, {0, side, 0, 0}))}});
     }},
};

TEST(TooLarge, NodesAreNamedAndOtherSessionsContinue) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  const auto other = cluster.session(counter());
  other->run({}, {}, {"init"});
  float count = 0;
  const auto expect_goes_on = [&] {
    ASSERT_EQ(other->run({}, {"w:0"}, {})[0].item<float>(), count);
    other->run({}, {}, {"add"});
    ++count;
  };
  for (const Case& c : cases) {
    for (const bool is_fed : {true, false}) {
      SCOPED_TRACE(concat(c.name, is_fed ? ", fed" : ""));
      Graph graph;
      const DeviceScope on(graph, "/job:ps/task:0");
      const Tensor extents = Tensor::of<int32_t>({2}, {side, side});
      Tensor zeros(f32, {1, side});
      std::fill_n(zeros.data<float>(), side, 0.0f);
      const Output dims =
          is_fed ? placeholder(graph, "dims", DType::i32, {2}) : constant(graph, extents);
      const Output row = is_fed ? placeholder(graph, "row", f32, {1, any}) : constant(graph, zeros);
      c.build(graph, dims, row);
      graph.add({.op = "Identity", .name = "out", .inputs = {graph.output("big")}});
      try {
        const auto session = cluster.session(graph);
        NamedTensors feeds;
        if (is_fed) feeds = {{"dims:0", extents}, {"row:0", zeros}};
        session->run(feeds, {"out:0"}, {});
        ADD_FAILURE() << "a tensor of a terabyte";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), Code::resource_exhausted) << error.message();
        EXPECT_THAT(error.message(), HasSubstr("{{node big}}"));
      }
      ASSERT_NO_FATAL_FAILURE(expect_goes_on());
    }
  }
}

TEST(TooLarge, VariablesAreNamed) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  const DeviceScope on(graph, "/job:ps/task:0");
  const Output w = graph
                       .add({.op = "VariableV2",
                             .name = "w",
                             .attrs = {{"shape", Shape{side, side}}, {"dtype", f32}}})
                       .output();
  const Output value = graph
                           .add({.op = "Fill",
                                 .name = "zeros",
                                 .inputs = {constant(graph, Tensor::of<int32_t>({2}, {side, side})),
                                            constant(graph, Tensor::scalar(0.0f))}})
                           .output();
  graph.add({.op = "Assign", .name = "init", .inputs = {w, value}});
  const auto session = cluster.session(graph);
  try {
    session->run({}, {}, {"init"});
    ADD_FAILURE() << "a variable of a terabyte";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::resource_exhausted) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("{{node "));
  }
}

}  // namespace
}  // namespace leat
