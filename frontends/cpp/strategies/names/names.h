// What make_strategy() knows, by theme: a file of this folder has the names and options of
// strategies that are alike, and how their options are read. Not for programs.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "frontends/cpp/strategies/names/option_reader.h"
#include "frontends/cpp/strategies/parts/compress.h"
#include "frontends/cpp/strategies/strategy.h"

namespace leat::names {

struct Entry {
  StrategyInfo info;
  std::function<std::unique_ptr<Strategy>(const StrategyCluster&, const OptionReader&)> make;
};
using Entries = std::vector<Entry>;

Entries of_servers();         // variables on the tasks of a job
Entries of_all_reduce();      // a copy on each worker, one mean gradient
Entries of_local_steps();     // workers that train alone for some steps
Entries of_model_parallel();  // each worker has a part of the model
Entries of_one_task();        // nothing crosses

// What several of them have.
std::vector<StrategyOption> compression_options();
Compression compression_of(const OptionReader& options);

}  // namespace leat::names
