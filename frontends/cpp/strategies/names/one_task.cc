// Strategies that train on one task, by name.
#include <algorithm>

#include "frontends/cpp/strategies/cyclades.h"
#include "frontends/cpp/strategies/hogwild.h"
#include "frontends/cpp/strategies/names/names.h"
#include "frontends/cpp/strategies/one_device.h"

namespace leat::names {

namespace {

std::unique_ptr<Strategy> make_cyclades(const StrategyCluster& cluster,
                                        const OptionReader& options) {
  CycladesOptions out{.threads = options.integer("threads", 4)};
  for (std::string ids = options.text("ids", ""); !ids.empty();) {
    const size_t end = std::min(ids.find('+'), ids.size());
    out.ids.push_back(ids.substr(0, end));
    ids.erase(0, end + 1);
  }
  return std::make_unique<Cyclades>(cluster, out);
}

}  // namespace

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
      {{"cyclades",
        "threads of one process train the same rows, with the result of a single one",
        {{"threads", "4", "how many"},
         {"ids", "all integers",
          "components that are ids of rows, each of its own table: user+item"}}},
       make_cyclades},
  };
}

}  // namespace leat::names
