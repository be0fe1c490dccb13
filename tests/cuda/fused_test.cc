// `_Fused` on a GPU: one launch for a chain of elementwise ops, and what each op computes by
// itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "frontends/cpp/session.h"
#include "graph/ops/raw.h"
#include "runtime/local_session.h"
#include "tests/cuda/host_gpu.h"
#include "tests/cuda/models.h"

namespace leat {
namespace {

using testing::Pointwise;

Tensor values_of(const Shape& shape, unsigned seed, DType dtype = f32) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> numbers(0.1F, 2);
  std::bernoulli_distribution coin;
  Tensor out(dtype, shape);
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const float number = (i % 3 == 0 ? -1.0F : 1.0F) * numbers(random);
    switch (dtype) {
      case f16:
        out.data<half>()[i] = half(number);
        break;
      case bf16:
        out.data<bfloat16>()[i] = bfloat16(number);
        break;
      case boolean:
        out.data<bool>()[i] = coin(random);
        break;
      default:
        out.data<float>()[i] = number;
    }
  }
  return out;
}

struct Outcome {
  std::vector<Tensor> values;
  int64_t enqueued;
};
using Build = std::function<std::vector<Output>(Graph&, const std::vector<Output>&)>;

// What `build` makes of the inputs on the GPU, in a step that is traced and so not recorded.
Outcome run_on_gpu(const std::vector<Tensor>& inputs, const Build& build, bool fuse,
                   const char* device = "/device:GPU:0") {
  (void)host_gpu();
  Graph graph;
  std::vector<Output> placeholders, results;
  Feeds feeds;
  {
    const DeviceScope on{graph, device};
    for (const Tensor& input : inputs) {
      placeholders.push_back(placeholder(graph, "x", input.dtype(), input.shape()));
      feeds.emplace_back(placeholders.back(), input);
    }
    results = build(graph, placeholders);
  }
  Session session(graph, {.simplify_arithmetic = false, .fuse = fuse, .threads = 1});
  session.run(feeds, results);
  RunMetadata ran;
  const CudaCalls before = count_gpu_calls();
  Outcome out{session.run(feeds, results, {}, {.trace = true}, &ran), 0};
  const CudaCalls after = count_gpu_calls();
  out.enqueued = after.enqueued - before.enqueued - (after.from_host - before.from_host) -
                 (after.to_host - before.to_host);
  return out;
}

std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> out;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    switch (tensor.dtype()) {
      case f16:
        out.push_back(static_cast<float>(tensor.data<half>()[i]));
        break;
      case bf16:
        out.push_back(static_cast<float>(tensor.data<bfloat16>()[i]));
        break;
      case boolean:
        out.push_back(tensor.data<bool>()[i] ? 1 : 0);
        break;
      default:
        out.push_back(tensor.data<float>()[i]);
    }
  }
  return out;
}

// Equal, or both are no numbers.
MATCHER(IsSame, "") {
  const float a = std::get<0>(arg), b = std::get<1>(arg);
  return a == b || (std::isnan(a) && std::isnan(b));
}

// The values with and without fusion, to the bit unless sums may have another order; and how much
// was enqueued with it.
int64_t compare(const std::vector<Tensor>& inputs, const Build& build, float tolerance = 0) {
  const Outcome fused = run_on_gpu(inputs, build, true), apart = run_on_gpu(inputs, build, false);
  for (size_t i = 0; i < apart.values.size(); ++i) {
    EXPECT_EQ(fused.values[i].shape(), apart.values[i].shape());
    const std::vector<float> wanted = floats_of(apart.values[i]);
    if (tolerance > 0) {
      EXPECT_THAT(floats_of(fused.values[i]), Pointwise(testing::FloatNear(tolerance), wanted));
    } else {
      EXPECT_THAT(floats_of(fused.values[i]), Pointwise(IsSame(), wanted)) << "result " << i;
    }
  }
  EXPECT_LE(fused.enqueued, apart.enqueued);
  return fused.enqueued;
}

struct OpCase {
  const char* name;
  int operands;
  AttrMap attrs = {};
};
void PrintTo(const OpCase& op, std::ostream* out) { *out << op.name; }

class FusedOps : public testing::TestWithParam<OpCase> {};

// Behind a sum and before a product, in each format.
TEST_P(FusedOps, ComputeWhatTheOpDoes) {
  for (const DType dtype : {f32, f16, bf16}) {
    SCOPED_TRACE(dtype_name(dtype));
    const bool chooses = std::string_view(GetParam().name).starts_with("Select");
    const bool is_logical = std::string_view(GetParam().name).starts_with("Logical");
    std::vector<Tensor> inputs;
    for (int i = 0; i < GetParam().operands; ++i) {
      const bool is_bool = is_logical || (chooses && i == 0);
      inputs.push_back(values_of({7, 43}, 1 + i, is_bool ? boolean : dtype));
    }
    inputs.push_back(values_of({7, 43}, 9, dtype));
    const int64_t launches =
        compare(inputs, [&](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
          std::vector<Output> operands(x.begin(), x.end() - 1);
          const size_t last = operands.size() - 1;
          if (operands[last].dtype() != boolean) operands[last] = operands[last] + x.back();
          Output y = op(GetParam().name, operands, GetParam().attrs);
          if (y.dtype() == boolean) y = cast(y, dtype);
          return {y * x.back()};
        });
    EXPECT_EQ(launches, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, FusedOps,
    testing::Values(
        OpCase{"Abs", 1}, OpCase{"Add", 2}, OpCase{"AddV2", 2}, OpCase{"Ceil", 1},
        OpCase{"ClipByValue", 3}, OpCase{"Cos", 1}, OpCase{"Div", 2}, OpCase{"DivNoNan", 2},
        OpCase{"Elu", 1}, OpCase{"EluGrad", 2}, OpCase{"Equal", 2}, OpCase{"Erf", 1},
        OpCase{"Erfc", 1}, OpCase{"Exp", 1}, OpCase{"Expm1", 1}, OpCase{"Floor", 1},
        OpCase{"Greater", 2}, OpCase{"GreaterEqual", 2}, OpCase{"Inv", 1}, OpCase{"InvGrad", 2},
        OpCase{"IsFinite", 1}, OpCase{"IsInf", 1}, OpCase{"IsNan", 1},
        OpCase{"LeakyRelu", 1, {{"alpha", 0.3F}}}, OpCase{"LeakyReluGrad", 2, {{"alpha", 0.3F}}},
        OpCase{"Less", 2}, OpCase{"LessEqual", 2}, OpCase{"Log", 1}, OpCase{"Log1p", 1},
        OpCase{"LogicalAnd", 2}, OpCase{"LogicalNot", 1}, OpCase{"LogicalOr", 2},
        OpCase{"Maximum", 2}, OpCase{"Minimum", 2}, OpCase{"Mul", 2}, OpCase{"MulNoNan", 2},
        OpCase{"Neg", 1}, OpCase{"NotEqual", 2}, OpCase{"Pow", 2}, OpCase{"RealDiv", 2},
        OpCase{"Reciprocal", 1}, OpCase{"ReciprocalGrad", 2}, OpCase{"Relu", 1}, OpCase{"Relu6", 1},
        OpCase{"Relu6Grad", 2}, OpCase{"ReluGrad", 2}, OpCase{"Rint", 1}, OpCase{"Round", 1},
        OpCase{"Rsqrt", 1}, OpCase{"RsqrtGrad", 2}, OpCase{"Select", 3}, OpCase{"SelectV2", 3},
        OpCase{"Selu", 1}, OpCase{"SeluGrad", 2}, OpCase{"Sigmoid", 1}, OpCase{"SigmoidGrad", 2},
        OpCase{"Sign", 1}, OpCase{"Sin", 1}, OpCase{"Softplus", 1}, OpCase{"SoftplusGrad", 2},
        OpCase{"Softsign", 1}, OpCase{"SoftsignGrad", 2}, OpCase{"Sqrt", 1}, OpCase{"SqrtGrad", 2},
        OpCase{"Square", 1}, OpCase{"SquaredDifference", 2}, OpCase{"Sub", 2}, OpCase{"Tanh", 1},
        OpCase{"TanhGrad", 2}, OpCase{"Xdivy", 2}, OpCase{"Xlog1py", 2}, OpCase{"Xlogy", 2}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(FusedOnGpu, AddsManyTermsAndRoundsOnce) {
  for (const DType dtype : {f32, f16, bf16}) {
    std::vector<Tensor> inputs;
    for (unsigned i = 0; i < 5; ++i) inputs.push_back(values_of({300}, i, dtype));
    EXPECT_EQ(compare(inputs,
                      [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
                        return {tanh(add_n(x))};
                      }),
              1);
  }
}

// Operands that repeat: scalars, rows, columns, blocks in the middle.
TEST(FusedOnGpu, BroadcastsOperands) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{5}, Shape{4, 1}, Shape{1, 5}, Shape{3, 4, 5},
                             Shape{3, 1, 1}, Shape{1, 4, 1}, Shape{1, 4, 5}}) {
    SCOPED_TRACE(concat(shape));
    const std::vector<Tensor> inputs = {values_of({3, 4, 5}, 1), values_of(shape, 2)};
    EXPECT_EQ(compare(inputs,
                      [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
                        return {exp(-square(x[0] - x[1]) * x[1])};
                      }),
              1);
  }
}

// Extents that are not next to each other: the op's own kernel computes that, the rest is fused.
TEST(FusedOnGpu, FallsBackToTheOpsKernel) {
  const std::vector<Tensor> inputs = {values_of({3, 4, 5}, 1), values_of({3, 1, 5}, 2)};
  compare(inputs, [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
    return {tanh(exp(x[0] * x[0]) - x[1]) + x[0]};
  });
}

// More values than one launch has room for, and results in the middle.
TEST(FusedOnGpu, CutsLongChains) {
  const std::vector<Tensor> inputs = {values_of({400}, 1), values_of({400}, 2)};
  const int64_t launches =
      compare(inputs, [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
        std::vector<Output> results;
        Output y = x[0];
        for (int i = 0; i < 60; ++i) {
          y = 0.5F * tanh(y + x[1]);
          if (i % 20 == 7) results.push_back(y);
        }
        results.push_back(y);
        return results;
      });
  EXPECT_GT(launches, 1);
  EXPECT_LT(launches, 25) << "of 180 nodes";
}

// By rows: reductions over the last axis, what is computed with their results, and what with those.
TEST(FusedOnGpu, ReducesRows) {
  for (const Shape& shape : {Shape{3, 2}, Shape{5, 31}, Shape{4, 33}, Shape{2, 3, 127},
                             Shape{3, 1000}, Shape{2, 4096}}) {
    SCOPED_TRACE(concat(shape));
    const int64_t columns = shape[shape.rank() - 1];
    const std::vector<Tensor> inputs = {values_of(shape, 1), values_of({columns}, 2),
                                        values_of({columns}, 3)};
    const auto normalise = [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
      const Output centre = mean(x[0], -1, {.keep_dims = true});
      const Output spread = mean(squared_difference(x[0], centre), -1, {.keep_dims = true});
      const Output scale = rsqrt(spread + 1e-5F);
      return {(x[0] - centre) * scale * x[1] + x[2], scale};
    };
    const auto softmax = [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
      const Output powers = exp(x[0] - max(x[0], -1, {.keep_dims = true}));
      return {powers / sum(powers, -1, {.keep_dims = true})};
    };
    const auto vectors = [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
      const Output product = tanh(x[0] * x[1]);
      return {log(abs(sum(product, -1)) + 1.0F), min(product, -1) * 2.0F, prod(product, -1)};
    };
    EXPECT_EQ(compare(inputs, normalise, 1e-4F), 1);
    EXPECT_EQ(compare(inputs, softmax, 1e-5F), 1);
    EXPECT_EQ(compare(inputs, vectors, 1e-4F), 1);
  }
}

// Scaled and masked scores, as of attention; and the logarithm of what comes out.
TEST(FusedOnGpu, ComputesASoftmax) {
  for (const DType dtype : {f32, f16, bf16}) {
    for (const Shape& shape : {Shape{3, 2}, Shape{2, 3, 65}, Shape{2, 1000}}) {
      SCOPED_TRACE(concat(dtype, shape));
      const std::vector<Tensor> inputs = {values_of(shape, 1, dtype), values_of(shape, 2, dtype)};
      const float tolerance = dtype == f32 ? 1e-5F : dtype == f16 ? 2e-3F : 1e-2F;
      const auto attention = [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
        const Output weights = softmax(x[0] * 0.25F + x[1]);
        return {weights * 2.0F, max(weights, -1)};
      };
      const auto logarithm = [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
        return {-log_softmax(x[0] + x[1])};
      };
      EXPECT_EQ(compare(inputs, attention, tolerance), 1);
      EXPECT_EQ(compare(inputs, logarithm, 10 * tolerance), 1);
    }
  }
}

// A row that nothing is left of, and one with an infinity: as the op's kernel has it.
TEST(FusedOnGpu, ComputesASoftmaxOfInfinities) {
  const float infinity = std::numeric_limits<float>::infinity();
  Tensor x = values_of({4, 40}, 1);
  std::fill_n(&x.at<float>(1, 0), 40, -infinity);
  x.at<float>(2, 7) = infinity;
  x.at<float>(3, 0) = -infinity;
  compare({x, values_of({4, 40}, 2)},
          [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
            return {softmax(x[0] * 1.0F + abs(x[1])) * 2.0F};
          });
}

TEST(FusedOnGpu, ReducesRowsOf16Bits) {
  for (const DType dtype : {f16, bf16}) {
    const std::vector<Tensor> inputs = {values_of({6, 40}, 1, dtype), values_of({40}, 2, dtype)};
    EXPECT_EQ(compare(inputs,
                      [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
                        const Output largest = max(x[0] * x[1], -1, {.keep_dims = true});
                        return {x[0] * x[1] - largest};
                      }),
              1);
  }
}

// Of as many rows as columns: a vector of rows is one of columns to what broadcasts it.
TEST(FusedOnGpu, TellsRowsFromColumns) {
  const std::vector<Tensor> inputs = {values_of({12, 12}, 1), values_of({12}, 2)};
  compare(inputs, [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
    const Output of_rows = max(x[0], -1);
    return {x[0] * of_rows, of_rows + x[1], tanh(x[0] - x[1])};
  });
}

// Longer rows than a block has, other axes, several axes: by the ops' own kernels.
TEST(FusedOnGpu, LeavesOtherReductionsToTheirKernels) {
  const std::vector<Tensor> inputs = {values_of({2, 5000}, 1), values_of({3, 4, 5}, 2)};
  compare(inputs, [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
    return {x[0] * 0.5F - max(x[0], -1, {.keep_dims = true}),
            tanh(max(x[1], 1, {.keep_dims = true}) - x[1]), max(x[1], {1, 2}) * 3.0F};
  });
}

// A vector for the rows is a condition of Select, and a vector for the columns one of SelectV2.
TEST(FusedOnGpu, TakesSelectsVectorForItsRows) {
  const std::vector<Tensor> inputs = {values_of({6}, 1, boolean), values_of({6, 6}, 2),
                                      values_of({6, 6}, 3)};
  EXPECT_EQ(compare(inputs,
                    [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
                      const Output by_row = op("Select", x), by_column = op("SelectV2", x);
                      return {by_row * 2.0F - by_column};
                    }),
            1);
}

TEST(FusedOnGpu, KeepsNansAndInfinities) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  Tensor x(f32, {300});
  for (int64_t i = 0; i < 300; ++i) {
    const float odd[] = {nan, infinity, -infinity, 0.0F, -0.0F, 1e-42F};
    x.data<float>()[i] = i % 7 < 6 ? odd[i % 7] : static_cast<float>(i);
  }
  compare({x, values_of({300}, 2)}, [](Graph&, const std::vector<Output>& x) {
    return std::vector<Output>{relu(x[0] * x[1]), maximum(x[0], x[1]) - 1.0F,
                               clip(x[0], -1.0F, 1.0F) * x[1]};
  });
}

TEST(FusedOnGpu, AddsABiasInTheProduct) {
  const std::vector<Tensor> inputs = {values_of({9, 33}, 1), values_of({33, 17}, 2),
                                      values_of({17}, 3)};
  const Outcome fused = run_on_gpu(
      inputs,
      [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
        return {op("BiasAdd", {matmul(x[0], x[1]), x[2]})};
      },
      true);
  EXPECT_EQ(fused.enqueued, 1);
  EXPECT_EQ(compare(inputs,
                    [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
                      const Output biased = matmul(x[0], x[1]) + x[2];
                      return {tanh(biased) * 2.0F, sigmoid(biased)};
                    }),
            2);
}

// A term of the product's own shape is no bias.
TEST(FusedOnGpu, AddsOtherTermsBehindTheProduct) {
  const std::vector<Tensor> inputs = {values_of({17, 33}, 1), values_of({33, 17}, 2),
                                      values_of({17, 17}, 3), values_of({17, 1}, 4)};
  compare(inputs, [](Graph&, const std::vector<Output>& x) -> std::vector<Output> {
    return {relu(matmul(x[0], x[1]) + x[2]), tanh(matmul(x[0], x[1]) + x[3])};
  });
}

// The whole step of a network takes fewer launches, and learns the same.
TEST(FusedOnGpu, LeavesFewerLaunchesInAStep) {
  const auto train = [](bool fuse) {
    (void)host_gpu();
    Training training;
    transformer(training);
    set_seeds(training.graph);
    LocalSession session({.fuse = fuse, .threads = 1}, {.gpus = true});
    Node& initialise = initialize_variables(training.graph);
    session.extend(training.graph);
    session.run({}, {}, {initialise.name});
    std::vector<float> losses;
    int64_t enqueued = 0;
    for (int step = 0; step < 10; ++step) {
      RunMetadata ran;
      const CudaCalls before = count_gpu_calls();  // a traced step launches kernel by kernel
      losses.push_back(session
                           .run(training.batch, {training.loss.name()}, {training.train->name},
                                {.trace = step == 9}, &ran)[0]
                           .item<float>());
      enqueued = count_gpu_calls().enqueued - before.enqueued;
    }
    return std::pair(losses, enqueued);
  };
  const auto [fused, few] = train(true);
  const auto [apart, many] = train(false);
  EXPECT_LT(few, 0.75 * static_cast<double>(many));
  for (size_t step = 0; step < apart.size(); ++step)
    EXPECT_NEAR(fused[step], apart[step], 1e-4F * apart[step]) << step;
}

}  // namespace
}  // namespace leat
