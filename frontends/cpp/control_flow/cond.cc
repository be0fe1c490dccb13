#include "frontends/cpp/control_flow/cond.h"

#include "graph/loops/conditions.h"

namespace leat {

std::vector<Output> make_cond(Output predicate,
                              const std::function<std::vector<Operand>()>& if_true,
                              const std::function<std::vector<Operand>()>& if_false,
                              const CondOptions& options, Location at) {
  const std::string title = concat("cond '", options.name, "' (", at, ")");
  check(bool{predicate}, title, ": the predicate is an empty Output");
  check(predicate.dtype() == DType::boolean && Shape{}.is_compatible(predicate.shape()), title,
        ": the predicate must be a scalar bool, not ", predicate.dtype(), predicate.shape());
  Graph& graph = predicate.graph();
  const NameScope scope(graph, options.name);
  const Pivots pivots = add_pivots(predicate, at);
  const auto run = [&](Node* pivot, const std::function<std::vector<Operand>()>& branch,
                       std::string_view name) {
    const ControlScope within(graph, std::vector<Node*>{pivot});
    const NameScope scope(graph, name);
    return branch();
  };
  const std::vector<Operand> yes = run(pivots.if_true, if_true, "true");
  const std::vector<Operand> no = run(pivots.if_false, if_false, "false");
  check(yes.size() == no.size(), title, ": one branch returns ", yes.size(), " values, the other ",
        no.size());
  std::vector<Output> out;
  for (size_t i = 0; i < yes.size(); ++i) {
    const auto is_missing = [](const Operand& x) { return !x.is_constant() && !x.output(); };
    check(!is_missing(yes[i]) && !is_missing(no[i]), title,
          ": a branch returns an empty Output as value ", i);
    // In the branch, for it may come from around it.
    const auto end = [&](Node* pivot, const Operand& value, const Operand& other) {
      const ControlScope within(graph, std::vector<Node*>{pivot});
      return op("Identity", {value.beside(other, graph)}, {}, at);
    };
    const Output a = end(pivots.if_true, yes[i], no[i]), b = end(pivots.if_false, no[i], yes[i]);
    check(a.dtype() == b.dtype(), title, ": value ", i, " is ", a.dtype(), a.shape(),
          " in one branch and ", b.dtype(), b.shape(), " in the other");
    out.push_back(op("Merge", {a, b}, {}, at));
  }
  return out;
}

Output switch_case(Output index, const std::vector<std::function<Output()>>& branches,
                   const CondOptions& options, Location at) {
  const std::string title = concat("switch_case '", options.name, "' (", at, ")");
  check(!branches.empty(), title, ": it has no branches");
  check(bool{index} && is_integer(index.dtype()), title, ": the index must be an integer, not ",
        index ? dtype_name(index.dtype()) : "an empty Output");
  std::function<Output()> rest = branches.back();
  for (size_t i = branches.size() - 1; i-- > 0;) {
    rest = [&, i, rest] {
      return cond(equal({index, at}, static_cast<int64_t>(i)), branches[i], rest, options, at);
    };
  }
  return rest();
}

}  // namespace leat
