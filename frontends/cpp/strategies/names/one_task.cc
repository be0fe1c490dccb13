// Strategies that train on one task, by name.
#include "frontends/cpp/strategies/hogwild.h"
#include "frontends/cpp/strategies/names/names.h"
#include "frontends/cpp/strategies/one_device.h"

namespace leat::names {

Entries of_one_task() {
  return {
      {{"one_device", "the chief's worker alone", {}},
       [](const StrategyCluster& cluster, const OptionReader&) -> std::unique_ptr<Strategy> {
         return std::make_unique<OneDevice>(cluster);
       }},
      {{"hogwild",
        "threads of one process train the same variables; none waits for another",
        {{"threads", "4", "how many"}}},
       [](const StrategyCluster& cluster,
          const OptionReader& options) -> std::unique_ptr<Strategy> {
         return std::make_unique<Hogwild>(cluster,
                                          HogwildOptions{.threads = options.integer("threads", 4)});
       }},
  };
}

}  // namespace leat::names
