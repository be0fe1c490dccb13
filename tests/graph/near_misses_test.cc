#include "graph/near_misses.h"

#include <gtest/gtest.h>

namespace leat {
namespace {

TEST(NearMisses, AreSortedByDistance) {
  EXPECT_EQ(near_misses("MatMull", {"Add", "MatMul", "Matmul", "MatMuls", "BatchMatMul"}),
            (std::vector<std::string>{"MatMul", "MatMuls", "Matmul"}));
  EXPECT_EQ(near_misses("reul", {"relu", "real"}), (std::vector<std::string>{"real", "relu"}));
  EXPECT_EQ(near_misses("x", {"X", "y"}), (std::vector<std::string>{"X"}));
  EXPECT_TRUE(near_misses("loss", {"accuracy", "w", "logits"}).empty());
}

TEST(NearMisses, FindNamesWithoutTheirScope) {
  EXPECT_EQ(near_misses("MatMul", {"logits/MatMul", "logits/Relu"}),
            (std::vector<std::string>{"logits/MatMul"}));
}

TEST(NearMisses, CompleteASentence) {
  EXPECT_EQ(did_you_mean("los", {"loss", "lot", "las"}), "; did you mean 'las', 'loss' or 'lot'?");
  EXPECT_EQ(did_you_mean("los", {"x"}), "");
}

}  // namespace
}  // namespace leat
