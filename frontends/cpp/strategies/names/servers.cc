// Strategies with variables on servers, by name.
#include "frontends/cpp/strategies/backup_workers.h"
#include "frontends/cpp/strategies/downpour.h"
#include "frontends/cpp/strategies/lbfgs.h"
#include "frontends/cpp/strategies/multiverso.h"
#include "frontends/cpp/strategies/names/names.h"
#include "frontends/cpp/strategies/parameter_server.h"

namespace leat::names {
namespace {

std::vector<StrategyOption> sharding_options() {
  return {{"sharding", "bytes",
           "of the variables over the servers: bytes, consistent_hash, or rows, which cuts each"},
          {"big_array_split", "none",
           "elements from which on a variable is cut in row ranges over all servers"}};
}

ServerSharding sharding_of(const OptionReader& options) {
  ServerSharding out;
  out.kind = sharding_named(options.text("sharding", "bytes"));
  if (options.has("big_array_split")) {
    out.big_array_split = options.integer("big_array_split", 0);
    check(out.big_array_split > 0, options.where("big_array_split"),
          "is a positive number of elements, got ", out.big_array_split);
  }
  return out;
}

std::unique_ptr<Strategy> make_parameter_server(const StrategyCluster& cluster,
                                                const OptionReader& options) {
  ParameterServerOptions out;
  if (options.text("staleness", "none") != "none") out.staleness = options.integer("staleness", 0);
  if (options.has("drop_stale")) out.drop_stale = options.integer("drop_stale", 0);
  out.delay.kind = delay_correction_named(options.text("delay_aware", "none"));
  out.delay.beta = options.number("beta", out.delay.beta);
  out.delay.lambda = options.number("lambda", out.delay.lambda);
  out.compression = compression_of(options);
  out.ps_job = options.text("servers", out.ps_job);
  out.sharding = sharding_of(options);
  if (const int64_t backups = options.integer("backup_workers", 0); backups != 0) {
    check(out.staleness == 0, options.where("backup_workers"), "needs staleness=0");
    for (const auto& [name, value] : options.values()) {
      check(name == "staleness" || name == "backup_workers" || name == "servers" ||
                name == "sharding" || name == "big_array_split",
            options.where(name), "does not go with backup_workers");
    }
    return std::make_unique<BackupWorkers>(
        cluster, BackupWorkersOptions{
                     .ps_job = out.ps_job, .backup_workers = backups, .sharding = out.sharding});
  }
  return std::make_unique<ParameterServer>(cluster, out);
}

// Servers on the workers' tasks: each has the variables, and the slots, of its part, and sends them
// to the others when a step begins.
std::unique_ptr<Strategy> make_sharded_state(const StrategyCluster& cluster,
                                             const OptionReader& options) {
  ParameterServerOptions out;
  out.ps_job = out.worker_job;
  out.staleness = 0;
  out.compression = compression_of(options);
  out.sharding = sharding_of(options);
  return std::make_unique<ParameterServer>(cluster, out);
}

std::unique_ptr<Strategy> make_downpour(const StrategyCluster& cluster,
                                        const OptionReader& options) {
  return std::make_unique<Downpour>(
      cluster, DownpourOptions{.push = options.integer("push", 1),
                               .fetch = options.integer("fetch", 1),
                               .local_rate = options.number("local_rate", 0.01)});
}

std::unique_ptr<Strategy> make_lbfgs(const StrategyCluster& cluster, const OptionReader& options) {
  check(options.has("batches"), options.where("batches"),
        "is needed: how many batches a worker's share of the data has, or a portion");
  return std::make_unique<Lbfgs>(cluster,
                                 LbfgsOptions{.batches = options.integer("batches", 0),
                                              .portions = options.integer("portions", 0),
                                              .backups = options.integer("backups", 0),
                                              .memory = options.integer("memory", 10),
                                              .decrease = options.number("decrease", 1e-4)});
}

// On the workers' own tasks, whatever the cluster has besides.
std::unique_ptr<Strategy> make_central_storage(const StrategyCluster& cluster,
                                               const OptionReader&) {
  StrategyCluster own = cluster;
  if (cluster.task) {
    own.spec = ClusterSpec();
    own.task.reset();
  }
  return std::make_unique<ParameterServer>(own, ParameterServerOptions{.staleness = 0});
}

}  // namespace

Entries of_servers() {
  const std::vector<StrategyOption> of_sharding = sharding_options();
  std::vector<StrategyOption> of_sharded_state = compression_options();
  of_sharded_state.insert(of_sharded_state.end(), of_sharding.begin(), of_sharding.end());
  std::vector<StrategyOption> of_parameter_server = {
      {"staleness", "none",
       "steps that the fastest worker may be ahead; 0: synchronous, none: asynchronous"},
      {"backup_workers", "0", "with staleness 0: how many workers a step does not wait for"},
      {"servers", "ps", "the job whose tasks have the variables; worker: the workers themselves"},
      {"drop_stale", "none", "by how many steps a gradient may be late"},
      {"delay_aware", "none",
       "adadelay, dc_asgd or adaptive_revision: what is done about late gradients"},
      {"beta", "1", "of adadelay and adaptive_revision"},
      {"lambda", "0.04", "of dc_asgd"}};
  of_parameter_server.insert(of_parameter_server.end(), of_sharded_state.begin(),
                             of_sharded_state.end());
  return {
      {{"parameter_server", "variables on ps tasks, forward and backward on workers",
        of_parameter_server},
       make_parameter_server},
      {{"central_storage", "variables on the CPU of the task that trains", {}},
       make_central_storage},
      {{"sharded_state",
        "all_reduce in which each variable and its slots are on one worker only (ZeRO)",
        of_sharded_state},
       make_sharded_state},
      {{"multiverso", "the i-th read of every worker returns the same variables", {}},
       [](const StrategyCluster& cluster, const OptionReader&) -> std::unique_ptr<Strategy> {
         return std::make_unique<Multiverso>(cluster);
       }},
      {{"downpour",
        "workers fetch and push at their own pace",
        {{"push", "1", "steps between two pushes of the sum of gradients"},
         {"fetch", "1", "steps between two fetches of the variables"},
         {"local_rate", "0.01", "of a worker's own steps between fetches"}}},
       make_downpour},
      {{"lbfgs",
        "one step of L-BFGS with the gradient of all data, vectors on the ps",
        {{"batches", "(needed)", "of a worker's share, or of a portion"},
         {"portions", "0", "of the data, which workers take when they are free; 0: fixed shares"},
         {"backups", "0", "how many of the portions, the last ones, are handed out twice"},
         {"memory", "10", "pairs that approximate the Hessian"},
         {"decrease", "0.0001",
          "of the loss that a step must bring, as a part of what it promises"}}},
       make_lbfgs},
  };
}

}  // namespace leat::names
