// SessionOptions::recompute: models train to the same bits in less memory.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "graph/import/graph_def.h"
#include "runtime/local_session.h"
#include "runtime/program.h"
#include "tests/support/in_process_cluster.h"

namespace leat {
namespace {

Output data(Graph& graph, const Shape& shape) {
  std::mt19937 random(static_cast<unsigned>(shape.elements()));
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& value : values) value = normal(random);
  return variable(graph, "data", Tensor::of<float>(shape, values), {.trainable = false});
}

// So that every session draws the same numbers.
void set_seeds(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op->is_stateful && node->view().has("seed"))
      node->attrs["seed"] = int64_t{node->id + 1};
  }
}

struct Outcome {
  std::vector<std::string> values;  // the loss of each step, then all variables, as bytes
  size_t arena_bytes = 0;           // of the training step, all segments together
  int copies = 0;                   // nodes that run again
};

std::string bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw()), tensor.bytes()};
}

class Training {
 public:
  Training(const std::function<Output(Graph&)>& model, const Optimizer& optimizer,
           bool uses_resource_variables = false) {
    graph_.use_resource_variables(uses_resource_variables);
    loss_ = mean(square(model(graph_) - 0.5f));
    step_ = &optimizer.minimize(loss_);
    initialize_ = &initialize_variables(graph_);
    set_seeds(graph_);
    for (const Output& v : graph_.collection("variables")) {
      if (v.dtype() == DType::resource) {
        variables_.push_back(op("ReadVariableOp", {v}, {{"dtype", f32}}).name());
      } else {
        variables_.push_back(v.name());
      }
    }
  }

  Outcome run(SessionOptions options) const {
    options.threads = 2;
    LocalSession session(options, {.gpus = false});
    session.extend(graph_);
    session.run({}, {}, std::vector<std::string>{initialize_->name});
    const auto callable =
        session.make_callable({.fetches = {loss_.name()}, .targets = {step_->name}});
    Outcome out;
    std::vector<Tensor> fetches;
    for (int i = 0; i < 4; ++i) {
      session.run_callable(callable, {}, fetches);
      EXPECT_TRUE(std::isfinite(fetches[0].item<float>()));
      out.values.push_back(bytes_of(fetches[0]));
    }
    for (const auto& program : session.registered_graph(callable)->programs()) {
      for (size_t i = 0; i < program->plan().segments.size(); ++i)
        out.arena_bytes += program->segment(static_cast<int>(i)).counts().arena_bytes;
      for (const auto& node : program->plan().graph.nodes())
        out.copies += node->name.starts_with("Recomputed/") ? 1 : 0;
    }
    for (const Tensor& value : session.run({}, variables_, {}))
      out.values.push_back(bytes_of(value));
    EXPECT_NE(out.values[0], out.values[3]) << "it trains";
    return out;
  }

 private:
  Graph graph_;
  Output loss_;
  const Node* step_ = nullptr;
  const Node* initialize_ = nullptr;
  std::vector<std::string> variables_;
};

struct Savings {
  double layers = 1, automatic = 1;  // of the arena without
};

Savings compare(const Training& training, const SessionOptions& options = {}) {
  const auto run = [&](Recompute recompute) {
    SessionOptions own = options;
    own.recompute = recompute;
    return training.run(own);
  };
  const Outcome whole = run(Recompute::nothing), layers = run(Recompute::layers),
                automatic = run(Recompute::automatic);
  EXPECT_EQ(whole.copies, 0);
  EXPECT_TRUE(layers.values == whole.values) << "to the bit";
  EXPECT_TRUE(automatic.values == whole.values) << "to the bit";
  const auto ratio = [&](const Outcome& outcome) {
    return static_cast<double>(outcome.arena_bytes) / static_cast<double>(whole.arena_bytes);
  };
  return {ratio(layers), ratio(automatic)};
}

Output perceptron(Graph& graph) {
  Output x = data(graph, {256, 64});
  for (int i = 0; i < 24; ++i) x = relu(nn::dense(x, 64));
  return x;
}

Output transformer(Graph& graph, double dropout_rate) {
  Output x = data(graph, {4, 16, 32});
  for (int i = 0; i < 8; ++i) {
    const Output a = nn::layer_norm(x);
    const Output seen = nn::multi_head_attention(a, a, a, {.heads = 4, .causal = true});
    x = x + nn::dropout(seen, dropout_rate, {.seed = i + 1});
    const Output h = gelu(nn::dense(nn::layer_norm(x), 128));
    x = x + nn::dropout(nn::dense(h, 32), dropout_rate, {.seed = i + 100});
  }
  return x;
}

TEST(Recompute, TrainsAPerceptronInLessMemory) {
  const Training training(perceptron, Sgd{0.05});
  const Savings fused = compare(training), plain = compare(training, {.fuse = false});
  EXPECT_LT(fused.automatic, 0.5);
  EXPECT_LT(plain.automatic, 0.5);
  const Savings not_simplified = compare(training, {.simplify = false});
  EXPECT_LT(not_simplified.automatic, 0.5);
}

TEST(Recompute, TrainsWithAdamAndResourceVariables) {
  const Training training(perceptron, Adam{0.001}, true);
  EXPECT_LT(compare(training).automatic, 0.5);
}

TEST(Recompute, TrainsAConvolutionalNetworkWithBatchNorm) {
  const Training training(
      [](Graph& g) {
        Output x = data(g, {4, 16, 16, 8});
        for (int i = 0; i < 12; ++i)
          x = relu(nn::batch_norm(nn::conv2d(x, 8, 3), {.training = true}));
        return x;
      },
      Sgd{0.05});
  const Savings savings = compare(training);
  EXPECT_LT(savings.automatic, 0.6);
  EXPECT_LT(savings.layers, 0.8) << "what enters batch_norm need not be kept";
}

TEST(Recompute, TrainsATransformerInLessMemory) {
  const Training training([](Graph& g) { return transformer(g, 0); }, Sgd{0.05});
  const Savings savings = compare(training);
  EXPECT_LT(savings.automatic, 0.45);
  EXPECT_LT(savings.layers, 0.6);
}

TEST(Recompute, DrawsTheNumbersOfADropoutOnce) {
  const Training training([](Graph& g) { return transformer(g, 0.1); }, Sgd{0.05});
  const Savings savings = compare(training);
  EXPECT_LT(savings.automatic, 0.7);
  EXPECT_LT(savings.layers, 0.8);
}

TEST(Recompute, LeavesAWhileLoopAsItIs) {
  const Training training(
      [](Graph& g) {
        Output x = nn::dense(data(g, {64, 32}), 32);
        const auto [i, y] =
            while_loop([](Output i, Output) { return i < 5; },
                       [](Output i, Output y) { return std::tuple(i + 1, tanh(y * 1.5f)); },
                       constant(g, 0), x);
        return y;
      },
      Sgd{0.05});
  compare(training);
}

TEST(Recompute, TrainsWithConditions) {
  const Training training(
      [](Graph& g) {
        Output x = data(g, {64, 64});
        for (int i = 0; i < 6; ++i) {
          const Output h = relu(nn::dense(x, 64));
          x = cond(
              mean(h) > 0.2f, [&] { return tanh(h * 2.0f) + x; },
              [&] { return sigmoid(sin(h)) * x; });
        }
        return x;
      },
      Sgd{0.05});
  compare(training);
}

// Variables on a ps: what crosses to the worker is kept there.
TEST(Recompute, IsAnOptionOfSessionsOnAClusterToo) {
  InProcessCluster cluster({{"ps", 1}, {"worker", 1}});
  Graph graph;
  graph.scopes().device_function = [](const OpDef& op, const AttrMap&) {
    return DeviceName::parse(op.is_variable ? "/job:ps/task:0" : "/job:worker/task:0");
  };
  const Output loss = mean(square(perceptron(graph) - 0.5f));
  const Node& train = Sgd{0.05}.minimize(loss);
  const Node& initialize = initialize_variables(graph);
  set_seeds(graph);
  std::vector<float> losses;
  for (const Recompute recompute : {Recompute::nothing, Recompute::layers, Recompute::automatic}) {
    Session session(
        graph,
        {.target = cluster.target("worker", 0), .recompute = recompute, .isolate_state = true});
    session.run({initialize});
    RunMetadata ran;
    for (int i = 0; i < 3; ++i) {
      losses.push_back(session
                           .run({}, std::vector<Output>{loss}, Targets{train},
                                {.partition_graphs = true}, &ran)[0]
                           .item<float>());
    }
    int copies = 0;
    for (const std::string& part : ran.partition_graphs) {
      for (const WrittenNode& node : read_graph_def(part, "a test"))
        copies += node.name.starts_with("Recomputed/") ? 1 : 0;
    }
    EXPECT_EQ(copies > 0, recompute != Recompute::nothing) << copies;
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(losses[3 + i], losses[i]);
    EXPECT_EQ(losses[6 + i], losses[i]);
  }
}

}  // namespace
}  // namespace leat
