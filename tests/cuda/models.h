// Training steps of the usual kinds of networks, small.
#pragma once

#include <ostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "runtime/local_session.h"
#include "tests/cuda/host_gpu.h"

namespace leat {

// A training step, and the batches that it gets.
struct Training {
  Graph graph;
  std::vector<std::pair<std::string, Tensor>> batch;
  Output loss;
  Node* train = nullptr;
};

inline Tensor numbers(const Shape& shape) {
  std::mt19937 random(static_cast<unsigned>(shape.elements()));
  std::normal_distribution<float> normal;
  Tensor out(f32, shape);
  for (float& each : out.span<float>()) each = normal(random);
  return out;
}
inline Tensor classes(const Shape& shape, int count) {
  Tensor out(i32, shape);
  int next = 0;
  for (int32_t& each : out.span<int32_t>()) each = next++ % count;
  return out;
}

inline Output feed(Training& t, const std::string& name, Tensor value) {
  const Output out = placeholder(t.graph, name, value.dtype(), value.shape());
  t.batch.emplace_back(out.name(), std::move(value));
  return out;
}

inline void finish(Training& t, Output loss, Node& train) {
  t.loss = loss;
  t.train = &train;
}

inline void mlp(Training& t) {
  const Output x = feed(t, "x", numbers({8, 20})), labels = feed(t, "labels", classes({8}, 5));
  const Output hidden = nn::dense(x, 16, {.activation = relu});
  const Output loss = mean(nn::softmax_cross_entropy(nn::dense(hidden, 5), labels));
  finish(t, loss, Adam{1e-2}.minimize(loss));
}

inline Output convolutions(Output images, bool normalises) {
  Output x = nn::conv2d(images, 4, 3);
  if (normalises) x = nn::batch_norm(x, true);
  x = max_pool(relu(x), 2);
  x = nn::conv2d(x, 6, 3, {.strides = 2, .activation = relu});
  return nn::dense(nn::flatten(x), 5);
}

inline void cnn(Training& t) {
  const Output x = feed(t, "x", numbers({4, 9, 9, 2})), labels = feed(t, "labels", classes({4}, 5));
  const Output loss = mean(nn::softmax_cross_entropy(convolutions(x, false), labels));
  finish(t, loss, Momentum{1e-2, 0.9}.minimize(loss));
}

inline void cnn_with_batch_norm(Training& t) {
  const Output x = feed(t, "x", numbers({4, 9, 9, 2})), labels = feed(t, "labels", classes({4}, 5));
  const Output loss = mean(nn::softmax_cross_entropy(convolutions(x, true), labels));
  finish(t, loss, Momentum{1e-2, 0.9}.minimize(loss));
}

// As frontends/cpp/examples/char_lstm.cc.
inline void lstm(Training& t) {
  constexpr int64_t length = 6, units = 8, characters = 7;
  const Output ids = feed(t, "ids", classes({3, length}, characters));
  const nn::Lstm cell(t.graph, units);
  const nn::Dense logits(t.graph, units, characters);
  const Output by_time = transpose(ids);
  const std::vector<Output> zero = cell.zero_state(ids);
  auto [time, h, c, sum] =
      while_loop([](Output i, Output, Output, Output) { return i < length - 1; },
                 [&](Output i, Output h, Output c, Output sum) {
                   const auto state = cell(one_hot(take(by_time, i), characters), {h, c});
                   const Output wanted = take(by_time, i + 1);
                   const Output loss = mean(nn::softmax_cross_entropy(logits(state[0]), wanted));
                   return std::tuple{i + 1, state[0], state[1], sum + loss};
                 },
                 constant(t.graph, 0), zero[0], zero[1], constant(t.graph, 0.0F));
  const Output loss = sum / static_cast<double>(length - 1);
  finish(t, loss, Adam{1e-2}.minimize(loss));
}

// Without a loop: nn::rnn() makes one op of it; rows that end earlier.
inline void recurrent_layers(Training& t) {
  constexpr int64_t length = 6, characters = 7;
  const Output ids = feed(t, "ids", classes({3, length}, characters)),
               wanted = feed(t, "wanted", classes({3, length}, characters));
  const Output lengths = constant(t.graph, {6, 2, 5});
  const nn::Lstm forward(t.graph, 8), backward(t.graph, 5);
  const nn::RnnResult both =
      nn::bidirectional_rnn(forward, backward, one_hot(ids, characters), {.lengths = lengths});
  const Output first = nn::softmax_cross_entropy(nn::dense(both.outputs, characters), wanted);
  const nn::RnnResult back = nn::rnn(nn::Lstm(t.graph, 4), both.outputs, {.reverse = true});
  const nn::RnnResult gated = nn::rnn(nn::Gru(t.graph, 3), back.outputs, {.lengths = lengths});
  const Output loss = mean(first) + mean(square(back.state[1])) + mean(gated.outputs);
  finish(t, loss, Adam{1e-2}.minimize(loss));
}

// A layer of `size`, with two heads.
inline void transformer_of(Training& t, int64_t size) {
  constexpr int64_t length = 5, words = 11;
  const Output ids = feed(t, "ids", classes({2, length}, words)),
               wanted = feed(t, "wanted", classes({2, length}, 7));
  Output x =
      nn::embedding(ids, words, size) + variable(t.graph, "positions", numbers({length, size}));
  x = nn::layer_norm(x + nn::multi_head_attention(x, x, x, {.heads = 2, .causal = true}));
  x = nn::layer_norm(x + nn::dense(nn::dense(x, 16, {.activation = gelu}), size));
  const Output loss = mean(nn::softmax_cross_entropy(nn::dense(x, words), wanted));
  finish(t, loss, Adam{1e-2}.minimize(loss));
}
inline void transformer(Training& t) { transformer_of(t, 8); }

// The likelihood of values under a Gaussian process, whose scale and noise are learnt. A library
// factors the matrix, between what is recorded.
inline void gaussian_process(Training& t) {
  constexpr int64_t points = 12;
  const Output x = feed(t, "x", numbers({points, 2})), y = feed(t, "y", numbers({points, 1}));
  const Output scale = variable(t.graph, "scale", Tensor::scalar(0.5F)),
               noise = variable(t.graph, "noise", Tensor::scalar(0.1F));
  const Output squares = sum(square(x), 1, {.keep_dims = true});
  const Output distances =
      squares + transpose(squares) - 2.0F * matmul(x, x, {.transpose_b = true});
  const Output covariance = exp(-0.5F * exp(scale) * distances) + exp(noise) * eye(t.graph, points);
  const Output l = cholesky(covariance), z = solve_triangular(l, y);
  const Output loss = 0.5F * sum(square(z)) + sum(log(op("MatrixDiagPart", {l})));
  finish(t, loss, Adam{0.05}.minimize(loss));
}

// Functions of a matrix whose gradients are made of other functions of matrices.
inline void matrix_functions(Training& t) {
  constexpr int64_t n = 5;
  const Output b = feed(t, "b", numbers({n, 2}));
  const Output m = 2.0F * eye(t.graph, n) + 0.2F * variable(t.graph, "m", numbers({n, n}));
  const std::vector<Output> determinant_parts = op_outputs("LogMatrixDeterminant", {m});
  const Eigh parts = eigh(matmul(m, m, {.transpose_b = true}));
  const Output loss = sum(square(inverse(m))) + sum(square(solve(m, b))) - 0.01F * determinant(m) -
                      0.1F * determinant_parts[1] + sum(exp(-parts.values)) +
                      0.1F * sum(square(parts.vectors) * square(parts.values));
  finish(t, loss, Adam{0.05}.minimize(loss));
}

struct Model {
  const char* name;
  void (*build)(Training&);
};
inline void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

inline constexpr Model models[] = {{"mlp", mlp},
                                   {"cnn", cnn},
                                   {"cnn_with_batch_norm", cnn_with_batch_norm},
                                   {"lstm", lstm},
                                   {"recurrent_layers", recurrent_layers},
                                   {"transformer", transformer},
                                   {"gaussian_process", gaussian_process},
                                   {"matrix_functions", matrix_functions}};

// So that both sessions draw the same numbers.
inline void set_seeds(Graph& graph) {
  for (const auto& node : graph.nodes()) {
    if (node->op->is_stateful && node->view().has("seed"))
      node->attrs["seed"] = int64_t{node->id + 1};
  }
}

// Of 20 steps.
inline std::vector<float> losses(Training& training, bool on_gpu, SessionOptions options = {}) {
  (void)host_gpu();
  options.threads = 1;
  LocalSession session(options, {.gpus = on_gpu});
  Node& initialise = initialize_variables(training.graph);
  session.extend(training.graph);
  session.run({}, {}, {initialise.name});
  std::vector<float> out;
  for (int step = 0; step < 20; ++step) {
    out.push_back(session.run(training.batch, {training.loss.name()}, {training.train->name})[0]
                      .item<float>());
  }
  return out;
}

}  // namespace leat
