#include "core/attr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat {
namespace {

TEST(AttrValue, KnowsItsKind) {
  const std::pair<AttrValue, const char*> rows[] = {
      {"text", "string"},
      {3, "int"},
      {int64_t{1} << 40, "int"},
      {0.5, "float"},
      {true, "bool"},
      {f32, "type"},
      {Shape{2, any}, "shape"},
      {std::vector<int64_t>{1, 2}, "list(int)"},
      {std::vector<std::string>{"a"}, "list(string)"},
      {std::vector<DType>{f32, i64}, "list(type)"},
      {std::vector<bool>{true, false}, "list(bool)"},
      {FunctionRef{"f", nullptr}, "func"},
      {Tensor::scalar(2.0f), "tensor"},
  };
  for (const auto& [value, kind] : rows) {
    EXPECT_EQ(value.kind(), kind);
    EXPECT_EQ(value, AttrValue(value));
  }
  EXPECT_EQ(AttrValue().kind(), "nothing");
}

TEST(AttrValue, TensorsAreComparedByElements) {
  EXPECT_EQ(AttrValue(Tensor::of<float>({2}, {1, 2})), AttrValue(Tensor::of<float>({2}, {1, 2})));
  EXPECT_FALSE(AttrValue(Tensor::of<float>({2}, {1, 2})) ==
               AttrValue(Tensor::of<float>({2}, {1, 3})));
  EXPECT_FALSE(AttrValue(Tensor::of<float>({2}, {1, 2})) ==
               AttrValue(Tensor::of<float>({1, 2}, {1, 2})));
  EXPECT_EQ(AttrValue(Tensor::scalar("a")), AttrValue(Tensor::scalar("a")));
  EXPECT_FALSE(AttrValue(1) == AttrValue(true));
}

TEST(AttrValue, TheWrongKindNamesBoth) {
  EXPECT_EQ(AttrValue(3).get<int64_t>(), 3);
  try {
    AttrValue(3).get<std::string>();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("int"));
  }
}

TEST(NodeView, AMissingAttributeNamesNodeAndOp) {
  const AttrMap attrs = {{"axis", 1}};
  const NodeView node{"layer/concat", "ConcatV2", attrs};
  EXPECT_EQ(node.attr<int64_t>("axis"), 1);
  EXPECT_TRUE(node.has("axis"));
  try {
    node.attr<int64_t>("N");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(),
                testing::AllOf(testing::HasSubstr("layer/concat"), testing::HasSubstr("ConcatV2"),
                               testing::HasSubstr("'N'")));
  }
}

}  // namespace
}  // namespace leat
