// nn::rnn(), against the cells' formulas written as loops over numbers.
#include "frontends/cpp/nn/recurrent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "graph/gradient.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

constexpr int batch = 3, steps = 4, features = 2, units = 3;
using Vector = std::vector<double>;

Tensor random_tensor(const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> numbers(-1, 1);
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  for (float& value : values) value = numbers(engine);
  return Tensor::of<float>(shape, values);
}

// x · matrix + bias, for one row x.
Vector product(const Vector& x, const Tensor& matrix, const float* bias) {
  const int64_t columns = matrix.shape()[1];
  Vector out(static_cast<size_t>(columns));
  for (int64_t j = 0; j < columns; ++j) {
    out[static_cast<size_t>(j)] = bias == nullptr ? 0 : bias[j];
    for (size_t i = 0; i < x.size(); ++i)
      out[static_cast<size_t>(j)] +=
          x[i] * matrix.data<float>()[static_cast<int64_t>(i) * columns + j];
  }
  return out;
}

double sigma(double x) { return 1 / (1 + std::exp(-x)); }

struct Weights {
  Tensor kernel, recurrent, bias;
};
using Step = std::function<void(const Vector& x, std::vector<Vector>& state, const Weights& w)>;

void lstm_step(const Vector& x, std::vector<Vector>& state, const Weights& w) {
  const Vector a = product(x, w.kernel, w.bias.data<float>()),
               b = product(state[0], w.recurrent, nullptr);
  for (size_t u = 0; u < units; ++u) {
    const auto gate = [&](size_t k) { return a[k * units + u] + b[k * units + u]; };
    state[1][u] = sigma(gate(1)) * state[1][u] + sigma(gate(0)) * std::tanh(gate(2));
    state[0][u] = sigma(gate(3)) * std::tanh(state[1][u]);
  }
}

void gru_step(const Vector& x, std::vector<Vector>& state, const Weights& w) {
  const Vector a = product(x, w.kernel, w.bias.data<float>()),
               b = product(state[0], w.recurrent, w.bias.data<float>() + 3 * units);
  for (size_t u = 0; u < units; ++u) {
    const double z = sigma(a[u] + b[u]), r = sigma(a[units + u] + b[units + u]);
    state[0][u] = z * state[0][u] + (1 - z) * std::tanh(a[2 * units + u] + r * b[2 * units + u]);
  }
}

void simple_step(const Vector& x, std::vector<Vector>& state, const Weights& w) {
  const Vector a = product(x, w.kernel, w.bias.data<float>()),
               b = product(state[0], w.recurrent, nullptr);
  for (size_t u = 0; u < units; ++u) state[0][u] = std::tanh(a[u] + b[u]);
}

struct Reference {
  Vector outputs = Vector(batch * steps * units);
  std::vector<Vector> state;  // each [batch, units]
};
Reference along(const Tensor& x, const Weights& w, int states, const Step& step,
                const std::vector<int>& lengths, bool reverse) {
  Reference out{.state = std::vector<Vector>(static_cast<size_t>(states), Vector(batch * units))};
  for (size_t b = 0; b < batch; ++b) {
    std::vector<Vector> state(static_cast<size_t>(states), Vector(units));
    const auto length = static_cast<size_t>(lengths[b]);
    for (size_t i = 0; i < length; ++i) {
      const size_t t = reverse ? length - 1 - i : i;
      const float* row = x.data<float>() + (b * steps + t) * features;
      step(Vector(row, row + features), state, w);
      std::copy(state[0].begin(), state[0].end(),
                out.outputs.begin() + static_cast<int64_t>((b * steps + t) * units));
    }
    for (size_t s = 0; s < state.size(); ++s)
      std::copy(state[s].begin(), state[s].end(),
                out.state[s].begin() + static_cast<int64_t>(b * units));
  }
  return out;
}

void expect_near(const Tensor& got, const Vector& expected, const std::string& what) {
  ASSERT_EQ(got.elements(), static_cast<int64_t>(expected.size())) << what;
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got.data<float>()[i], expected[i], 1e-5) << what << " at " << i;
}

void expect_as_written(const std::function<std::unique_ptr<nn::Cell>(Graph&)>& make,
                       const Step& step) {
  for (const bool reverse : {false, true}) {
    for (const bool has_lengths : {false, true}) {
      SCOPED_TRACE(testing::Message() << "reverse " << reverse << ", lengths " << has_lengths);
      Graph g;
      const auto cell = make(g);
      const Output x = placeholder(g, "x", f32, {any, any, features});
      const Output lengths = placeholder(g, "lengths", i64, {any});
      const nn::RnnResult y =
          nn::rnn(*cell, x, {.lengths = has_lengths ? lengths : Output{}, .reverse = reverse});
      Node& init = initialize_variables(g);
      Session session(g);
      session.run({init});
      // Biases that are not zero.
      const Tensor some = random_tensor(cell->bias().shape(), 7);
      const std::vector<Tensor> weights =
          session.run({}, {cell->kernel(), cell->recurrent_kernel()});

      const Tensor input = random_tensor({batch, steps, features}, 3);
      std::vector<Output> fetches = {y.outputs};
      fetches.insert(fetches.end(), y.state.begin(), y.state.end());
      const Feeds feeds = {
          {x, input}, {lengths, Tensor::of<int64_t>({batch}, {4, 2, 0})}, {cell->bias(), some}};
      const std::vector<Tensor> got = session.run(feeds, fetches);
      const Reference expected =
          along(input, {weights[0], weights[1], some}, cell->states(), step,
                has_lengths ? std::vector<int>{4, 2, 0} : std::vector<int>{4, 4, 4}, reverse);
      expect_near(got[0], expected.outputs, "outputs");
      for (size_t s = 0; s < expected.state.size(); ++s)
        expect_near(got[s + 1], expected.state[s], concat("state ", s));
    }
  }
}

TEST(Rnn, LstmMatchesItsFormula) {
  expect_as_written([](Graph& g) { return std::make_unique<nn::Lstm>(g, units); }, lstm_step);
}

TEST(Rnn, GruMatchesItsFormula) {
  expect_as_written([](Graph& g) { return std::make_unique<nn::Gru>(g, units); }, gru_step);
}

TEST(Rnn, SimpleCellMatchesItsFormula) {
  expect_as_written([](Graph& g) { return std::make_unique<nn::SimpleRnn>(g, units); },
                    simple_step);
}

TEST(Rnn, BidirectionalEqualsTwoRuns) {
  Graph g;
  const nn::Lstm forward(g, 3, {.name = "forward"}), backward(g, 2, {.name = "backward"});
  const Output x = placeholder(g, "x", f32, {batch, steps, features});
  const Output lengths = placeholder(g, "lengths", i32, {batch});
  const nn::RnnResult y = nn::bidirectional_rnn(forward, backward, x, {.lengths = lengths});
  const nn::RnnResult a = nn::rnn(forward, x, {.lengths = lengths}),
                      b = nn::rnn(backward, x, {.lengths = lengths, .reverse = true});
  EXPECT_EQ(y.state.size(), 4U);
  const Output difference = max(abs(y.outputs - concatenate({a.outputs, b.outputs}, 2))) +
                            max(abs(y.state[3] - b.state[1]));
  Node& init = initialize_variables(g);
  Session session(g);
  session.run({init});
  const Feeds feeds = {{x, random_tensor({batch, steps, features}, 3)},
                       {lengths, Tensor::of<int32_t>({batch}, {4, 1, 3})}};
  const std::vector<Tensor> got = session.run(feeds, {y.outputs, difference});
  EXPECT_EQ(got[0].shape(), Shape({batch, steps, 5}));
  EXPECT_EQ(got[1].item<float>(), 0);
}

// The op and the loop: the same values, states and gradients.
template <class RecurrentCell>
void expect_layer_equals_loop(DType dtype, bool reverse, bool has_lengths, bool time_major) {
  SCOPED_TRACE(testing::Message() << dtype << " reverse " << reverse << ", lengths " << has_lengths
                                  << ", time_major " << time_major);
  Graph g;
  const RecurrentCell cell(g, 5);
  const int64_t rows = time_major ? 7 : 3;
  const auto drawn = [&](Shape shape, int64_t seed) {
    return random::normal(g, Dims(shape), {.dtype = dtype, .seed = seed});
  };
  const Output x = drawn({3, 7, 4}, 1);
  const Output lengths = constant(
      g, time_major ? std::vector<int32_t>{3, 0, 1, 2, 2, 3, 1} : std::vector<int32_t>{7, 0, 4});
  std::vector<Output> initial;
  for (int i = 0; i < cell.states(); ++i) initial.push_back(drawn({rows, 5}, 2 + i));
  std::vector<Output> fetches;
  for (const bool as_loop : {false, true}) {
    const nn::RnnResult y = nn::rnn(cell, x,
                                    {.lengths = has_lengths ? lengths : Output{},
                                     .initial_state = initial,
                                     .reverse = reverse,
                                     .time_major = time_major,
                                     .as_loop = as_loop});
    Output loss = sum(square(y.outputs + 0.3));
    for (const Output& each : y.state) loss += sum(sin(each) * each);
    std::vector<Output> xs = {x, cell.kernel(), cell.recurrent_kernel(), cell.bias()};
    xs.insert(xs.end(), initial.begin(), initial.end());
    const std::vector<Output> slopes = gradients({loss}, xs);
    fetches.push_back(cast(y.outputs, f64));
    for (const Output& each : y.state) fetches.push_back(cast(each, f64));
    for (const Output& each : slopes) fetches.push_back(cast(each, f64));
  }
  const auto& nodes = g.nodes();
  EXPECT_TRUE(std::any_of(nodes.begin(), nodes.end(),
                          [](const auto& node) { return node->op->name.ends_with("LayerGrad"); }));
  Session session(g);
  session.initialize();
  // Biases that are not zero.
  const Feeds feeds = {{cell.bias(), [&] {
                          Tensor out(dtype, cell.bias().shape());
                          for (int64_t i = 0; i < out.elements(); ++i) {
                            if (dtype == f32) out.data<float>()[i] = 0.1F * float(i % 7);
                            if (dtype == f64) out.data<double>()[i] = 0.1 * double(i % 7);
                          }
                          return out;
                        }()}};
  const std::vector<Tensor> got = session.run(feeds, fetches);
  for (size_t i = 0; i < got.size() / 2; ++i) {
    const Tensor &layer = got[i], &loop = got[i + got.size() / 2];
    ASSERT_EQ(layer.shape(), loop.shape()) << i;
    for (int64_t e = 0; e < layer.elements(); ++e)
      ASSERT_NEAR(layer.data<double>()[e], loop.data<double>()[e], dtype == f64 ? 1e-9 : 1e-4)
          << "value " << i << " at " << e;
  }
}

TEST(Rnn, LayerEqualsLoop) {
  for (const DType dtype : {f32, f64}) {
    for (int mask = 0; mask < 8; ++mask) {
      const bool reverse = mask & 1, has_lengths = mask & 2, time_major = mask & 4;
      expect_layer_equals_loop<nn::Lstm>(dtype, reverse, has_lengths, time_major);
      expect_layer_equals_loop<nn::Gru>(dtype, reverse, has_lengths, time_major);
    }
  }
}

// Gradients of gradients need the loop; the error says so.
TEST(Rnn, LayerHasFirstGradientsAlone) {
  Graph g;
  const nn::Lstm cell(g, 2);
  const Output x = placeholder(g, "x", f32, {1, 2, 3});
  const auto slope_of = [&](bool as_loop) {
    const Output loss = sum(nn::rnn(cell, x, {.as_loop = as_loop}).outputs);
    return sum(square(gradients(loss, x)[0]));
  };
  const Output of_layer = slope_of(false), of_loop = slope_of(true);
  EXPECT_TRUE(gradients(of_loop, x)[0]);
  expect_error_with(Code::unimplemented, "nn::RnnOptions{.as_loop = true}",
                    [&] { (void)gradients(of_layer, x); });
}

TEST(Rnn, GradientsAgreeWithDifferences) {
  Graph g;
  const nn::Lstm cell(g, units);
  const Output x = placeholder(g, "x", f64, {batch, steps, features});
  const Output lengths = constant(g, {4, 2, 3});
  const Output loss = sum(square(nn::rnn(cell, x, {.lengths = lengths}).outputs), {}) / 2;
  const std::vector<Output> slopes = gradients({loss}, {x, cell.recurrent_kernel()});
  Node& init = initialize_variables(g);
  Session session(g);
  session.run({init});
  std::vector<double> numbers;
  for (int i = 0; i < batch * steps * features; ++i) numbers.push_back(std::sin(i + 0.5));
  const Tensor input = Tensor::of<double>({batch, steps, features}, numbers);
  const Tensor kernel = session.run({}, {cell.recurrent_kernel()})[0];
  const std::vector<Tensor> got = session.run({{x, input}}, slopes);
  const auto differ = [&](Output which, const Tensor& value, const Tensor& slope) {
    for (int64_t i = 0; i < value.elements(); ++i) {
      double sides[2];
      for (const int side : {0, 1}) {
        Tensor moved = value.clone();
        moved.data<double>()[i] += side == 0 ? -1e-5 : 1e-5;
        Feeds feeds = {{which, moved}};
        if (!same(which, x)) feeds.push_back({x, input});
        sides[side] = session.run(feeds, {loss})[0].item<double>();
      }
      EXPECT_NEAR(slope.data<double>()[i], (sides[1] - sides[0]) / 2e-5, 1e-6)
          << which.name() << " at " << i;
    }
  };
  differ(x, input, got[0]);
  differ(cell.recurrent_kernel(), kernel, got[1]);
}

// The sum of a sequence's bits modulo 2: a network without state cannot learn it.
TEST(Rnn, LearnsParity) {
  Graph g;
  // Some other initial weights need far more than 400 steps.
  const nn::Gru cell(g, 8,
                     {.kernel_initializer = initializers::glorot_uniform({.seed = 3}),
                      .recurrent_initializer = initializers::glorot_uniform({.seed = 4})});
  const Output x = placeholder(g, "x", f32, {any, 4, 1}), y = placeholder(g, "y", f32, {any, 1});
  const Output state = nn::rnn(cell, x).state[0];
  const Output w = variable(g, "w", {8, 1}, initializers::glorot_uniform({.seed = 2}));
  const Output loss = mean(square(matmul(state, w) - y));
  Node& train = Adam(0.05).minimize(loss);
  Node& init = initialize_variables(g);
  std::vector<float> bits, parities;
  for (int number = 0; number < 16; ++number) {
    int parity = 0;
    for (int bit = 0; bit < 4; ++bit) {
      bits.push_back(static_cast<float>(number >> bit & 1));
      parity ^= number >> bit & 1;
    }
    parities.push_back(static_cast<float>(parity));
  }
  Session session(g);
  session.run({init});
  const Feeds feeds = {{x, Tensor::of<float>({16, 4, 1}, bits)},
                       {y, Tensor::of<float>({16, 1}, parities)}};
  EXPECT_GT(session.run(feeds, {loss})[0].item<float>(), 0.2F);
  for (int i = 0; i < 400; ++i) session.run(feeds, {train});
  EXPECT_LT(session.run(feeds, {loss})[0].item<float>(), 0.02F);
}

TEST(Rnn, RejectsMistakes) {
  Graph g;
  const nn::Lstm cell(g, 3, {.name = "encoder"});
  const Output x = placeholder(g, "x", f32, {any, any, 2});
  expect_error_with(Code::invalid_argument, "must be [batch, time, features], got Sum:0",
                    [&] { nn::rnn(cell, sum(x, 1)); });
  expect_error_with(Code::invalid_argument, "the initial state has 1 tensors instead of 2", [&] {
    nn::rnn(cell, x, {.initial_state = {zeros(g, {1, 3})}});
  });
  expect_error_with(Code::invalid_argument, "lengths must be integers, got float",
                    [&] { nn::rnn(cell, x, {.lengths = zeros(g, {3})}); });
  nn::rnn(cell, x);
  expect_error_with(Code::invalid_argument, "lstm 'encoder'", [&] {
    nn::rnn(cell, placeholder(g, "wide", f32, {any, any, 5}));
  });
  expect_error_with(Code::invalid_argument, "units must be positive, got 0",
                    [&] { nn::Gru(g, 0); });
}

}  // namespace
}  // namespace leat
