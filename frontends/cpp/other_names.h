// Names of other libraries for what has another name here. A program that calls one does not
// compile: the error at its line says what to write.
#pragma once

#include <initializer_list>
#include <vector>

#include "graph/graph.h"

namespace leat {
namespace other_names {

// Any argument, also a list in braces.
struct Anything {
  template <class T>
  Anything(const T&) {}  // NOLINT: converts
  Anything(std::initializer_list<Anything>) {}
  Anything() = default;
};

}  // namespace other_names

#define LEAT_WRITE(text) __attribute__((error("write " text)))
#define LEAT_FROM_OUTPUT(name, text)                                                 \
  LEAT_WRITE(text)                                                                   \
  Output name(const Output&, other_names::Anything = {}, other_names::Anything = {}, \
              other_names::Anything = {})
#define LEAT_FROM_OUTPUTS(name, text) \
  LEAT_WRITE(text) Output name(const std::vector<Output>&, other_names::Anything = {})
#define LEAT_FROM_ONE(name, text) LEAT_WRITE(text) Output name(const Output&)
#define LEAT_FROM_GRAPH(name, text)                                           \
  LEAT_WRITE(text)                                                            \
  Output name(Graph&, other_names::Anything = {}, other_names::Anything = {}, \
              other_names::Anything = {})

// NumPy has operators for these.
LEAT_FROM_OUTPUT(add, "a + b");
LEAT_FROM_OUTPUT(subtract, "a - b");
LEAT_FROM_OUTPUT(multiply, "a * b");
LEAT_FROM_OUTPUT(divide, "a / b");
LEAT_FROM_OUTPUT(negative, "-x");
LEAT_FROM_OUTPUT(absolute, "abs(x)");
LEAT_FROM_OUTPUT(power, "pow(x, y)");
LEAT_FROM_OUTPUT(swapaxes, "transpose(x, axes)");
LEAT_FROM_OUTPUT(moveaxis, "transpose(x, axes)");
LEAT_FROM_OUTPUT(ravel, "reshape(x, {-1})");
LEAT_FROM_OUTPUT(nonzero, "argwhere(x)");
LEAT_FROM_ONE(where, "argwhere(x), or where(condition, x, y)");
LEAT_FROM_OUTPUT(mod, "a % b");
LEAT_FROM_OUTPUT(remainder, "a % b");
LEAT_FROM_OUTPUT(inv, "inverse(x)");
LEAT_FROM_OUTPUT(det, "determinant(x)");
LEAT_FROM_OUTPUTS(vstack, "concatenate({a, b}, 0)");
LEAT_FROM_OUTPUTS(hstack, "concatenate({a, b}, 1)");
// TensorFlow
LEAT_FROM_OUTPUT(reduce_sum, "sum(x, axes)");
LEAT_FROM_OUTPUT(reduce_mean, "mean(x, axes)");
LEAT_FROM_OUTPUT(reduce_max, "max(x, axes)");
LEAT_FROM_OUTPUT(reduce_min, "min(x, axes)");
LEAT_FROM_OUTPUT(reduce_prod, "prod(x, axes)");
LEAT_FROM_OUTPUT(reduce_logsumexp, "logsumexp(x, axes)");
LEAT_FROM_OUTPUT(gather, "take(x, indices, axis)");
LEAT_FROM_OUTPUT(reverse, "flip(x, axes)");
LEAT_FROM_OUTPUT(flip_left_right, "flip(image, -2)");
LEAT_FROM_OUTPUT(random_crop, "random::crop(x, size)");
LEAT_FROM_OUTPUT(self_adjoint_eig, "eigh(x)");
LEAT_FROM_OUTPUT(clip_by_value, "clip(x, low, high)");
LEAT_FROM_OUTPUT(size, "size_of(x)");
LEAT_FROM_OUTPUT(rank, "rank_of(x)");
LEAT_FROM_OUTPUT(unsorted_segment_sum, "segment_sum(data, segment_ids, segments)");
LEAT_FROM_OUTPUTS(concat, "concatenate({a, b}, axis)");
LEAT_FROM_GRAPH(range, "arange(graph, start, stop)");
LEAT_FROM_GRAPH(random_poisson, "random::poisson(graph, dims, mean)");
LEAT_FROM_GRAPH(random_gamma, "random::gamma(graph, dims, alpha)");
LEAT_FROM_GRAPH(fill, "full(graph, dims, value)");
LEAT_FROM_GRAPH(random_normal, "random::normal(graph, dims)");
LEAT_FROM_GRAPH(random_uniform, "random::uniform(graph, dims, low, high)");
// PyTorch
LEAT_FROM_OUTPUT(clamp, "clip(x, low, high)");
LEAT_FROM_OUTPUT(unsqueeze, "expand_dims(x, axis)");
LEAT_FROM_OUTPUT(permute, "transpose(x, axes)");
LEAT_FROM_OUTPUTS(cat, "concatenate({a, b}, axis)");
LEAT_FROM_GRAPH(randn, "random::normal(graph, dims)");
LEAT_FROM_GRAPH(rand, "random::uniform(graph, dims)");

namespace nn {
LEAT_FROM_OUTPUT(global_avg_pool, "nn::global_average_pool(x)");
LEAT_FROM_OUTPUT(swish, "nn::silu(x)");
LEAT_FROM_OUTPUT(hinge_loss, "nn::hinge(predictions, targets)");
LEAT_FROM_OUTPUT(huber_loss, "nn::huber(predictions, targets)");
LEAT_FROM_OUTPUT(normalize, "nn::l2_normalize(x, axis)");
LEAT_FROM_OUTPUT(embedding_lookup, "take(table, ids)");
}  // namespace nn

#undef LEAT_FROM_OUTPUT
#undef LEAT_FROM_OUTPUTS
#undef LEAT_FROM_ONE
#undef LEAT_FROM_GRAPH
#undef LEAT_WRITE

}  // namespace leat
