// Fills in a matrix of ratings from some of its elements: a rating is the product of the user's row
// of one table and the item's row of another (Koren, Bell and Volinsky, IEEE Computer 42(8), 2009).
// Such tables outgrow a machine, so they lie in parts on all ps tasks, and a step moves only the
// rows that it needs.
//   leat run local:ps=2,worker=2 -- ratings --parts 4
// With --directory a training goes on from there, with any number of parts. Without a cluster it
// trains in this process.
#include <CLI/CLI.hpp>
#include <iostream>
#include <random>

#include "frontends/cpp/cluster_member.h"
#include "frontends/cpp/embedding_lookup.h"
#include "frontends/cpp/examples/common/digits_program.h"
#include "frontends/cpp/parameter_server.h"
#include "frontends/cpp/training_hooks.h"

using namespace leat;
using namespace leat::examples;

namespace {

constexpr int64_t users = 300, items = 200, factors = 4;

struct RatingFlags {
  int64_t parts = 2;
  int64_t steps = 2000;  // of all workers together
  int64_t batch = 200;   // ratings per step
  double rate = 0.01;
  std::string directory;  // of checkpoints
};

RatingFlags parse(int argc, char** argv) {
  RatingFlags flags;
  CLI::App app{"Learns the ratings that users give to items, with tables in parts."};
  app.add_option("--parts", flags.parts, "parts of each table")->capture_default_str();
  app.add_option("--steps", flags.steps, "updates")->capture_default_str();
  app.add_option("--batch", flags.batch, "ratings per step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rate", flags.rate, "learning rate")->capture_default_str();
  app.add_option("--directory", flags.directory, "checkpoints");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return flags;
}

// What is to be found out: ratings by hidden tables, which all workers draw alike.
class Ratings {
 public:
  explicit Ratings(uint64_t seed) : random_(1), user_rows_(draw(users)), item_rows_(draw(items)) {
    random_.seed(seed);
  }

  // Users, items and their ratings, drawn anew at each call.
  std::vector<Tensor> batch(int64_t size) {
    Tensor of_users(i32, {size}), of_items(i32, {size}), ratings(f32, {size});
    for (int64_t i = 0; i < size; ++i) {
      const auto user = static_cast<int32_t>(random_() % users),
                 item = static_cast<int32_t>(random_() % items);
      of_users.data<int32_t>()[i] = user;
      of_items.data<int32_t>()[i] = item;
      ratings.data<float>()[i] = rating(user, item);
    }
    return {of_users, of_items, ratings};
  }

 private:
  std::vector<float> draw(int64_t rows) {
    std::normal_distribution<float> normal;
    std::vector<float> out(static_cast<size_t>(rows * factors));
    for (float& x : out) x = normal(random_);
    return out;
  }
  float rating(int32_t user, int32_t item) const {
    float out = 0;
    for (int64_t f = 0; f < factors; ++f)
      out += user_rows_[static_cast<size_t>(user * factors + f)] *
             item_rows_[static_cast<size_t>(item * factors + f)];
    return out;
  }

  std::mt19937_64 random_;
  const std::vector<float> user_rows_, item_rows_;
};

struct Program {
  Graph graph;
  Output step;  // counts updates
  Output users, items, ratings, loss;
  Node* train = nullptr;
};

void build(Program& out, const RatingFlags& flags) {
  Graph& graph = out.graph;
  const auto table = [&](std::string_view name, int64_t rows, int64_t seed) {
    return partitioned_variable(graph, name, {rows, factors}, partitioners::fixed_size(flags.parts),
                                initializers::truncated_normal(0.5, seed));
  };
  const PartitionedVariable user_table = table("users", users, 1),
                            item_table = table("items", items, 2);
  out.step = make_global_step(graph);
  out.users = placeholder(graph, "of_users", i32, {any});
  out.items = placeholder(graph, "of_items", i32, {any});
  out.ratings = placeholder(graph, "ratings", f32, {any});
  const Output product =
      embedding_lookup(user_table, out.users) * embedding_lookup(item_table, out.items);
  const Output last_axis = constant(graph, Tensor::scalar<int32_t>(1));
  out.loss = mean(square(sum(product, last_axis) - out.ratings));
  out.train = &Adam(flags.rate).minimize(out.loss, {.global_step = out.step});
}

void run(const RatingFlags& flags) {
  const ClusterMember member = join_cluster();
  const auto& task = member.cluster().task;
  Program program;
  if (task) {
    const ParameterServer strategy(member.cluster().spec);
    const ReplicaScope on_worker = strategy.replica(program.graph, task->index);
    build(program, flags);
  } else {
    build(program, flags);
  }
  TrainingSession loop(program.graph, {.train = program.train,
                                       .global_step = program.step,
                                       .inputs = {program.users, program.items, program.ratings},
                                       .fetches = {program.loss},
                                       .session = {.target = member.target()},
                                       .is_chief = member.is_chief(),
                                       .directory = flags.directory});
  loop.add(std::make_unique<StopAtStep>(flags.steps));
  loop.add(std::make_unique<ShowProgress>(program.loss, flags.steps, flags.batch));
  Ratings ratings(task ? 2 + static_cast<uint64_t>(task->index) : 2);
  while (!loop.should_stop()) loop.step(ratings.batch(flags.batch));
  if (member.is_chief()) {
    const std::vector<Tensor> test = ratings.batch(5000);
    const Feeds feeds = {
        {program.users, test[0]}, {program.items, test[1]}, {program.ratings, test[2]}};
    std::cout << "mean squared error "
              << loop.session().run(feeds, {program.loss})[0].value<float>() << std::endl;
  }
  loop.close();
}

}  // namespace

int main(int argc, char** argv) {
  const RatingFlags flags = parse(argc, argv);
  return guarded([&] { run(flags); });
}
