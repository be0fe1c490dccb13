// All-reduce and its kin, by name.
#include "frontends/cpp/strategies/all_reduce.h"
#include "frontends/cpp/strategies/automatic.h"
#include "frontends/cpp/strategies/names/names.h"
#include "frontends/cpp/strategies/per_worker_all_reduce.h"

namespace leat::names {
namespace {

AllReduceOptions all_reduce_options(const OptionReader& options) {
  AllReduceOptions out;
  const std::string algorithm = options.text("algorithm", "automatic");
  const auto found = collectives::algorithms().find(algorithm);
  std::string names;
  for (const auto& [name, each] : collectives::algorithms())
    names += concat(names.empty() ? "" : ", ", name);
  check(found != collectives::algorithms().end(), options.where("algorithm"), "must be one of ",
        names, ", got '", algorithm, "'");
  if (options.boolean("adasum", false)) out.reduction = collectives::Reduction::adasum;
  out.algorithm = found->second;
  out.bucket_bytes = options.integer("bucket_bytes", out.bucket_bytes);
  out.workers_per_group = options.integer("workers_per_group", 0);
  check(out.workers_per_group >= 0, options.where("workers_per_group"),
        "must not be negative, got ", out.workers_per_group);
  check(out.workers_per_group == 0 || algorithm == "hierarchical" || algorithm == "automatic",
        options.where("workers_per_group"), "needs algorithm=hierarchical, got '", algorithm, "'");
  out.overlap = options.boolean("overlap", true);
  out.priority = options.boolean("priority", false);
  if (options.has("trip_bytes")) out.trip_bytes = options.integer("trip_bytes", 0);
  out.backward_passes_per_step =
      options.integer("backward_passes_per_step", out.backward_passes_per_step);
  out.compression = compression_of(options);
  out.joins = options.boolean("join", false);
  return out;
}

std::unique_ptr<Strategy> make_byteps(const StrategyCluster& cluster, const OptionReader& options) {
  AllReduceOptions out;
  out.algorithm = collectives::Algorithm::servers;
  // A part by itself, so that the first are on their way before the last are there.
  out.bucket_bytes = options.integer("partition_bytes", 4'096'000);
  out.priority = options.boolean("priority", true);
  return std::make_unique<AllReduce>(cluster, out);
}

std::unique_ptr<Strategy> make_mirrored(const StrategyCluster& cluster,
                                        const OptionReader& options) {
  AllReduceOptions out;
  out.devices = options.gpus("gpus");
  if (out.devices.empty()) out.devices = {"CPU:0"};
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
  const std::string replicas = options.text("replicas", "in_graph");
  check(replicas == "in_graph" || replicas == "per_worker", options.where("replicas"),
        "must be in_graph or per_worker, got '", replicas, "'");
  if (replicas == "per_worker") {
    const AllReduceOptions all = all_reduce_options(options);
    check(
        all.compression.kind == Compression::Kind::none && !all.joins &&
            all.backward_passes_per_step == 1 && all.overlap && !all.priority &&
            all.workers_per_group == 0,
        options.where("replicas"),
        "cannot be per_worker with compress, filter, join, overlap, priority, workers_per_group or "
        "backward_passes_per_step");
    PerWorkerAllReduceOptions out{
        .algorithm = all.algorithm, .bucket_bytes = all.bucket_bytes, .reduction = all.reduction};
    out.trip_bytes = all.trip_bytes.value_or(out.trip_bytes);
    return std::make_unique<PerWorkerAllReduce>(cluster, out);
  }
  return std::make_unique<AllReduce>(cluster, all_reduce_options(options));
}

std::unique_ptr<Strategy> make_automatic(const StrategyCluster& cluster,
                                         const OptionReader& options) {
  AutomaticOptions out;
  if (options.has("trip_us")) out.trip_us = options.number("trip_us", 0);
  if (options.has("bandwidth")) out.megabytes_per_second = options.number("bandwidth", 0);
  out.largest_copy = options.integer("largest_copy", out.largest_copy);
  return std::make_unique<Automatic>(cluster, out);
}

}  // namespace

Entries of_all_reduce() {
  std::vector<StrategyOption> options = {
      {"algorithm", "automatic",
       "direct, chunks, servers, hierarchical, ring, halving_doubling, tree; or what costs less"},
      {"workers_per_group", "0", "of hierarchical; 0: the workers of a host are a group"},
      {"bucket_bytes", "26214400", "gradients exchanged together"},
      {"trip_bytes", "(measured)",
       "bytes that could be sent in the time of a trip; per_worker: 262144"},
      {"overlap", "true", "gradients are sent while backward goes on"},
      {"priority", "false", "first variables first, where several wait for a link"},
      {"adasum", "false", "instead of the mean"},
      {"backward_passes_per_step", "1", "mini-batches added up on the worker for one update"},
      {"replicas", "in_graph",
       "the chief's program drives all; per_worker: each program its own, and a lost worker costs "
       "no step"},
      {"join", "false", "workers whose data has ended do not end the training of the others"}};
  for (StrategyOption& each : compression_options()) options.push_back(std::move(each));
  return {
      {{"all_reduce", "a copy of the variables on each worker, one mean gradient", options},
       make_all_reduce},
      {{"multi_worker_mirrored", "all_reduce, by its name in tf.distribute", options},
       make_all_reduce},
      {{"mirrored",
        "a copy of the variables on each GPU of one task, one mean gradient",
        {{"gpus", "0", "how many; 0: the CPU"}}},
       make_mirrored},
      {{"byteps",
        "all_reduce in which ps tasks sum, too",
        {{"partition_bytes", "4096000", "gradients exchanged together"},
         {"priority", "true", "first variables first, where several wait for a link"}}},
       make_byteps},
      {{"full_batch",
        "one update with the gradient of all data",
        {{"batches", "(needed)", "of a worker's share"}}},
       make_full_batch},
      {{"automatic",
        "for each variable what costs less: all_reduce, byteps or a server",
        {{"trip_us", "(measured)", "time of a trip between tasks, in microseconds"},
         {"bandwidth", "(measured)", "MB/s that a task sends"},
         {"largest_copy", "1073741824", "bytes of a variable that each worker may have"}}},
       make_automatic},
  };
}

}  // namespace leat::names
