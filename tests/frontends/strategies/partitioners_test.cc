// The numbers are the results of TensorFlow 2.21's partitioners.
#include "frontends/cpp/strategies/parts/partitioners.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace leat::partitioners {
namespace {

TEST(Partitioners, KeepPartsBelowASize) {
  struct Case {
    Shape shape;
    DType dtype;
    int64_t max_bytes, parts, parts_of_at_most_3;
  };
  for (const Case& c : {Case{{1024, 1024}, f32, 1, 1024, 3}, Case{{1024, 1024}, f32, 1 << 20, 4, 3},
                        Case{{10, 3}, f32, 48, 3, 3}, Case{{10, 3}, f32, 100, 2, 2},
                        Case{{7}, DType::string, 1, 7, 3}, Case{{7}, DType::string, 48, 3, 3},
                        Case{{5, 4}, f64, 48, 5, 3}, Case{{5, 4}, f64, 1 << 20, 1, 1}}) {
    EXPECT_EQ(axis_size(c.max_bytes)(c.shape, c.dtype).parts, c.parts) << c.shape << c.max_bytes;
    EXPECT_EQ(axis_size(c.max_bytes, {.max_parts = 3})(c.shape, c.dtype).parts,
              c.parts_of_at_most_3)
        << c.shape << c.max_bytes;
  }
}

TEST(Partitioners, KeepPartsAboveASize) {
  struct Case {
    Shape shape;
    DType dtype;
    int64_t max_parts, parts, parts_of_50_bytes;
  };
  for (const Case& c : {Case{{1024, 1024}, f32, 4, 4, 4}, Case{{1024, 1024}, f32, 100, 16, 100},
                        Case{{10, 3}, f32, 4, 1, 3}, Case{{7}, DType::string, 100, 1, 3},
                        Case{{5, 4}, f64, 100, 1, 4}, Case{{0, 4}, f64, 100, 1, 1}}) {
    EXPECT_EQ(min_max(c.max_parts)(c.shape, c.dtype).parts, c.parts) << c.shape << c.max_parts;
    EXPECT_EQ(min_max(c.max_parts, {.min_bytes = 50})(c.shape, c.dtype).parts, c.parts_of_50_bytes)
        << c.shape << c.max_parts;
  }
}

TEST(Partitioners, CutTheGivenAxis) {
  EXPECT_EQ(fixed_size(3, 1)({10, 3}, f32).axis, 1);
  const Partitioning cut = axis_size(40, {.axis = 1})({10, 3}, f32);
  EXPECT_EQ(cut.axis, 1);
  EXPECT_EQ(cut.parts, 3);
  EXPECT_EQ(min_max(2, {.axis = 1, .min_bytes = 1})({10, 3}, f32).axis, 1);
  expect_error(
      [] {
        axis_size(40, {.axis = 2})({10, 3}, f32);
      },
      Code::invalid_argument,
      "the partitioner axis_size cuts axis 2, but the variable is [10,3]: give an "
      "axis in [0, 2)");
}

TEST(Partitioners, RejectNonPositiveNumbers) {
  expect_error([] { fixed_size(0); }, Code::invalid_argument,
               "the partitioner fixed_size needs a positive number of parts, got 0");
  expect_error([] { axis_size(0); }, Code::invalid_argument,
               "the partitioner axis_size needs a positive max_bytes, got 0");
  expect_error([] { axis_size(1, {.max_parts = -1}); }, Code::invalid_argument,
               "the partitioner axis_size needs max_parts >= 0 (0: no limit), got -1");
  expect_error([] { min_max(0); }, Code::invalid_argument,
               "the partitioner min_max needs a positive max_parts, got 0");
}

}  // namespace
}  // namespace leat::partitioners
