// What programs write who come from other libraries. Each line does not compile, and its error says
// what to write (other_names.py compares).
#include "tests/install/context.h"

void from_numpy() {
  linalg::inv(x);                  // write inverse(x)
  linalg::det(x);                  // write determinant(x)
  linalg::eigvalsh(x);             // write eigh(x).values
  random::randint(g, 0, 10, {4});  // write random::integers(graph, dims, low, high)
  random::randn(g, {2, 3});        // write random::normal(graph, dims)
  floor_divide(x, 2);              // write floor_div(a, b)
  nan_to_num(x);                   // write where(isnan(x), 0, x)
  shape(x);                        // write shape_of(x)
  add(x, y);                       // write a + b
  swapaxes(x, 0, 1);               // write transpose(x, axes)
}

void from_tensorflow() {
  reduce_sum(x, 1);                    // write sum(x, axes)
  set_random_seed(g, 7);               // write random::seed(graph, seed)
  bucketize(x, {1.0, 2.0});            // write digitize(x, boundaries)
  strings::lower(words);               // write string_lower(x)
  strings::join({words, words}, " ");  // write string_join({a, b}, separator)
  variable_scope(g, "layer");          // write const NameScope scope(graph, name)
  VariableScope scope(g, "layer");     // write const NameScope scope(graph, name)
  device(g, "/gpu:0");                 // write const DeviceScope scope(graph, device)
  get_variable(g, "w", {2, 3});        // write variable(graph, name, shape)
  global_variables_initializer(g);     // write initialize_variables(graph)
  AdamOptimizer(1e-3).minimize(loss);  // write Adam{rate}
  random_flip_left_right(images);      // write random::flip_left_right(images)
  nn::moments(x, {0});                 // write mean(x, axes) and var(x, axes)
  SummaryWriter writer("runs/1");      // write EventWriter writer(directory)
  schedules::warmup(1e-3, step, 100);  // write schedules::linear_warm_up(rate, step, steps)
  nn::softmax_cross_entropy_with_logits(x, y);  // write nn::softmax_cross_entropy(logits, labels)
}

void from_keras_and_pytorch() {
  RMSprop{0.01}.minimize(loss);   // write RmsProp{rate}
  SGD(0.1).minimize(loss, {});    // write Sgd{rate}
  nn::LSTM lstm(g, 128);          // write nn::Lstm(graph, units)
  nn::lstm(x, 128);               // write nn::rnn(nn::Lstm(graph, units), x)
  nn::binary_crossentropy(x, y);  // write nn::binary_cross_entropy(predictions, targets)
  nn::linear(x, 10);              // write nn::dense(x, units)
  manual_seed(g, 1);              // write random::seed(graph, seed)
  unsqueeze(x, 0);                // write expand_dims(x, axis)
  variable(g, "a", {2},
           initializers::normal(0, 1));  // write initializers::random_normal(mean, stddev)
  variable(g, "b", {2}, initializers::xavier_uniform());  // write initializers::glorot_uniform
}
