// Attention as one op, which GPUs alone have, against its parts on the CPU in float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "tests/kernels/agreement.h"

namespace leat {
namespace {

struct AttentionRow {
  int64_t batch, heads, queries, keys, size, value_size;
  bool causal = false;
  Shape mask = {};  // a scalar: there is none
};

const AttentionRow rows[] = {
    {2, 3, 5, 5, 8, 8},
    {1, 1, 1, 1, 8, 8},
    {2, 2, 1, 64, 64, 64},
    {2, 2, 33, 31, 16, 24},
    {1, 2, 128, 128, 128, 128, true},
    {2, 2, 64, 64, 64, 64, true},
    {2, 3, 31, 33, 8, 8, true},
    {2, 3, 33, 31, 8, 8, false, {2, 1, 1, 31}},
    {2, 3, 33, 31, 8, 8, false, {3, 33, 31}},
    {2, 3, 64, 64, 32, 32, true, {2, 3, 64, 64}},
    {2, 3, 64, 64, 32, 32, false, {64, 64}},
};

Tensor random_numbers(DType dtype, const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> numbers;
  // Numbers that both formats have.
  for (int64_t i = 0; i < shape.elements(); ++i)
    numbers.push_back(std::round(normal(random) * 32) / 32);
  return from_doubles(dtype, shape, numbers);
}

Tensor random_mask(const Shape& shape) {
  std::mt19937 random(7);
  std::bernoulli_distribution coin(0.6);
  const int64_t keys = shape[shape.rank() - 1];
  std::vector<double> sees;
  // One row in five sees nothing, the others at least their first key.
  for (int64_t i = 0; i < shape.elements(); ++i) {
    const bool hides = shape.elements() > keys && i / keys % 5 == 3;
    sees.push_back(!hides && (i % keys == 0 || coin(random)) ? 1 : 0);
  }
  return from_doubles(boolean, shape, sees);
}

// The output, and the gradients of the sum of output · factors.
std::vector<Tensor> parts_of_attention(const AttentionRow& row, float scale,
                                       const std::vector<Tensor>& operands, const Tensor& factors,
                                       const Tensor& mask) {
  Graph graph;
  std::vector<Output> x;
  for (const Tensor& each : operands)
    x.push_back(constant(graph, from_doubles(f32, each.shape(), to_doubles(each))));
  Output scores = matmul(x[0], x[1], {.transpose_b = true}) * scale;
  Output sees;
  if (mask.shape().rank() > 0) sees = constant(graph, mask);
  if (row.causal) {
    std::vector<double> before;
    for (int64_t i = 0; i < row.queries * row.keys; ++i)
      before.push_back(i % row.keys <= i / row.keys ? 1 : 0);
    const Output triangle = constant(graph, from_doubles(boolean, {row.queries, row.keys}, before));
    sees = sees ? logical_and(sees, triangle) : triangle;
  }
  if (sees) scores = where(sees, scores, -1e9);
  const Output y = matmul(softmax(scores), x[2]);
  const Output dy = constant(graph, from_doubles(f32, factors.shape(), to_doubles(factors)));
  std::vector<Output> fetches = gradients(std::vector<Output>{y}, x, {dy});
  fetches.insert(fetches.begin(), y);
  return evaluate(fetches);
}

void expect_near(const Tensor& actual, const Tensor& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const std::vector<double> a = to_doubles(actual), b = to_doubles(expected);
  double largest = 1;
  for (const double each : b) largest = std::max(largest, std::abs(each));
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], tolerance * largest) << what << ", element " << i;
}

// As run_op(), for an op whose name no node may have.
std::vector<Tensor> run(const char* op, const std::vector<Tensor>& inputs, const AttrMap& attrs,
                        Device& device, const RunChoices& choices) {
  Graph graph;
  NodeSpec spec{.op = op, .name = "attention", .attrs = attrs};
  for (const Tensor& input : inputs) spec.inputs.push_back(constant(graph, input));
  return run_node(graph.add(std::move(spec)), inputs, device, choices);
}

void expect_attention_agrees(const AttentionRow& row, DType dtype, Device& device,
                             const RunChoices& choices) {
  const Shape of_q = {row.batch, row.heads, row.queries, row.size},
              of_k = {row.batch, row.heads, row.keys, row.size},
              of_v = {row.batch, row.heads, row.keys, row.value_size},
              of_y = {row.batch, row.heads, row.queries, row.value_size};
  const std::vector<Tensor> operands = {random_numbers(dtype, of_q, 1),
                                        random_numbers(dtype, of_k, 2),
                                        random_numbers(dtype, of_v, 3)};
  const Tensor factors = random_numbers(dtype, of_y, 4);
  const bool has_mask = row.mask.rank() > 0;
  const Tensor mask = has_mask ? random_mask(row.mask) : Tensor(boolean, {});
  const float scale = 1 / std::sqrt(static_cast<float>(row.size));
  const AttrMap attrs = {
      {"scale", scale}, {"causal", row.causal}, {"N", int64_t{has_mask ? 1 : 0}}};

  std::vector<Tensor> inputs = operands;
  if (has_mask) inputs.push_back(mask);
  const std::vector<Tensor> made = run("_Attention", inputs, attrs, device, choices);
  inputs = operands;
  inputs.insert(inputs.end(), {made[0], made[1], factors});
  if (has_mask) inputs.push_back(mask);
  std::vector<Tensor> results = run("_AttentionGrad", inputs, attrs, device, choices);
  results.insert(results.begin(), made[0]);

  const std::vector<Tensor> wanted = parts_of_attention(row, scale, operands, factors, mask);
  const char* const names[] = {"output", "dq", "dk", "dv"};
  for (size_t i = 0; i < wanted.size(); ++i) {
    expect_near(results[i], wanted[i], dtype == f16 ? 3e-3 : 2e-2,
                concat("attention of ", of_q, ", ", of_v, " in ", dtype,
                       row.causal ? ", causal" : "", ", mask ", row.mask, ": ", names[i]));
  }
}

}  // namespace

int expect_attention_agrees_with_its_parts(Device& device, const RunChoices& choices) {
  const std::vector<DType> dtypes = dtypes_of(op_named("_Attention"), device.type());
  for (const AttentionRow& row : rows) {
    for (const DType dtype : dtypes) expect_attention_agrees(row, dtype, device, choices);
  }
  return static_cast<int>(dtypes.size() * std::size(rows));
}

}  // namespace leat
