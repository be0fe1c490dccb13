// Random tensors. With a seed, every session draws the same numbers; without one, each draws
// different ones.
#pragma once

#include <optional>

#include "graph/ops/operand.h"

namespace leat::random {

struct Options {
  DType dtype = f32;
  int64_t seed = 0;  // 0: different numbers in each run
};

struct NormalOptions {
  double mean = 0, stddev = 1;
  DType dtype = f32;
  int64_t seed = 0;  // as above
};
Output normal(Graph& graph, const Dims& dims, const NormalOptions& options = {},
              Location at = here());
// The normal distribution, limited to two standard deviations from the mean.
Output truncated_normal(Graph& graph, const Dims& dims, const NormalOptions& options = {},
                        Location at = here());
// The same: normal(g, {2, 3}, 5, 0.1).
Output normal(Graph& graph, const Dims& dims, double mean, double stddev,
              const Options& options = {}, Location at = here());
struct UniformOptions {
  double low = 0;
  std::optional<double> high = {};  // 1 if it is not given; must be given for integers
  DType dtype = f32;
  int64_t seed = 0;  // as above
};
// In [low, high): floating-point numbers, or int32 or int64, for which low and high must be whole
// numbers. integers() accepts computed bounds.
Output uniform(Graph& graph, const Dims& dims, const UniformOptions& options = {},
               Location at = here());
// The same: uniform(g, {2, 3}, -1, 1).
Output uniform(Graph& graph, const Dims& dims, double low, double high, const Options& options = {},
               Location at = here());
// Integers in [low, high): int64, or int32 if no dtype is given.
Output integers(Graph& graph, const Dims& dims, const Operand& low, const Operand& high,
                Options options = {.dtype = i32}, Location at = here());
// 1 with probability p, else 0; p is a number in [0, 1], or a tensor that broadcasts to the shape.
Output bernoulli(Graph& graph, const Dims& dims, const Operand& p, const Options& options = {},
                 Location at = here());
// Of the gamma distribution: density ∝ x^(alpha - 1) · e^(-x / scale). alpha: a positive number, or
// a tensor; result: `dims`, then alpha's shape. Gradients go to alpha.
struct GammaOptions {
  double scale = 1;
  DType dtype = f32;
  int64_t seed = 0;  // as above
};
Output gamma(Graph& graph, const Dims& dims, const Operand& alpha, const GammaOptions& options = {},
             Location at = here());
// Of the Poisson distribution with that mean, a number or a tensor: `dims`, then the mean's shape.
Output poisson(Graph& graph, const Dims& dims, const Operand& mean, const Options& options = {},
               Location at = here());
struct SeedOptions {
  int64_t seed = 0;  // as above
};
// A part of x of that size, at a place drawn at random: of an image, {24, 24, 3}.
Output crop(Output x, const Dims& size, SeedOptions options = {}, Location at = here());
// The rows of x in random order.
Output shuffle(Output x, SeedOptions options = {}, Location at = here());
// The numbers 0, 1, … below n in random order.
Output permutation(Graph& graph, const Operand& n, SeedOptions options = {}, Location at = here());
struct ChoiceOptions {
  Flag replace = true;  // whether a row may be drawn again
  Output p = {};        // the probability of each row, a vector; none: all are equal
  int64_t seed = 0;     // as above
};
// Rows of x drawn at random: `dims`, then the shape of a row. Without replacement, p must be left
// out; INVALID_ARGUMENT, in the step if the numbers are computed there, if x has too few rows.
Output choice(Output x, const Dims& dims, const ChoiceOptions& options = {}, Location at = here());
// Numbers in [0, n).
Output choice(Graph& graph, const Operand& n, const Dims& dims, const ChoiceOptions& options = {},
              Location at = here());
// Class numbers drawn from rows of logits [batch, classes]: [batch, samples], int64.
Output categorical(Output logits, const Operand& samples, SeedOptions options = {},
                   Location at = here());

}  // namespace leat::random
