// receive_in_place: which concatenations take what is received where it belongs, and where that is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "graph/passes/pipeline.h"
#include "graph/text.h"

namespace leat {
namespace {

using testing::HasSubstr;

// The op that joins `c` after the pass, in the graph's text; a letter places each node.
std::string op_of_join(const std::string& text) {
  PartitionedGraph parts = partition(parse(text), {});
  receive_in_place(parts);
  for (const auto& [device, part] : parts.partitions) {
    verify(part, "receive_in_place");
    if (const Node* node = part.find("c")) return node->op->name;
  }
  return "none";
}

std::string placeholder(const std::string& name, const std::string& shape,
                        const std::string& device) {
  return name + " = Placeholder(dtype=float, shape=" + shape + ") @" + device + "; ";
}

std::string join(const std::string& axis, const std::string& device = "C") {
  return "axis = Const(dtype=int32, value=int32[] [" + axis + "]) @" + device +
         "; c = ConcatV2(a, b, axis) @" + device;
}

TEST(ReceiveInPlace, TakesWhatLiesInOnePiece) {
  const auto a = placeholder("a", "[20000]", "A"), b = placeholder("b", "[30000]", "B");
  EXPECT_EQ(op_of_join(a + b + join("0")), "_ConcatInPlace");
  EXPECT_EQ(op_of_join(a + b + join("-1")), "_ConcatInPlace");
  EXPECT_EQ(op_of_join(a + placeholder("b", "[30000]", "C") + join("0")), "_ConcatInPlace")
      << "one of them is computed there";
  EXPECT_EQ(op_of_join(placeholder("a", "[1, 100, 300]", "A") +
                       placeholder("b", "[1, 200, 300]", "B") + join("1")),
            "_ConcatInPlace");
}

TEST(ReceiveInPlace, LeavesTheOthers) {
  const auto a = placeholder("a", "[20000]", "A"), b = placeholder("b", "[30000]", "B");
  EXPECT_EQ(
      op_of_join(placeholder("a", "[20000]", "C") + placeholder("b", "[30000]", "C") + join("0")),
      "ConcatV2")
      << "nothing is received";
  EXPECT_EQ(op_of_join(placeholder("a", "[200]", "A") + placeholder("b", "[300]", "B") + join("0")),
            "ConcatV2")
      << "little";
  EXPECT_EQ(op_of_join(placeholder("a", "[8000000]", "A") + placeholder("b", "[800000]", "B") +
                       join("0")),
            "ConcatV2")
      << "more than a kept block";
  EXPECT_EQ(op_of_join(placeholder("a", "[100, 300]", "A") + placeholder("b", "[100, 200]", "B") +
                       join("1")),
            "ConcatV2")
      << "row by row";
  EXPECT_EQ(op_of_join(placeholder("a", "[?]", "A") + b + join("0")), "ConcatV2");
}

TEST(ReceiveInPlace, PlacesFollowFromTheShapes) {
  PartitionedGraph parts = partition(
      parse(placeholder("a", "[20000]", "A") + placeholder("b", "[30000]", "B") +
            placeholder("own", "[7]", "C") +
            "axis = Const(dtype=int32, value=int32[] [0]) @C; c = ConcatV2(a, own, b, axis) @C; "
            "d = ConcatV2(b, b, axis) @C; e = ConcatV2(own, a, axis) @C"),
      {});
  ASSERT_TRUE(receive_in_place(parts));
  std::map<std::string, Graph> of_task;
  for (auto& [device, part] : parts.partitions) {
    if (device.find("/job:C/") != std::string::npos) of_task.emplace(device, std::move(part));
  }
  ASSERT_EQ(of_task.size(), 1u);
  const Graph& part = of_task.begin()->second;
  EXPECT_TRUE(part.find("c")->is("_ConcatInPlace"));
  EXPECT_TRUE(part.find("d")->is("ConcatV2")) << "its input has a place already";
  EXPECT_TRUE(part.find("e")->is("ConcatV2"));
  set_places(of_task, parts.edges);
  for (const CutEdge& edge : parts.edges) {
    EXPECT_EQ(edge.place.joint, part.find("c")->attr<int64_t>("joint")) << edge.producer;
    EXPECT_EQ(edge.place.offset, edge.producer == "a" ? 0u : 80'028u) << edge.producer;
    EXPECT_EQ(edge.place.total, 200'028u) << edge.producer;
  }

  of_task.begin()->second.find("d")->op = &op_named("_ConcatInPlace");
  of_task.begin()->second.find("d")->attrs.emplace("joint", int64_t{1});
  of_task.begin()->second.find("d")->attrs.emplace("received", std::vector<int64_t>{0});
  try {
    set_places(of_task, parts.edges);
    ADD_FAILURE() << "two nodes have one number";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.message(), HasSubstr("has the joint 1 of"));
  }
}

Tensor counted(int64_t size, float first) {
  Tensor out(DType::f32, {size});
  for (int64_t i = 0; i < size; ++i) out.data<float>()[i] = first + static_cast<float>(i);
  return out;
}

Tensor placed_in(const std::shared_ptr<Buffer>& buffer, const Tensor& values, size_t offset) {
  Tensor out(values.dtype(), values.shape(), buffer, offset);
  std::memcpy(out.raw(), values.raw(), values.bytes());
  return out;
}

TEST(ConcatInPlace, CopiesOnlyWhatLiesElsewhere) {
  Graph graph = parse(
      "a = Placeholder(dtype=float); b = Placeholder(dtype=float); d = Placeholder(dtype=float); "
      "axis = Const(dtype=int32, value=int32[] [0]); c = _ConcatInPlace(a, b, d, axis, joint=3, "
      "received=[1])");
  const Node& node = *graph.find("c");
  const Tensor axis = Tensor::scalar(0), first = counted(5, 10), second = counted(6, 20),
               third = counted(7, 30);
  const auto joint = [](int64_t number, size_t bytes = 18 * sizeof(float)) {
    auto buffer = Buffer::allocate(bytes);
    buffer->set_joint(number);
    return buffer;
  };
  const auto expect_joined = [&](const Tensor& got) {
    ASSERT_EQ(got.shape(), (Shape{18}));
    for (int64_t i = 0; i < 18; ++i) {
      const auto at = static_cast<float>(i);
      EXPECT_EQ(got.data<float>()[i], i < 5 ? 10 + at : i < 11 ? 15 + at : 19 + at) << i;
    }
  };
  const auto buffer = joint(3);
  const Tensor in_place = placed_in(buffer, second, 20);
  Tensor got = evaluate(node, std::vector<Tensor>{first, in_place, third, axis})[0];
  expect_joined(got);
  EXPECT_EQ(got.buffer(), buffer);
  EXPECT_EQ(buffer->joint(), 0) << "it is whole";

  const auto of_another_input = joint(3);
  got = evaluate(
      node, std::vector<Tensor>{placed_in(of_another_input, first, 0), second, third, axis})[0];
  expect_joined(got);
  EXPECT_NE(got.buffer(), of_another_input) << "it was not received";

  got = evaluate(node, std::vector<Tensor>{first, second, third, axis})[0];
  expect_joined(got);

  // Buffers of others stay as they are, whatever lies in them.
  for (const auto& other : {joint(4), joint(0), joint(3, 100)}) {
    const Tensor all = placed_in(other, counted(18, 0), 0), part = all.part({6}, 20);
    std::memcpy(const_cast<void*>(part.raw()), second.raw(), second.bytes());
    got = evaluate(node, std::vector<Tensor>{first, part, third, axis})[0];
    expect_joined(got);
    EXPECT_NE(got.buffer(), other);
    EXPECT_EQ(all.data<float>()[0], 0);
    EXPECT_EQ(all.data<float>()[17], 17);
  }
}

TEST(ConcatInPlace, RefusesWhatDoesNotLieInOnePiece) {
  Graph graph = parse(
      "a = Placeholder(dtype=float); b = Placeholder(dtype=float); axis = Const(dtype=int32, "
      "value=int32[] [1]); "
      "c = _ConcatInPlace(a, b, axis, joint=1, received=[0])");
  const Tensor two = Tensor::of<float>({2, 1}, {1, 2});
  try {
    evaluate(*graph.find("c"), std::vector<Tensor>{two, two, Tensor::scalar(1)});
    ADD_FAILURE() << "it was joined";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("does not lie in one piece"));
  }
}

}  // namespace
}  // namespace leat
