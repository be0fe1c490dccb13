// Outputs of nodes as text.
#include "graph/endpoint.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

TEST(Endpoint, ParsesANodeWithAndWithoutAnIndex) {
  EXPECT_EQ(Endpoint::parse("w"), (Endpoint{"w", 0}));
  EXPECT_EQ(Endpoint::parse("w:0"), (Endpoint{"w", 0}));
  EXPECT_EQ(Endpoint::parse("layer/split:12"), (Endpoint{"layer/split", 12}));
  for (const char* text : {":0", "w:", "w:x", "w:1x", "w:-1", "w:99999999999"})
    EXPECT_FALSE(Endpoint::parse(text)) << text;
}

TEST(Endpoint, PrintsShortAndFullNames) {
  EXPECT_EQ((Endpoint{"w", 0}.short_name()), "w");
  EXPECT_EQ((Endpoint{"w", 0}.full_name()), "w:0");
  EXPECT_EQ((Endpoint{"w", 2}.short_name()), "w:2");
  EXPECT_EQ((Endpoint{"w", 2}.full_name()), "w:2");
  EXPECT_LT((Endpoint{"w", 2}), (Endpoint{"w", 10}));
}

TEST(Endpoint, CompletesOnlyNamesWithoutAnIndex) {
  EXPECT_EQ(Endpoint::complete("w"), "w:0");
  EXPECT_EQ(Endpoint::complete("w:1"), "w:1");
  EXPECT_EQ(Endpoint::complete("w:x"), "w:x");
}

TEST(Endpoint, FindsTheNodeInFunctionEndpoints) {
  EXPECT_EQ(node_of("w:1"), "w");
  EXPECT_EQ(node_of("call:output:1"), "call");
  EXPECT_EQ(signal_of("w:1"), "^w");
}

}  // namespace
}  // namespace leat
