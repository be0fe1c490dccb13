// What the MNIST examples share: flags, data, the model, and the loop around a step.
#pragma once

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <leat/leat.h>

namespace leat::examples {

struct Flags {
  std::string data;  // directory of MNIST idx files; "" = drawn digits
  int epochs = 10;
  int batch = 50;  // examples per replica and step
  int hidden = 128;
  std::string optimizer = "adam";             // sgd, momentum, adam
  double rate = 0;                            // 0 = the optimizer's usual one
  std::string strategy = "parameter_server";  // mnist only
  std::string model = "mlp";                  // mnist only: mlp or cnn
  std::string recompute = "none";             // mnist only: none, layers or auto
  std::string mixed_precision = "none";       // mnist only: none, bf16, f16 or gpu_f16
  std::string graph;                          // write the partitioned graph of a training step here
  std::string trace;                          // write a Chrome trace of one training step here
  std::string
      directory;  // for checkpoints and summaries; a stopped training resumes from its checkpoint
  int64_t checkpoint_steps = 0;  // a checkpoint every so many steps; 0 = every 10 minutes
  std::string losses;            // write step and loss of every step here
  uint64_t seed = 1;
};
// Exits with usage on --help or a mistake.
Flags parse_flags(int argc, char** argv, const std::string& description, bool has_strategy = false);

data::Digits load(const Flags& flags);
// A directory with MNIST's files: --data, or one in the temporary directory with drawn digits.
std::string digits_directory(const Flags& flags);
std::unique_ptr<Optimizer> make_optimizer(const Flags& flags);

// True (and a line says so) if the chief's program drives all workers and this one is not it: it
// has nothing to do.
bool left_to_the_chief(const Cluster& cluster);

inline constexpr int64_t pixels = 28 * 28;

// 784-hidden-10 with relu. The layers are made once, under the scopes of the constructor; every
// call makes a replica.
class Mlp {
 public:
  Mlp(Graph& graph, const Flags& flags);
  Output operator()(Output images) const { return logits_(hidden_(images)); }

 private:
  nn::Dense hidden_, logits_;
};

// Two convolutions of 5 * 5, each with relu and a pooling of 2 * 2, then a hidden layer.
class Cnn {
 public:
  Cnn(Graph& graph, const Flags& flags);
  Output operator()(Output images) const;

 private:
  nn::Conv2d first_, second_;
  nn::Dense hidden_, logits_;
};

// The one that --model asks for.
std::function<Output(Output)> make_model(Graph& graph, const Flags& flags);

// The two layers of such a model, for programs that place them one by one.
nn::Dense make_hidden_layer(Graph& graph, const Flags& flags);
nn::Dense make_logits_layer(Graph& graph, const Flags& flags);

// Placeholders for a batch, and the model's results for it.
struct Replica {
  Output images, labels, logits, loss;
};
// `model` maps images [?, 784] to logits [?, 10].
Replica make_replica(Graph& graph, const std::function<Output(Output)>& model, int index = 0);

// All that a program builds that places its model itself.
struct Program {
  Graph graph;
  std::vector<Replica> replicas;  // those that this program feeds
  Output global_step;
  Node* train = nullptr;
  // between-graph: this program's share of the examples, and how many programs train
  int shard = 0, shards = 1;
};

// Initialises or restores (the chief) or waits, trains all epochs with a progress line, then the
// chief prints the accuracy on the test examples and writes what --graph and --trace ask for.
void train(const Flags& flags, const Cluster& cluster, Program& program);

// Writes step and loss of every step to a file.
class WriteLosses : public TrainingHook {
 public:
  WriteLosses(const std::string& path, Output loss);
  std::vector<Output> fetches() override { return {loss_}; }
  void after_step(TrainingSession& training, std::span<const Tensor> values) override;

 private:
  std::ofstream file_;
  const Output loss_;
};

// Writes what --graph and --trace ask for: the partitioned graph of a step, and its trace.
void write_artifacts(Session& session, const Flags& flags, const Feeds& feeds, Output loss,
                     const Node& train);

// Runs main's body; a leat::Error is printed with its code, and the exit status is 1.
int guarded(const std::function<void()>& body);

}  // namespace leat::examples
