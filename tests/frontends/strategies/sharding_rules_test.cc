// Every signature of the table of rules, and every conversion between states, against the unsharded
// op: the workers' inputs are made of the whole ones, their outputs are put together again.
#include "frontends/cpp/strategies/sharding/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "frontends/cpp/session.h"
#include "frontends/cpp/strategies/sharding/conversions.h"
#include "graph/ops.h"
#include "tests/support/expect_error.h"

namespace leat::sharding {
namespace {

using collectives::PerReplica;

class Sharding : public testing::Test {
 protected:
  explicit Sharding(int n = 2)
      : n_(n),
        workers_(StrategyCluster(), std::vector<std::string>(static_cast<size_t>(n), "CPU:0")) {}

  // What the workers have of a value in that state: of a partial one different summands.
  PerReplica in_state(const Output& value, State state) {
    if (!state.is_partial()) return to(PerReplica(static_cast<size_t>(n_), value), State(), state);
    PerReplica out;
    Output rest = value;
    for (int k = 0; k + 1 < n_; ++k) {
      out.push_back(value * (k + 3));
      rest = rest - out.back();
    }
    out.push_back(rest);
    return out;
  }
  PerReplica to(const PerReplica& values, State from, State to) {
    return converted(
        workers_, values, from, to, [&](int k) { return workers_.on_worker(graph_, k); }, here());
  }
  // Runs the node in each of its ways; returns how many there are, without the replicated one.
  int check(Node& node) {
    std::vector<Output> wanted, made;
    std::vector<std::string> which;
    const std::vector<Signature> all = signatures(node, n_);
    for (const Signature& signature : all) {
      std::vector<PerReplica> inputs;
      for (size_t i = 0; i < node.inputs.size(); ++i)
        inputs.push_back(in_state(node.inputs[i], signature.inputs[i]));
      std::vector<PerReplica> outputs(node.outputs.size());
      for (int k = 0; k < n_; ++k) {
        std::vector<Output> own;
        for (const PerReplica& input : inputs) own.push_back(input[static_cast<size_t>(k)]);
        const std::vector<Output> results =
            signature.emit ? signature.emit({graph_, k, n_}, node, std::move(own))
                           : same_op(graph_, node, std::move(own));
        for (size_t i = 0; i < results.size(); ++i) outputs[i].push_back(results[i]);
      }
      std::string name = describe(node);
      for (const State state : signature.inputs) name += ", " + state.text();
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (!is_comparable(node.outputs[i].dtype)) continue;
        EXPECT_TRUE(outputs[i][0].shape().is_compatible(
            local_shape(node.outputs[i].shape, signature.outputs[i], n_)))
            << name;
        if (signature.outputs[i].is_split() &&
            !can_split(node.outputs[i].shape, signature.outputs[i].axis(), n_)) {
          ADD_FAILURE() << name << " cannot be split so";
          continue;
        }
        for (const Output& each : to(outputs[i], signature.outputs[i], State())) {
          wanted.push_back(cast(node.output(static_cast<int>(i)), f64));
          made.push_back(cast(each, f64));
          which.push_back(name);
        }
      }
    }
    if (made.empty()) return 0;
    Session session(graph_);
    const std::vector<Tensor> expected = session.run({}, wanted), values = session.run({}, made);
    for (size_t i = 0; i < made.size(); ++i) {
      EXPECT_EQ(values[i].shape(), expected[i].shape()) << which[i];
      if (!(values[i].shape() == expected[i].shape())) continue;
      for (int64_t at = 0; at < values[i].shape().elements(); ++at) {
        const double a = values[i].data<double>()[at], b = expected[i].data<double>()[at];
        if (std::isnan(b)) continue;
        EXPECT_NEAR(a, b, 1e-5 * std::max(1.0, std::abs(b))) << which[i];
      }
    }
    return static_cast<int>(all.size()) - 1;
  }
  static bool is_comparable(DType dtype) {
    return is_floating(dtype) || is_integer(dtype) || dtype == DType::boolean;
  }
  Output numbers(const Shape& shape, float scale = 1) {
    Tensor out(f32, shape);
    for (int64_t i = 0; i < shape.elements(); ++i)
      out.data<float>()[i] = scale * std::sin(static_cast<float>(i * i % 101));
    return constant(graph_, out);
  }
  Output ints(const std::vector<int32_t>& values) {
    Tensor out(i32, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), out.data<int32_t>());
    return constant(graph_, out);
  }

  const int n_;
  Graph graph_;
  Replicas workers_;
};

// The examples in the documentation of the ops, of which many have an axis of 2 or 4 elements.
TEST_F(Sharding, OpsOfTheTableGiveTheirExamples) {
  int ways = 0;
  std::set<std::string> split;
  for (const OpDef* op : all_ops()) {
    if (rule_of(*op) == nullptr) continue;
    for (const Example& example : op->examples) {
      bool has_handle = false;
      for (const ArgDef& arg : op->schema.inputs)
        has_handle = has_handle || arg.is_ref || arg.dtype == DType::resource;
      if (has_handle || op->name == "CheckNumerics") continue;
      std::vector<Output> inputs;
      bool is_comparable_too = true;
      for (const Tensor& input : example.inputs) {
        is_comparable_too = is_comparable_too && is_comparable(input.dtype());
        inputs.push_back(constant(graph_, input));
      }
      if (!is_comparable_too) continue;
      Node& node = graph_.add({.op = op->name, .inputs = inputs, .attrs = example.attrs});
      const int of_node = check(node);
      ways += of_node;
      if (of_node > 0) split.insert(op->name);
    }
    graph_ = Graph();
  }
  EXPECT_GT(split.size(), 70u);
  EXPECT_GT(ways, 150);
}

TEST_F(Sharding, ProductsAreCutByRowsColumnsAndSums) {
  const auto expect = [&](int ways, const Output& made) {
    EXPECT_EQ(check(*made.node), ways) << describe(*made.node);
  };
  const Output a = numbers({4, 6}), b = numbers({6, 8});
  expect(5, matmul(a, b));
  expect(5, matmul(numbers({6, 4}), b, {.transpose_a = true}));
  expect(5, matmul(a, numbers({8, 6}), {.transpose_b = true}));
  expect(4, matmul(numbers({3, 6}), b));  // 3 rows stay together
  expect(7, matmul(numbers({2, 4, 6, 8}), numbers({2, 4, 8, 2})));
  expect(6, matmul(numbers({2, 4, 8}), numbers({1, 8, 2})));  // broadcast over the batch
  expect(3, bias_add(numbers({4, 6}), numbers({6})));
  expect(3, op("BiasAddGrad", {numbers({4, 6})}));
}

TEST_F(Sharding, ConvolutionsAreCutByChannelsAndImages) {
  const auto expect = [&](int ways, const Output& made) {
    EXPECT_EQ(check(*made.node), ways) << describe(*made.node);
  };
  const Output x = numbers({2, 5, 5, 4}), filter = numbers({3, 3, 4, 6}, 0.3F);
  const Output y = conv2d(x, filter);
  expect(4, y);
  const AttrMap attrs = y.node->attrs;
  const auto gradient = [&](const char* name, const std::vector<Output>& inputs, const Output& of) {
    AttrMap used;
    for (const char* attr : {"strides", "padding"})
      used.emplace(attr, of.node->attrs.find(attr)->second);
    return op(name, inputs, used);
  };
  const Output dy = numbers(y.shape());
  expect(3, gradient("Conv2DBackpropInput", {ints({2, 5, 5, 4}), filter, dy}, y));
  expect(3, gradient("Conv2DBackpropFilter", {x, ints({3, 3, 4, 6}), dy}, y));
  const Output depthwise = numbers({3, 3, 4, 2}, 0.3F), z = depthwise_conv2d(x, depthwise);
  expect(2, z);
  const Output dz = numbers(z.shape());
  expect(1, gradient("DepthwiseConv2dNativeBackpropInput", {ints({2, 5, 5, 4}), depthwise, dz}, z));
  expect(1, gradient("DepthwiseConv2dNativeBackpropFilter", {x, ints({3, 3, 4, 2}), dz}, z));
  const Output pooled = max_pool(x), averaged = avg_pool(x);
  expect(2, pooled);
  expect(2, averaged);
  const AttrMap window = {{"ksize", pooled.node->attr<std::vector<int64_t>>("ksize")},
                          {"strides", pooled.node->attr<std::vector<int64_t>>("strides")},
                          {"padding", pooled.node->attr<std::string>("padding")}};
  expect(2, op("MaxPoolGrad", {x, pooled, numbers(pooled.shape())}, window));
  expect(2, op("AvgPoolGrad", {ints({2, 5, 5, 4}), numbers(averaged.shape())}, window));
}

TEST_F(Sharding, ReshapesKeepWhatIsTogether) {
  const auto expect = [&](int ways, const Output& made) {
    EXPECT_EQ(check(*made.node), ways) << describe(*made.node);
  };
  expect(3, reshape(numbers({4, 6, 2}), {4, 12}));  // axes 0 and 1, and sums; axis 2 is in pieces
  expect(3, reshape(numbers({4, 12}), {4, 2, 6}));
  expect(2, reshape(numbers({3, 8}), {3, 4, 2}));  // heads
  expect(2, reshape(numbers({4, 3}), {2, 2, 3}));
  expect(1, reshape(numbers({3, 4}), {4, 3}));  // only sums
  expect(3, transpose(numbers({3, 4, 2}), {2, 0, 1}));
  expect(2, expand_dims(numbers({4}), 1));
}

TEST_F(Sharding, RowsOfTablesAreFoundWhereTheyAre) {
  const auto expect = [&](int ways, const Output& made) {
    EXPECT_EQ(check(*made.node), ways) << describe(*made.node);
  };
  const Output table = numbers({6, 4}), ids = ints({5, 0, 2, 3});
  expect(3, take(table, ids));
  expect(3, take(table, reshape(ints({5, 0, 2, 3, 1, 1}), {2, 3})));
  expect(4, segment_sum(numbers({4, 2}), ids, 6));
}

TEST_F(Sharding, ReductionsOfASplitAxisAreSums) {
  const auto expect = [&](int ways, const Output& made) {
    EXPECT_EQ(check(*made.node), ways) << describe(*made.node);
  };
  const Output x = numbers({4, 6, 3});
  expect(3, sum(x, 1));
  expect(3, mean(x, {0, 1}));
  expect(3, mean(x, 1, {.keep_dims = true}));
  expect(1, max(x, 1));
  expect(1, softmax(numbers({4, 6})));
}

// From each state to each, of 4 · 6 numbers for 2 workers and of 6 · 9 for 3.
class Conversions : public Sharding, public testing::WithParamInterface<int> {
 protected:
  Conversions() : Sharding(GetParam()) {}
};

TEST_P(Conversions, KeepTheTensor) {
  const Output x = n_ == 2 ? numbers({4, 6}) : numbers({6, 9});
  const std::vector<State> states = {State(), State::partial(), State::split(0), State::split(1)};
  Session session(graph_);
  const Tensor expected = session.run({x})[0];
  for (const State from : states) {
    for (const State goal : states) {
      const PerReplica parts = to(in_state(x, from), from, goal);
      // Joined without the code under test.
      Output whole;
      if (goal.is_partial()) {
        whole = add_n(parts);
      } else if (goal.is_split()) {
        whole = concatenate(parts, goal.axis());
      } else {
        for (const Output& each : parts) {
          EXPECT_EQ(each.shape(), x.shape());
          whole = each;
        }
      }
      const Tensor value = session.run({whole})[0];
      ASSERT_EQ(value.shape(), expected.shape()) << from.text() << " to " << goal.text();
      for (int64_t i = 0; i < value.shape().elements(); ++i)
        EXPECT_NEAR(value.data<float>()[i], expected.data<float>()[i], 2e-6)
            << from.text() << " to " << goal.text();
    }
  }
}

// How many rows there are only a step knows.
TEST_P(Conversions, NeedOnlyTheExtentThatIsCut) {
  const Output known = n_ == 2 ? numbers({5, 6}) : numbers({5, 9});
  const Output x = op("PlaceholderWithDefault", {known}, {{"shape", Shape{any, known.shape()[1]}}});
  for (const State from : {State::partial(), State::split(1)}) {
    const PerReplica all = to(in_state(x, from), from, State());
    Session session(graph_);
    const Tensor expected = session.run({known})[0];
    for (const Output& each : all) {
      const Tensor value = session.run({each})[0];
      ASSERT_EQ(value.shape(), expected.shape()) << from.text();
      for (int64_t i = 0; i < value.shape().elements(); ++i)
        EXPECT_NEAR(value.data<float>()[i], expected.data<float>()[i], 2e-6) << from.text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Workers, Conversions, testing::Values(2, 3));

TEST(ShardingPrices, FollowTheFormulas) {
  const State whole, sum = State::partial(), rows = State::split(0), columns = State::split(1);
  EXPECT_EQ(bytes_sent(sum, whole, 1200, 2), 1200);
  EXPECT_EQ(bytes_sent(sum, whole, 4e7, 4), 2 * 3 * 1e7);  // in chunks
  EXPECT_EQ(bytes_sent(rows, whole, 1200, 4), 900);
  EXPECT_EQ(bytes_sent(sum, rows, 1200, 4), 900);
  EXPECT_EQ(bytes_sent(rows, columns, 1600, 4), 300);
  EXPECT_EQ(bytes_sent(whole, rows, 1200, 4), 0);
  EXPECT_EQ(bytes_sent(whole, sum, 1200, 4), 0);
  EXPECT_EQ(cheapest_source(1U << sum.code() | 1U << rows.code(), whole, 1200, 4), rows);
}

}  // namespace
}  // namespace leat::sharding
