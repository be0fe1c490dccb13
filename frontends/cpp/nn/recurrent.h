// Recurrent networks: cells, and rnn(), which runs one along a sequence.
//
//   nn::Lstm cell(g, 128, {.name = "lstm"});
//   auto [outputs, state] = nn::rnn(cell, x, {.lengths = lengths});   // x: [batch, time, features]
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "frontends/cpp/nn/activation.h"
#include "frontends/cpp/variables.h"

namespace leat::nn {

// What is computed at one position of a sequence. Its variables are made at the first call, when
// the number of features is known; copies share them.
class Cell {
 public:
  virtual ~Cell() = default;
  int64_t units() const { return shared_->units; }
  virtual int states() const = 0;  // how many tensors its state is; the first is its output

  // The next state of [batch, features] and the state before.
  std::vector<Output> operator()(Output x, const std::vector<Output>& state,
                                 Location at = here()) const {
    return step(project(x, at), state, at);
  }
  // The part that does not depend on the state: of a whole sequence at once, [..., features].
  virtual Output project(Output x, Location at) const = 0;
  virtual std::vector<Output> step(Output projected, const std::vector<Output>& state,
                                   Location at) const = 0;
  // Whether layer() computes a whole sequence of this dtype; else rnn() makes a loop of step().
  virtual bool has_layer(DType /*dtype*/) const { return false; }
  // Of what project() made of [time, batch, features]: the outputs, then the last state. `lengths`:
  // int32 [batch], or none. `reverse`, without lengths: from the last position to the first.
  virtual std::vector<Output> layer(Output projected, const std::vector<Output>& state,
                                    Output lengths, bool reverse, Location at) const;
  // Zeros, [batch, units] each, for as many examples as x has; float32 unless x is of another
  // floating-point type.
  std::vector<Output> zero_state(Output x, Location at = here()) const;

  Output kernel() const { return shared_->kernel; }  // none before the first call, as the others
  Output recurrent_kernel() const { return shared_->recurrent; }
  Output bias() const { return shared_->bias; }

 protected:
  struct Shared {
    Graph& graph;
    int64_t units;
    std::string kind, name, scope;  // "lstm", as messages say
    Output kernel, recurrent, bias;
  };
  Cell(Graph& graph, int64_t units, std::string kind, const std::string& name, Location at);
  // `gates` kernels of that many units, side by side.
  void make(Output x, int gates, const Initializer& kernel, const Initializer& recurrent,
            const Initializer& bias, int bias_rows, Location at) const;
  // x kernel + bias, of [..., features].
  Output affine(Output x, Output bias, Location at) const;

  std::shared_ptr<Shared> shared_;

 private:
  friend class WeightReads;
};

// h' = tanh(x·kernel + h·recurrent_kernel + bias). Elman, Cognitive Science 1990.
struct SimpleRnnOptions {
  Activation activation = leat::tanh;
  Initializer kernel_initializer = initializers::glorot_uniform();
  Initializer recurrent_initializer = initializers::glorot_uniform();
  std::string name = "simple_rnn";
};
class SimpleRnn : public Cell {
 public:
  SimpleRnn(Graph& graph, int64_t units, SimpleRnnOptions options = {}, Location at = here())
      : Cell(graph, units, "simple_rnn", options.name, at), options_(std::move(options)) {}
  int states() const override { return 1; }
  Output project(Output x, Location at) const override;
  std::vector<Output> step(Output projected, const std::vector<Output>& state,
                           Location at) const override;

 private:
  SimpleRnnOptions options_;
};

struct LstmOptions {
  Initializer kernel_initializer = initializers::glorot_uniform();
  Initializer recurrent_initializer = initializers::glorot_uniform();
  double forget_bias = 1;  // what the forget gate's bias begins with
  std::string name = "lstm";
};
// State {h, c}. With i, f, g, o the quarters of x·kernel + h·recurrent_kernel + bias:
// c' = σ(f) c + σ(i) tanh(g);  h' = σ(o) tanh(c'). Hochreiter and Schmidhuber, Neural Computation
// 1997; Gers et al., 2000. Variables as Keras has them: `name`/kernel [features, 4 units],
// recurrent_kernel [units, 4 units], bias [4 units].
class Lstm : public Cell {
 public:
  Lstm(Graph& graph, int64_t units, LstmOptions options = {}, Location at = here())
      : Cell(graph, units, "lstm", options.name, at), options_(std::move(options)) {}
  int states() const override { return 2; }
  Output project(Output x, Location at) const override;
  std::vector<Output> step(Output projected, const std::vector<Output>& state,
                           Location at) const override;
  bool has_layer(DType dtype) const override;
  std::vector<Output> layer(Output projected, const std::vector<Output>& state, Output lengths,
                            bool reverse, Location at) const override;

 private:
  LstmOptions options_;
};

struct GruOptions {
  Initializer kernel_initializer = initializers::glorot_uniform();
  Initializer recurrent_initializer = initializers::glorot_uniform();
  std::string name = "gru";
};
// State {h}. With z, r, g the thirds of x·kernel + bias[0], and z', r', g' those of
// h·recurrent_kernel + bias[1]: h' = u h + (1 - u) tanh(g + σ(r + r') g'), u = σ(z + z'). Cho et
// al., EMNLP 2014, in the form of cuDNN and Keras (reset_after). Variables: `name`/kernel
// [features, 3 units], recurrent_kernel [units, 3 units], bias [2, 3 units].
class Gru : public Cell {
 public:
  Gru(Graph& graph, int64_t units, GruOptions options = {}, Location at = here())
      : Cell(graph, units, "gru", options.name, at), options_(std::move(options)) {}
  int states() const override { return 1; }
  Output project(Output x, Location at) const override;
  std::vector<Output> step(Output projected, const std::vector<Output>& state,
                           Location at) const override;
  bool has_layer(DType dtype) const override;
  std::vector<Output> layer(Output projected, const std::vector<Output>& state, Output lengths,
                            bool reverse, Location at) const override;

 private:
  GruOptions options_;
};

struct RnnOptions {
  // Integers [batch]. Positions after the end of an example give zeros and keep its state.
  TensorLike lengths = Output();
  std::vector<Output> initial_state = {};  // none: zeros
  bool reverse = false;                    // from the end of each example to its beginning
  bool time_major = false;  // x: [time, batch, features], outputs: [time, batch, units]
  // A while loop in any case. An Lstm or Gru of float32 or float64 is one op otherwise, which is
  // faster, but whose gradients have no gradients.
  bool as_loop = false;
  std::string name = "rnn";
};
struct RnnResult {
  Output outputs;             // [batch, time, units], or [time, batch, units] if time_major
  std::vector<Output> state;  // after the last position
};
// x: [batch, time, features], or [time, batch, features] if time_major; features known. One op, or
// a loop over time; gradients() goes through.
RnnResult rnn(const Cell& cell, Output x, const RnnOptions& options = {}, Location at = here());
// One cell in each direction; outputs side by side, [batch, time, units + units]. State: that of
// the first, then that of the second.
RnnResult bidirectional_rnn(const Cell& forward, const Cell& backward, Output x,
                            const RnnOptions& options = {}, Location at = here());

}  // namespace leat::nn
