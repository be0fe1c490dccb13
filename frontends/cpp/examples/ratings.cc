// Matrix factorisation: a rating is the product of the user's row of one table and the item's row
// of another (Koren, Bell and Volinsky, IEEE Computer 42(8), 2009). The tables lie in parts on all
// ps tasks; a step moves only the rows that it needs. A training goes on from its checkpoints.
//   leat run local:ps=2,worker=2 -- ratings [PARTS [STEPS [CHECKPOINTS [RATE [BATCH]]]]]
#include <leat/leat.h>
#include <iostream>
#include <numeric>
#include <random>

using namespace leat;

namespace {
constexpr int64_t users = 300, items = 200, factors = 4;

// What is to be found out: ratings by hidden rows, which all workers draw alike.
struct Ratings {
  explicit Ratings(uint64_t seed) {
    std::normal_distribution<float> normal;
    for (float& x : hidden) x = normal(random);
    random.seed(seed);
  }
  // The numbers of users and items, and the ratings that these give to those: [count] each.
  std::vector<Tensor> draw(int64_t count) {
    std::vector<Tensor> out = {Tensor(i32, {count}), Tensor(i32, {count}), Tensor(f32, {count})};
    for (int64_t n = 0; n < count; ++n) {
      const size_t user = random() % users, item = random() % items;
      const float *of_user = &hidden[user * factors], *of_item = &hidden[(users + item) * factors];
      out[0].data<int32_t>()[n] = static_cast<int32_t>(user);
      out[1].data<int32_t>()[n] = static_cast<int32_t>(item);
      out[2].data<float>()[n] = std::inner_product(of_user, of_user + factors, of_item, 0.0F);
    }
    return out;
  }
  std::mt19937_64 random{1};
  std::array<float, (users + items) * factors> hidden;
};

void train(int64_t parts, int64_t steps, const std::string& directory, double rate, int64_t batch) {
  const ClusterMember member = join_cluster();
  const auto& task = member.cluster().task;
  Graph g;
  // Variables go to the ps tasks, all else to this worker.
  const ReplicaScope scope = task ? ParameterServer(member.cluster().spec).replica(g, task->index)
                                  : ReplicaScope(g, g.scopes());
  const auto cut = partitioners::fixed_size(parts);
  const auto start = initializers::truncated_normal(0.5, 1);
  const auto of_users = partitioned_variable(g, "users", {users, factors}, cut, start);
  const auto of_items = partitioned_variable(g, "items", {items, factors}, cut, start);
  const Output step = global_step(g);
  const Output user = placeholder(g, "user", i32, {any}), item = placeholder(g, "item", i32, {any}),
               rating = placeholder(g, "rating", f32, {any});
  const Output guess = sum(embedding_lookup(of_users, user) * embedding_lookup(of_items, item), 1);
  const Output loss = mean(square(guess - rating));
  Node& update = Adam{rate}.minimize(loss, {.global_step = step});
  TrainingOptions options{.train = &update, .global_step = step, .inputs = {user, item, rating}};
  options.session.target = member.target();
  options.is_chief = member.is_chief();
  options.directory = directory;
  TrainingSession training(g, options);
  training.add(std::make_unique<StopAtStep>(steps));
  training.add(std::make_unique<ShowProgress>(loss, steps, batch));
  Ratings ratings(task ? 2 + static_cast<uint64_t>(task->index) : 2);
  while (!training.should_stop()) training.step(ratings.draw(batch));
  if (member.is_chief()) {
    const auto test = ratings.draw(5000);
    const auto [error] =
        training.session().run({{user, test[0]}, {item, test[1]}, {rating, test[2]}}, fetch(loss));
    std::cout << "mean squared error " << error.value<float>() << "\n";
  }
  training.close();
}
}  // namespace

int main(int argc, char** argv) try {
  train(argc > 1 ? std::stoll(argv[1]) : 2, argc > 2 ? std::stoll(argv[2]) : 2000,
        argc > 3 ? argv[3] : "", argc > 4 ? std::stod(argv[4]) : 0.01,
        argc > 5 ? std::stoll(argv[5]) : 200);
} catch (const Error& error) {
  std::cerr << error.status().to_string() << "\n";
  return 1;
}
