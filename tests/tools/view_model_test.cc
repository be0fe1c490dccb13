// Folding, cables and labels, on graphs written as text, without Graphviz.
#include "tools/viz/view_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tools/viz/render.h"

namespace leat::viz {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* ps = "/job:ps/replica:0/task:0/device:CPU:0";
constexpr const char* worker = "/job:worker/replica:0/task:0/device:CPU:0";

// A graph as the partitioner leaves it.
class Written {
 public:
  Written& node(std::string name, std::string op, const char* device,
                std::vector<std::string> inputs = {}, AttrMap attrs = {}) {
    nodes.push_back({.name = std::move(name),
                     .op = std::move(op),
                     .device = device,
                     .inputs = std::move(inputs),
                     .attrs = std::move(attrs),
                     .tensors = {}});
    return *this;
  }
  Written& variable(std::string name, Shape shape, const char* device = ps) {
    return node(name, "VariableV2", device, {}, {{"dtype", f32}, {"shape", shape}})
        .node(name + "/read", "Identity", device, {name}, {{"T", f32}});
  }
  // Adds a pair and returns the name of its Recv.
  std::string cut(std::string tensor, const char* from, const char* to, Shape shape,
                  DType dtype = f32) {
    const int64_t edge = edges_++;
    const AttrMap common{
        {"edge", edge}, {"tensor_name", tensor}, {"send_device", from}, {"recv_device", to}};
    AttrMap send = common, recv = common;
    const bool is_signal = tensor.starts_with("^");
    send["T"] = recv["tensor_type"] = is_signal ? std::vector<DType>{} : std::vector<DType>{dtype};
    recv["shape"] = shape;
    node("_send_" + std::to_string(edge), "_Send", from, {tensor}, send);
    node("_recv_" + std::to_string(edge), "_Recv", to, {}, recv);
    return "_recv_" + std::to_string(edge);
  }
  std::vector<WrittenNode> nodes;

 private:
  int64_t edges_ = 0;
};

const ViewBox& box(const ViewModel& view, const std::string& path, int device) {
  for (const ViewBox& each : view.boxes) {
    if (each.path == path && each.device == device && each.kind != ViewBox::Kind::port) return each;
  }
  ADD_FAILURE() << "no box " << path;
  return view.boxes.at(0);
}

// "dense -> dense", data and control edges without cables.
std::vector<std::string> arrows(const ViewModel& view, ViewArrow::Kind kind) {
  std::vector<std::string> out;
  for (const ViewArrow& arrow : view.arrows) {
    if (arrow.kind != kind) continue;
    const auto name = [&](int index) {
      const ViewBox& at = view.boxes[index];
      return at.kind == ViewBox::Kind::port ? "(port)" : at.path;
    };
    out.push_back(name(arrow.from) + " -> " + name(arrow.to));
    if (kind == ViewArrow::Kind::cable) out.back() += ": " + cable_label(arrow.transfers);
  }
  return out;
}

Written small_net() {
  Written graph;
  graph.variable("dense/kernel", {784, 128}).variable("dense/bias", {128});
  const std::string kernel = graph.cut("dense/kernel/read", ps, worker, {784, 128});
  const std::string bias = graph.cut("dense/bias/read", ps, worker, {128});
  graph.node("images", "_Feed", worker, {}, {{"dtype", f32}, {"shape", Shape{any, 784}}})
      .node("dense/MatMul", "MatMul", worker, {"images", kernel})
      .node("dense/BiasAdd", "BiasAdd", worker, {"dense/MatMul", bias});
  return graph;
}

TEST(ViewModel, PairIsOneCableFromProducerToConsumer) {
  const ViewModel view = make_view(small_net().nodes, {.depth = 9});
  EXPECT_THAT(arrows(view, ViewArrow::Kind::cable),
              ElementsAre("dense/kernel -> dense/MatMul: float [784,128] · 392 KiB",
                          "dense/bias -> dense/BiasAdd: float [128] · 512 B"));
  EXPECT_THAT(arrows(view, ViewArrow::Kind::data),
              ElementsAre("images -> dense/MatMul", "dense/MatMul -> dense/BiasAdd"));
  ASSERT_EQ(view.devices.size(), 2u);
  EXPECT_EQ(view.devices[0].label, "/job:ps/task:0 · CPU:0");
  EXPECT_EQ(view.devices[0].bytes_out, 784 * 128 * 4 + 128 * 4);
  EXPECT_EQ(view.devices[1].bytes_in, view.devices[0].bytes_out);
  EXPECT_EQ(view.devices[1].nodes, 3);  // no Recv
}

TEST(ViewModel, NamesTheOpsOfAFusedNode) {
  const char* const device = "/job:worker/replica:0/task:0/device:CPU:0";
  const std::vector<WrittenNode> nodes = {
      {"images", "_Feed", device, {}, {}, {}},
      {"dense/Relu",
       "_Fused",
       device,
       {"images"},
       {{"ops", std::vector<std::string>{"MatMul", "BiasAdd", "Relu"}}},
       {}}};
  const ViewModel view = make_view(nodes, {.depth = 9});
  const auto is_it = [](const ViewBox& box) { return box.op == "MatMul + BiasAdd + Relu"; };
  EXPECT_TRUE(std::any_of(view.boxes.begin(), view.boxes.end(), is_it));
}

TEST(ViewModel, ScopesFoldPerDevice) {
  const ViewModel view = make_view(small_net().nodes, {.depth = 1});
  EXPECT_EQ(box(view, "dense", 0).variables, 2);
  EXPECT_EQ(box_note(box(view, "dense", 0)), "4 nodes: VariableV2 ×2, Identity ×2");
  EXPECT_EQ(box_note(box(view, "dense", 1)), "2 nodes: BiasAdd, MatMul");
  EXPECT_THAT(arrows(view, ViewArrow::Kind::cable),
              ElementsAre("dense -> dense: 2 tensors · 392 KiB"));
  EXPECT_THAT(arrows(view, ViewArrow::Kind::data), ElementsAre("images -> dense"));
}

TEST(ViewModel, VariableAndItsReadAreOneBox) {
  const ViewModel view = make_view(small_net().nodes, {.depth = 9});
  EXPECT_EQ(box(view, "dense/kernel", 0).kind, ViewBox::Kind::variable);
  EXPECT_EQ(box_note(box(view, "dense/kernel", 0)), "variable float [784,128]");
  EXPECT_EQ(box_note(box(view, "images", 1)), "fed float [?,784]");
}

TEST(ViewModel, NodesNamedBelowAVariableJoinItsBox) {
  Written graph;
  graph.variable("dense/kernel", {4, 4})
      .variable("dense/kernel/Adam", {4, 4})
      .variable("dense/kernel/Adam_1", {4, 4});
  graph.node("dense/kernel/initial/zeros", "Const", ps)
      .node("dense/kernel/Assign", "Assign", ps, {"dense/kernel", "dense/kernel/initial/zeros"});
  graph.node("apply", "ApplyAdam", ps,
             {"dense/kernel", "dense/kernel/Adam", "dense/kernel/Adam_1"});
  const ViewModel view = make_view(graph.nodes, {.depth = 9});
  EXPECT_EQ(visible_boxes(view), 2u);
  const ViewBox& kernel = box(view, "dense/kernel", 0);
  EXPECT_EQ(kernel.kind, ViewBox::Kind::variable);
  EXPECT_THAT(kernel.slots, ElementsAre("Adam", "Adam_1"));
  EXPECT_EQ(kernel.variable_bytes, 3 * 64);
  EXPECT_EQ(box_note(kernel), "variable float [4,4]");
  EXPECT_THAT(arrows(view, ViewArrow::Kind::data), ElementsAre("dense/kernel -> apply"));
  EXPECT_EQ(visible_boxes(make_view(graph.nodes, {.depth = 9, .expand = {"dense/kernel"}})), 6u);
}

TEST(ViewModel, ValueForSeveralBoxesArrivesOnceAtAPort) {
  Written graph;
  graph.variable("w", {2, 2});
  const std::string w = graph.cut("w/read", ps, worker, {2, 2});
  graph.node("a", "Relu", worker, {w}).node("b", "Relu", worker, {w});
  const ViewModel view = make_view(graph.nodes);
  EXPECT_THAT(arrows(view, ViewArrow::Kind::cable), ElementsAre("w -> (port): float [2,2] · 16 B"));
  EXPECT_THAT(arrows(view, ViewArrow::Kind::data), ElementsAre("(port) -> a", "(port) -> b"));
  EXPECT_EQ(visible_boxes(view), 3u);
}

TEST(ViewModel, PlacedGraphShowsFutureCuts) {
  Written graph;
  graph.variable("w", {2, 2})
      .node("a", "Relu", worker, {"w/read"})
      .node("b", "Relu", worker, {"w/read", "^w"});
  const ViewModel view = make_view(graph.nodes);
  EXPECT_THAT(arrows(view, ViewArrow::Kind::cable),
              ElementsAre("w -> (port): float [2,2] · 16 B", "w -> b: signal"));
}

TEST(ViewModel, ControlEdgesAreSeparateAndOptional) {
  Written graph;
  graph.node("a", "NoOp", ps).node("b", "NoOp", ps, {"^a"});
  const std::string signal = graph.cut("^a", ps, worker, Shape::unknown());
  graph.node("c", "NoOp", worker, {"^" + signal});
  EXPECT_THAT(arrows(make_view(graph.nodes), ViewArrow::Kind::control), ElementsAre("a -> b"));
  EXPECT_THAT(arrows(make_view(graph.nodes), ViewArrow::Kind::cable),
              ElementsAre("a -> c: signal"));
  EXPECT_TRUE(make_view(graph.nodes, {.shows_control_edges = false}).arrows.empty());
}

TEST(ViewModel, ShowsDanglingSendsAndRelays) {
  Written graph;
  graph.node("a", "Relu", ps);
  const std::string first = graph.cut("a", ps, worker, {1});
  const std::string second = graph.cut(first, worker, ps, {1});
  graph.node("b", "Relu", ps, {second});
  graph.node("lost", "_Send", worker, {"nobody"}, {{"edge", 77}});
  const ViewModel view = make_view(graph.nodes);
  EXPECT_THAT(arrows(view, ViewArrow::Kind::cable),
              ElementsAre("a -> _recv_0: float [1] · 4 B", "_recv_0 -> b: float [1] · 4 B"));
  EXPECT_EQ(box(view, "lost", 1).ops.begin()->first, "_Send");
}

TEST(ViewModel, ConstantsJoinTheirUsers) {
  Written graph;
  graph.node("one", "Const", ps)
      .node("two", "Const", ps)
      .node("a", "Add", ps, {"one", "two"})
      .node("b", "Add", ps, {"two", "a"});
  const ViewModel view = make_view(graph.nodes);
  EXPECT_EQ(box(view, "a", 0).nodes, 2);  // includes `one`
  EXPECT_EQ(box_note(box(view, "a", 0)), "Add");
  EXPECT_EQ(box(view, "two", 0).kind, ViewBox::Kind::constant);
  EXPECT_EQ(visible_boxes(view), 3u);
}

TEST(ViewModel, EqualNamesOnTwoDevicesStayTwoNodes) {
  Written graph;
  graph.node("x", "Const", ps)
      .node("x", "Const", worker)
      .node("a", "Relu", worker, {"x"})
      .node("b", "Relu", ps, {"x"});
  const ViewModel view = make_view(graph.nodes);
  EXPECT_TRUE(arrows(view, ViewArrow::Kind::cable).empty());
  EXPECT_EQ(box(view, "a", 1).nodes, 2);
  EXPECT_EQ(box(view, "b", 0).nodes, 2);
}

TEST(ViewModel, ChosenDepthLeavesAReadableNumberOfBoxes) {
  Written graph;
  for (int i = 0; i < 50; ++i) {
    for (int j = 0; j < 20; ++j) {
      graph.node("layer_" + std::to_string(i) + "/op_" + std::to_string(j), "Relu", ps,
                 j == 0 ? std::vector<std::string>{}
                        : std::vector<std::string>{"layer_" + std::to_string(i) + "/op_" +
                                                   std::to_string(j - 1)});
    }
  }
  const ViewModel view = make_view(graph.nodes);
  EXPECT_EQ(view.depth, 1);
  EXPECT_EQ(visible_boxes(view), 1u);
  EXPECT_EQ(box(view, "layer", 0).siblings, 50);
  EXPECT_EQ(visible_boxes(make_view(graph.nodes, {.depth = 1, .expand = {"layer"}})), 50u);
  // The other siblings, and of layer_7 its first op, its last and those between.
  EXPECT_EQ(visible_boxes(make_view(graph.nodes, {.depth = 1, .expand = {"layer_7"}})), 4u);
  EXPECT_EQ(visible_boxes(make_view(graph.nodes, {.depth = 2})), 150u);
}

TEST(ViewModel, SingleTaskViewShowsEachOtherTaskAsOneBox) {
  const ViewModel view =
      make_view(small_net().nodes, {.depth = 9, .only_device = "/job:ps/task:0"});
  EXPECT_EQ(visible_boxes(view), 3u);
  EXPECT_EQ(box(view, "", 1).kind, ViewBox::Kind::device);
  EXPECT_THAT(arrows(view, ViewArrow::Kind::cable),
              ElementsAre("dense/kernel -> : float [784,128] · 392 KiB",
                          "dense/bias -> : float [128] · 512 B"));
}

TEST(ViewModel, WrongFlagsListTheValidValues) {
  const auto message = [&](const ViewOptions& options) -> std::string {
    try {
      make_view(small_net().nodes, options);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_THAT(message({.only_device = "/job:chief"}), HasSubstr(worker));
  EXPECT_THAT(message({.expand = {"dens"}}), HasSubstr("dens/"));
}

TEST(Labels, FormatBytesAndTotals) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(401408), "392 KiB");
  EXPECT_EQ(format_bytes(int64_t{3} << 40), "3.0 TiB");
  const Transfer known{.tensor = "a:0", .dtype = f32, .shape = {256}},
      unknown{.tensor = "b:0", .dtype = f32, .shape = {any, 4}};
  const Transfer signal{.tensor = "^c"};
  EXPECT_EQ(cable_label({unknown}), "float [?,4]");
  EXPECT_EQ(cable_label({Transfer{.tensor = "d:0", .dtype = f32}}), "float");
  EXPECT_EQ(cable_label({known, unknown}), "2 tensors · ≥ 1.0 KiB");
  EXPECT_EQ(cable_label({known, known}), "2 tensors · 2.0 KiB");
  EXPECT_EQ(cable_label({known, signal}), "float [256] · 1.0 KiB");
  EXPECT_EQ(cable_label({signal, signal}), "2 signals");
}

TEST(Render, DotHasDevicesCablesAndValidSyntax) {
  Written graph = small_net();
  graph.node("odd <&\"name\\", "Some<Op>", worker);
  const std::string dot = to_dot(make_view(graph.nodes), "a \"title\" & <more>");
  EXPECT_THAT(dot, HasSubstr("/job:ps/task:0 · CPU:0"));
  EXPECT_THAT(dot, HasSubstr("style=dashed"));
  EXPECT_THAT(dot, HasSubstr("float [784,128] · 392 KiB"));
  EXPECT_THAT(dot, HasSubstr("odd &lt;&amp;&quot;name\\"));
  EXPECT_THAT(dot, HasSubstr("a &quot;title&quot; &amp; &lt;more&gt;"));
}

TEST(Render, JsonHasEverything) {
  const std::string json = to_json(make_view(small_net().nodes, {.depth = 9}));
  EXPECT_THAT(json, HasSubstr("\"dense/kernel/read:0\""));
  EXPECT_THAT(json, HasSubstr("\"bytes\": 401408"));
}

// One loop without scopes, as in old programs: reshape(matmul(x, w) * 2) and an assignment.
Written flat_graph(int times) {
  Written graph;
  graph.node("x", "Placeholder", worker, {}, {{"dtype", f32}})
      .node("w", "VariableV2", worker, {}, {{"dtype", f32}})
      .node("v", "VariableV2", worker, {}, {{"dtype", f32}});
  for (int i = 0; i < times; ++i) {
    const std::string n = i == 0 ? "" : "_" + std::to_string(i);
    graph.node("MatMul" + n, "MatMul", worker, {"x", "w"})
        .node("mul" + n + "/y", "Const", worker)
        .node("mul" + n, "Mul", worker, {"MatMul" + n, "mul" + n + "/y"})
        .node("Reshape" + n + "/shape", "Const", worker)
        .node("Reshape" + n, "Reshape", worker, {"mul" + n, "Reshape" + n + "/shape"})
        .node("Assign" + n, "Assign", worker, {"v", "Reshape" + n});
  }
  return graph;
}

TEST(ViewModel, MergesNumberedSiblingsOfEqualWork) {
  const Written graph = flat_graph(400);
  const ViewModel view = make_view(graph.nodes);
  EXPECT_EQ(visible_boxes(view), 7u);
  const ViewBox& matmul = box(view, "MatMul", 0);
  EXPECT_EQ(matmul.siblings, 400);
  EXPECT_EQ(matmul.nodes, 400);
  EXPECT_EQ(box(view, "Reshape", 0).siblings, 400);
  EXPECT_EQ(box_note(box(view, "Reshape", 0)), "800 nodes: Reshape ×400, Const ×400");
  EXPECT_THAT(arrows(view, ViewArrow::Kind::data),
              testing::UnorderedElementsAre("x -> MatMul", "w -> MatMul", "MatMul -> mul",
                                            "mul -> Reshape", "v -> Assign", "Reshape -> Assign"));
  EXPECT_THAT(to_dot(view, "flat"), HasSubstr("MatMul ×400"));
  EXPECT_THAT(to_json(view), HasSubstr("\"siblings\": 400"));
  EXPECT_EQ(visible_boxes(make_view(graph.nodes, {.expand = {"MatMul"}})), 406u);
}

// A sibling with neighbours of other kinds stays separate, whatever its name.
TEST(ViewModel, KeepsSiblingsWithOtherNeighboursApart) {
  Written graph = flat_graph(100);
  for (int i = 200; i < 203; ++i)
    graph.node("MatMul_" + std::to_string(i), "MatMul", worker, {"w", "v"});
  graph.node("MatMul_300", "BatchMatMul", worker, {"x", "w"});
  const ViewModel view = make_view(graph.nodes);
  std::vector<std::string> matmuls;
  for (const ViewBox& each : view.boxes) {
    if (each.path.starts_with("MatMul"))
      matmuls.push_back(each.path + " " + std::to_string(each.siblings));
  }
  EXPECT_THAT(matmuls, testing::UnorderedElementsAre("MatMul 100", "MatMul 3", "MatMul_300 1"));
  EXPECT_THAT(to_dot(view, "flat"), HasSubstr("MatMul ×3<"));
}

TEST(ViewModel, KeepsFewBoxesUnmerged) {
  const ViewModel view = make_view(flat_graph(5).nodes);
  for (const ViewBox& each : view.boxes) EXPECT_EQ(each.siblings, 1) << each.path;
}

TEST(ViewModel, ReportsGraphMistakesWithNames) {
  Written graph;
  graph.node("a", "NoOp", worker)
      .node("a", "NoOp", worker)
      .node("a", "NoOp", ps)  // of another partition
      .node("b", "AddV2", worker, {"b", "missing:1"})
      .node("c", "NoOp", worker, {"^gone"});
  EXPECT_THAT(make_view(graph.nodes).mistakes,
              ElementsAre("nodes that share a name: a",
                          "inputs that no node produces: missing:1 of b, ^gone of c",
                          "nodes that feed themselves: b"));
  for (int i = 0; i < 12; ++i) graph.node("d" + std::to_string(i), "NoOp", worker, {"nothing"});
  EXPECT_THAT(make_view(graph.nodes).mistakes[1], HasSubstr("nothing of d7 and 4 more"));
  EXPECT_THAT(make_view(small_net().nodes).mistakes, ElementsAre());
}

}  // namespace
}  // namespace leat::viz
