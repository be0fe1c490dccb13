#include "core/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "core/error.h"

namespace leat {
namespace {

TEST(Shape, PrintsItsExtents) {
  EXPECT_EQ(Shape().to_string(), "[]");
  EXPECT_EQ(Shape({2, 3}).to_string(), "[2,3]");
  EXPECT_EQ(Shape({any, 784}).to_string(), "[?,784]");
  EXPECT_EQ(Shape::unknown().to_string(), "<unknown>");
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape({2, 3}).elements(), 6);
  EXPECT_EQ(Shape({2, 0, 3}).elements(), 0);
  EXPECT_EQ(Shape({any}).elements(), -1);
  EXPECT_EQ(Shape::unknown().elements(), -1);
  EXPECT_EQ(Shape({int64_t{1} << 40, 0, int64_t{1} << 40}).elements(), 0);
  EXPECT_THROW(Shape({int64_t{1} << 40, int64_t{1} << 40}).elements(), Error);
}

TEST(Shape, CopiesAndMovesManyDimensions) {
  for (const int rank : {4, 5, 6, Shape::max_rank}) {
    Shape shape;
    for (int axis = 0; axis < rank; ++axis) shape.push_back(axis + 2);
    Shape copy = shape;
    EXPECT_EQ(copy, shape);
    copy.set(rank - 1, 1);
    copy.set(0, 7);
    EXPECT_EQ(shape[rank - 1], rank + 1);
    EXPECT_EQ(shape[0], 2);
    EXPECT_EQ(copy[rank - 1], 1);

    const Shape before = shape;
    Shape moved = std::move(shape);
    EXPECT_EQ(moved, before);
    EXPECT_EQ(shape.rank(), 0);  // NOLINT: what was moved from is a scalar
    EXPECT_EQ(shape, Shape());   // NOLINT
    shape = moved;
    EXPECT_EQ(shape, before);
    moved = Shape{3};
    EXPECT_EQ(moved, Shape{3});
    moved = std::move(shape);
    EXPECT_EQ(moved, before);
    EXPECT_EQ(moved.dims().size(), static_cast<size_t>(rank));
    EXPECT_EQ(Shape::of_rank(rank).merged(before), before);
  }
}

TEST(Shape, RejectsInvalidExtentsAndRanks) {
  EXPECT_THROW(Shape({-2}), Error);
  const std::vector<int64_t> ones(Shape::max_rank + 1, 1);
  EXPECT_THROW(Shape{std::span(ones)}, Error);
  EXPECT_THROW(Shape::of_rank(Shape::max_rank + 1), Error);
  Shape full = Shape::of_rank(Shape::max_rank);
  EXPECT_THROW(full.push_back(1), Error);
  Shape unknown = Shape::unknown();
  EXPECT_THROW(unknown.push_back(1), Error);
}

TEST(Shape, MergesPartialShapes) {
  EXPECT_TRUE(Shape({any, 3}).is_compatible({2, any}));
  EXPECT_EQ(Shape({any, 3}).merged({2, any}), Shape({2, 3}));
  EXPECT_EQ(Shape::unknown().merged({2}), Shape({2}));
  EXPECT_EQ(Shape({2}).merged(Shape::unknown()), Shape({2}));
  EXPECT_FALSE(Shape({2}).is_compatible({3}));
  EXPECT_FALSE(Shape({2}).is_compatible({2, 1}));
  EXPECT_THROW(Shape({2}).merged({3}), Error);
  EXPECT_FALSE(Shape({any}) == Shape({2}));
  EXPECT_TRUE(Shape({any}) == Shape({any}));
  EXPECT_FALSE(Shape({any}).is_complete());
  EXPECT_FALSE(Shape::unknown().is_complete());
}

TEST(Shape, Broadcasts) {
  EXPECT_EQ(broadcast({2, 3}, {3}), Shape({2, 3}));
  EXPECT_EQ(broadcast({2, 1}, {1, 3}), Shape({2, 3}));
  EXPECT_EQ(broadcast({}, {2, 3}), Shape({2, 3}));
  EXPECT_EQ(broadcast({any, 3}, {2, 1}), Shape({2, 3}));
  EXPECT_EQ(broadcast({any}, {1}), Shape({any}));
  EXPECT_EQ(broadcast({any}, {any}), Shape({any}));
  EXPECT_EQ(broadcast({0}, {1}), Shape({0}));
  EXPECT_FALSE(broadcast(Shape::unknown(), {2}).has_rank());
  try {
    broadcast({2, 3}, {4});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "Incompatible shapes: [2,3] vs. [4]");
  }
}

}  // namespace
}  // namespace leat
