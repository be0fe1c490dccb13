#include "frontends/cpp/while_loop.h"

#include "graph/loops.h"

namespace leat {

std::vector<Output> while_loop(
    const std::vector<Output>& variables,
    const std::function<Output(const std::vector<Output>&)>& condition,
    const std::function<std::vector<Output>(const std::vector<Output>&)>& body,
    std::string_view name, Location at) {
  const std::string loop = concat("while_loop '", name, "' (", at, ")");
  check(!variables.empty(), loop, ": it needs a variable");
  check(condition && body, loop, ": the condition or the body is empty");
  for (size_t i = 0; i < variables.size(); ++i)
    check(bool{variables[i]}, loop, ": variable ", i, " is none");
  Graph& graph = variables[0].graph();
  const NameScope scope(graph, name);
  const std::string frame = scope.name() + "frame";
  const size_t count = variables.size();

  std::vector<Output> merged;
  for (const Output& variable : variables) {
    const Output enter = graph
                             .add({.op = "Enter",
                                   .name = "Enter",
                                   .inputs = {variable},
                                   .attrs = {{"frame_name", frame}},
                                   .location = at})
                             .output();
    // Its second input is the body's result, which is not there yet.
    const std::string next = concat(scope.name(), "NextIteration_", merged.size());
    merged.push_back(graph
                         .add({.op = "Merge",
                               .name = "Merge",
                               .inputs = {enter, enter},
                               .attrs = {{std::string(back_edge_attr), next}},
                               .location = at})
                         .output());
  }

  Output predicate;
  {
    const ControlScope inside(graph, std::vector<Output>{merged[0]});
    predicate = condition(merged);
  }
  check(bool{predicate}, loop, ": the condition is none");
  check(predicate.dtype() == DType::boolean && Shape{}.is_compatible(predicate.shape()), loop,
        ": the condition must be a scalar bool, not ", predicate.dtype(), predicate.shape());
  const Output go_on =
      graph.add({.op = "LoopCond", .name = "LoopCond", .inputs = {predicate}, .location = at})
          .output();

  std::vector<Output> results, entering;
  for (const Output& value : merged) {
    Node& branch =
        graph.add({.op = "Switch", .name = "Switch", .inputs = {value, go_on}, .location = at});
    results.push_back(
        graph.add({.op = "Exit", .name = "Exit", .inputs = {branch.output(0)}, .location = at})
            .output());
    entering.push_back(graph
                           .add({.op = "Identity",
                                 .name = "Identity",
                                 .inputs = {branch.output(1)},
                                 .location = at})
                           .output());
  }

  std::vector<Output> next;
  {
    const ControlScope inside(graph, std::vector<Output>{entering[0]});
    next = body(entering);
  }
  check(next.size() == count, loop, ": the body gives ", next.size(), " values for ", count,
        " variables");
  for (size_t i = 0; i < count; ++i) {
    check(bool{next[i]}, loop, ": the body gives none for variable ", i);
    check(next[i].dtype() == variables[i].dtype(), loop, ": the body gives variable ", i,
          " the dtype ", next[i].dtype(), " instead of ", variables[i].dtype());
    graph.add({.op = "NextIteration",
               .name = concat("NextIteration_", i),
               .inputs = {next[i]},
               .location = at});
  }
  return results;
}

}  // namespace leat
