// Recurrent layers on a GPU in 16 bits: mixed precision gives them to it, and they compute what
// they compute in 32 bits, within the rounding of what goes from step to step.
#include <gtest/gtest.h>

#include <cmath>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/session.h"
#include "graph/gradient.h"
#include "graph/ops/seed.h"
#include "tests/cuda/host_gpu.h"

namespace leat {
namespace {

constexpr int64_t batch = 3, time = 9, features = 4, units = 7;

// The outputs, the states, and the gradients of all that the layer reads.
template <class RecurrentCell>
std::vector<Tensor> run(MixedPrecision format, bool reverse, bool has_lengths) {
  (void)host_gpu();
  Graph g;
  random::seed(g, 1);
  const DeviceScope on(g, "/device:GPU:0");
  const RecurrentCell cell(g, units);
  const auto drawn = [&](Shape shape, int64_t seed) {
    return random::normal(g, Dims(shape), {.stddev = 0.5, .seed = seed});
  };
  const Output x = drawn({batch, time, features}, 1);
  std::vector<Output> initial;
  for (int i = 0; i < cell.states(); ++i) initial.push_back(drawn({batch, units}, 2 + i));
  const nn::RnnResult y =
      nn::rnn(cell, x,
              {.lengths = has_lengths ? constant(g, std::vector<int32_t>{time, 0, 4}) : Output{},
               .initial_state = initial,
               .reverse = reverse});
  Output loss = mean(square(y.outputs + 0.3));
  for (const Output& each : y.state) loss += mean(square(each));
  std::vector<Output> xs = {x, cell.kernel(), cell.recurrent_kernel(), cell.bias()};
  xs.insert(xs.end(), initial.begin(), initial.end());
  std::vector<Output> fetches = gradients({loss}, xs);
  fetches.push_back(y.outputs);
  fetches.insert(fetches.end(), y.state.begin(), y.state.end());
  Session session(g, {.mixed_precision = format, .threads = 1});
  session.initialize();
  return session.run({}, fetches);
}

double largest(const Tensor& tensor) {
  double out = 0;
  for (const float value : tensor.span<float>()) out = std::max(out, std::abs(double{value}));
  return out;
}

template <class RecurrentCell>
void expect_near_float32(MixedPrecision format, double rounding, bool reverse, bool has_lengths) {
  SCOPED_TRACE(testing::Message() << "reverse " << reverse << ", lengths " << has_lengths
                                  << ", rounding " << rounding);
  const std::vector<Tensor> exact =
      run<RecurrentCell>(MixedPrecision::nothing, reverse, has_lengths);
  const std::vector<Tensor> rounded = run<RecurrentCell>(format, reverse, has_lengths);
  for (size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(exact[i].shape(), rounded[i].shape()) << i;
    double difference = 0;
    for (int64_t e = 0; e < exact[i].elements(); ++e) {
      const double a = exact[i].data<float>()[e], b = rounded[i].data<float>()[e];
      difference = std::max(difference, std::abs(a - b));
    }
    EXPECT_LT(difference, 8 * rounding * largest(exact[i])) << "value " << i;
    EXPECT_GT(difference, 0) << "value " << i << " is that of 32 bits";
  }
}

template <class RecurrentCell>
void expect_near_float32_each_way() {
  for (int mask = 0; mask < 4; ++mask) {
    const bool reverse = mask & 1, has_lengths = mask & 2;
    expect_near_float32<RecurrentCell>(MixedPrecision::bfloat16, 1.0 / 256, reverse, has_lengths);
    expect_near_float32<RecurrentCell>(MixedPrecision::float16, 1.0 / 2048, reverse, has_lengths);
  }
}

TEST(RecurrentLayers, LstmIn16Bits) { expect_near_float32_each_way<nn::Lstm>(); }
TEST(RecurrentLayers, GruIn16Bits) { expect_near_float32_each_way<nn::Gru>(); }

}  // namespace
}  // namespace leat
