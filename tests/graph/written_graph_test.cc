// The reader for graphs with ops that Leat does not know.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "graph/formats/records.h"
#include "graph/import/graph_def.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* text = R"(
node {
  name: "a" op: "FutureOp" device: "/gpu:0" input: "b:1" input: "^c"
  attr { key: "T" value { type: DT_FLOAT_REF } }
  attr { key: "odd" value { type: 9999 } }
  attr { key: "shape" value { shape { dim { size: -1 } dim { size: 3 } } } }
  attr { key: "deep" value { shape { dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} dim {} } } }
  attr { key: "edge" value { i: 7 } }
  attr { key: "types" value { list { type: DT_INT32 type: DT_HALF } } }
  attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1000000000 } dim { size: 1000000000 } } } } }
  attr { key: "fn" value { func { name: "body" } } }
}
)";

TEST(ReadGraphDef, KeepsUnknownOpsAndAttributes) {
  const auto nodes = read_graph_def(text, "graph.pbtxt");
  ASSERT_EQ(nodes.size(), 1u);
  const WrittenNode& node = nodes[0];
  EXPECT_EQ(node.op, "FutureOp");
  EXPECT_EQ(node.device, "/gpu:0");
  EXPECT_THAT(node.inputs, ElementsAre("b:1", "^c"));
  EXPECT_EQ(node.attrs.at("T").get<DType>(), f32);
  EXPECT_EQ(node.attrs.at("odd").get<DType>(), DType::invalid);
  EXPECT_EQ(node.attrs.at("shape").get<Shape>(), (Shape{any, 3}));
  EXPECT_FALSE(node.attrs.at("deep").get<Shape>().has_rank());
  EXPECT_EQ(node.attrs.at("edge").get<int64_t>(), 7);
  EXPECT_EQ(node.attrs.at("types").get<std::vector<DType>>(), (std::vector<DType>{i32, f16}));
  EXPECT_EQ(node.tensors.at("value").shape,
            (Shape{1000000000, 1000000000}));  // nothing was allocated
  EXPECT_FALSE(node.attrs.contains("fn"));
}

TEST(ReadGraphDef, ReadsTheBinaryForm) {
  // GraphDef{node{name: "x", op: "NoOp"}}, by hand.
  const std::string bytes = std::string("\x0a\x09\x0a\x01x\x12\x04NoOp", 11);
  const auto nodes = read_graph_def(bytes, "graph.pb");
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].name, "x");
  EXPECT_EQ(nodes[0].op, "NoOp");
}

// A field of a message that holds others.
std::string field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) +
         std::string(1, static_cast<char>(bytes.size())) + bytes;
}

TEST(ReadGraphDef, ReadsEveryFileThatHoldsAGraph) {
  const std::string graph = field(1, field(1, "x") + field(2, "NoOp"));
  const std::string info = field(1, field(1, "v1") + field(4, "serve"));
  const std::string meta = info + field(2, graph) + field(3, field(1, "save"));
  const std::string model = std::string("\x08\x01", 2) + field(2, meta);
  const std::string time = "\x09" + std::string("\0\0\0\0\0\0\xf0\x3f", 8);
  const std::string version = framed_record(time + field(3, "brain.Event:2"));
  const std::pair<const char*, std::string> files[] = {
      {"graph.pb", graph},
      {"model.ckpt.meta", meta},
      {"saved_model.pb", model},
      {"events.out", version + framed_record(time + field(4, graph))},
      {"events.out of a meta graph", version + framed_record(time + field(9, meta))},
      {"graph.pbtxt", "node { name: 'x' op: 'NoOp' }"},
      {"meta.pbtxt", "meta_info_def { tags: 'serve' } graph_def { node { name: 'x' op: 'NoOp' } }"},
      {"saved_model.pbtxt",
       "saved_model_schema_version: 1 meta_graphs { graph_def { node { name: 'x' "
       "op: 'NoOp' } } }"},
  };
  for (const auto& [name, bytes] : files) {
    SCOPED_TRACE(name);
    const auto nodes = read_graph_def(bytes, name);
    ASSERT_EQ(nodes.size(), 1u);
    EXPECT_EQ(nodes[0].name, "x");
    EXPECT_EQ(nodes[0].op, "NoOp");
  }
}

TEST(ReadGraphDef, ReportsOtherFileKinds) {
  const std::string time = "\x09" + std::string("\0\0\0\0\0\0\xf0\x3f", 8);
  const std::pair<std::string, const char*> files[] = {
      {framed_record(time + field(3, "brain.Event:2")), "an event file without a graph (1 events)"},
      {framed_record(field(1, field(1, "a"))) + framed_record("b"),
       "a TFRecord file with 2 records"},
      {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
      {std::string("\x1c\0\0\0TFL3", 8), "a TensorFlow Lite model"},
      {"PK\x03\x04...", "a zip archive"},
      {std::string(40, '\0') + "\x57\xfb\x80\x8b\x24\x75\x47\xdb", "the index of a checkpoint"},
      {"model_checkpoint_path: \"m\"\n", "the checkpoint list"},
  };
  for (const auto& [bytes, what] : files) {
    try {
      read_graph_def(bytes, "some/file");
      ADD_FAILURE() << what;
    } catch (const Error& error) {
      EXPECT_THAT(std::string(error.message()), HasSubstr("some/file is not a graph but "));
      EXPECT_THAT(std::string(error.message()), HasSubstr(what));
    }
  }
}

TEST(ReadGraphDef, ReportsWhereAFileIsWrong) {
  const auto message = [](std::string_view bytes) -> std::string {
    try {
      read_graph_def(bytes, "some/file");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.message();
    }
    return "no error";
  };
  EXPECT_THAT(message(""), HasSubstr("some/file is not a GraphDef (0 bytes"));
  EXPECT_THAT(message(std::string_view("\x01\x02\x00zzz", 6)),
              HasSubstr("neither binary nor text"));
  EXPECT_THAT(message("node {\n  name: \"a\"\n  name }"), HasSubstr("line 3"));
  EXPECT_THAT(message("versions { producer: 1 }"), HasSubstr("some/file has no nodes"));
  // Nested deeper than a stack allows.
  std::string deep = "node { attr { key: 'a' value ";
  for (int i = 0; i < 200'000; ++i) deep += "{ func { attr { key: 'a' value ";
  EXPECT_THAT(message(deep), HasSubstr("some/file is not a GraphDef: "));
}

}  // namespace
}  // namespace leat
