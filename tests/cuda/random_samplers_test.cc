// Gamma and Poisson numbers and shuffles on a GPU are those of the CPU, step after step, also where
// steps are recorded.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "frontends/cpp/session.h"
#include "graph/ops.h"
#include "kernels/examples.h"
#include "tests/cuda/host_gpu.h"
#include "tests/kernels/agreement.h"

namespace leat {
namespace {

// What six steps draw. `shape` is null for an op that takes no shape.
std::vector<Tensor> draw(const char* device, const char* name, const Tensor* shape,
                         const Tensor& parameters, const AttrMap& attrs) {
  Graph graph;
  const DeviceScope on{graph, device};
  const Output x = placeholder(graph, "x", parameters.dtype(), parameters.shape());
  const Output drawn =
      shape != nullptr ? op(name, {constant(graph, *shape), x}, attrs) : op(name, {x}, attrs);
  Session session(graph, {.threads = 1});
  std::vector<Tensor> out;
  for (int step = 0; step < 6; ++step) out.push_back(session.run({{x, parameters}}, drawn));
  return out;
}

void expect_the_numbers_of_the_cpu(const char* name, const Tensor* shape, const Tensor& parameters,
                                   const AttrMap& attrs, double tolerance) {
  const std::string what = concat(name, " of ", parameters.dtype(), " ", parameters.shape(), " ",
                                  shape == nullptr ? Tensor() : *shape);
  const auto here = draw("/device:CPU:0", name, shape, parameters, attrs);
  for (const uint64_t seed : {0, 77}) {
    set_order_of_threads(seed);
    const auto there = draw("/device:GPU:0", name, shape, parameters, attrs);
    set_order_of_threads(0);
    for (size_t step = 0; step < here.size(); ++step)
      expect_equal(there[step], here[step], tolerance, concat(what, ", step ", step));
  }
  if (here[0].elements() > 30) {
    EXPECT_NE(to_doubles(here[0]), to_doubles(here[1])) << what;
  }
}

// Parameters of both distributions on either side of where the algorithm changes, and some without
// numbers.
const std::vector<double> parameter_values = {0.3, 1,
                                              2.5, 9.99,
                                              10,  700,
                                              0,   -0.5,
                                              -3,  std::numeric_limits<double>::quiet_NaN(),
                                              1e9, std::numeric_limits<double>::infinity()};

Tensor parameters_of(DType dtype) {
  std::vector<double> values = parameter_values;
  if (!is_floating(dtype)) values = {0, 1, 2, 3, 9, 10, 11, 50, 700, 6, 5, 4};
  return from_doubles(dtype, {4, 3}, values);
}

class RandomSamplers : public testing::Test {
 protected:
  RandomSamplers() { (void)host_gpu(); }
};

TEST_F(RandomSamplers, DrawGammaNumbersOfTheCpu) {
  for (const DType dtype : {DType::f16, f32, f64}) {
    for (const Tensor& shape : {ints({}), ints({1}), ints({7, 5}), ints({129})}) {
      expect_the_numbers_of_the_cpu("RandomGamma", &shape, parameters_of(dtype),
                                    {{"seed", 3}, {"seed2", 7}}, tolerance_of(dtype));
    }
  }
}

TEST_F(RandomSamplers, DrawPoissonNumbersOfTheCpu) {
  for (const DType rate : {DType::f16, f32, f64, i32, i64}) {
    for (const DType dtype : {DType::f16, f32, f64, i32, i64}) {
      const Tensor shape = ints({3, 11});
      expect_the_numbers_of_the_cpu("RandomPoissonV2", &shape, parameters_of(rate),
                                    {{"seed", 3}, {"seed2", 7}, {"dtype", dtype}}, 0);
    }
  }
}

TEST_F(RandomSamplers, ShuffleAsTheCpuDoes) {
  for (const DType dtype : {i32, f64, DType::f16, boolean, DType::complex128}) {
    for (const Shape& shape : {Shape{}, Shape{1, 3}, Shape{2}, Shape{5, 3}, Shape{257},
                               Shape{2049, 2}, Shape{3, 0}, Shape{0, 3}}) {
      Tensor rows(dtype, shape);
      auto* const bytes = static_cast<uint8_t*>(rows.raw());
      for (size_t i = 0; i < rows.bytes(); ++i)
        bytes[i] = static_cast<uint8_t>(dtype == boolean ? i % 3 == 0 : i * 7 % 96);
      expect_the_numbers_of_the_cpu("RandomShuffle", nullptr, rows, {{"seed", 3}, {"seed2", 7}}, 0);
    }
  }
}

// Every order comes up, so that the steps back are followed: 5 rows have 120 orders.
TEST_F(RandomSamplers, ShuffleIntoAllOrders) {
  std::set<std::vector<int32_t>> orders;
  const Tensor rows = ints({0, 1, 2, 3, 4});
  for (uint64_t key = 0; key < 1500; ++key) {
    const std::vector<Tensor> inputs = {rows, Tensor::of<uint64_t>({1}, {key}),
                                        Tensor::of<uint64_t>({2}, {0, 5}), Tensor::scalar(1)};
    const std::vector<Tensor> here = run_op("StatelessShuffle", inputs),
                              there = run_op("StatelessShuffle", inputs, {}, host_gpu());
    ASSERT_EQ(there[0].to_vector<int32_t>(), here[0].to_vector<int32_t>()) << key;
    orders.insert(there[0].to_vector<int32_t>());
  }
  EXPECT_EQ(orders.size(), 120u);
}

TEST_F(RandomSamplers, StatelessDrawTheNumbersOfTheCpu) {
  const Tensor shape = ints({9, 4, 3});
  const Tensor key = Tensor::of<uint64_t>({1}, {7}), counter = Tensor::of<uint64_t>({2}, {3, 5}),
               algorithm = Tensor::scalar(1);
  const auto expect = [&](const char* name, const std::vector<Tensor>& inputs, const AttrMap& attrs,
                          double tolerance) {
    expect_equal(run_op(name, inputs, attrs, host_gpu(), exactly())[0],
                 run_op(name, inputs, attrs)[0], tolerance, name);
  };
  for (const DType dtype : {DType::f16, f32, f64}) {
    const Tensor alpha = parameters_of(dtype);
    for (const Tensor& seed : {ints({1, -2}), longs({1, -2})})
      expect("StatelessRandomGammaV2", {shape, seed, alpha}, {}, tolerance_of(dtype));
    expect("StatelessRandomGammaV3", {shape, key, counter, algorithm, alpha}, {},
           tolerance_of(dtype));
  }
  for (const DType rate : {DType::f16, f32, f64, i32, i64}) {
    for (const Tensor& seed : {ints({1, -2}), longs({1, -2})})
      expect("StatelessRandomPoisson", {shape, seed, parameters_of(rate)}, {{"dtype", f32}}, 0);
  }
}

}  // namespace
}  // namespace leat
