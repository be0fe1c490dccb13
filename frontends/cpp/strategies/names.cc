// Strategies by name.
#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

#include "frontends/cpp/strategies/admm.h"
#include "frontends/cpp/strategies/all_reduce.h"
#include "frontends/cpp/strategies/backup_workers.h"
#include "frontends/cpp/strategies/downpour.h"
#include "frontends/cpp/strategies/easgd.h"
#include "frontends/cpp/strategies/hogwild.h"
#include "frontends/cpp/strategies/local_sgd.h"
#include "frontends/cpp/strategies/multiverso.h"
#include "frontends/cpp/strategies/one_device.h"
#include "frontends/cpp/strategies/parameter_server.h"
#include "frontends/cpp/strategies/pipeline_parallel.h"
#include "frontends/cpp/strategies/tensor_parallel.h"
#include "graph/near_misses.h"

namespace leat {
namespace {

// The options of "name:key=value:key=value", read one by one.
class OptionReader {
 public:
  OptionReader(std::string_view strategy, std::string_view text) : strategy_(strategy) {
    while (!text.empty()) {
      const size_t end = text.find(':');
      const std::string_view pair = text.substr(0, end);
      const size_t equal = pair.find('=');
      check(equal != std::string_view::npos && equal > 0, "strategy '", strategy_, "': '", pair,
            "' is not an option: write ", strategy_, ":option=value:option=value");
      const bool is_new =
          values_.emplace(std::string(pair.substr(0, equal)), std::string(pair.substr(equal + 1)))
              .second;
      check(is_new, "strategy '", strategy_, "': the option '", pair.substr(0, equal),
            "' is given twice");
      text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
  }
  const std::map<std::string, std::string>& values() const { return values_; }

  bool has(const std::string& name) const { return values_.contains(name); }
  int64_t integer(const std::string& name, int64_t usual) const {
    return number_of<int64_t>(name, usual, "a whole number");
  }
  double number(const std::string& name, double usual) const {
    return number_of<double>(name, usual, "a number");
  }
  bool boolean(const std::string& name, bool usual) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return usual;
    check(found->second == "true" || found->second == "false", where(name), "needs true or false, ",
          "got '", found->second, "'");
    return found->second == "true";
  }
  std::string text(const std::string& name, const std::string& usual) const {
    const auto found = values_.find(name);
    return found == values_.end() ? usual : found->second;
  }
  std::string where(const std::string& name) const {
    return concat("strategy '", strategy_, "': the option '", name, "' ");
  }

 private:
  template <class Number>
  Number number_of(const std::string& name, Number usual, const char* what) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return usual;
    const std::string& text = found->second;
    Number out{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    check(error == std::errc() && end == text.data() + text.size() && !text.empty(), where(name),
          "needs ", what, ", got '", text, "'");
    return out;
  }

  const std::string strategy_;
  std::map<std::string, std::string> values_;
};

struct Entry {
  StrategyInfo info;
  std::function<std::unique_ptr<Strategy>(const StrategyCluster&, const OptionReader&)> make;
};

AllReduceOptions all_reduce_options(const OptionReader& options) {
  AllReduceOptions out;
  const std::string algorithm = options.text("algorithm", "automatic");
  using collectives::Algorithm;
  const std::map<std::string, Algorithm> known = {{"automatic", Algorithm::automatic},
                                                  {"direct", Algorithm::direct},
                                                  {"chunks", Algorithm::chunks},
                                                  {"servers", Algorithm::servers}};
  check(known.contains(algorithm), options.where("algorithm"),
        "must be automatic, direct, chunks or servers, got '", algorithm, "'");
  if (options.boolean("adasum", false)) out.reduction = collectives::Reduction::adasum;
  out.algorithm = known.at(algorithm);
  out.bucket_bytes = options.integer("bucket_bytes", out.bucket_bytes);
  out.trip_bytes = options.integer("trip_bytes", out.trip_bytes);
  out.backward_passes_per_step =
      options.integer("backward_passes_per_step", out.backward_passes_per_step);
  return out;
}

std::unique_ptr<Strategy> make_byteps(const StrategyCluster& cluster, const OptionReader& options) {
  AllReduceOptions out;
  out.algorithm = collectives::Algorithm::servers;
  // A part by itself, so that the first are on their way before the last are there.
  out.bucket_bytes = options.integer("partition_bytes", 4'096'000);
  return std::make_unique<AllReduce>(cluster, out);
}

std::unique_ptr<Strategy> make_mirrored(const StrategyCluster& cluster,
                                        const OptionReader& options) {
  AllReduceOptions out;
  const int64_t gpus = options.integer("gpus", 0);
  check(gpus >= 0, options.where("gpus"), "must not be negative, got ", gpus);
  for (int64_t i = 0; i < gpus; ++i) out.devices.push_back(concat("GPU:", i));
  if (gpus == 0) out.devices = {"CPU:0"};
  return std::make_unique<AllReduce>(cluster, out);
}

std::unique_ptr<Strategy> make_full_batch(const StrategyCluster& cluster,
                                          const OptionReader& options) {
  AllReduceOptions out;
  check(options.has("batches"), options.where("batches"),
        "is needed: how many batches a worker's share of the data has");
  out.backward_passes_per_step = options.integer("batches", 0);
  return std::make_unique<AllReduce>(cluster, out);
}

std::unique_ptr<Strategy> make_all_reduce(const StrategyCluster& cluster,
                                          const OptionReader& options) {
  return std::make_unique<AllReduce>(cluster, all_reduce_options(options));
}

Compression compression_of(const OptionReader& options) {
  Compression out;
  out.kind = compression_named(options.text("compress", "none"));
  out.threshold = options.number("threshold", out.threshold);
  out.ratio = options.number("ratio", out.ratio);
  return out;
}

std::unique_ptr<Strategy> make_parameter_server(const StrategyCluster& cluster,
                                                const OptionReader& options) {
  ParameterServerOptions out;
  if (options.text("staleness", "none") != "none") out.staleness = options.integer("staleness", 0);
  if (options.has("drop_stale")) out.drop_stale = options.integer("drop_stale", 0);
  using DelayAware = ParameterServerOptions::DelayAware;
  const std::string aware = options.text("delay_aware", "none");
  const std::map<std::string, DelayAware> known = {{"none", DelayAware::none},
                                                   {"adadelay", DelayAware::adadelay},
                                                   {"dc_asgd", DelayAware::dc_asgd}};
  check(known.contains(aware), options.where("delay_aware"),
        "must be none, adadelay or dc_asgd, got '", aware, "'");
  out.delay_aware = known.at(aware);
  out.beta = options.number("beta", out.beta);
  out.lambda = options.number("lambda", out.lambda);
  out.compression = compression_of(options);
  out.ps_job = options.text("servers", out.ps_job);
  if (const int64_t backups = options.integer("backup_workers", 0); backups != 0) {
    check(out.staleness == 0, options.where("backup_workers"), "needs staleness=0");
    for (const auto& [name, value] : options.values()) {
      check(name == "staleness" || name == "backup_workers" || name == "servers",
            options.where(name), "does not go with backup_workers");
    }
    return std::make_unique<BackupWorkers>(
        cluster, BackupWorkersOptions{.ps_job = out.ps_job, .backup_workers = backups});
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
  return std::make_unique<ParameterServer>(cluster, out);
}

std::unique_ptr<Strategy> make_local_sgd(const StrategyCluster& cluster,
                                         const OptionReader& options, int64_t steps) {
  return std::make_unique<LocalSgd>(cluster,
                                    LocalSgdOptions{.steps = options.integer("steps", steps)});
}

std::unique_ptr<Strategy> make_bmuf(const StrategyCluster& cluster, const OptionReader& options) {
  const double n = Replicas(cluster).count();
  return std::make_unique<LocalSgd>(
      cluster, LocalSgdOptions{.steps = options.integer("steps", 10),
                               .has_block_momentum = true,
                               .momentum = options.number("momentum", 1 - 1 / n),
                               .block_rate = options.number("rate", 1),
                               .is_nesterov = options.boolean("nesterov", true)});
}

std::unique_ptr<Strategy> make_easgd(const StrategyCluster& cluster, const OptionReader& options) {
  return std::make_unique<Easgd>(cluster,
                                 EasgdOptions{.steps = options.integer("steps", 10),
                                              .moving_rate = options.number("moving_rate", 0)});
}

std::unique_ptr<Strategy> make_downpour(const StrategyCluster& cluster,
                                        const OptionReader& options) {
  return std::make_unique<Downpour>(
      cluster, DownpourOptions{.push = options.integer("push", 1),
                               .fetch = options.integer("fetch", 1),
                               .local_rate = options.number("local_rate", 0.01)});
}

std::unique_ptr<Strategy> make_admm(const StrategyCluster& cluster, const OptionReader& options) {
  return std::make_unique<Admm>(cluster, AdmmOptions{.steps = options.integer("steps", 20),
                                                     .rho = options.number("rho", 1),
                                                     .l1 = options.number("l1", 0)});
}

std::unique_ptr<Strategy> make_pipeline(const StrategyCluster& cluster,
                                        const OptionReader& options) {
  PipelineParallelOptions out;
  out.stages = static_cast<int>(options.integer("stages", 0));
  out.data = static_cast<int>(options.integer("data", 1));
  out.micro_batches = static_cast<int>(options.integer("micro_batches", out.micro_batches));
  out.schedule = pipeline_schedule_named(options.text("schedule", "1f1b"));
  const std::string cost = options.text("cost", "measured");
  check(cost == "measured" || cost == "estimated", options.where("cost"),
        "must be measured or estimated, got '", cost, "'");
  if (cost == "estimated") out.cost = PipelineParallelOptions::Cost::estimated;
  std::string cuts = options.text("cuts", "");
  while (!cuts.empty()) {
    const size_t end = cuts.find('+');
    out.cuts.push_back(cuts.substr(0, end));
    cuts = end == std::string::npos ? "" : cuts.substr(end + 1);
  }
  const int64_t gpus = options.integer("gpus", 0);
  check(gpus >= 0, options.where("gpus"), "must not be negative, got ", gpus);
  for (int64_t i = 0; i < gpus; ++i) out.devices.push_back(concat("GPU:", i));
  return std::make_unique<PipelineParallel>(cluster, out);
}

std::unique_ptr<Strategy> make_tensor_parallel(const StrategyCluster& cluster,
                                               const OptionReader& options) {
  return std::make_unique<TensorParallel>(
      cluster, TensorParallelOptions{.shards = options.integer("shards", 0),
                                     .data = options.integer("data", 1),
                                     .explains_ops = options.boolean("explain_ops", false)});
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

const std::vector<Entry>& entries() {
  static const StrategyOption steps{"steps", "10", "local steps between two exchanges"};
  static const std::vector<StrategyOption> of_all_reduce = {
      {"algorithm", "automatic", "direct, chunks, servers, or what costs less"},
      {"bucket_bytes", "26214400", "gradients exchanged together"},
      {"trip_bytes", "262144", "bytes that could be sent in the time of a trip"},
      {"adasum", "false", "instead of the mean"},
      {"backward_passes_per_step", "1", "mini-batches added up on the worker for one update"}};
  static const std::vector<Entry> all = {
      {{"one_device", "the chief's worker alone", {}},
       [](const StrategyCluster& cluster, const OptionReader&) -> std::unique_ptr<Strategy> {
         return std::make_unique<OneDevice>(cluster);
       }},
      {{"parameter_server",
        "variables on ps tasks, forward and backward on workers",
        {{"staleness", "none",
          "steps that the fastest worker may be ahead; 0: synchronous, none: asynchronous"},
         {"backup_workers", "0", "with staleness 0: how many workers a step does not wait for"},
         {"servers", "ps",
          "the job whose tasks have the variables; worker: the workers themselves"},
         {"drop_stale", "none", "by how many steps a gradient may be late"},
         {"delay_aware", "none", "adadelay or dc_asgd: what is done about late gradients"},
         {"beta", "1", "of adadelay"},
         {"lambda", "0.04", "of dc_asgd"},
         {"compress", "none", "gradients: bf16, fp16, 2bit or top_k"},
         {"threshold", "0.5", "of 2bit"},
         {"ratio", "0.01", "of top_k: the part that is sent"}}},
       make_parameter_server},
      {{"central_storage", "variables on the CPU of the task that trains", {}},
       make_central_storage},
      {{"all_reduce", "a copy of the variables on each worker, one mean gradient", of_all_reduce},
       make_all_reduce},
      {{"multi_worker_mirrored", "all_reduce, by its name in tf.distribute", of_all_reduce},
       make_all_reduce},
      {{"mirrored",
        "a copy of the variables on each GPU of one task, one mean gradient",
        {{"gpus", "0", "how many; 0: the CPU"}}},
       make_mirrored},
      {{"byteps",
        "all_reduce in which ps tasks sum, too",
        {{"partition_bytes", "4096000", "gradients exchanged together"}}},
       make_byteps},
      {{"full_batch",
        "one update with the gradient of all data",
        {{"batches", "(needed)", "of a worker's share"}}},
       make_full_batch},
      {{"sharded_state",
        "all_reduce in which each variable and its slots are on one worker only (ZeRO)",
        {{"compress", "none", "gradients: bf16, fp16, 2bit or top_k"},
         {"threshold", "0.5", "of 2bit"},
         {"ratio", "0.01", "of top_k: the part that is sent"}}},
       make_sharded_state},
      {{"tensor_parallel",
        "the workers of a group share each large variable and what is computed with it",
        {{"shards", "workers / data", "the workers of a group"},
         {"data", "1", "groups, each with its share of the data"},
         {"explain_ops", "false", "print how each op is split, too"}}},
       make_tensor_parallel},
      {{"hogwild",
        "threads of one process train the same variables; none waits for another",
        {{"threads", "4", "how many"}}},
       [](const StrategyCluster& cluster,
          const OptionReader& options) -> std::unique_ptr<Strategy> {
         return std::make_unique<Hogwild>(cluster,
                                          HogwildOptions{.threads = options.integer("threads", 4)});
       }},
      {{"multiverso", "the i-th read of every worker returns the same variables", {}},
       [](const StrategyCluster& cluster, const OptionReader&) -> std::unique_ptr<Strategy> {
         return std::make_unique<Multiverso>(cluster);
       }},
      {{"local_sgd", "workers train alone and take the mean of their variables", {steps}},
       [](const auto& cluster, const auto& options) {
         return make_local_sgd(cluster, options, 10);
       }},
      {{"model_average", "local_sgd with TensorFlow's interval", {{"steps", "100", steps.doc}}},
       [](const auto& cluster, const auto& options) {
         return make_local_sgd(cluster, options, 100);
       }},
      {{"simu_parallel_sgd", "workers train alone; one mean at the end", {}},
       [](const auto& cluster, const auto& options) {
         return make_local_sgd(cluster, options, 0);
       }},
      {{"bmuf",
        "local_sgd with momentum of the blocks",
        {steps,
         {"momentum", "1 - 1/workers", "of the blocks"},
         {"rate", "1", "of the blocks"},
         {"nesterov", "true", "a block starts where the momentum will take it"}}},
       make_bmuf},
      {{"easgd",
        "workers train alone, tied to a centre on the ps by a spring",
        {steps, {"moving_rate", "0.9 / (steps · workers)", "part of the distance that moves"}}},
       make_easgd},
      {{"downpour",
        "workers fetch and push at their own pace",
        {{"push", "1", "steps between two pushes of the sum of gradients"},
         {"fetch", "1", "steps between two fetches of the variables"},
         {"local_rate", "0.01", "of a worker's own steps between fetches"}}},
       make_downpour},
      {{"admm",
        "workers solve their own part, multipliers make them agree",
        {{"steps", "20", steps.doc},
         {"rho", "1", "how strongly a worker is drawn to the consensus"},
         {"l1", "0", "weight of |z|₁"}}},
       make_admm},
      {{"pipeline",
        "the layers of the model on several workers, a batch in parts that follow each other",
        {{"stages", "workers / data", "into which the model is cut"},
         {"micro_batches", "4", "into which a batch is divided"},
         {"schedule", "1f1b", "1f1b or gpipe: in which order stages compute"},
         {"data", "1", "pipelines side by side, each with its share of the data"},
         {"cuts", "(none)", "where stages begin: names of nodes or scopes, a+b"},
         {"cost", "measured", "or estimated: of the nodes, for cuts without names"},
         {"gpus", "0", "how many of this task are the stages; 0: the workers"}}},
       make_pipeline},
  };
  return all;
}

}  // namespace

const std::vector<StrategyInfo>& strategies() {
  static const std::vector<StrategyInfo> all = [] {
    std::vector<StrategyInfo> out;
    for (const Entry& entry : entries()) out.push_back(entry.info);
    return out;
  }();
  return all;
}

std::string strategies_help() {
  std::string out;
  for (const StrategyInfo& each : strategies()) {
    out += concat(each.name, ": ", each.doc, "\n");
    for (const StrategyOption& option : each.options)
      out += concat("    ", option.name, "=", option.default_value, ": ", option.doc, "\n");
  }
  return out;
}

std::unique_ptr<Strategy> make_strategy(std::string_view text, const StrategyCluster& cluster) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  std::vector<std::string_view> names;
  for (const Entry& entry : entries()) {
    names.push_back(entry.info.name);
    if (entry.info.name != name) continue;
    const OptionReader options(
        name, colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1));
    std::vector<std::string_view> known;
    for (const StrategyOption& option : entry.info.options) known.push_back(option.name);
    for (const auto& [given, value] : options.values()) {
      std::string list;
      for (const std::string_view each : known) list += concat(list.empty() ? "" : ", ", each);
      check(std::find(known.begin(), known.end(), given) != known.end(), "strategy '", name,
            "' has no option '", given, "'",
            known.empty() ? ": it has none" : concat("; it has: ", list));
    }
    return entry.make(cluster, options);
  }
  std::string list;
  for (const std::string_view each : names) list += concat(list.empty() ? "" : ", ", each);
  fail(Code::invalid_argument, "there is no strategy '", name, "'", did_you_mean(name, names),
       "; there are: ", list);
}

}  // namespace leat
