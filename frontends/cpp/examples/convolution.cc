// A convolutional network on MNIST: the input pipeline is part of the graph; stopped training
// resumes from its checkpoints.
//   convolution DIR [STEPS [CHECKPOINTS]]     DIR has the four MNIST files
#include <leat/leat.h>
#include <iostream>

using namespace leat;

namespace {

constexpr int64_t batch_size = 100;

struct Network {
  explicit Network(Graph& g)
      : conv1(g, 16, 5, {.activation = relu, .name = "conv1"}),
        conv2(g, 32, 5, {.activation = relu, .name = "conv2"}),
        hidden(g, 128, {.activation = relu, .name = "hidden"}),
        logits(g, 10, {.name = "logits"}) {}

  Output operator()(Output images) const {
    Output h = reshape(images, {-1, 28, 28, 1});
    h = max_pool(conv1(h));
    h = max_pool(conv2(h));
    return logits(hidden(nn::flatten(h)));
  }

  nn::Conv2d conv1, conv2;
  nn::Dense hidden, logits;
};

void train(const std::string& data, int64_t steps, const std::string& checkpoints) {
  Graph g;
  const Batch batch =
      datasets::mnist(data).shuffle(10'000, 1).repeat().batch(batch_size).prefetch(2).next(g);
  const Batch test = datasets::mnist(data, {.train = false}).repeat().batch(1000).next(g);

  const Network network(g);
  const Output loss = mean(nn::softmax_cross_entropy(network(batch["image"]), batch["label"]));
  const Output accuracy = nn::accuracy(network(test["image"]), test["label"]);
  Node& update = Adam{1e-3}.minimize(loss, {.global_step = global_step(g)});

  TrainingSession training(g, {.train = update,
                               .directory = checkpoints,
                               .checkpoint_steps = 100,
                               .hooks = {std::make_shared<StopAtStep>(steps),
                                         std::make_shared<ShowProgress>(loss, steps, batch_size)}});
  while (!training.should_stop()) training.step({});

  float sum = 0;
  for (int i = 0; i < 2; ++i) sum += training.session().run(accuracy).item<float>();
  std::cout << "accuracy " << sum / 2 << " on 2000 test digits\n";
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 4 || (argc > 2 && std::atoll(argv[2]) <= 0)) {
    std::cerr << "usage: convolution DIR [STEPS [CHECKPOINTS]]\n";
    return 2;
  }
  train(argv[1], argc > 2 ? std::atoll(argv[2]) : 300, argc > 3 ? argv[3] : "");
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
