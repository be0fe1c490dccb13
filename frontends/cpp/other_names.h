// Names of other libraries for what has another name here. A program that calls one does not
// compile: the error at its line says what to write.
#pragma once

#include <initializer_list>
#include <vector>

#include "frontends/cpp/initializers.h"

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

#define LEAT_FROM_NUMBERS(name, text)                                     \
  LEAT_WRITE(text)                                                        \
  Output name(const Operand&, const Operand&, other_names::Anything = {}, \
              other_names::Anything = {})
#define LEAT_INITIALIZER(name, text)                                       \
  LEAT_WRITE(text)                                                         \
  Initializer name(other_names::Anything = {}, other_names::Anything = {}, \
                   other_names::Anything = {})
// A class: an optimizer, a cell, a scope.
#define LEAT_OBJECT(name, text)                                                         \
  struct name {                                                                         \
    LEAT_WRITE(text)                                                                    \
    name(other_names::Anything, other_names::Anything = {}, other_names::Anything = {}, \
         other_names::Anything = {});                                                   \
    Node& minimize(const Output&, other_names::Anything = {}) const;                    \
  }

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
LEAT_FROM_OUTPUT(floor_divide, "floor_div(a, b)");
LEAT_FROM_OUTPUT(true_divide, "a / b");
LEAT_FROM_OUTPUT(nan_to_num, "where(isnan(x), 0, x)");
LEAT_FROM_OUTPUT(shape, "shape_of(x)");
LEAT_FROM_OUTPUT(eigvalsh, "eigh(x).values");
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
LEAT_FROM_OUTPUT(reduce_std, "stddev(x, axes)");
LEAT_FROM_OUTPUT(reduce_variance, "var(x, axes)");
LEAT_FROM_OUTPUT(reduce_any, "any(x, axes)");
LEAT_FROM_OUTPUT(reduce_all, "all(x, axes)");
LEAT_FROM_OUTPUT(floordiv, "floor_div(a, b)");
LEAT_FROM_OUTPUT(bucketize, "digitize(x, boundaries)");
LEAT_FROM_OUTPUT(multinomial, "random::categorical(logits, samples)");
LEAT_FROM_OUTPUT(random_shuffle, "random::shuffle(x)");
LEAT_FROM_OUTPUT(matrix_inverse, "inverse(x)");
LEAT_FROM_OUTPUT(matrix_determinant, "determinant(x)");
LEAT_FROM_OUTPUT(matrix_solve, "solve(a, b)");
LEAT_FROM_OUTPUT(matrix_triangular_solve, "solve_triangular(a, b)");
LEAT_FROM_OUTPUT(triangular_solve, "solve_triangular(a, b)");
LEAT_FROM_OUTPUT(to_float, "cast(x, f32)");
LEAT_FROM_OUTPUT(to_int32, "cast(x, i32)");
LEAT_FROM_OUTPUT(to_int64, "cast(x, i64)");
LEAT_FROM_OUTPUT(resize_bilinear, "resize_images(images, size)");
LEAT_FROM_OUTPUT(flip_up_down, "flip(image, -3)");
LEAT_FROM_OUTPUT(adjust_brightness, "images + delta");
LEAT_FROM_OUTPUT(decode_png, "decode_image(contents)");
LEAT_FROM_OUTPUT(decode_jpeg, "decode_image(contents)");
LEAT_FROM_OUTPUT(string_to_hash_bucket_fast, "string_to_hash_bucket(x, buckets)");
LEAT_FROM_GRAPH(get_variable, "variable(graph, name, shape)");
LEAT_FROM_GRAPH(get_or_create_global_step, "global_step(graph)");
LEAT_FROM_GRAPH(global_variables_initializer, "initialize_variables(graph)");
LEAT_FROM_GRAPH(name_scope, "const NameScope scope(graph, name)");
LEAT_FROM_GRAPH(variable_scope, "const NameScope scope(graph, name)");
LEAT_OBJECT(VariableScope, "const NameScope scope(graph, name)");
LEAT_FROM_GRAPH(device, "const DeviceScope scope(graph, device)");
LEAT_FROM_GRAPH(control_dependencies, "const ControlScope scope(graph, {after})");
LEAT_FROM_GRAPH(set_random_seed, "random::seed(graph, seed)");
LEAT_FROM_GRAPH(set_seed, "random::seed(graph, seed)");
LEAT_FROM_GRAPH(truncated_normal, "random::truncated_normal(graph, dims)");
LEAT_OBJECT(SummaryWriter, "EventWriter writer(directory)");
LEAT_OBJECT(GradientDescentOptimizer, "Sgd{rate}");
LEAT_OBJECT(MomentumOptimizer, "Momentum{rate, momentum}");
LEAT_OBJECT(AdamOptimizer, "Adam{rate}");
LEAT_OBJECT(AdagradOptimizer, "Adagrad{rate}");
LEAT_OBJECT(RMSPropOptimizer, "RmsProp{rate}");
LEAT_FROM_OUTPUTS(concat, "concatenate({a, b}, axis)");
LEAT_FROM_GRAPH(range, "arange(graph, start, stop)");
LEAT_FROM_GRAPH(random_poisson, "random::poisson(graph, dims, mean)");
LEAT_FROM_GRAPH(random_gamma, "random::gamma(graph, dims, alpha)");
LEAT_FROM_GRAPH(fill, "full(graph, dims, value)");
LEAT_FROM_GRAPH(random_normal, "random::normal(graph, dims)");
LEAT_FROM_GRAPH(random_uniform, "random::uniform(graph, dims, low, high)");
LEAT_FROM_OUTPUT(random_flip_left_right, "random::flip_left_right(images)");
LEAT_FROM_OUTPUT(random_flip_up_down, "random::flip_up_down(images)");
LEAT_FROM_OUTPUT(random_brightness, "random::brightness(images, maximum)");
LEAT_FROM_OUTPUT(random_contrast, "random::contrast(images, low, high)");
// PyTorch
LEAT_FROM_OUTPUT(clamp, "clip(x, low, high)");
LEAT_FROM_OUTPUT(unsqueeze, "expand_dims(x, axis)");
LEAT_FROM_OUTPUT(permute, "transpose(x, axes)");
LEAT_FROM_OUTPUTS(cat, "concatenate({a, b}, axis)");
LEAT_FROM_GRAPH(randn, "random::normal(graph, dims)");
LEAT_FROM_GRAPH(rand, "random::uniform(graph, dims)");
LEAT_FROM_GRAPH(manual_seed, "random::seed(graph, seed)");
LEAT_OBJECT(SGD, "Sgd{rate}");
LEAT_OBJECT(RMSprop, "RmsProp{rate}");
LEAT_OBJECT(NAdam, "Nadam{rate}");
LEAT_OBJECT(LAMB, "Lamb{rate}");
LEAT_OBJECT(LARS, "Lars{rate}");

namespace random {
LEAT_FROM_GRAPH(randint, "random::integers(graph, dims, low, high)");
LEAT_FROM_GRAPH(randn, "random::normal(graph, dims)");
LEAT_FROM_GRAPH(rand, "random::uniform(graph, dims)");
LEAT_FROM_GRAPH(set_seed, "random::seed(graph, seed)");
}  // namespace random

// NumPy has these in linalg.
namespace linalg {
using leat::cholesky;
using leat::cross;
using leat::eigh;
using leat::lstsq;
using leat::matmul;
using leat::norm;
using leat::outer;
using leat::qr;
using leat::solve;
using leat::svd;
using leat::tensordot;
using leat::trace;
LEAT_FROM_OUTPUT(inv, "inverse(x)");
LEAT_FROM_OUTPUT(det, "determinant(x)");
LEAT_FROM_OUTPUT(eigvalsh, "eigh(x).values");
LEAT_FROM_OUTPUT(solve_triangular, "solve_triangular(a, b)");
LEAT_FROM_OUTPUT(triangular_solve, "solve_triangular(a, b)");
}  // namespace linalg

// TensorFlow's.
namespace strings {
LEAT_FROM_OUTPUT(lower, "string_lower(x)");
LEAT_FROM_OUTPUT(upper, "string_upper(x)");
LEAT_FROM_OUTPUT(strip, "string_strip(x)");
LEAT_FROM_OUTPUT(length, "string_length(x)");
LEAT_FROM_OUTPUT(split, "string_split(x)");
LEAT_FROM_OUTPUT(substr, "substr(x, position, length)");
LEAT_FROM_OUTPUT(to_number, "string_to_number(x)");
LEAT_FROM_OUTPUT(as_string, "as_string(x)");
LEAT_FROM_OUTPUT(regex_replace, "regex_replace(x, pattern, rewrite)");
LEAT_FROM_OUTPUT(to_hash_bucket, "string_to_hash_bucket(x, buckets)");
LEAT_FROM_OUTPUTS(join, "string_join({a, b}, separator)");
}  // namespace strings

// PyTorch's and TensorFlow's.
namespace initializers {
LEAT_INITIALIZER(normal, "initializers::random_normal(mean, stddev)");
LEAT_INITIALIZER(uniform, "initializers::random_uniform(low, high)");
LEAT_INITIALIZER(xavier_uniform, "initializers::glorot_uniform");
LEAT_INITIALIZER(xavier_normal, "initializers::glorot_normal");
LEAT_INITIALIZER(kaiming_uniform, "initializers::he_uniform");
LEAT_INITIALIZER(kaiming_normal, "initializers::he_normal");
}  // namespace initializers

namespace schedules {
LEAT_FROM_NUMBERS(warmup, "schedules::linear_warm_up(rate, step, steps)");
LEAT_FROM_NUMBERS(warm_up, "schedules::linear_warm_up(rate, step, steps)");
LEAT_FROM_NUMBERS(linear_warmup, "schedules::linear_warm_up(rate, step, steps)");
LEAT_FROM_NUMBERS(cosine_annealing, "schedules::cosine_decay(rate, step, {.decay_steps = steps})");
LEAT_FROM_NUMBERS(step_decay,
                  "schedules::exponential_decay(rate, step, {.decay_steps = steps, .decay_rate = "
                  "factor, .staircase = true})");
}  // namespace schedules

namespace nn {
LEAT_FROM_OUTPUT(global_avg_pool, "nn::global_average_pool(x)");
LEAT_FROM_OUTPUT(swish, "nn::silu(x)");
LEAT_FROM_OUTPUT(hinge_loss, "nn::hinge(predictions, targets)");
LEAT_FROM_OUTPUT(huber_loss, "nn::huber(predictions, targets)");
LEAT_FROM_OUTPUT(normalize, "nn::l2_normalize(x, axis)");
LEAT_FROM_OUTPUT(embedding_lookup, "take(table, ids)");
LEAT_FROM_OUTPUT(linear, "nn::dense(x, units)");
LEAT_FROM_OUTPUT(max_pool2d, "max_pool(x, size)");
LEAT_FROM_OUTPUT(avg_pool2d, "avg_pool(x, size)");
LEAT_FROM_OUTPUT(moments, "mean(x, axes) and var(x, axes)");
LEAT_FROM_OUTPUT(cross_entropy, "nn::softmax_cross_entropy(logits, labels)");
LEAT_FROM_OUTPUT(mse_loss, "nn::mean_squared_error(predictions, targets)");
LEAT_FROM_OUTPUT(binary_crossentropy, "nn::binary_cross_entropy(predictions, targets)");
LEAT_FROM_OUTPUT(categorical_crossentropy, "nn::categorical_cross_entropy(predictions, targets)");
LEAT_FROM_OUTPUT(softmax_cross_entropy_with_logits, "nn::softmax_cross_entropy(logits, labels)");
LEAT_FROM_OUTPUT(sparse_softmax_cross_entropy_with_logits,
                 "nn::sparse_softmax_cross_entropy(logits, labels)");
LEAT_FROM_OUTPUT(sigmoid_cross_entropy_with_logits, "nn::sigmoid_cross_entropy(logits, labels)");
LEAT_FROM_OUTPUT(lstm, "nn::rnn(nn::Lstm(graph, units), x)");
LEAT_FROM_OUTPUT(gru, "nn::rnn(nn::Gru(graph, units), x)");
LEAT_OBJECT(LSTM, "nn::Lstm(graph, units)");
LEAT_OBJECT(GRU, "nn::Gru(graph, units)");
LEAT_OBJECT(Linear, "nn::Dense(graph, units)");
LEAT_OBJECT(LSTMCell, "nn::Lstm(graph, units)");
LEAT_OBJECT(GRUCell, "nn::Gru(graph, units)");
}  // namespace nn

#undef LEAT_FROM_OUTPUT
#undef LEAT_FROM_OUTPUTS
#undef LEAT_FROM_ONE
#undef LEAT_FROM_GRAPH
#undef LEAT_FROM_NUMBERS
#undef LEAT_INITIALIZER
#undef LEAT_OBJECT
#undef LEAT_WRITE

}  // namespace leat
