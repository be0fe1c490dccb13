// sparse_gradients(): the rows that take() read, and their dense sum wherever rows do not suffice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/session.h"
#include "frontends/cpp/variables.h"
#include "graph/gradient.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

std::vector<float> floats(const Tensor& value) {
  return {value.data<float>(), value.data<float>() + value.elements()};
}

// A table of 5 rows of 2, and weights that give each element of `read` its own gradient.
class SparseGradients : public testing::Test {
 protected:
  Output loss_of(Output read) {
    const Output flat = reshape(read, {-1});
    return sum(flat * cast(arange(g_, size_of(flat, i32)), f32));
  }
  std::vector<Tensor> run(const std::vector<Output>& fetches) {
    Session session(g_);
    session.run({initialize_variables(g_)});
    return session.run({}, fetches);
  }
  // The sum of the rows must equal the result of gradients().
  void expect_equals_dense(Output loss, Output x, const IndexedSlices& got) {
    const Output whole = gradients({loss}, {x})[0];
    const Output rows = segment_sum(got.values, got.indices, constant(g_, 5));
    const std::vector<Tensor> values = run({whole, rows});
    EXPECT_THAT(floats(values[1]), ElementsAreArray(floats(values[0])));
  }

  Graph g_;
  Output table_ = variable(g_, "table", {5, 2}, initializers::ones());
};

TEST_F(SparseGradients, HoldTheRowsThatWereRead) {
  const Output loss = loss_of(take(table_, constant(g_, {3, 1, 3})));
  const IndexedSlices got = sparse_gradients({loss}, {table_})[0];
  ASSERT_TRUE(got.indices);
  const std::vector<Tensor> values = run({got.values, got.indices});
  EXPECT_EQ(values[0].shape(), Shape({3, 2}));
  EXPECT_THAT(floats(values[0]), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(std::vector<int32_t>(values[1].data<int32_t>(), values[1].data<int32_t>() + 3),
              ElementsAre(3, 1, 3));
  expect_equals_dense(loss, table_, got);
}

TEST_F(SparseGradients, HaveOneIndexPerRowForIndicesOfAnyShape) {
  const Output matrix = constant(g_, {{3, 1}, {0, 3}}), scalar = constant(g_, 2);
  for (const Output& ids : {matrix, scalar}) {
    const Output loss = loss_of(take(table_, ids));
    const IndexedSlices got = sparse_gradients({loss}, {table_})[0];
    ASSERT_TRUE(got.indices);
    EXPECT_EQ(run({got.indices})[0].shape().rank(), 1);
    expect_equals_dense(loss, table_, got);
  }
}

TEST_F(SparseGradients, ConcatenateSeveralReads) {
  const Output wide = constant(g_, Tensor::of<int64_t>({2}, {4, 0}));
  const Output loss = loss_of(take(table_, constant(g_, {3}))) +
                      loss_of(take(table_, constant(g_, {{1, 3}}))) + loss_of(take(table_, wide));
  const IndexedSlices got = sparse_gradients({loss}, {table_})[0];
  ASSERT_TRUE(got.indices);
  EXPECT_EQ(run({got.values})[0].shape(), Shape({5, 2}));
  expect_equals_dense(loss, table_, got);
}

TEST_F(SparseGradients, PassThroughReadsOfTheVariable) {
  const Output loss = loss_of(take(identity(identity(table_)), constant(g_, {3, 0})));
  const IndexedSlices got = sparse_gradients({loss}, {table_})[0];
  ASSERT_TRUE(got.indices);
  expect_equals_dense(loss, table_, got);
}

TEST_F(SparseGradients, SupportRowShapesKnownOnlyInTheStep) {
  const Output x = placeholder(g_, "x", f32, {5, any});
  const Output loss = loss_of(take(x, constant(g_, {{3, 1}})));
  const IndexedSlices got = sparse_gradients({loss}, {x})[0];
  ASSERT_TRUE(got.indices);
  Session session(g_);
  const Tensor values = session.run({{x, Tensor(f32, {5, 3})}}, {got.values})[0];
  EXPECT_EQ(values.shape(), Shape({2, 3}));
  EXPECT_THAT(floats(values), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(SparseGradients, AreDenseIfTheWholeIsReadToo) {
  const Output loss = loss_of(take(table_, constant(g_, {3, 1}))) + sum(square(table_));
  const IndexedSlices got = sparse_gradients({loss}, {table_})[0];
  ASSERT_FALSE(got.indices);
  EXPECT_THAT(floats(run({got.values})[0]), ElementsAre(2, 2, 4, 5, 2, 2, 2, 3, 2, 2));
}

TEST_F(SparseGradients, AreDenseForComputedTables) {
  const Output doubled = table_ * 2;
  const Output loss = loss_of(take(doubled, constant(g_, {3, 3})));
  const std::vector<IndexedSlices> got = sparse_gradients({loss}, {table_, doubled});
  ASSERT_FALSE(got[0].indices);
  EXPECT_FALSE(got[1].indices);
  const std::vector<Tensor> values = run({got[0].values, got[1].values});
  EXPECT_THAT(floats(values[0]), ElementsAre(0, 0, 0, 0, 0, 0, 4, 8, 0, 0));
  EXPECT_THAT(floats(values[1]), ElementsAre(0, 0, 0, 0, 0, 0, 2, 4, 0, 0));
}

TEST_F(SparseGradients, AreDenseThroughBranchesAndLoops) {
  const Output ids = constant(g_, {3, 1});
  const Output branch = loss_of(cond(
      constant(g_, true), [&] { return take(table_, ids); },
      [&] {
        return zeros(g_, {2, 2});
      }));
  const Output loop =
      std::get<1>(while_loop([](Output k, Output) { return k < 2; },
                             [&](Output k, Output total) {
                               return std::tuple{k + 1, total + sum(take(table_, ids))};
                             },
                             constant(g_, 0), constant(g_, 0.0f)));
  const std::vector<IndexedSlices> of_branch = sparse_gradients({branch}, {table_}),
                                   of_loop = sparse_gradients({loop}, {table_});
  ASSERT_FALSE(of_branch[0].indices);
  ASSERT_FALSE(of_loop[0].indices);
  const std::vector<Tensor> values = run({of_branch[0].values, of_loop[0].values});
  EXPECT_THAT(floats(values[0]), ElementsAre(0, 0, 2, 3, 0, 0, 0, 1, 0, 0));
  EXPECT_THAT(floats(values[1]), ElementsAre(0, 0, 2, 2, 0, 0, 2, 2, 0, 0));
}

TEST_F(SparseGradients, AreRowsForResourceVariables) {
  const Output handle =
      g_.add({.op = "VarHandleOp", .name = "v", .attrs = {{"dtype", f32}, {"shape", Shape{5, 2}}}})
          .output(0);
  const Output value = ones(g_, {5, 2});
  Node& assign = g_.add({.op = "AssignVariableOp", .inputs = {handle, value}});
  const Output read = op("ResourceGather", {handle, constant(g_, {4, 0})}, {{"dtype", f32}});
  const IndexedSlices got = sparse_gradients({loss_of(read)}, {handle})[0];
  ASSERT_TRUE(got.indices);
  Session session(g_);
  session.run({assign});
  EXPECT_THAT(floats(session.run({}, {got.values})[0]), ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace leat
