// Lowers If, Case and While (functions.h).
#include <algorithm>

#include "core/error.h"
#include "graph/endpoint.h"
#include "graph/functions/function_inliner.h"
#include "graph/proto/graph.pb.h"

namespace leat {

std::string FunctionInliner::as_bool(const Caller& caller, const std::string& value,
                                     tensorflow::DataType type) {
  if (type == tensorflow::DT_BOOL) return value;
  return add_part(caller, "bool", "Cast", {value},
                  {{"SrcT", type_attr(type)}, {"DstT", type_attr(tensorflow::DT_BOOL)}});
}

void FunctionInliner::add_if(const Caller& caller) {
  if (caller.inputs.empty()) refuse(caller.node, "has no condition");
  const std::string predicate =
      as_bool(caller, caller.inputs[0], attr(caller.node, "Tcond").type());
  add_branches(caller, {{attr(caller.node, "then_branch").func(), "then", predicate, 1},
                        {attr(caller.node, "else_branch").func(), "else", predicate, 0}});
}

void FunctionInliner::add_case(const Caller& caller) {
  if (caller.inputs.empty()) refuse(caller.node, "has no branch index");
  const auto& functions = attr(caller.node, "branches").list().func();
  if (functions.empty()) refuse(caller.node, "has no branches");
  std::vector<Branch> branches;
  std::string others;
  for (int i = 0; i < functions.size(); ++i) {
    const std::string name = concat("branch_", i);
    if (i + 1 == functions.size()) {
      if (others.empty()) others = add_constant(caller, tensorflow::DT_BOOL, 0);
      branches.push_back({functions[i], name, others, 0});
      break;
    }
    const std::string is_chosen =
        add_part(caller, name + "_is_chosen", "Equal",
                 {caller.inputs[0], add_constant(caller, tensorflow::DT_INT32, i)},
                 {{"T", type_attr(tensorflow::DT_INT32)}});
    branches.push_back({functions[i], name, is_chosen, 1});
    others = others.empty()
                 ? is_chosen
                 : add_part(caller, name + "_or_before", "LogicalOr", {others, is_chosen}, {});
  }
  add_branches(caller, branches);
}

std::string FunctionInliner::add_constant(const Caller& caller, tensorflow::DataType type,
                                          int value) {
  AttrValue tensor;
  tensor.mutable_tensor()->set_dtype(type);
  tensor.mutable_tensor()->mutable_tensor_shape();
  if (type == tensorflow::DT_BOOL) {
    tensor.mutable_tensor()->add_bool_val(value != 0);
  } else {
    tensor.mutable_tensor()->add_int_val(value);
  }
  return add_part(caller, "constant", "Const", {}, {{"dtype", type_attr(type)}, {"value", tensor}});
}

void FunctionInliner::add_branches(const Caller& caller, const std::vector<Branch>& branches) {
  const Types out = types(caller.node, "Tout");
  const Types in = types(caller.node, "Tin");
  if (in.size() + 1 != caller.inputs.size()) {
    refuse(caller.node, concat("has ", caller.inputs.size() - 1, " arguments, but ", in.size(),
                               " types for them"));
  }
  std::vector<std::vector<std::string>> values(out.size());            // by result, then by branch
  std::vector<std::string> ends;                                       // by branch
  std::unordered_map<std::string, std::vector<std::string>> switches;  // by predicate
  for (const Branch& branch : branches) {
    std::vector<std::string>& switched = switches[branch.predicate];
    if (switched.empty()) switched = add_switches(caller, branch, in);
    const auto side_of = [&](const std::string& node) {
      return branch.side == 0 ? node : node + ":1";
    };
    const std::string pivot =
        add_part(caller, branch.name + "_pivot", "Identity", {side_of(switched[0])},
                 {{"T", type_attr(tensorflow::DT_BOOL)}});
    std::vector<std::string> arguments;
    for (size_t i = 1; i < switched.size(); ++i) arguments.push_back(side_of(switched[i]));
    const FunctionBody body = add_body({.caller = caller.node,
                                        .function = branch.function,
                                        .scope = scope(caller, branch.name),
                                        .arguments = std::move(arguments),
                                        .after = {"^" + pivot}});
    if (body.results.size() != out.size()) {
      refuse(caller.node, concat("function '", branch.function.name(), "' returns ",
                                 body.results.size(), " results, not ", out.size()));
    }
    for (size_t i = 0; i < out.size(); ++i) {
      values[i].push_back(
          after_effects(caller, branch.name + "_result", body.results[i], out[i], body.effects));
    }
    if (!out.empty()) continue;
    ends.push_back(
        after_effects(caller, branch.name + "_end", pivot, tensorflow::DT_BOOL, body.effects));
  }
  std::vector<std::string> results;
  for (size_t i = 0; i < out.size(); ++i) results.push_back(add_merge(caller, values[i], out[i]));
  std::vector<std::string> after;
  if (out.empty()) after = {"^" + add_merge(caller, ends, tensorflow::DT_BOOL)};
  add_results(caller, results, out, after);
}

std::vector<std::string> FunctionInliner::add_switches(const Caller& caller, const Branch& branch,
                                                       const Types& types) {
  std::vector<std::string> out;
  for (size_t i = 0; i <= types.size(); ++i) {
    const std::string& value = i == 0 ? branch.predicate : caller.inputs[i];
    std::vector<std::string> inputs = {value, branch.predicate};
    inputs.insert(inputs.end(), caller.after.begin(), caller.after.end());
    out.push_back(add_part(caller, "switch", "Switch", inputs,
                           {{"T", type_attr(i == 0 ? tensorflow::DT_BOOL : types[i - 1])}}));
  }
  return out;
}

std::string FunctionInliner::add_merge(const Caller& caller, const std::vector<std::string>& values,
                                       tensorflow::DataType type) {
  return add_part(caller, "merge", "Merge", values,
                  {{"T", type_attr(type)}, {"N", int_attr(static_cast<int64_t>(values.size()))}});
}

std::string FunctionInliner::after_effects(const Caller& caller, const std::string& what,
                                           const std::string& value, tensorflow::DataType type,
                                           const std::vector<std::string>& effects) {
  if (effects.empty()) return value;
  std::vector<std::string> inputs = {value};
  inputs.insert(inputs.end(), effects.begin(), effects.end());
  return add_part(caller, what, "Identity", inputs, {{"T", type_attr(type)}});
}

void FunctionInliner::add_while(const Caller& caller) {
  Loop loop = enter_loop(caller);
  const std::string decision = add_condition(caller, loop);
  for (LoopVariable& variable : loop.variables) {
    variable.switched = add_part(caller, "switch", "Switch", {variable.merge, decision},
                                 {{"T", type_attr(loop.types[variable.index])}});
    loop.arguments[variable.index] = variable.switched + ":1";
  }
  add_iteration(caller, loop);
  std::vector<std::string> results = caller.inputs;
  for (const LoopVariable& variable : loop.variables) {
    results[variable.index] = add_part(caller, "exit", "Exit", {variable.switched},
                                       {{"T", type_attr(loop.types[variable.index])}});
  }
  // What is not a variable was there before the loop, but its users wait for the loop's end.
  const std::string end = signal_of(results[loop.variables[0].index]);
  add_results(caller, std::move(results), loop.types, {end});
}

FunctionInliner::Loop FunctionInliner::enter_loop(const Caller& caller) {
  Loop loop{.types = input_types(caller, "T")};
  const std::vector<bool> is_kept = unchanged(caller, attr(caller.node, "body").func(), loop.types);
  const std::string frame = scope(caller, "frame");
  for (size_t i = 0; i < loop.types.size(); ++i) {
    const AttrValue type = type_attr(loop.types[i]);
    std::vector<std::string> inputs = {caller.inputs[i]};
    inputs.insert(inputs.end(), caller.after.begin(), caller.after.end());
    loop.arguments.push_back(add_part(
        caller, "enter", "Enter", inputs,
        {{"T", type}, {"frame_name", string_attr(frame)}, {"is_constant", bool_attr(is_kept[i])}}));
    if (is_kept[i]) continue;
    // The Merge waits for a node that is added last.
    const std::string next = free_name(caller.node.name() + "/next");
    loop.arguments[i] = add_merge(caller, {loop.arguments[i], next}, loop.types[i]);
    loop.variables.push_back({i, loop.arguments[i], next, {}});
  }
  return loop;
}

std::string FunctionInliner::add_condition(const Caller& caller, const Loop& loop) {
  const NameAttrList& function = attr(caller.node, "cond").func();
  const FunctionBody test = add_body({.caller = caller.node,
                                      .function = function,
                                      .scope = scope(caller, "cond"),
                                      .arguments = loop.arguments,
                                      .after = {signal_of(loop.variables[0].merge)}});
  if (test.results.size() != 1) {
    refuse(caller.node, concat("function '", function.name(), "' returns ", test.results.size(),
                               " results; a condition must return one"));
  }
  const tensorflow::DataType type =
      library_.find(function.name())->signature().output_arg(0).type();
  const std::string result =
      after_effects(caller, "cond_result", as_bool(caller, test.results[0], type),
                    tensorflow::DT_BOOL, test.effects);
  return add_part(caller, "loop_cond", "LoopCond", {result}, {});
}

void FunctionInliner::add_iteration(const Caller& caller, const Loop& loop) {
  const LoopVariable& first = loop.variables[0];
  const std::string pivot =
      add_part(caller, "body_pivot", "Identity", {loop.arguments[first.index]},
               {{"T", type_attr(loop.types[first.index])}});
  std::vector<bool> is_constant(loop.types.size(), true);
  for (const LoopVariable& variable : loop.variables) is_constant[variable.index] = false;
  const FunctionBody body = add_body({.caller = caller.node,
                                      .function = attr(caller.node, "body").func(),
                                      .scope = scope(caller, "body"),
                                      .arguments = loop.arguments,
                                      .after = {"^" + pivot},
                                      .is_there_before = std::move(is_constant)});
  for (const LoopVariable& variable : loop.variables) {
    NodeDef next;
    next.set_name(variable.next);
    next.set_op("NextIteration");
    next.set_device(caller.node.device());
    next.add_input(body.results[variable.index]);
    for (const std::string& effect : body.effects) next.add_input(effect);
    (*next.mutable_attr())["T"] = type_attr(loop.types[variable.index]);
    add(std::move(next));
  }
}

std::vector<bool> FunctionInliner::unchanged(const Caller& caller, const NameAttrList& body,
                                             const Types& types) {
  const tensorflow::FunctionDef* function = library_.find(body.name());
  if (function == nullptr)
    refuse(caller.node, concat("function '", body.name(), "' is not in the graph's library"));
  const auto& signature = function->signature();
  const auto count = static_cast<int>(types.size());
  if (signature.input_arg_size() != count || signature.output_arg_size() != count) {
    refuse(caller.node, concat("has ", count, " variables, but its body '", body.name(), "' has ",
                               signature.input_arg_size(), " arguments and ",
                               signature.output_arg_size(), " results"));
  }
  const std::vector<int> passed = passed_arguments(*function);
  std::vector<bool> out(types.size());
  for (int i = 0; i < count; ++i) out[i] = types[i] == tensorflow::DT_RESOURCE || passed[i] == i;
  if (std::find(out.begin(), out.end(), false) != out.end()) return out;
  // A loop whose state is in variables outside of it still needs one of its own.
  const auto value = std::find_if(types.begin(), types.end(), [](tensorflow::DataType type) {
    return type != tensorflow::DT_RESOURCE;
  });
  if (value == types.end())
    refuse(caller.node, "all its variables are resource handles; one must be a value");
  out[value - types.begin()] = false;
  return out;
}

}  // namespace leat
