// A locally connected network on four tasks (DistBelief: Dean et al., "Large scale distributed deep
// networks", NIPS 2012). An image is cut into four strips of columns; each task has the weights of
// the positions in its strip. A layer looks at windows of 3 · 3, so a task needs one column of each
// neighbour: only edges that cross a border carry traffic. Then one device trains the same network.
//   leat run local:worker=4 -- locally_connected
#include <cmath>
#include <iostream>

#include "frontends/cpp/examples/common/digits_program.h"

using namespace leat;

namespace {

constexpr int64_t batch = 16, side = 16, classes = 10, steps = 20;

Initializer waves(const Shape& shape, float scale) {
  Tensor out(f32, shape);
  for (int64_t i = 0; i < shape.elements(); ++i)
    out.data<float>()[i] = scale * std::sin(static_cast<float>(i * i % 1009));
  return initializers::constant(out);
}

// The network in so many strips, each on its own task or, if there is only one, on this device.
struct Network {
  explicit Network(int strips) : strips(strips), columns(side / strips) {
    const auto first = on(0);
    const Shape shape{batch, side, side, 1};
    const Output images =
        variable(graph, "images", shape, {.initializer = waves(shape, 1), .trainable = false});
    const auto x = layer(layer(split(images, strips, 2), "first", 8), "second", 8);
    std::vector<Output> votes;
    for (int strip = 0; strip < strips; ++strip) {
      const auto there = on(strip);
      const Output w = reshape(weights("votes", strip, 8, classes), {-1, classes});
      votes.push_back(matmul(nn::flatten(x[strip]), w));
    }
    loss = mean(nn::softmax_cross_entropy(add_n(votes), arange(graph, batch) % classes));
    train = &Sgd{0.05}.minimize(loss);
  }
  DeviceScope on(int strip) {
    return {graph, strips == 1 ? "/cpu:0" : concat("/job:worker/task:", strip)};
  }
  // A matrix [in, out] for each position of the strip.
  Output weights(const std::string& name, int strip, int64_t in, int64_t out) {
    const Shape whole{side, side, in, out};
    const VariablePart part(name, whole, {{{}, {strip * columns, columns}, {}, {}}});
    return variable(graph, concat(name, "/part_", strip), part.shape(), waves(whole, 0.1F), f32,
                    {.part = part});
  }
  // A column of a strip, cut out where the strip is; zeros outside of the image.
  Output column(const std::vector<Output>& x, int strip, int64_t at) {
    if (strip < 0 || strip == strips) return zeros(graph, {batch, side, 1, x[0].shape()[3]});
    const auto there = on(strip);
    return x[strip][{all, all, slice(at, at + 1)}];
  }
  std::vector<Output> layer(const std::vector<Output>& x, const std::string& name, int64_t out) {
    std::vector<Output> y;
    for (int strip = 0; strip < strips; ++strip) {
      const auto there = on(strip);
      const Output left = column(x, strip - 1, columns - 1), right = column(x, strip + 1, 0);
      const Output wide = pad(concatenate({left, x[strip], right}, 2), {{}, {1, 1}, {}, {}});
      std::vector<Output> windows;
      for (int64_t i = 0; i < 9; ++i)
        windows.push_back(wide[{all, slice(i / 3, i / 3 + side), slice(i % 3, i % 3 + columns)}]);
      const Output seen = transpose(concatenate(windows, 3), {1, 2, 0, 3});
      const Output h = matmul(seen, weights(name, strip, seen.shape()[3], out));
      y.push_back(relu(transpose(h, {2, 0, 1, 3})));
    }
    return y;
  }
  // The losses of all steps; prints what the tasks send each other in one.
  std::vector<float> run(const std::string& target) {
    Session session{graph, {.target = target}};
    session.run(initialize_variables(graph));
    std::vector<float> losses;
    while (std::ssize(losses) < steps)
      losses.push_back(session.run({loss, *train})[0].item<float>());
    RunMetadata metadata;
    session.run({}, std::vector<Output>{}, {*train}, {.partition_graphs = true}, &metadata);
    Graph parts;
    for (const std::string& part : metadata.partition_graphs) from_graph_def(part, parts);
    int64_t bytes = 0;
    for (const auto& node : parts.nodes())
      if (node->is("_Send") && !node->inputs.empty())
        bytes += node->inputs[0].shape().elements() * 4;
    std::cout << strips << " strips: a step sends " << bytes << " bytes" << std::endl;
    return losses;
  }
  const int strips;
  const int64_t columns;
  Graph graph;
  Output loss;
  Node* train = nullptr;
};

}  // namespace

int main() {
  return examples::guarded([] {
    const Cluster cluster = join_cluster();
    check(cluster.spec().contains({"worker", 3}), "this program needs four workers");
    if (examples::left_to_the_chief(cluster)) return;
    const auto losses = Network(4).run(cluster.target()), expected = Network(1).run("");
    for (size_t i = 0; i < losses.size(); ++i)
      check(std::abs(losses[i] / expected[i] - 1) < 1e-4, "in step ", i, " the losses differ");
  });
}
