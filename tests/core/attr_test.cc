#include "core/attr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace leat {
namespace {

TEST(AttrValue, ReportsItsKind) {
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

TEST(AttrMap, CopiesShareTheirEntriesUntilOneIsWritten) {
  AttrMap a = {{"T", f32}, {"N", 2}};
  AttrMap b = a;
  EXPECT_EQ(&a.at("T"), &b.at("T"));
  EXPECT_FALSE(b.emplace("N", 3));  // N is there and keeps its value
  EXPECT_EQ(&a.at("T"), &b.at("T"));

  b.insert_or_assign("N", 3);
  EXPECT_EQ(a.at("N").get<int64_t>(), 2);
  EXPECT_EQ(b.at("N").get<int64_t>(), 3);
  b.erase("T");
  EXPECT_TRUE(a.contains("T"));
  EXPECT_FALSE(b.contains("T"));
  b.erase("T");
  EXPECT_EQ(b.size(), 1u);

  AttrMap c = a;
  c["N"] = 4;
  EXPECT_EQ(a.at("N").get<int64_t>(), 2);
  EXPECT_FALSE(a == c);
  c["N"] = 2;
  EXPECT_TRUE(a == c);

  AttrMap none;
  none.erase("N");
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.find("N"), none.end());
}

TEST(Shared, EachThreadWritesItsOwnCopy) {
  const Shared<std::string> first(std::string("first"));
  std::vector<std::thread> threads;
  std::vector<std::string> written(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i, mine = first]() mutable {
      for (int round = 0; round < 1000; ++round) {
        Shared<std::string> copy = mine;
        copy.write() += static_cast<char>('0' + i);
        mine = copy;
        if (mine->size() > 10) mine = first;
      }
      written[i] = *mine;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*first, "first");
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(written[i].substr(0, 5), "first");
    EXPECT_EQ(written[i].find_first_not_of(static_cast<char>('0' + i), 5), std::string::npos);
  }
  EXPECT_EQ(*Shared<std::string>(), "");
}

TEST(AttrValue, ComparesTensorsByElement) {
  EXPECT_EQ(AttrValue(Tensor::of<float>({2}, {1, 2})), AttrValue(Tensor::of<float>({2}, {1, 2})));
  EXPECT_FALSE(AttrValue(Tensor::of<float>({2}, {1, 2})) ==
               AttrValue(Tensor::of<float>({2}, {1, 3})));
  EXPECT_FALSE(AttrValue(Tensor::of<float>({2}, {1, 2})) ==
               AttrValue(Tensor::of<float>({1, 2}, {1, 2})));
  EXPECT_EQ(AttrValue(Tensor::scalar("a")), AttrValue(Tensor::scalar("a")));
  EXPECT_FALSE(AttrValue(1) == AttrValue(true));
}

// Nodes share equal values, so two values are equal only if no kernel can tell them apart.
TEST(AttrValue, ValuesThatKernelsDistinguishAreUnequal) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(AttrValue(0.0F) == AttrValue(-0.0F));
  EXPECT_EQ(AttrValue(nan), AttrValue(nan));
  EXPECT_FALSE(AttrValue(std::vector<float>{1, 0.0F}) == AttrValue(std::vector<float>{1, -0.0F}));
  const auto function = [](DType dtype) {
    return FunctionRef{"f", std::make_shared<AttrMap>(AttrMap{{"T", dtype}})};
  };
  EXPECT_EQ(AttrValue(function(f32)), AttrValue(function(f32)));
  EXPECT_FALSE(AttrValue(function(f32)) == AttrValue(function(i32)));
  EXPECT_FALSE(AttrValue(function(f32)) == AttrValue(FunctionRef{"f", nullptr}));
  EXPECT_EQ(AttrValue(FunctionRef{"f", std::make_shared<AttrMap>()}),
            AttrValue(FunctionRef{"f", nullptr}));
  EXPECT_FALSE(AttrValue(std::vector<FunctionRef>{function(f32)}) ==
               AttrValue(std::vector<FunctionRef>{function(i32)}));
}

TEST(AttrValue, WrongKindNamesTheStoredKind) {
  EXPECT_EQ(AttrValue(3).get<int64_t>(), 3);
  try {
    AttrValue(3).get<std::string>();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("int"));
  }
}

TEST(NodeView, MissingAttributeNamesNodeAndOp) {
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
