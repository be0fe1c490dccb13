#include "graph/functions.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "graph/function_body.h"
#include "graph/op_def.h"
#include "graph/proto/graph.pb.h"
#include "graph/refused_ops.h"

namespace leat {
namespace {

using tensorflow::AttrValue;
using tensorflow::GraphDef;
using tensorflow::NameAttrList;
using tensorflow::NodeDef;

constexpr size_t most_nodes = 200'000;
constexpr size_t most_bytes = size_t{1} << 31;  // as of a GraphDef
constexpr size_t deepest = 100;

AttrValue type_attr(tensorflow::DataType type) {
  AttrValue out;
  out.set_type(type);
  return out;
}
AttrValue int_attr(int64_t value) {
  AttrValue out;
  out.set_i(value);
  return out;
}
AttrValue bool_attr(bool value) {
  AttrValue out;
  out.set_b(value);
  return out;
}
AttrValue string_attr(const std::string& value) {
  AttrValue out;
  out.set_s(value);
  return out;
}

std::string node_of(const std::string& endpoint) { return endpoint.substr(0, endpoint.find(':')); }
std::string signal_of(const std::string& endpoint) { return "^" + node_of(endpoint); }

AttrValue strings_attr(const std::vector<std::string>& values) {
  AttrValue out;
  out.mutable_list();
  for (const std::string& value : values) out.mutable_list()->add_s(value);
  return out;
}

// What the functions of one graph have come to so far: a call costs its sender a line, and the
// functions behind it call others.
struct Expansion {
  std::vector<std::string> active;  // functions, the outermost first
  size_t depth = 0;
  size_t nodes = 0, bytes = 0;
};

class Inliner {
 public:
  Inliner(GraphDef& def, const FunctionLibrary& library, Expansion& expansion)
      : def_(def), library_(library), expansion_(expansion) {}

  void run() {
    google::protobuf::RepeatedPtrField<NodeDef> nodes;
    nodes.Swap(def_.mutable_node());
    for (const NodeDef& node : nodes) {
      take_name(node.name());
      if (node.op() == "VarHandleOp") variables_.emplace(node.name(), node);
    }
    for (NodeDef& node : nodes) add(std::move(node));
    for (NodeDef& node : *def_.mutable_node()) {
      for (std::string& input : *node.mutable_input()) use_directly(input);
    }
  }

  bool has_work() const {
    return std::any_of(def_.node().begin(), def_.node().end(), [&](const NodeDef& node) {
      return is_functional(node) || !functions_of(node).empty();
    });
  }

 private:
  // What a node that is replaced is called with.
  struct Caller {
    explicit Caller(const NodeDef& node) : node(node) {
      for (const std::string& input : node.input())
        (input.starts_with('^') ? after : inputs).push_back(input);
    }
    const NodeDef& node;
    std::vector<std::string> inputs;
    std::vector<std::string> after;  // "^node"
  };
  using Types = std::vector<tensorflow::DataType>;

  // ---- Nodes ----

  static bool is_call(const NodeDef& node) {
    return node.op() == "PartitionedCall" || node.op() == "StatefulPartitionedCall";
  }
  static bool is_if(const NodeDef& node) { return node.op() == "If" || node.op() == "StatelessIf"; }
  static bool is_case(const NodeDef& node) {
    return node.op() == "Case" || node.op() == "StatelessCase";
  }
  static bool is_while(const NodeDef& node) {
    return node.op() == "While" || node.op() == "StatelessWhile";
  }
  bool is_functional(const NodeDef& node) const {
    return is_call(node) || is_if(node) || is_case(node) || is_while(node) ||
           library_.find(node.op()) != nullptr;
  }

  // Adds a node, or what it stands for.
  void add(NodeDef node) {
    if (!is_functional(node)) {
      write_functions(node);
      if (!expansion_.active.empty()) count(node);
      *def_.add_node() = std::move(node);
      return;
    }
    if (++expansion_.depth > deepest)
      refuse(node, concat("calls are nested deeper than ", deepest, " here"));
    if (is_call(node)) {
      add_call(Caller(node), attr(node, "f").func(), types(node, "Tout"));
    } else if (is_if(node)) {
      add_if(Caller(node));
    } else if (is_case(node)) {
      add_case(Caller(node));
    } else if (is_while(node)) {
      add_while(Caller(node));
    } else {
      add_legacy_call(Caller(node));
    }
    --expansion_.depth;
  }

  void count(const NodeDef& node) {
    expansion_.bytes += node.ByteSizeLong();
    if (++expansion_.nodes <= most_nodes && expansion_.bytes <= most_bytes) return;
    fail(Code::invalid_argument, "the functions that the graph calls have more than ", most_nodes,
         " nodes or ", most_bytes, " bytes, those of each call counted");
  }

  [[noreturn]] static void refuse(const NodeDef& node, const std::string& why) {
    fail(Code::invalid_argument,
         with_node(concat("node '", node.name(), "' (", node.op(), "): ", why), node.name()));
  }

  static const AttrValue& attr(const NodeDef& node, const std::string& name) {
    const auto found = node.attr().find(name);
    if (found == node.attr().end())
      refuse(node, concat("attribute '", name, "' is missing and has no default"));
    return found->second;
  }
  static Types types(const NodeDef& node, const std::string& name) {
    Types out;
    for (const int type : attr(node, name).list().type())
      out.push_back(static_cast<tensorflow::DataType>(type));
    return out;
  }
  static Types input_types(const Caller& caller, const std::string& name) {
    Types out = types(caller.node, name);
    if (out.size() != caller.inputs.size()) {
      refuse(caller.node,
             concat("has ", caller.inputs.size(), " inputs, but ", out.size(), " types for them"));
    }
    return out;
  }

  // "cond/then", "cond/then_1", …: nothing else is called so, or begins so.
  std::string scope(const Caller& caller, std::string_view part) {
    return free_name(concat(caller.node.name(), "/", part));
  }
  std::string free_name(const std::string& wanted) {
    if (taken_.insert(wanted).second) return wanted;
    int& number = numbers_[wanted];  // where to go on counting
    std::string name;
    do name = concat(wanted, "_", ++number);
    while (!taken_.insert(name).second);
    return name;
  }
  // `known`: the length of what it begins with and is taken already.
  void take_name(const std::string& name, size_t known = 0) {
    for (size_t end = name.find('/', known); end != std::string::npos;
         end = name.find('/', end + 1))
      taken_.insert(name.substr(0, end));
    taken_.insert(name);
  }

  // A node "cond/what", where its caller is; its name.
  std::string add_part(const Caller& caller, std::string_view what, const std::string& op,
                       const std::vector<std::string>& inputs,
                       std::vector<std::pair<std::string, AttrValue>> attrs) {
    NodeDef node;
    node.set_name(free_name(concat(caller.node.name(), "/", what)));
    node.set_op(op);
    node.set_device(caller.node.device());
    for (const std::string& input : inputs) node.add_input(input);
    for (auto& [name, value] : attrs) {
      // What has a variable passes it on where the variable is.
      if (name == "T" && value.type() == tensorflow::DT_RESOURCE) node.clear_device();
      (*node.mutable_attr())[name] = std::move(value);
    }
    std::string name = node.name();
    add(std::move(node));
    return name;
  }

  static bool is_fetchable(tensorflow::DataType type) {
    return type != tensorflow::DT_RESOURCE && type != tensorflow::DT_VARIANT;
  }

  // The node that has the caller's name, and the results for its values.
  void add_results(const Caller& caller, std::vector<std::string> results, const Types& types,
                   const std::vector<std::string>& after) {
    if (results.size() != types.size()) {
      refuse(caller.node,
             concat("asks for ", types.size(), " results of functions that give ", results.size()));
    }
    Types kept = types;
    const auto value = std::find_if(types.begin(), types.end(), is_fetchable);
    const auto at = value - types.begin();
    for (size_t i = 0; i < types.size(); ++i) {
      if (is_fetchable(types[i])) continue;
      // No value that a node could hand on with others: its users get it directly.
      direct_[i == 0 ? caller.node.name() : concat(caller.node.name(), ":", i)] = results[i];
      if (value == types.end()) continue;
      results[i] = results[at];
      kept[i] = *value;
    }
    NodeDef node;
    node.set_name(caller.node.name());
    node.set_device(caller.node.device());
    if (value == types.end()) {
      node.set_op("NoOp");
    } else if (types.size() == 1) {
      node.set_op("Identity");
      (*node.mutable_attr())["T"] = type_attr(*value);
    } else {
      node.set_op("IdentityN");
      for (const tensorflow::DataType type : kept)
        (*node.mutable_attr())["T"].mutable_list()->add_type(type);
    }
    if (value != types.end()) {
      for (const std::string& result : results) node.add_input(result);
    }
    for (const std::string& signal : after) node.add_input(signal);
    add(std::move(node));
  }

  // An input that is a handle or a variant of a caller: what the caller would pass on.
  void use_directly(std::string& input) const {
    for (int hops = 0; hops < static_cast<int>(deepest) && !input.starts_with('^'); ++hops) {
      const auto found =
          direct_.find(input.ends_with(":0") ? input.substr(0, input.size() - 2) : input);
      if (found == direct_.end()) return;
      input = found->second;
    }
  }

  // The nodes of the function, added; its results.
  FunctionBody add_body(const FunctionCall& call) {
    FunctionBody body = instantiate(library_, call);
    enter(call);
    for (const NodeDef& node : body.nodes) take_name(node.name(), call.scope.size() + 1);
    for (NodeDef& node : body.nodes) add(std::move(node));
    expansion_.active.pop_back();
    body.nodes.clear();
    return body;
  }

  void enter(const FunctionCall& call) {
    std::vector<std::string>& active = expansion_.active;
    if (std::find(active.begin(), active.end(), call.function.name()) != active.end()) {
      refuse(call.caller,
             concat("function '", call.function.name(), "' calls itself, which is not supported"));
    }
    active.push_back(call.function.name());
  }

  // ---- Functions that a node's kernel calls ----

  // The attributes that name one. Not those of a node that a master has given them to already.
  std::vector<std::string> functions_of(const NodeDef& node) const {
    std::vector<std::string> out;
    if (std::none_of(node.attr().begin(), node.attr().end(),
                     [](const auto& attr) { return attr.second.has_func(); }))
      return out;
    const OpDef* op = find_op(node.op());
    if (op == nullptr || !refusal(op->name).empty()) return out;
    for (const AttrDef& attr : op->schema.attrs) {
      const auto found = node.attr().find(attr.name);
      if (attr.kind == "func" && found != node.attr().end() &&
          !node.attr().contains("_leat_" + attr.name))
        out.push_back(attr.name);
    }
    return out;
  }

  void write_functions(NodeDef& node) {
    for (const std::string& name : functions_of(node)) {
      if (++expansion_.depth > deepest)
        refuse(node, concat("functions are nested deeper than ", deepest, " here"));
      write_function(node, name);
      --expansion_.depth;
    }
  }

  void write_function(NodeDef& node, const std::string& name) {
    GraphDef part;
    std::vector<std::string> variables;
    const FunctionBody body = part_of(node, attr(node, name).func(), part, variables);
    const auto& signature = library_.find(attr(node, name).func().name())->signature();
    std::vector<std::string> results, effects;
    for (int i = 0; i < signature.output_arg_size(); ++i) {
      const std::string& result = body.results[i];
      results.push_back(result.find(':') == std::string::npos ? result + ":0" : result);
      if (is_fetchable(signature.output_arg(i).type())) continue;
      // Only this op's value can be a variant that leaves a graph.
      NodeDef& last = *part.add_node();
      last.set_name(concat("result_", i));
      last.set_op("_Result");
      last.add_input(result);
      (*last.mutable_attr())["T"] = type_attr(signature.output_arg(i).type());
      results.back() = last.name() + ":0";
    }
    for (const std::string& effect : body.effects) effects.push_back(effect.substr(1));
    Inliner(part, library_, expansion_).run();
    expansion_.active.pop_back();
    auto& attrs = *node.mutable_attr();
    const std::string prefix = "_leat_" + name;
    attrs[prefix] = string_attr(part.SerializeAsString());
    attrs[prefix + "_arguments"] = int_attr(signature.input_arg_size());
    attrs[prefix + "_variables"] = strings_attr(variables);
    attrs[prefix + "_results"] = strings_attr(results);
    attrs[prefix + "_effects"] = strings_attr(effects);
  }

  // The variable that argument `i` is: the last arguments are captured, inputs 1 and on of the
  // node.
  const NodeDef* captured_variable(const NodeDef& node, const tensorflow::FunctionDef& function,
                                   int i) const {
    const auto types = node.attr().find("Targuments");
    if (types == node.attr().end()) return nullptr;
    const int captured = types->second.list().type_size();
    const int input = 1 + i - (function.signature().input_arg_size() - captured);
    if (input < 1 || input > captured || input >= node.input_size()) return nullptr;
    const auto found = variables_.find(node_of(node.input(input)));
    return found == variables_.end() ? nullptr : &found->second;
  }

  // A node that finds the same variable from within another graph.
  static NodeDef handle_on(const NodeDef& variable) {
    NodeDef out = variable;
    std::string& name = *(*out.mutable_attr())["shared_name"].mutable_s();
    if (name.empty()) name = variable.name();
    out.clear_device();
    out.clear_input();
    out.mutable_attr()->erase("_class");
    return out;
  }

  // A function as a graph of its own: its arguments are fed, its nodes go wherever it is called.
  FunctionBody part_of(const NodeDef& node, const NameAttrList& function, GraphDef& part,
                       std::vector<std::string>& variables) {
    NodeDef caller = node;
    caller.clear_device();
    FunctionCall call{
        .caller = caller, .function = function, .scope = node.name(), .arguments = {}, .after = {}};
    const tensorflow::FunctionDef* known = library_.find(function.name());
    for (int i = 0; known != nullptr && i < known->signature().input_arg_size(); ++i) {
      NodeDef& argument = *part.add_node();
      if (const NodeDef* variable = captured_variable(node, *known, i)) {
        argument = handle_on(*variable);
        variables.push_back(concat("argument:", i));
      } else {
        argument.set_op("_Feed");
        (*argument.mutable_attr())["dtype"] = type_attr(known->signature().input_arg(i).type());
        (*argument.mutable_attr())["name"] = string_attr(concat("argument:", i));
      }
      argument.set_name(concat("argument_", i));
      call.arguments.push_back(argument.name());
    }
    FunctionBody body = instantiate(library_, call);
    enter(call);
    for (NodeDef& inner : body.nodes) {
      inner.clear_device();
      inner.mutable_attr()->erase("_class");
      *part.add_node() = std::move(inner);
    }
    return body;
  }

  // ---- Calls ----

  void add_call(const Caller& caller, const NameAttrList& function, const Types& types) {
    const FunctionBody body = add_body({.caller = caller.node,
                                        .function = function,
                                        .scope = scope(caller, "call"),
                                        .arguments = caller.inputs,
                                        .after = caller.after,
                                        .has_arguments_wait = true});
    std::vector<std::string> after = caller.after;
    after.insert(after.end(), body.effects.begin(), body.effects.end());
    add_results(caller, body.results, types, after);
  }

  // A node whose op is a function: what Defun makes.
  void add_legacy_call(const Caller& caller) {
    NameAttrList function;
    function.set_name(caller.node.op());
    *function.mutable_attr() = caller.node.attr();
    Types types;
    for (const auto& result : library_.find(caller.node.op())->signature().output_arg()) {
      if (!result.number_attr().empty() || !result.type_list_attr().empty())
        refuse(caller.node, "results that are lists are not supported");
      types.push_back(result.type_attr().empty() ? result.type()
                                                 : attr(caller.node, result.type_attr()).type());
    }
    add_call(caller, function, types);
  }

  // ---- Conditions ----

  struct Branch {
    const NameAttrList& function;
    std::string name;       // "then"
    std::string predicate;  // a scalar bool …
    int side;               // … and what it must be
  };

  // A scalar bool that says what `value` of that type says as a condition.
  std::string as_bool(const Caller& caller, const std::string& value, tensorflow::DataType type) {
    if (type == tensorflow::DT_BOOL) return value;
    return add_part(caller, "bool", "Cast", {value},
                    {{"SrcT", type_attr(type)}, {"DstT", type_attr(tensorflow::DT_BOOL)}});
  }

  void add_if(const Caller& caller) {
    if (caller.inputs.empty()) refuse(caller.node, "has no condition");
    const std::string predicate =
        as_bool(caller, caller.inputs[0], attr(caller.node, "Tcond").type());
    add_branches(caller, {{attr(caller.node, "then_branch").func(), "then", predicate, 1},
                          {attr(caller.node, "else_branch").func(), "else", predicate, 0}});
  }

  // The last branch is taken for every index that no other has.
  void add_case(const Caller& caller) {
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

  std::string add_constant(const Caller& caller, tensorflow::DataType type, int value) {
    AttrValue tensor;
    tensor.mutable_tensor()->set_dtype(type);
    tensor.mutable_tensor()->mutable_tensor_shape();
    if (type == tensorflow::DT_BOOL) {
      tensor.mutable_tensor()->add_bool_val(value != 0);
    } else {
      tensor.mutable_tensor()->add_int_val(value);
    }
    return add_part(caller, "constant", "Const", {},
                    {{"dtype", type_attr(type)}, {"value", tensor}});
  }

  // Input 0 of the caller chooses, the others are the functions' arguments.
  void add_branches(const Caller& caller, const std::vector<Branch>& branches) {
    const Types out = types(caller.node, "Tout");
    const Types in = types(caller.node, "Tin");
    if (in.size() + 1 != caller.inputs.size()) {
      refuse(caller.node, concat("has ", caller.inputs.size() - 1, " arguments, but ", in.size(),
                                 " types for them"));
    }
    std::vector<std::vector<std::string>> values(out.size());  // by result, then by branch
    std::vector<std::string> ends;                             // by branch
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
        refuse(caller.node, concat("function '", branch.function.name(), "' gives ",
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

  // The predicate itself, and all arguments.
  std::vector<std::string> add_switches(const Caller& caller, const Branch& branch,
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

  std::string add_merge(const Caller& caller, const std::vector<std::string>& values,
                        tensorflow::DataType type) {
    return add_part(caller, "merge", "Merge", values,
                    {{"T", type_attr(type)}, {"N", int_attr(static_cast<int64_t>(values.size()))}});
  }

  // The value, once all of that has happened.
  std::string after_effects(const Caller& caller, const std::string& what, const std::string& value,
                            tensorflow::DataType type, const std::vector<std::string>& effects) {
    if (effects.empty()) return value;
    std::vector<std::string> inputs = {value};
    inputs.insert(inputs.end(), effects.begin(), effects.end());
    return add_part(caller, what, "Identity", inputs, {{"T", type_attr(type)}});
  }

  // ---- Loops ----

  struct LoopVariable {
    size_t index;  // among the caller's inputs
    std::string merge, next, switched;
  };
  struct Loop {
    Types types;
    std::vector<LoopVariable> variables;  // those that change
    std::vector<std::string> arguments;   // of the condition, then of the body
  };

  void add_while(const Caller& caller) {
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

  Loop enter_loop(const Caller& caller) {
    Loop loop{.types = input_types(caller, "T")};
    const std::vector<bool> is_kept =
        unchanged(caller, attr(caller.node, "body").func(), loop.types);
    const std::string frame = scope(caller, "frame");
    for (size_t i = 0; i < loop.types.size(); ++i) {
      const AttrValue type = type_attr(loop.types[i]);
      std::vector<std::string> inputs = {caller.inputs[i]};
      inputs.insert(inputs.end(), caller.after.begin(), caller.after.end());
      loop.arguments.push_back(add_part(caller, "enter", "Enter", inputs,
                                        {{"T", type},
                                         {"frame_name", string_attr(frame)},
                                         {"is_constant", bool_attr(is_kept[i])}}));
      if (is_kept[i]) continue;
      // The Merge waits for a node that is added last.
      const std::string next = free_name(caller.node.name() + "/next");
      loop.arguments[i] = add_merge(caller, {loop.arguments[i], next}, loop.types[i]);
      loop.variables.push_back({i, loop.arguments[i], next, {}});
    }
    return loop;
  }

  // Whether there is another iteration.
  std::string add_condition(const Caller& caller, const Loop& loop) {
    const NameAttrList& function = attr(caller.node, "cond").func();
    const FunctionBody test = add_body({.caller = caller.node,
                                        .function = function,
                                        .scope = scope(caller, "cond"),
                                        .arguments = loop.arguments,
                                        .after = {signal_of(loop.variables[0].merge)}});
    if (test.results.size() != 1) {
      refuse(caller.node, concat("function '", function.name(), "' gives ", test.results.size(),
                                 " results; a condition is one"));
    }
    const tensorflow::DataType type =
        library_.find(function.name())->signature().output_arg(0).type();
    const std::string result =
        after_effects(caller, "cond_result", as_bool(caller, test.results[0], type),
                      tensorflow::DT_BOOL, test.effects);
    return add_part(caller, "loop_cond", "LoopCond", {result}, {});
  }

  void add_iteration(const Caller& caller, const Loop& loop) {
    const LoopVariable& first = loop.variables[0];
    const std::string pivot =
        add_part(caller, "body_pivot", "Identity", {loop.arguments[first.index]},
                 {{"T", type_attr(loop.types[first.index])}});
    const FunctionBody body = add_body({.caller = caller.node,
                                        .function = attr(caller.node, "body").func(),
                                        .scope = scope(caller, "body"),
                                        .arguments = loop.arguments,
                                        .after = {"^" + pivot}});
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

  // By argument: the body hands it on as it is. Handles always are.
  std::vector<bool> unchanged(const Caller& caller, const NameAttrList& body, const Types& types) {
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
    if (value == types.end()) refuse(caller.node, "none of its variables has a value");
    out[value - types.begin()] = false;
    return out;
  }

  GraphDef& def_;
  const FunctionLibrary& library_;
  Expansion& expansion_;
  std::unordered_set<std::string> taken_;               // names, and what names begin with
  std::unordered_map<std::string, int> numbers_;        // free_name() has given, by what was wanted
  std::unordered_map<std::string, NodeDef> variables_;  // VarHandleOps, by name
  std::unordered_map<std::string, std::string> direct_;  // result of a caller → what it is
};

}  // namespace

void inline_functions(GraphDef& def) {
  const FunctionLibrary library(def.library());
  Expansion expansion;
  Inliner inliner(def, library, expansion);
  if (inliner.has_work()) inliner.run();
}

void drop_written_functions(GraphDef& def) {
  for (NodeDef& node : *def.mutable_node()) {
    std::vector<std::string> written;
    for (const auto& [name, value] : node.attr()) {
      if (name.starts_with("_leat_")) written.push_back(name);
    }
    for (const std::string& name : written) node.mutable_attr()->erase(name);
  }
  for (auto& function : *def.mutable_library()->mutable_function()) {
    for (NodeDef& node : *function.mutable_node_def()) {
      std::vector<std::string> written;
      for (const auto& [name, value] : node.attr()) {
        if (name.starts_with("_leat_")) written.push_back(name);
      }
      for (const std::string& name : written) node.mutable_attr()->erase(name);
    }
  }
}

}  // namespace leat
