#include "tools/bench/models/networks.h"

#include <cmath>

namespace leat::bench {
namespace {

// Tensors of numbers that depend on how many tensors were drawn before, and on the place of the
// element: peers/model_numbers.py draws the same.
class Numbers {
 public:
  // Evenly distributed around 0, with that standard deviation.
  Tensor reals(const Shape& shape, double deviation) {
    Tensor out(f32, shape);
    const auto width = static_cast<float>(std::sqrt(12.0) * deviation);
    const uint32_t seed = next_seed();
    uint32_t place = 0;
    for (float& each : out.span<float>())
      each = (static_cast<float>(bits(seed, place++)) * 0x1p-24F - 0.5F) * width;
    return out;
  }
  // From 0 to limit - 1.
  Tensor integers(const Shape& shape, uint32_t limit) {
    Tensor out(i32, shape);
    const uint32_t seed = next_seed();
    uint32_t place = 0;
    for (int32_t& each : out.span<int32_t>())
      each = static_cast<int32_t>(bits(seed, place++) % limit);
    return out;
  }

 private:
  uint32_t next_seed() { return drawn_++ * 0x9E3779B9U; }
  // 24 bits: a hash of Wellons' ("lowbias32", 2018).
  static uint32_t bits(uint32_t seed, uint32_t place) {
    uint32_t x = seed + place;
    x = (x ^ (x >> 16)) * 0x7FEB352DU;
    x = (x ^ (x >> 15)) * 0x846CA68BU;
    return (x ^ (x >> 16)) >> 8;
  }
  uint32_t drawn_ = 0;
};

// A network under construction.
class Builder {
 public:
  Builder(Graph& graph, int64_t batch, std::string device)
      : graph_(graph), batch_(batch), device_(std::move(device)) {}

  Output mlp() {
    Output h = dense(images({784}), 256, relu);
    h = dense(h, 128, relu);
    return cost(dense(h, 10));
  }

  Output cnn() {
    Output h = max_pool(convolution(images({28, 28, 1}), 32, 5, {.activation = relu}));
    h = max_pool(convolution(h, 64, 5, {.activation = relu}));
    return cost(dense(dense(nn::flatten(h), 512, relu), 10));
  }

  Output resnet() {
    Output h = relu(norm(convolution(images({32, 32, 3}), 16, 3, {.use_bias = false})));
    for (const int64_t filters : {16, 32, 64}) {
      for (int block = 0; block < 3; ++block) {
        const bool grows = h.shape()[3] != filters;
        const int64_t strides = grows ? 2 : 1;
        Output shortcut = h;
        if (grows) shortcut = convolution(h, filters, 1, {.strides = strides, .use_bias = false});
        Output r = convolution(h, filters, 3, {.strides = strides, .use_bias = false});
        r = norm(convolution(relu(norm(r)), filters, 3, {.use_bias = false}));
        h = relu(shortcut + r);
      }
    }
    return cost(dense(nn::global_average_pool(h), 10));
  }

  Output transformer() {
    Output h = images({64, 128});
    for (int layer = 0; layer < 2; ++layer) {
      const std::vector<Output> qkv = split(dense(norm_of_features(h), 3 * 128), 3, -1);
      h = h + dense(nn::attention(qkv[0], qkv[1], qkv[2], {.heads = 4}), 128);
      h = h + dense(dense(norm_of_features(h), 512, relu), 128);
    }
    return cost(dense(mean(h, 1), 10));
  }

  Output lstm() {
    const Output x = images({50, 128});
    const nn::Lstm cell(graph_, 256,
                        {.kernel_initializer = weights(), .recurrent_initializer = weights()});
    const nn::RnnResult along = nn::rnn(cell, x);
    return cost(dense(along.state[0] + mean(along.outputs, 1), 10));
  }

  Output word2vec() {
    constexpr int64_t words = 100'000, features = 128, negatives = 64;
    const nn::Embedding centres(graph_, words, features,
                                {.initializer = rows(features), .name = "centres"});
    const nn::Embedding contexts(graph_, words, features,
                                 {.initializer = rows(features), .name = "contexts"});
    const Output centre = centres(integers("centre", {batch_}, words));
    const Output context = contexts(integers("context", {batch_}, words));
    const Output negative = contexts(integers("negative", {negatives}, words));
    const Output wanted = softplus(-sum(centre * context, 1));
    return mean(wanted + sum(softplus(matmul(centre, negative, {.transpose_b = true})), 1));
  }

  Output wide() {
    constexpr int64_t columns = 1'000'000, per_example = 40;
    const Output ids = integers("ids", {batch_, per_example}, columns);
    const Output table = nn::embedding(ids, columns, 1, {.initializer = initializers::zeros});
    const Output logits = sum(table, 1) + variable(graph_, "bias", {1});
    return mean(sigmoid_cross_entropy(logits, cast(integers("labels", {batch_, 1}, 2), f32)));
  }

 private:
  // ---- The batch ----
  Output given(std::string_view name, const Tensor& value) {
    const DeviceScope there(graph_, device_);
    return variable(graph_, name, value, {.trainable = false});
  }
  Output images(std::vector<int64_t> of_one) {
    of_one.insert(of_one.begin(), batch_);
    return given("examples", numbers_.reals(Shape(of_one), 1));
  }
  Output integers(std::string_view name, const Shape& shape, int64_t limit) {
    return given(name, numbers_.integers(shape, static_cast<uint32_t>(limit)));
  }
  Output cost(Output logits) {
    return mean(nn::softmax_cross_entropy(logits, integers("labels", {batch_}, 10)));
  }

  // ---- Layers ----
  // Variance 1 / inputs of a unit.
  Initializer weights() {
    return [this](Graph& graph, DType, const VariablePart& part) {
      const Shape& shape = part.whole;
      const auto inputs = static_cast<double>(shape.elements() / shape[shape.rank() - 1]);
      return constant(graph, numbers_.reals(shape, 1 / std::sqrt(inputs)));
    };
  }
  // Rows of length about 1.
  Initializer rows(int64_t features) {
    return [this, features](Graph& graph, DType, const VariablePart& part) {
      const double deviation = 1 / std::sqrt(static_cast<double>(features));
      return constant(graph, numbers_.reals(part.whole, deviation));
    };
  }
  Output dense(Output x, int64_t units, const nn::Activation& activation = {}) {
    return nn::dense(x, units, {.activation = activation, .kernel_initializer = weights()});
  }
  Output convolution(Output x, int64_t filters, int64_t size, nn::Conv2dOptions options) {
    options.kernel_initializer = weights();
    return nn::conv2d(x, filters, size, options);
  }
  static Output norm(Output x) { return nn::batch_norm(x, true); }
  static Output norm_of_features(Output x) { return nn::layer_norm(x, {.epsilon = 1e-5}); }

  Graph& graph_;
  const int64_t batch_;
  const std::string device_;
  Numbers numbers_;
};

struct Network {
  std::string name;
  Output (Builder::*build)();
};
const std::vector<Network>& all_networks() {
  static const std::vector<Network> all = {
      {"mlp", &Builder::mlp},       {"cnn", &Builder::cnn},
      {"resnet", &Builder::resnet}, {"transformer", &Builder::transformer},
      {"lstm", &Builder::lstm},     {"word2vec", &Builder::word2vec},
      {"wide", &Builder::wide},
  };
  return all;
}

}  // namespace

const std::vector<std::string>& networks() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Network& each : all_networks()) out.push_back(each.name);
    return out;
  }();
  return names;
}

Output loss_of(const std::string& network, Graph& graph, int64_t batch, const std::string& device) {
  for (const Network& each : all_networks()) {
    if (each.name == network) return (Builder(graph, batch, device).*each.build)();
  }
  fail(Code::invalid_argument, "there is no network '", network,
       "'; tools/bench/models/networks.h lists them");
}

}  // namespace leat::bench
