#include "frontends/cpp/strategies/lbfgs.h"

#include <limits>

#include "frontends/cpp/strategies/lbfgs_rule.h"

namespace leat {
namespace {

// What a server keeps for a variable of n numbers, and computes with it.
struct Vectors {
  Vectors(const Output& variable, const Output& gradient, int64_t memory, Location at)
      : variable(variable) {
    Graph& graph = variable.graph();
    const ColocationScope with(graph, {variable});
    start = slot(variable, "line_start", initializers::value_of(variable), at);
    start_gradient = slot(variable, "line_gradient", initializers::zeros(), at);
    direction = slot(variable, "direction", initializers::zeros(), at);
    const int64_t n = variable.shape().elements();
    {
      const NameScope absolute(graph, "");
      pairs = leat::variable(graph, concat(variable_name(variable), "/pairs"), {2 * memory, n},
                             variable.dtype(), {.trainable = false}, at);
    }
    weights = read_variable(variable, at);
    this->gradient = gradient;
    const auto row = [&](const Output& x) { return reshape(x, {1, n}); };
    rows = concatenate({read_variable(pairs, at), row(weights - read_variable(start, at)),
                        row(gradient - read_variable(start_gradient, at)), row(gradient)},
                       0, at);
    products = cast(matmul(rows, transpose(rows)), f64);
  }

  Output variable, start, start_gradient, direction;
  Output pairs;              // [2m, n]: s of all pairs, the oldest first, and their y
  Output weights, gradient;  // of the evaluation
  Output rows;               // [2m + 3, n]: the pairs, s, y and the gradient of this evaluation
  Output products;           // [2m + 3, 2m + 3]: of these rows
};

// What the coordinator decides.
struct Decision {
  Output is_accepted;
  Output size;          // t
  Output chosen;        // [2m + 1]: the rows that are the pairs from now on, and the gradient
  Output coefficients;  // [1, 2m + 1]: of the direction
};

// -H·g as coefficients of the rows whose products these are: m of s, m of y, and g.
Output two_loops(const Output& products, int64_t m) {
  Graph& graph = products.graph();
  const auto unit = [&](int64_t i) {
    Tensor out(f64, {2 * m + 1});
    for (double& each : out.span<double>()) each = 0;
    out.data<double>()[i] = 1;
    return constant(graph, std::move(out));
  };
  const auto product_of = [&](int64_t i, const Output& coefficients) {
    return sum(products[i] * coefficients);
  };
  const auto curvature = [&](int64_t i) { return products[i][m + i]; };  // 0 of a pair not yet made
  const auto over_curvature = [&](const Output& x, int64_t i) {
    const Output c = curvature(i);
    return where(c > 0, x / where(c > 0, c, 1), 0);
  };
  Output direction = unit(2 * m);
  std::vector<Output> alphas(static_cast<size_t>(m));
  for (int64_t i = m - 1; i >= 0; --i) {
    Output& alpha = alphas[static_cast<size_t>(i)];
    alpha = over_curvature(product_of(i, direction), i);
    direction = direction - unit(m + i) * alpha;
  }
  const Output newest = curvature(m - 1);
  const Output squared = products[2 * m - 1][2 * m - 1];
  direction = direction * where(newest > 0, newest / where(newest > 0, squared, 1), 1);
  for (int64_t i = 0; i < m; ++i) {
    const Output beta = over_curvature(product_of(m + i, direction), i);
    direction = direction + unit(i) * (alphas[static_cast<size_t>(i)] - beta);
  }
  // Rounding may have made it one that leads up.
  const Output downhill = product_of(2 * m, direction) > 0;
  return -where(downhill, direction, unit(2 * m));
}

Tensor numbers(int64_t m, bool with_new_pair) {
  Tensor out(i32, {2 * m + 1});
  int32_t* next = out.data<int32_t>();
  for (int64_t half = 0; half < 2; ++half) {
    for (int64_t i = with_new_pair ? 1 : 0; i < m; ++i)
      *next++ = static_cast<int32_t>(half * m + i);
    if (with_new_pair) *next++ = static_cast<int32_t>(2 * m + half);
  }
  *next = static_cast<int32_t>(2 * m + 2);
  return out;
}

// The scalars that the coordinator keeps.
struct Coordinator {
  Coordinator(Graph& graph, Location at) {
    const NameScope scope(graph, "lbfgs");
    const auto scalar = [&](const char* name, double first) {
      return variable(graph, name, {}, initializers::constant(first), f64, {.trainable = false},
                      at);
    };
    loss = scalar("loss", std::numeric_limits<double>::infinity());
    slope = scalar("slope", 0);
    size = scalar("step_size", 1);
  }

  // Nodes that keep what was decided go to `updates`.
  Decision decide(const Output& evaluated, const Output& products, int64_t m, double decrease,
                  double rounding, std::vector<Output>& updates, Location at) const {
    Graph& graph = evaluated.graph();
    const Output old_loss = read_variable(loss, at), old_slope = read_variable(slope, at),
                 old_size = read_variable(size, at);
    Decision out;
    out.is_accepted =
        evaluated <= old_loss + old_size * old_slope * decrease + abs(old_loss) * rounding;
    const Output curvature = products[2 * m][2 * m + 1], squared = products[2 * m + 1][2 * m + 1];
    const Output is_pair = curvature > squared * 1e-10;
    out.chosen =
        where(is_pair, constant(graph, numbers(m, true)), constant(graph, numbers(m, false)));
    const Output of_chosen = take(take(products, out.chosen, 0), out.chosen, 1);
    const Output coefficients = two_loops(of_chosen, m);
    out.coefficients = reshape(coefficients, {1, 2 * m + 1});
    const Output has_pairs = of_chosen[m - 1][2 * m - 1] > 0;
    const Output length = sqrt(of_chosen[2 * m][2 * m]);
    const Output first_size = where(has_pairs, 1, 1 / maximum(length, 1));
    out.size = where(out.is_accepted, first_size, old_size * 0.5);
    const Output new_slope = sum(of_chosen[2 * m] * coefficients);
    updates.push_back(assign(size, out.size, at));
    updates.push_back(assign(loss, where(out.is_accepted, evaluated, old_loss), at));
    updates.push_back(assign(slope, where(out.is_accepted, new_slope, old_slope), at));
    return out;
  }

  Output loss, slope, size;  // f0, g0·d, t
};

// Where the variable is.
void advance(const Vectors& v, const Decision& decided, int64_t m, std::vector<Output>& updates,
             Location at) {
  const DType dtype = v.variable.dtype();
  const ColocationScope with(v.variable.graph(), {v.variable});
  const Output kept = take(v.rows, decided.chosen);
  const Output direction =
      reshape(matmul(cast(decided.coefficients, dtype), kept), v.variable.shape());
  const auto if_accepted = [&](const Output& slot, const Output& value) {
    const Output next = where(decided.is_accepted, value, read_variable(slot, at));
    updates.push_back(assign(slot, next, at));
    return next;
  };
  if_accepted(v.pairs, kept[{slice(0, 2 * m)}]);
  if_accepted(v.start_gradient, v.gradient);
  const Output next = if_accepted(v.start, v.weights) +
                      if_accepted(v.direction, direction) * cast(decided.size, dtype);
  updates.push_back(assign(v.variable, next, at));
}

}  // namespace

namespace lbfgs {

std::vector<Output> accepted_or_not(Training& training, const Evaluation& evaluated,
                                    const LbfgsOptions& options, std::vector<Output> updates,
                                    Location at) {
  check(!evaluated.gradients.empty(), "the loss of the model function (", at,
        ") does not depend on a trainable variable");
  Graph& graph = *training.graph;
  std::vector<Vectors> vectors;
  for (const auto& [variable, gradient] : evaluated.gradients) {
    const ColocationScope with(graph, {variable});
    vectors.emplace_back(variable, gradient, options.memory, at);
  }
  const ColocationScope with(graph, {training.global_step});
  const Coordinator coordinator(graph, at);
  std::vector<Output> products;
  for (const Vectors& each : vectors) products.push_back(each.products);
  const double rounding = evaluated.dtype == f64 ? std::numeric_limits<double>::epsilon()
                                                 : std::numeric_limits<float>::epsilon();
  const Decision decided = coordinator.decide(evaluated.loss, add_n(products, at), options.memory,
                                              options.decrease, rounding, updates, at);
  for (const Vectors& each : vectors) advance(each, decided, options.memory, updates, at);
  {
    const ControlScope after(graph, updates);
    updates.push_back(assign_add(training.global_step, 1, at));
  }
  std::vector<Output> ended = {
      assign(coordinator.loss, std::numeric_limits<double>::infinity(), at)};
  for (const Vectors& each : vectors) {
    const ColocationScope there(graph, {each.variable});
    ended.push_back(assign(each.variable, read_variable(each.start, at), at));
  }
  training.end = group(graph, ended, "end", at);
  return updates;
}

Output dense_gradient(const GradientAndVariable& of_batch, Location at) {
  if (!of_batch.indices) return of_batch.gradient;
  return segment_sum(of_batch.gradient, of_batch.indices,
                     constant(of_batch.gradient.graph(), of_batch.variable.shape()[0]), at);
}

}  // namespace lbfgs

Lbfgs::Lbfgs(const StrategyCluster& cluster, Options options)
    : Strategy(Replicas(cluster, {.servers = options.ps_job, .workers = options.worker_job})),
      options_(std::move(options)) {
  check(options_.batches > 0, "lbfgs: batches, those of a worker's share, must be positive, got ",
        options_.batches);
  check(options_.portions == 0 || options_.portions >= replicas().count(),
        "lbfgs: portions, of the whole data, must not be fewer than the ", replicas().count(),
        " workers, got ", options_.portions);
  check(options_.backups >= 0 && options_.backups <= options_.portions,
        "lbfgs: backups must be from 0 to the number of portions, ", options_.portions, ", got ",
        options_.backups);
  check(options_.memory > 0, "lbfgs: memory must be positive, got ", options_.memory);
  check(options_.decrease > 0 && options_.decrease < 1, "lbfgs: decrease must be in (0, 1), got ",
        options_.decrease);
}

Training Lbfgs::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                         const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/true);
  if (training.is_idle) return training;
  if (options_.portions > 0) return with_portions(std::move(training), optimizer, data, model, at);
  const int n = replicas().count();
  const size_t before = trainable_variables(graph).size();
  const std::vector<Losses> built =
      build_all(training, data, model, &Replicas::first_or_sharing, at);
  const std::vector<Output> all = trainable_variables(graph);
  const std::vector<Output> trainable(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
  check(!trainable.empty(), "the model function (", at, ") makes no trainable variable");
  set_shown(training, built);

  // A step adds the loss and the gradients of a batch up, on each worker.
  std::vector<Output> added, emptied, losses;
  std::vector<std::vector<Output>> gradients(trainable.size());
  for (int k = 0; k < n; ++k) {
    const Output loss = reshape(built[static_cast<size_t>(k)].loss, {});
    const auto of_batch = optimizer.compute_gradients(loss, trainable);
    const auto own = replicas().copy(graph, k, /*own_state=*/true);
    const NameScope absolute(graph, replicas().prefix(k));
    const auto add_up = [&](const std::string& name, const Output& value, const Shape& shape) {
      const Output sum = variable(graph, name, shape, value.dtype(), {.trainable = false}, at);
      added.push_back(assign_add(sum, value, at));
      const Output total = read_variable(sum, at);
      const ControlScope after(graph, {total});
      emptied.push_back(assign(sum, zeros_like(total), at));
      return total;
    };
    losses.push_back(add_up("loss_of_batches", cast(loss, f64), {}));
    for (size_t i = 0; i < trainable.size(); ++i) {
      if (!of_batch[i].gradient) continue;
      // Beside the sum, not beside the variable.
      const Output gradient = lbfgs::dense_gradient(of_batch[i], at);
      gradients[i].push_back(add_up(concat(variable_name(trainable[i]), "/gradient_of_batches"),
                                    gradient, trainable[i].shape()));
    }
  }
  const auto first = replicas().on_servers(graph, 0);
  training.step = &group(graph, added, "accumulate", at);

  const NameScope scope(graph, "evaluate");
  const double batches = static_cast<double>(n) * static_cast<double>(options_.batches);
  lbfgs::Evaluation evaluated{.dtype = built.front().loss.dtype()};
  for (size_t i = 0; i < trainable.size(); ++i) {
    if (gradients[i].empty()) continue;
    const ColocationScope with(graph, {trainable[i]});
    evaluated.gradients.push_back({trainable[i], add_n(gradients[i], at) * (1 / batches)});
  }
  const ColocationScope with(graph, {training.global_step});
  evaluated.loss = add_n(losses, at) * (1 / batches);
  const std::vector<Output> updates =
      lbfgs::accepted_or_not(training, evaluated, options_, emptied, at);
  training.periodic.push_back(every(options_.batches, &group(graph, updates, "evaluated", at)));
  training.batches_per_step = options_.batches;
  return training;
}

}  // namespace leat
