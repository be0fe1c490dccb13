#include "frontends/cpp/strategies/automatic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text_table.h"
#include "frontends/cpp/strategies/parts/collectives.h"
#include "frontends/cpp/strategies/parts/link_speed.h"

namespace leat {
namespace {

using Way = AutomaticChoice::Way;
constexpr const char* names_of_ways[] = {"all_reduce", "mix", "servers", "rows"};
constexpr double never = std::numeric_limits<double>::infinity();

int64_t bytes_of(const Output& x) {
  return x.shape().elements() * static_cast<int64_t>(dtype_size(x.dtype()));
}

// Those of a gradient of rows, as far as they are known; 0 if it is dense or there is none.
int64_t bytes_of_rows(const GradientAndVariable& each) {
  if (!each.gradient || !each.indices) return 0;
  const bool is_known = each.gradient.shape().is_complete() && each.indices.shape().is_complete();
  return is_known ? bytes_of(each.gradient) + bytes_of(each.indices) : 1;
}

bool is_on_server(Way way) { return way == Way::servers || way == Way::rows; }

}  // namespace

Automatic::Automatic(const StrategyCluster& cluster, Options options)
    : Strategy(Replicas(cluster, {.servers = options.ps_job, .workers = options.worker_job})),
      options_(std::move(options)) {
  if (!options_.trip_us || !options_.megabytes_per_second) {
    const LinkSpeed speed = link_speed(replicas());
    if (!options_.trip_us) options_.trip_us = speed.trip_us;
    if (!options_.megabytes_per_second) options_.megabytes_per_second = speed.megabytes_per_second;
  }
  check(options_.trip_us >= 0 && options_.megabytes_per_second > 0 &&
            std::isfinite(*options_.trip_us) && std::isfinite(*options_.megabytes_per_second),
        "automatic: trip_us must not be negative and megabytes_per_second must be positive, got ",
        *options_.trip_us, " and ", *options_.megabytes_per_second);
}

std::vector<double> Automatic::costs(int64_t bytes, int64_t rows, int64_t all) const {
  const double n = replicas().count(), s = static_cast<double>(bytes);
  const auto job = static_cast<double>(replicas().servers().size());
  const double k = job > 0 ? job : n;
  const auto time = [&](double trips, double sent) {  // bytes per µs are megabytes per second
    return trips * *options_.trip_us + sent / *options_.megabytes_per_second;
  };
  const double busy = std::clamp(static_cast<double>(all) / std::max(s, 1.0), 1.0, k);
  const auto through_servers = [&](double sent) {
    return time(2, 2 * sent * std::max(1.0, n / busy));
  };
  if (n == 1 && job == 0) return {0, never, 0, rows > 0 && rows < bytes ? 0 : never};
  std::vector<double> out = {
      n == 1 ? 0 : std::min(time(1, (n - 1) * s), time(2, 2 * (n - 1) / n * s)), never,
      through_servers(s), never};
  if (job > 0 && n > 1)
    out[1] = job >= n ? time(2, s) : time(2, 2 * n * (n - 1) * s / (n * n + n * job - 2 * job));
  if (rows > 0 && rows < bytes) out[3] = through_servers(static_cast<double>(rows));
  return out;
}

std::vector<Automatic::Choice> Automatic::choose(const Optimizer& optimizer, const Dataset& data,
                                                 const ModelFunction& model, Location at) const {
  Graph graph;
  const Losses losses = model(data.share(replicas().count(), 0, at).next(graph, at));
  check(bool{losses.loss}, "the model function (", at, ") returns no loss");
  std::vector<Output> variables = graph.collection("variables");
  const std::vector<Output> trainable = trainable_variables(graph);
  const auto gradients = optimizer.compute_gradients(losses.loss);
  int64_t all = 0;
  for (const Output& variable : trainable) all += bytes_of(variable);
  std::vector<Choice> out;
  for (const Output& variable : variables) {
    const auto found = std::find_if(gradients.begin(), gradients.end(), [&](const auto& each) {
      return variable_name(each.variable) == variable_name(variable);
    });
    Choice choice{.variable = variable_name(variable), .bytes = bytes_of(variable)};
    if (found != gradients.end() && found->gradient) {
      const int64_t rows = bytes_of_rows(*found);
      choice.gradient_bytes = rows > 0 && rows < choice.bytes ? rows : choice.bytes;
      choice.costs = costs(choice.bytes, rows, all);
      if (choice.bytes > options_.largest_copy) choice.costs[0] = choice.costs[1] = never;
      choice.way = static_cast<Way>(std::min_element(choice.costs.begin(), choice.costs.end()) -
                                    choice.costs.begin());
    }
    out.push_back(std::move(choice));
  }
  return out;
}

std::string Automatic::explain(const std::vector<Choice>& choices) const {
  std::vector<std::vector<std::string>> rows = {{"variable", "bytes", "gradient"}};
  for (const char* title : names_of_ways) rows[0].emplace_back(title);
  rows[0].emplace_back("choice");
  for (const Choice& each : choices) {
    auto& row = rows.emplace_back();
    row = {each.variable, concat(each.bytes), concat(each.gradient_bytes)};
    for (size_t way = 0; way < std::size(names_of_ways); ++way) {
      const bool is_possible = !each.costs.empty() && std::isfinite(each.costs[way]);
      row.push_back(is_possible ? concat(std::llround(each.costs[way])) : "-");
    }
    row.emplace_back(each.costs.empty() ? "not trained"
                                        : names_of_ways[static_cast<size_t>(each.way)]);
  }
  return concat("automatic: ", replicas().count(), " workers, ", replicas().servers().size(),
                " servers, ", *options_.trip_us, " µs per trip, ", *options_.megabytes_per_second,
                " MB/s; µs per step\n", aligned(rows));
}

// Within the scopes of servers, leaves variables that are copied on the worker. Variables are made
// in the order of the choices.
struct Automatic::Places {
  void begin(Graph& graph) {
    auto& place = graph.scopes().device_function;
    place = [this, on_server = place](const OpDef& op, const AttrMap& attrs) {
      return op.is_variable && is_on_server(next()) ? on_server(op, attrs) : DeviceName();
    };
  }
  Way next() {
    check(made < choices.size(), "automatic: the model function makes another number of variables ",
          "than when it was called first");
    return choices[made++].way;
  }

  const std::vector<Choice>& choices;
  size_t made = 0;
};

Training Automatic::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                             const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/true);
  if (training.is_idle) return training;
  const std::vector<Choice> choices = choose(optimizer, data, model, at);
  training.explanation = explain(choices);
  const int n = replicas().count();
  std::vector<Losses> built;
  {
    const auto worker = replicas().first_or_copy(graph, 0);
    training.global_step = global_step(graph, at);
  }
  const size_t first = graph.collection("variables").size();
  {
    const Batch batch = next_batch(training, data, 0, at);
    Places places{choices};
    const auto there = replicas().on_servers(graph, 0);
    places.begin(graph);
    built.push_back(build(model, batch, at));
    check(places.made == choices.size(),
          "automatic: the model function makes fewer variables than when it was called first");
  }
  const std::vector<Output>& made = graph.collection("variables");
  std::vector<Output> variables;  // that are trained
  std::vector<Way> ways;
  for (size_t i = 0; i < choices.size(); ++i) {
    const Output variable = made[first + i];
    if (is_on_server(choices[i].way)) add_shared_variable(graph, variable);
    if (choices[i].costs.empty()) continue;
    variables.push_back(variable);
    ways.push_back(choices[i].way);
  }
  for (int k = 1; k < n; ++k) {
    const auto there = replicas().copy(graph, k);
    built.push_back(build(training, data, model, k, at));
  }
  set_shown(training, built);

  collectives::Gradients gradients;
  for (int k = 0; k < n; ++k) {
    const auto there = replicas().first_or_copy(graph, k);
    std::vector<Output> copies;
    for (const Output& variable : variables)
      copies.push_back(k == 0 ? variable : replicas().copy_of(variable, k));
    gradients.push_back(optimizer.compute_gradients(built[static_cast<size_t>(k)].loss, copies));
  }
  const auto reduce = [&](Way way, collectives::Algorithm algorithm) {
    std::vector<size_t> which;
    for (size_t v = 0; v < variables.size(); ++v) {
      if (ways[v] == way) which.push_back(v);
    }
    const auto trip_bytes =
        static_cast<int64_t>(*options_.trip_us * *options_.megabytes_per_second);
    collectives::all_reduce(replicas(), gradients, which,
                            {.algorithm = algorithm, .trip_bytes = trip_bytes}, at);
  };
  reduce(Way::all_reduce, collectives::Algorithm::automatic);
  reduce(Way::mix, collectives::Algorithm::servers);

  std::vector<Output> updates;
  for (int k = 0; k < n; ++k) {
    const auto there = replicas().first_or_copy(graph, k);
    std::vector<GradientAndVariable> to_apply;
    for (size_t v = 0; v < variables.size(); ++v) {
      if (!is_on_server(ways[v])) {
        to_apply.push_back(gradients[static_cast<size_t>(k)][v]);
      } else if (k == 0) {
        std::vector<GradientAndVariable> of_replicas;
        for (const auto& each : gradients) of_replicas.push_back(each[v]);
        to_apply.push_back(mean_of(of_replicas, at));
      }
    }
    if (to_apply.empty()) continue;  // all are on servers
    updates.push_back(
        optimizer
            .apply_gradients(to_apply, {.global_step = k == 0 ? training.global_step : Output{}},
                             at)
            .output());
  }
  const auto chief = replicas().first_or_copy(graph, 0);
  training.step = &group(graph, updates, "update", at);
  return training;
}

}  // namespace leat
