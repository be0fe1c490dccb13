#include "frontends/cpp/control_flow/while_loop.h"

#include "graph/loops/loop_builder.h"

namespace leat {

namespace {

std::vector<Shape> shapes_of(const std::vector<Output>& variables, const std::vector<Shape>& given,
                             const std::string& title) {
  check(given.empty() || given.size() == variables.size(), title, ": ", given.size(),
        " shapes are given for ", variables.size(), " variables");
  std::vector<Shape> out;
  for (size_t i = 0; i < variables.size(); ++i) {
    const Shape& initial = variables[i].shape();
    out.push_back(given.empty() ? initial : given[i]);
    check(initial.is_compatible(out[i]), title, ": variable ", i, ", '", variables[i].name(),
          "', starts with shape ", initial, ", which does not match ", out[i]);
  }
  return out;
}

}  // namespace

Output fixed_condition(bool holds, const std::vector<Output>& variables, const LoopOptions& options,
                       Location at) {
  check(!holds || options.maximum_iterations, "while_loop '", options.name, "' (", at,
        "): the condition returns the C++ value true, so the loop would not end: compare Outputs, "
        "as in k < 10, or set .maximum_iterations");
  return constant(variables[0].graph(), holds, "condition", at);
}

std::vector<Output> while_loop(
    const std::function<Output(const std::vector<Output>&)>& condition,
    const std::function<std::vector<Output>(const std::vector<Output>&)>& body,
    const std::vector<Output>& variables, const LoopOptions& options, Location at) {
  std::function<std::vector<Operand>(const std::vector<Output>&)> step;
  if (body) step = [&](const std::vector<Output>& v) { return values::list(body(v)); };
  return make_loop(condition, step, values::list(variables), options, at);
}

std::vector<Output> make_loop(
    const std::function<Output(const std::vector<Output>&)>& condition,
    const std::function<std::vector<Operand>(const std::vector<Output>&)>& body,
    const std::vector<Operand>& initial, const LoopOptions& options, Location at) {
  const std::string title = concat("while_loop '", options.name, "' (", at, ")");
  check(!initial.empty(), title, ": it needs a variable");
  check(condition && body, title, ": the condition or the body is empty");
  Output first;
  for (size_t i = 0; i < initial.size(); ++i) {
    check(initial[i].is_constant() || initial[i].output(), title, ": variable ", i,
          " is an empty Output");
    if (!first) first = initial[i].output();
  }
  check(bool{first}, title,
        ": all variables start as numbers, which belong to no graph: make one a constant(g, …)");
  const auto limit = options.maximum_iterations;
  check(!limit || *limit >= 0, title, ": maximum_iterations must not be negative, got ",
        limit.value_or(0));
  Graph& graph = first.graph();
  const NameScope scope(graph, options.name);
  std::vector<Output> variables;
  for (const Operand& value : initial) variables.push_back(value.in(graph));
  LoopBuilder loop(graph, scope.name() + "frame", {}, at);
  const std::vector<Shape> shapes = shapes_of(variables, options.shapes, title);
  for (size_t i = 0; i < variables.size(); ++i) loop.add_variable(variables[i], shapes[i]);
  const auto count = static_cast<int>(variables.size());
  if (limit) loop.add_variable(constant(graph, int64_t{0}, "zero", at), Shape{});

  std::vector<Output> merged;
  for (int i = 0; i < count; ++i) merged.push_back(loop.merged(i));
  Output predicate;
  {
    const ControlScope inside(graph, std::vector<Output>{merged[0]});
    predicate = condition(merged);
    check(bool{predicate}, title, ": the condition returns an empty Output");
    check(predicate.dtype() == DType::boolean && Shape{}.is_compatible(predicate.shape()), title,
          ": the condition must be a scalar bool, not ", predicate.dtype(), predicate.shape());
    if (limit)
      predicate = op("LogicalAnd", {predicate, less({loop.merged(count), at}, *limit)}, {}, at);
  }
  loop.start_body(predicate);

  std::vector<Output> entering;
  for (int i = 0; i < count; ++i) entering.push_back(loop.in_body(i));
  std::vector<Operand> next;
  {
    const ControlScope inside(graph, std::vector<Output>{entering[0]});
    next = body(entering);
    check(next.size() == variables.size(), title, ": the body returns ", next.size(),
          " values for ", count, " variables");
    for (int i = 0; i < count; ++i) {
      check(next[i].is_constant() || next[i].output(), title,
            ": the body returns an empty Output for variable ", i);
      const Output value = next[i].as(graph, variables[i].dtype());
      check(value.dtype() == variables[i].dtype(), title, ": the body returns variable ", i,
            " with dtype ", value.dtype(), " instead of ", variables[i].dtype());
      check(value.shape().is_compatible(shapes[i]), title, ": variable ", i, ", '",
            variables[i].name(), "', has shape ", shapes[i], ", but the body returns ",
            value.shape(), ": set LoopOptions::shapes to shapes that hold in all iterations");
      loop.set_next(i, value);
    }
    if (limit) loop.set_next(count, Operand(loop.in_body(count), at) + 1);
  }
  std::vector<Output> results;
  for (int i = 0; i < count; ++i) results.push_back(loop.result(i));
  return results;
}

}  // namespace leat
