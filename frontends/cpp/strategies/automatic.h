// Automatic: for each variable the exchange that costs least.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontends/cpp/strategies/strategy.h"

namespace leat {

struct AutomaticOptions {
  std::string ps_job = "ps";  // without such a job the workers' tasks are the servers
  std::string worker_job = "worker";
  // α, the time of a trip, and B, what a task sends and at the same time receives. None: measured
  // once (link_speed.h).
  std::optional<double> trip_us = {};
  std::optional<double> megabytes_per_second = {};
  // A larger variable is kept on a server alone: each worker would have a copy of it and its slots.
  int64_t largest_copy = int64_t{1} << 30;
};

// What was decided for a variable.
struct AutomaticChoice {
  enum class Way {
    all_reduce,  // a copy on each worker
    mix,         // the same, and the tasks of the servers' job sum, too
    servers,     // on a server; gradients are dense
    rows,        // on a server; only rows of the gradient are sent
  };
  std::string variable;
  int64_t bytes = 0;           // of the variable, S
  int64_t gradient_bytes = 0;  // of a worker's gradient: less if it is rows
  Way way = Way::all_reduce;
  // By Way: microseconds per step; infinity where it is not possible.
  std::vector<double> costs = {};
};

// Synchronous, in-graph: as all_reduce for some variables, as parameter_server:staleness=0 for the
// others. One update per step, with the mean gradient.
//
// Cost per step of a variable of S bytes, for N workers and K servers, with G the bytes of a
// gradient of rows (their ids included; with S <= G it counts as dense):
//   all_reduce: the smaller of α + (N-1)S/B and 2α + 2(N-1)/N · S/B (collectives.h)
//   mix: 2α + 2N(N-1)S / ((N² + N·K - 2K)B), with K >= N 2α + S/B; if there is a servers' job
//   servers: 2α + 2S · max(1, N/k)/B
//   rows: 2α + 2G · max(1, N/k)/B
// with k, at most K, how many servers variables of this size would keep busy: S_all/S, at least 1.
// The least wins; of equal ones, the first. Two cases need no costs: a variable without a gradient
// is copied, and one above largest_copy is on a server, unless its gradient is rows.
//
// The model function is called once more than there are replicas, in a graph of its own, to learn
// which variables there are. Jiang et al., "A unified architecture for accelerating distributed DNN
// training", OSDI 2020; Kim et al., "Parallax", EuroSys 2019 (rows to servers, the rest reduced).
class Automatic : public Strategy {
 public:
  using Options = AutomaticOptions;
  using Choice = AutomaticChoice;
  explicit Automatic(const StrategyCluster& cluster, Options options = {});

  Training minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                    const ModelFunction& model, Location at = here()) const override;

  // What minimize() decides, in the order in which the model makes its variables.
  std::vector<Choice> choose(const Optimizer& optimizer, const Dataset& data,
                             const ModelFunction& model, Location at = here()) const;
  // The same as a table, which minimize() gives as Training::explanation: a line per variable with
  // its bytes, the costs and the choice.
  std::string explain(const std::vector<Choice>& choices) const;

 private:
  struct Places;
  std::vector<double> costs(int64_t bytes, int64_t rows, int64_t all) const;

  Options options_;  // all of them known
};

}  // namespace leat
