// Attention on a GPU: the pass that finds it, and that one op computes what its parts compute.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/session.h"
#include "graph/ops/raw.h"
#include "graph/passes/placer.h"
#include "runtime/local_session.h"
#include "tests/cuda/host_gpu.h"
#include "tests/cuda/models.h"

namespace leat {
namespace {

using testing::Contains;
using testing::Key;
using testing::Not;

enum class Mask : uint8_t { none, causal, keys, pairs, with_causal, one_head };

struct Case {
  const char* name;
  Mask mask = Mask::none;
  int64_t batch = 2, heads = 3, queries = 5, keys = 5, size = 8, value_size = 8;
  DType dtype = bf16;         // of the graph; f32: by mixed precision
  bool hides_rows = false;    // the mask leaves nothing to some rows
  bool scales_q = false;      // by what else the scores are scaled by
  bool scales_twice = false;  // q, and the scores by a half

  Shape queries_shape() const { return {batch, heads, queries, size}; }
  Shape keys_shape() const { return {batch, heads, keys, size}; }
  Shape values_shape() const { return {batch, heads, keys, value_size}; }
  Shape scores_shape() const { return {batch, heads, queries, keys}; }
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

Tensor random_numbers(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Tensor out(f32, shape);
  // Numbers that all formats have.
  for (float& each : out.span<float>()) each = std::round(normal(random) * 32) / 32;
  return out;
}

Tensor as(DType dtype, const Tensor& from) {
  if (dtype == f32) return from;
  Tensor out(dtype, from.shape());
  for (int64_t i = 0; i < from.elements(); ++i) {
    if (dtype == f16) {
      out.data<half>()[i] = half(from.data<float>()[i]);
    } else {
      out.data<bfloat16>()[i] = bfloat16(from.data<float>()[i]);
    }
  }
  return out;
}

std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> out;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    out.push_back(tensor.dtype() == f16    ? static_cast<float>(tensor.data<half>()[i])
                  : tensor.dtype() == bf16 ? static_cast<float>(tensor.data<bfloat16>()[i])
                                           : tensor.data<float>()[i]);
  }
  return out;
}

Tensor mask_of(const Case& c) {
  Shape shape = c.scores_shape();
  if (c.mask == Mask::keys) shape = {c.batch, 1, 1, c.keys};
  if (c.mask == Mask::one_head || c.mask == Mask::with_causal) shape = {c.heads, c.queries, c.keys};
  Tensor out(boolean, shape);
  std::mt19937 random(7);
  std::bernoulli_distribution coin(0.6);
  for (int64_t i = 0; i < out.elements(); ++i) {
    // Each row sees its first key, unless it is to see none.
    const int64_t row = i / c.keys;
    out.data<bool>()[i] = i % c.keys == 0 || coin(random);
    if (c.hides_rows && row % 3 == 1) out.data<bool>()[i] = false;
  }
  return out;
}

Tensor triangle(int64_t queries, int64_t keys) {
  Tensor out(boolean, {queries, keys});
  for (int64_t i = 0; i < out.elements(); ++i) out.data<bool>()[i] = i % keys <= i / keys;
  return out;
}

// Attention as programs write it.
struct Written {
  Graph graph;
  std::vector<Output> inputs;  // q, k, v, the weights of the sum, and the mask if it is fed
  Output scaled_q;
  Output scores, weights;  // of all pairs; their softmax
  Output result, loss;
  std::vector<Output> gradients;
};

void write(Written& w, const Case& c, DType dtype) {
  const DeviceScope on{w.graph, "/device:GPU:0"};
  const auto input = [&](const char* name, DType type, const Shape& shape) {
    w.inputs.push_back(placeholder(w.graph, name, type, shape));
    return w.inputs.back();
  };
  Shape sum_shape = c.queries_shape();
  sum_shape.set(3, c.value_size);
  const Output q = input("q", dtype, c.queries_shape()), k = input("k", dtype, c.keys_shape()),
               v = input("v", dtype, c.values_shape()),
               factors = input("factors", dtype, sum_shape);
  const double scale = std::sqrt(static_cast<double>(c.size));
  w.scaled_q = c.scales_q ? q / scale : q;
  w.scores = matmul(w.scaled_q, k, {.transpose_b = true});
  Output scores = c.scales_q ? w.scores : w.scores / scale;
  if (c.scales_twice) scores = scores * 0.5F;
  Output sees;
  if (c.mask != Mask::none && c.mask != Mask::causal)
    sees = input("mask", boolean, mask_of(c).shape());
  if (c.mask == Mask::causal || c.mask == Mask::with_causal) {
    const Output before = constant(w.graph, triangle(c.queries, c.keys));
    sees = sees ? logical_and(sees, before) : before;
  }
  if (sees) scores = where(sees, scores, dtype == f16 ? -6e4 : -1e9);
  w.weights = softmax(scores);
  w.result = matmul(w.weights, v);
  w.loss = sum(cast(w.result * factors, f32));
  w.gradients = gradients(w.loss, {q, k, v});
}

std::vector<Tensor> values_of(const Case& c, DType dtype) {
  Shape sum_shape = c.queries_shape();
  sum_shape.set(3, c.value_size);
  std::vector<Tensor> out = {
      as(dtype, random_numbers(c.queries_shape(), 1)), as(dtype, random_numbers(c.keys_shape(), 2)),
      as(dtype, random_numbers(c.values_shape(), 3)), as(dtype, random_numbers(sum_shape, 4))};
  if (c.mask != Mask::none && c.mask != Mask::causal) out.push_back(mask_of(c));
  return out;
}

// The result and the gradients, and how often the library computed attention.
struct Outcome {
  std::vector<Tensor> values;
  int64_t calls = 0;
};
Outcome run(const Case& c, DType dtype, MixedPrecision format, bool fuse) {
  (void)host_gpu();
  Written w;
  write(w, c, dtype);
  Feeds feeds;
  const std::vector<Tensor> values = values_of(c, dtype);
  for (size_t i = 0; i < values.size(); ++i) feeds.emplace_back(w.inputs[i], values[i]);
  std::vector<Output> fetches = {w.result};
  fetches.insert(fetches.end(), w.gradients.begin(), w.gradients.end());
  Session session(w.graph, {.fuse = fuse, .mixed_precision = format, .threads = 1});
  const int64_t before = count_attention();
  Outcome out{session.run(feeds, fetches)};
  out.calls = count_attention() - before;
  return out;
}

void expect_near(const Outcome& got, const Outcome& wanted, float tolerance) {
  const char* const names[] = {"result", "dq", "dk", "dv"};
  ASSERT_EQ(got.values.size(), wanted.values.size());
  for (size_t i = 0; i < got.values.size(); ++i) {
    SCOPED_TRACE(names[i]);
    ASSERT_EQ(got.values[i].shape(), wanted.values[i].shape());
    const std::vector<float> a = floats_of(got.values[i]), b = floats_of(wanted.values[i]);
    float largest = 1;
    for (const float each : b) largest = std::max(largest, std::abs(each));
    for (size_t at = 0; at < a.size(); ++at)
      ASSERT_NEAR(a[at], b[at], tolerance * largest) << "element " << at;
  }
}

// What a rounding of the format changes, a few times.
float tolerance_of(DType dtype) { return dtype == f16 ? 3e-3F : 2e-2F; }

class Attention : public testing::TestWithParam<Case> {};

// Against the parts in float32.
TEST_P(Attention, ComputesWhatItsPartsDo) {
  const Case& c = GetParam();
  const MixedPrecision format = c.dtype == f32 ? MixedPrecision::bfloat16 : MixedPrecision::nothing;
  const Outcome wanted = run(c, f32, MixedPrecision::nothing, false);
  const Outcome got = run(c, c.dtype, format, true);
  EXPECT_EQ(wanted.calls, 0);
  // Of one key there is no sum of weights to recognise: simplify removes it.
  EXPECT_EQ(got.calls, c.keys == 1 ? 0 : 2);
  expect_near(got, wanted, tolerance_of(c.dtype));
}

// With the scores in the workspace: the roundings are those of the parts.
TEST_P(Attention, IsComposedWithoutTheLibrary) {
  const Case& c = GetParam();
  const MixedPrecision format = c.dtype == f32 ? MixedPrecision::bfloat16 : MixedPrecision::nothing;
  const Outcome wanted = run(c, f32, MixedPrecision::nothing, false);
  refuse_attention();
  const Outcome got = run(c, c.dtype, format, true);
  refuse_attention(false);
  EXPECT_EQ(got.calls, 0);
  expect_near(got, wanted, tolerance_of(c.dtype));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Attention,
    testing::Values(
        Case{.name = "plain"}, Case{.name = "half", .dtype = f16},
        Case{.name = "mixed", .dtype = f32},
        Case{.name = "causal", .mask = Mask::causal, .queries = 33, .keys = 33},
        Case{.name = "causal_mixed", .mask = Mask::causal, .queries = 31, .keys = 31, .dtype = f32},
        Case{.name = "causal_of_more_keys", .mask = Mask::causal, .queries = 31, .keys = 64},
        Case{.name = "causal_of_more_queries", .mask = Mask::causal, .queries = 33, .keys = 8},
        Case{.name = "keys", .mask = Mask::keys, .queries = 4, .keys = 31},
        Case{.name = "pairs", .mask = Mask::pairs, .queries = 7, .keys = 9, .dtype = f16},
        Case{.name = "pairs_mixed", .mask = Mask::pairs, .dtype = f32},
        Case{.name = "by_head", .mask = Mask::one_head, .queries = 7, .keys = 9},
        Case{.name = "pairs_and_causal", .mask = Mask::with_causal, .queries = 9, .keys = 9},
        Case{.name = "unseen", .mask = Mask::pairs, .queries = 7, .keys = 9, .hides_rows = true},
        Case{.name = "unseen_half", .mask = Mask::pairs, .dtype = f16, .hides_rows = true},
        Case{.name = "unseen_and_causal", .mask = Mask::with_causal, .hides_rows = true},
        Case{.name = "scaled_q", .mask = Mask::causal, .scales_q = true},
        Case{.name = "scaled_q_mixed", .mask = Mask::pairs, .dtype = f32, .scales_q = true},
        Case{.name = "scaled_twice", .scales_q = true, .scales_twice = true},
        Case{.name = "single", .queries = 1, .keys = 1},
        Case{.name = "one_query", .queries = 1, .keys = 64},
        Case{.name = "one_key", .queries = 64, .keys = 1},
        Case{.name = "one_head", .batch = 1, .heads = 1, .queries = 64, .keys = 64},
        Case{.name = "other_values", .queries = 31, .keys = 33, .size = 16, .value_size = 24},
        Case{.name = "largest_head", .batch = 1, .heads = 2, .size = 128, .value_size = 128}),
    [](const auto& info) { return std::string(info.param.name); });

// ---- The pass

struct Step {
  std::map<std::string, int> ops;            // how many nodes
  std::vector<Shape> shapes;                 // of all values
  std::map<std::string, std::string> op_of;  // by node
  std::vector<float> scales;                 // of attention and its gradient
};

// What a step runs on the GPU.
Step step_of(const Graph& graph, const std::vector<Output>& fetches, MixedPrecision format,
             bool fuse = true, std::vector<std::string> targets = {}) {
  Device& gpu = host_gpu();
  ThreadPool pool(1);
  const auto cpu =
      make_cpu_device(DeviceName::parse("/job:localhost/replica:0/task:0/device:CPU:0"), pool);
  PipelineOptions options{.fuse = fuse, .mixed_precision = format};
  for (const auto& node : graph.nodes()) {
    if (node->is("Placeholder")) options.signature.feeds.push_back(node->name + ":0");
  }
  for (const Output& fetch : fetches) options.signature.fetches.push_back(fetch.name());
  options.signature.targets = std::move(targets);
  options.placement.devices = {{cpu->name(), DeviceType::cpu}, {gpu.name(), DeviceType::gpu}};
  options.placement.default_device = cpu->name();
  const PartitionedGraph parts = run_pipeline(graph, options);
  Step out;
  for (const auto& node : parts.partitions.at(gpu.name().to_string()).nodes()) {
    const auto count = [&](std::string_view op) { ++out.ops[std::string(op)]; };
    count(node->op->name);
    out.op_of[node->name] = node->op->name;
    if (node->op->name.starts_with("_Attention")) out.scales.push_back(node->attr<float>("scale"));
    if (node->is("_Fused")) {
      for (const std::string& op : node->attr<std::vector<std::string>>("ops")) count(op);
    }
    for (const OutputSpec& output : node->outputs) out.shapes.push_back(output.shape);
  }
  return out;
}

void expect_fused(const Step& step, const Case& c) {
  EXPECT_EQ(step.ops.contains("_Attention") ? step.ops.at("_Attention") : 0, 1);
  EXPECT_EQ(step.ops.contains("_AttentionGrad") ? step.ops.at("_AttentionGrad") : 0, 1);
  for (const char* op : {"Softmax", "BatchMatMul", "BatchMatMulV2"})
    EXPECT_FALSE(step.ops.contains(op)) << op;
  if (c.mask != Mask::pairs) {
    EXPECT_THAT(step.shapes, Not(Contains(c.scores_shape())));
  }
}

TEST(FuseAttention, ReplacesTheStepAndItsGradient) {
  for (const Mask mask : {Mask::none, Mask::causal, Mask::keys, Mask::pairs, Mask::with_causal}) {
    for (const DType dtype : {f32, bf16, f16}) {
      const Case c{.name = "", .mask = mask, .dtype = dtype};
      SCOPED_TRACE(concat(static_cast<int>(mask), " ", dtype));
      Written w;
      write(w, c, dtype);
      std::vector<Output> fetches = w.gradients;
      fetches.push_back(w.loss);
      const MixedPrecision format =
          dtype == f32 ? MixedPrecision::bfloat16 : MixedPrecision::nothing;
      const Step step = step_of(w.graph, fetches, format);
      expect_fused(step, c);
      if (mask == Mask::causal) {
        EXPECT_THAT(step.shapes, Not(Contains(Shape{5, 5})));
      }
    }
  }
}

// A factor of q, too, is the kernel's work, unless somebody else reads the product, or dq before it
// is scaled.
TEST(FuseAttention, TakesTheFactorOfQ) {
  const float factor = 1 / std::sqrt(8.0F);
  Written w;
  write(w, {.name = "", .scales_q = true}, bf16);
  const Output dq = w.gradients[0];
  std::vector<Output> fetches = w.gradients;
  fetches.push_back(w.result);
  const Step whole = step_of(w.graph, fetches, MixedPrecision::nothing);
  EXPECT_THAT(whole.scales, testing::Each(testing::FloatNear(factor, 2e-3F)));
  EXPECT_EQ(whole.scales.size(), 2U);
  ASSERT_TRUE(dq.node->is("RealDiv") || dq.node->is("Mul")) << dq.node->op->name;
  for (const Output& other : {w.scaled_q, dq.node->inputs[0]}) {
    fetches.push_back(other);
    EXPECT_THAT(step_of(w.graph, fetches, MixedPrecision::nothing).scales,
                testing::ElementsAre(1, 1));
    fetches.pop_back();
  }
  // dq is scaled, but by another number.
  Output thrice;
  {
    const DeviceScope on{w.graph, "/device:GPU:0"};
    thrice = gradients(w.loss, w.scaled_q)[0] * 3.0F;
  }
  EXPECT_THAT(step_of(w.graph, {w.result, thrice}, MixedPrecision::nothing).scales,
              testing::ElementsAre(1, 1));
}

// As nn::multi_head_attention writes it, between mixed precision's casts.
TEST(FuseAttention, ReplacesItInATransformer) {
  Training training;
  transformer_of(training, 16);
  for (const MixedPrecision format : {MixedPrecision::bfloat16, MixedPrecision::float16}) {
    const Step step =
        step_of(training.graph, {training.loss}, format, true, {training.train->name});
    expect_fused(step, {.name = "", .mask = Mask::causal, .heads = 2});
    EXPECT_THAT(step.scales, testing::Each(testing::FloatNear(1 / std::sqrt(8.0F), 2e-3F)));
  }
}

TEST(FuseAttention, ReplacesTheForwardPassAlone) {
  Written w;
  write(w, {.name = ""}, bf16);
  const Step step = step_of(w.graph, {w.result}, MixedPrecision::nothing);
  EXPECT_THAT(step.ops, Contains(Key("_Attention")));
  EXPECT_THAT(step.ops, Not(Contains(Key("_AttentionGrad"))));
  EXPECT_THAT(step.ops, Not(Contains(Key("Softmax"))));
}

// Fetched gradients keep their names, whether all are asked for or one.
TEST(FuseAttention, KeepsNames) {
  Written w;
  write(w, {.name = ""}, bf16);
  for (const Output& gradient : w.gradients) {
    const Step step = step_of(w.graph, {w.result, gradient}, MixedPrecision::nothing);
    EXPECT_THAT(step.op_of, Contains(Key(gradient.node->name)));
    EXPECT_THAT(step.ops, Contains(Key("_AttentionGrad")));
    EXPECT_EQ(step.op_of.at(w.result.node->name), "_Attention");
  }
}

void expect_left_alone(const Graph& graph, const std::vector<Output>& fetches,
                       MixedPrecision format = MixedPrecision::nothing, bool fuse = true) {
  const Step step = step_of(graph, fetches, format, fuse);
  EXPECT_THAT(step.ops, Contains(Key("Softmax")));
  EXPECT_THAT(step.ops, Not(Contains(Key("_Attention"))));
  EXPECT_THAT(step.ops, Not(Contains(Key("_AttentionGrad"))));
}

TEST(FuseAttention, LeavesOtherFormatsAlone) {
  Written w;
  write(w, {.name = ""}, f32);
  expect_left_alone(w.graph, {w.result});
  expect_left_alone(w.graph, {w.result}, MixedPrecision::tensor_float_32);
  const Step mixed = step_of(w.graph, {w.result}, MixedPrecision::float16);
  EXPECT_THAT(mixed.ops, Contains(Key("_Attention")));
}

TEST(FuseAttention, LeavesOtherHeadsAlone) {
  for (const auto& [size, value_size] : {std::pair{12, 8}, {8, 12}, {136, 8}, {8, 136}}) {
    Written w;
    write(w, {.name = "", .size = size, .value_size = value_size}, bf16);
    expect_left_alone(w.graph, {w.result});
  }
}

TEST(FuseAttention, IsSwitchedOffWithTheOtherFusions) {
  Written w;
  write(w, {.name = ""}, bf16);
  expect_left_alone(w.graph, {w.result}, MixedPrecision::nothing, false);
}

TEST(FuseAttention, LeavesWhatOthersRead) {
  Written w;
  write(w, {.name = ""}, bf16);
  expect_left_alone(w.graph, {w.weights, w.result});
  // Readers besides the softmax and the product.
  std::vector<Output> largest;
  {
    const DeviceScope on{w.graph, "/device:GPU:0"};
    largest = {max(w.scores), max(w.weights)};
  }
  for (const Output& each : largest) expect_left_alone(w.graph, {w.result, each});
}

TEST(FuseAttention, LeavesADropoutOfTheWeights) {
  Graph graph;
  const DeviceScope on{graph, "/device:GPU:0"};
  const Output x = placeholder(graph, "x", bf16, {2, 3, 5, 8});
  const Output weights = softmax(matmul(x, x, {.transpose_b = true}));
  const Output y = matmul(weights * placeholder(graph, "dropout", bf16, {2, 3, 5, 5}), x);
  expect_left_alone(graph, {y});
}

// A mask that adds to the scores, or one whose hidden scores still count.
TEST(FuseAttention, LeavesOtherMasks) {
  for (const double hidden : {-10.0, 0.0}) {
    Graph graph;
    const DeviceScope on{graph, "/device:GPU:0"};
    const Output x = placeholder(graph, "x", bf16, {2, 3, 5, 8});
    const Output scores = matmul(x, x, {.transpose_b = true});
    const Output sees = placeholder(graph, "sees", boolean, {5, 5});
    expect_left_alone(graph, {matmul(softmax(where(sees, scores, hidden)), x)});
  }
}

// With -∞ a row that sees nothing has no weights at all; a causal row sees something.
TEST(FuseAttention, TakesInfinitiesOfCausalMasks) {
  for (const bool causal : {true, false}) {
    Graph graph;
    const DeviceScope on{graph, "/device:GPU:0"};
    const Output x = placeholder(graph, "x", bf16, {2, 3, 5, 8});
    const Output scores = matmul(x, x, {.transpose_b = true});
    const Output sees =
        causal ? constant(graph, triangle(5, 5)) : placeholder(graph, "sees", boolean, {5, 5});
    const Output y = matmul(softmax(where(sees, scores, -INFINITY)), x);
    if (!causal) {
      expect_left_alone(graph, {y});
    } else {
      EXPECT_THAT(step_of(graph, {y}, MixedPrecision::nothing).ops, Contains(Key("_Attention")));
    }
  }
}

// A mask of more than 10 MiB is not folded into a constant.
TEST(FuseAttention, RecognisesALargeCausalMask) {
  constexpr int64_t length = 3300;
  Graph graph;
  const DeviceScope on{graph, "/device:GPU:0"};
  const Output x = placeholder(graph, "x", f32, {1, length, 16});
  const Output y = nn::attention(x, x, x, {.heads = 2, .causal = true});
  const Step step = step_of(graph, {y}, MixedPrecision::bfloat16);
  EXPECT_THAT(step.ops, Contains(Key("_Attention")));
  EXPECT_THAT(step.ops, Not(Contains(Key("GreaterEqual"))));
  EXPECT_THAT(step.shapes, Not(Contains(Shape{length, length})));
}

// One that lets a row see the next key, too, is a mask like any other.
TEST(FuseAttention, TellsOtherComparisonsFromACausalMask) {
  constexpr int64_t length = 3300;
  for (const int32_t offset : {0, 1}) {
    Graph graph;
    const DeviceScope on{graph, "/device:GPU:0"};
    Tensor rows(i32, {length, 1}), columns(i32, {1, length});
    for (int32_t i = 0; i < length; ++i) {
      rows.data<int32_t>()[i] = i + offset;
      columns.data<int32_t>()[i] = i;
    }
    const Output x = placeholder(graph, "x", bf16, {1, 1, length, 8});
    const Output sees = greater_equal(constant(graph, rows), constant(graph, columns));
    const Output scores = where(sees, matmul(x, x, {.transpose_b = true}), -1e9);
    const Step step = step_of(graph, {matmul(softmax(scores), x)}, MixedPrecision::nothing);
    EXPECT_THAT(step.ops, Contains(Key("_Attention")));
    EXPECT_EQ(step.ops.contains("GreaterEqual"), offset == 1);
  }
}

TEST(FuseAttention, LeavesUnknownShapes) {
  Graph graph;
  const DeviceScope on{graph, "/device:GPU:0"};
  const Output x = placeholder(graph, "x", bf16, {any, 3, 5, 8});
  expect_left_alone(graph, {matmul(softmax(matmul(x, x, {.transpose_b = true})), x)});
}

// The three operands are one tensor, and its gradient comes by three ways.
TEST(FuseAttention, ReplacesSelfAttention) {
  Graph graph;
  const DeviceScope on{graph, "/device:GPU:0"};
  const Output x = placeholder(graph, "x", bf16, {2, 3, 5, 8});
  const Output y = matmul(softmax(matmul(x, x, {.transpose_b = true})), x);
  const Output dx = gradients(sum(cast(y * y, f32)), x)[0];
  expect_fused(step_of(graph, {y, dx}, MixedPrecision::nothing), {.name = ""});
}

// Batches of matrices, [batch, rows, size].
TEST(FuseAttention, TakesThreeAxes) {
  const auto run_it = [](DType dtype, bool fuse) {
    (void)host_gpu();
    Graph graph;
    const DeviceScope on{graph, "/device:GPU:0"};
    const Output q = placeholder(graph, "q", dtype, {4, 5, 8}),
                 k = placeholder(graph, "k", dtype, {4, 7, 8}),
                 sees = placeholder(graph, "sees", boolean, {4, 5, 7});
    const Output scores =
        where(sees, matmul(q, k, {.transpose_b = true}), dtype == f16 ? -6e4 : -1e9);
    const Output y = matmul(softmax(scores), k);
    const std::vector<Output> d = gradients(sum(cast(y * y, f32)), {q, k});
    const Case c{.name = "", .batch = 4, .heads = 1, .queries = 5, .keys = 7};
    const auto flat = [&](const Tensor& from, const Shape& shape) {
      Tensor out(f32, shape);
      std::copy_n(from.data<float>(), from.elements(), out.data<float>());
      return as(dtype, out);
    };
    Tensor mask(boolean, {4, 5, 7});
    const Tensor random = random_numbers({4, 5, 7}, 8);
    for (int64_t i = 0; i < mask.elements(); ++i)
      mask.data<bool>()[i] = i % 7 == 3 || random.data<float>()[i] > 0;
    Session session(graph, {.fuse = fuse, .threads = 1});
    const int64_t before = count_attention();
    Outcome out{session.run({{q, flat(random_numbers(c.queries_shape(), 1), {4, 5, 8})},
                             {k, flat(random_numbers(c.keys_shape(), 2), {4, 7, 8})},
                             {sees, mask}},
                            {y, d[0], d[1]})};
    out.calls = count_attention() - before;
    return out;
  };
  const Outcome got = run_it(bf16, true);
  EXPECT_EQ(got.calls, 2);
  expect_near(got, run_it(f32, false), 3e-2F);
}

// A part of another tensor, which does not lie where the library can read it.
TEST(AttentionKernel, CopiesOperandsThatLieOddly) {
  const auto run_it = [](bool fuse) {
    (void)host_gpu();
    Graph graph;
    const DeviceScope on{graph, "/device:GPU:0"};
    const Output all = placeholder(graph, "all", bf16, {1 + 2 * 5 * 8});
    const std::vector<Output> parts = op_outputs(
        "SplitV", {all, constant(graph, Tensor::of<int32_t>({2}, {1, 80})), constant(graph, 0)},
        {{"num_split", int64_t{2}}});
    const Output x = reshape(parts[1], {1, 2, 5, 8});
    const Output y = matmul(softmax(matmul(x, x, {.transpose_b = true})), x);
    const Output dx = gradients(sum(cast(y * y, f32)), x)[0];
    Session session(graph, {.fuse = fuse, .threads = 1});
    return Outcome{session.run({{all, as(bf16, random_numbers({81}, 5))}}, {y, dx})};
  };
  expect_near(run_it(true), run_it(false), 3e-2F);
}

// ---- A model

std::vector<float> transformer_losses(bool on_gpu, const SessionOptions& options) {
  Training training;
  transformer_of(training, 16);
  set_seeds(training.graph);
  return losses(training, on_gpu, options);
}

TEST(AttentionKernel, TrainsATransformer) {
  const std::vector<float> wanted = transformer_losses(false, {});
  const int64_t before = count_attention();
  const std::vector<float> apart =
      transformer_losses(true, {.fuse = false, .mixed_precision = MixedPrecision::bfloat16});
  EXPECT_EQ(count_attention(), before);
  const std::vector<float> fused =
      transformer_losses(true, {.mixed_precision = MixedPrecision::bfloat16});
  EXPECT_GT(count_attention(), before + 1);
  EXPECT_LT(fused.back(), 0.9F * fused.front());
  for (size_t step = 0; step < wanted.size(); ++step) {
    EXPECT_NEAR(fused[step], wanted[step], 0.05F * wanted[0]) << "step " << step;
    EXPECT_NEAR(fused[step], apart[step], 0.03F * wanted[0]) << "step " << step;
  }
}

}  // namespace
}  // namespace leat
