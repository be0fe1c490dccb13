#include "graph/ops/collective_result.h"

#include <array>

#include "graph/ops.h"

namespace leat {
namespace {

constexpr std::array<std::string_view, 3> names = {"all_reduce", "reduce_scatter", "all_gather"};

}  // namespace

std::string_view collective_kind_name(CollectiveKind kind) {
  return names[static_cast<size_t>(kind)];
}

CollectiveKind collective_kind_from_name(std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<CollectiveKind>(i);
  }
  fail(Code::invalid_argument, "'", name, "' is no collective");
}

Output collective_result(Output by_messages, Output own, const CollectiveMark& mark, Location at) {
  std::vector<Output> inputs = {by_messages, own};
  if (mark.ticket) inputs.push_back(mark.ticket);
  return op("CollectiveResult", inputs,
            {{"N", mark.ticket ? 1 : 0},
             {"kind", collective_kind_name(mark.kind)},
             {"is_mean", mark.is_mean},
             {"group", mark.group},
             {"rank", mark.rank},
             {"members", mark.members},
             {"programs", mark.programs.name},
             {"tasks", mark.programs.tasks}},
            at);
}

Output collective_ticket(Graph& graph, const std::string& programs, Location at) {
  return graph.add({.op = "CollectiveTicket", .attrs = {{"programs", programs}}, .location = at})
      .output();
}

Node& collective_signal(Graph& graph, const std::string& programs, bool by_library, Location at) {
  return graph.add({.op = "CollectiveSignal",
                    .attrs = {{"programs", programs}, {"by_library", by_library}},
                    .location = at});
}

}  // namespace leat
