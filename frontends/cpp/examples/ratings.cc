// Matrix factorisation: a rating is the product of the user's row of one table and the item's row
// of another (Koren, Bell and Volinsky, IEEE Computer 42(8), 2009). The tables lie in parts on all
// ps tasks; a step moves only the rows that it needs. Training resumes from its checkpoints.
//   leat run local:ps=2,worker=2 -- ratings --parts 4
#include <leat/leat.h>
#include <CLI/CLI.hpp>
#include <iostream>
#include <random>

using namespace leat;

namespace {

constexpr int64_t users = 300, items = 200, factors = 4;

struct Flags {
  int64_t parts = 2, steps = 2000, batch = 200;
  double rate = 0.01;
  std::string directory;
};

// The true factors, which training must find: a row for each; all workers draw the same.
Tensor hidden_rows(int64_t count, uint64_t seed) {
  Tensor out = Tensor::zeros({count, factors});
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  for (float& x : out.span<float>()) x = normal(random);
  return out;
}

void train(const Flags& flags) {
  const Cluster cluster = join_cluster();
  const auto& task = cluster.task();
  Graph g;
  // Variables go to the ps tasks, all else to this worker.
  const ReplicaScope scope =
      task ? ParameterServer(cluster.spec()).replica(g, task->index) : ReplicaScope(g, g.scopes());
  const auto cut = partitioners::fixed_size(flags.parts);
  const auto start = initializers::truncated_normal(0.5);
  const auto of_users = partitioned_variable(g, "users", {users, factors}, cut, start);
  const auto of_items = partitioned_variable(g, "items", {items, factors}, cut, start);
  // Each step sees other ratings.
  const Output user = random::integers(g, {flags.batch}, 0, users);
  const Output item = random::integers(g, {flags.batch}, 0, items);
  const Output rating = sum(take(constant(g, hidden_rows(users, 1)), user) *
                                take(constant(g, hidden_rows(items, 2)), item),
                            1);
  const Output guess = sum(embedding_lookup(of_users, user) * embedding_lookup(of_items, item), 1);
  const Output loss = mean(square(guess - rating));
  Node& update = Adam{flags.rate}.minimize(loss, {.global_step = global_step(g)});

  TrainingOptions options{
      .train = update, .is_chief = cluster.is_chief(), .directory = flags.directory};
  options.session.target = cluster.target();
  options.hooks = {std::make_shared<StopAtStep>(flags.steps),
                   std::make_shared<ShowProgress>(loss, flags.steps, flags.batch)};
  TrainingSession training(g, options);
  while (!training.should_stop()) training.step({});
  if (cluster.is_chief())
    std::cout << "mean squared error " << training.session().run(loss).item<float>() << std::endl;
  training.close();
}

}  // namespace

int main(int argc, char** argv) try {
  Flags flags;
  CLI::App app{"Learns the ratings that users give to items, with partitioned tables."};
  app.add_option("--parts", flags.parts, "parts of each table")->capture_default_str();
  app.add_option("--steps", flags.steps, "steps of all workers together")->capture_default_str();
  app.add_option("--batch", flags.batch, "ratings per step")->capture_default_str();
  app.add_option("--rate", flags.rate, "learning rate")->capture_default_str();
  app.add_option("--directory", flags.directory, "checkpoints");
  CLI11_PARSE(app, argc, argv);
  train(flags);
} catch (const Error& error) {
  std::cerr << error.status().to_string() << "\n";
  return 1;
}
