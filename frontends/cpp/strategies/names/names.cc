// Strategies by name.
#include <algorithm>

#include "frontends/cpp/strategies/names/names.h"
#include "graph/near_misses.h"

namespace leat {
namespace {

const names::Entries& entries() {
  static const names::Entries all = [] {
    names::Entries out;
    for (const auto& theme : {names::of_one_task, names::of_servers, names::of_all_reduce,
                              names::of_local_steps, names::of_model_parallel}) {
      for (names::Entry& entry : theme()) out.push_back(std::move(entry));
    }
    return out;
  }();
  return all;
}

}  // namespace

const std::vector<StrategyInfo>& strategies() {
  static const std::vector<StrategyInfo> all = [] {
    std::vector<StrategyInfo> out;
    for (const names::Entry& entry : entries()) out.push_back(entry.info);
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
  std::vector<std::string_view> known_names;
  for (const names::Entry& entry : entries()) {
    known_names.push_back(entry.info.name);
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
  for (const std::string_view each : known_names) list += concat(list.empty() ? "" : ", ", each);
  fail(Code::invalid_argument, "there is no strategy '", name, "'", did_you_mean(name, known_names),
       "; there are: ", list);
}

}  // namespace leat
