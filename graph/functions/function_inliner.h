// How functions.h does what it says: one GraphDef, made anew without its functions. functions.cc
// has the nodes, names and calls, function_control_flow.cc what becomes of If, Case and While,
// function_gradient.cc their gradients, kernel_functions.cc the functions that stay functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "graph/functions/function_body.h"
#include "graph/graph.h"

namespace tensorflow {
class AttrValue;
class GraphDef;
enum DataType : int;
}  // namespace tensorflow

namespace leat {

// What the functions of one graph have come to so far: a call costs its sender a line, and the
// functions behind it call others.
struct FunctionExpansion {
  std::vector<std::string> active;     // functions, the outermost first
  std::vector<std::string> gradients;  // nodes whose functions are to be differentiated
  size_t depth = 0;
  size_t nodes = 0, bytes = 0;
};

class FunctionInliner {
 public:
  FunctionInliner(tensorflow::GraphDef& def, const FunctionLibrary& library,
                  FunctionExpansion& expansion);

  bool has_work() const;
  // One that functions may capture, though it is not in this GraphDef.
  void add_variable(tensorflow::NodeDef node);
  void run();

 private:
  using AttrValue = tensorflow::AttrValue;
  using GraphDef = tensorflow::GraphDef;
  using NameAttrList = tensorflow::NameAttrList;
  using NodeDef = tensorflow::NodeDef;

  // What a node that is replaced is called with.
  struct Caller {
    explicit Caller(const NodeDef& node);
    const NodeDef& node;
    std::vector<std::string> inputs;
    std::vector<std::string> after;  // "^node"
  };
  using Types = std::vector<tensorflow::DataType>;
  static constexpr size_t deepest = 100;  // calls in calls

  // ---- Nodes ----

  static bool is_call(const NodeDef& node);
  static bool is_if(const NodeDef& node);
  static bool is_case(const NodeDef& node);
  static bool is_while(const NodeDef& node);
  static bool is_gradient(const NodeDef& node);
  bool is_functional(const NodeDef& node) const;
  // Adds a node, or what it stands for.
  void add(NodeDef node);
  void count(const NodeDef& node);
  // `inner` is the node that `why` names, if it is an error of another one.
  [[noreturn]] static void refuse(const NodeDef& node, const std::string& why,
                                  const std::string& inner = {});
  static const AttrValue& attr(const NodeDef& node, const std::string& name);
  static Types types(const NodeDef& node, const std::string& name);
  static Types input_types(const Caller& caller, const std::string& name);
  // "cond/then", "cond/then_1", …: nothing else is called so, or begins so.
  std::string scope(const Caller& caller, std::string_view part);
  std::string free_name(const std::string& wanted);
  // `known`: the length of what it begins with and is taken already.
  void take_name(const std::string& name, size_t known = 0);
  // A node "cond/what", where its caller is; its name.
  std::string add_part(const Caller& caller, std::string_view what, const std::string& op,
                       const std::vector<std::string>& inputs,
                       std::vector<std::pair<std::string, AttrValue>> attrs);
  static bool is_fetchable(tensorflow::DataType type);
  // The node that has the caller's name, and the results for its values.
  void add_results(const Caller& caller, std::vector<std::string> results, const Types& types,
                   const std::vector<std::string>& after);
  // An input that is a handle or a variant of a caller: what the caller would pass on.
  void use_directly(std::string& input) const;
  // The nodes of the function, added; its results.
  FunctionBody add_body(const FunctionCall& call);
  void enter(const FunctionCall& call);

  // ---- Functions that a node's kernel calls ----

  // The attributes that name one. Not those of a node that a master has given them to already.
  std::vector<std::string> functions_of(const NodeDef& node) const;
  void write_functions(NodeDef& node);
  void write_function(NodeDef& node, const std::string& name);
  // Those of the node's inputs that are the last arguments of the function in attribute `name`: its
  // "other_arguments", or "NAME_other_arguments" of a node with several functions.
  struct CapturedInputs {
    int first = 0, count = 0;
  };
  static CapturedInputs captured_inputs(const NodeDef& node, const std::string& name);
  // The variable that this input is, or null.
  const NodeDef* variable_at(const NodeDef& node, int input) const;
  // A node that finds the same variable from within another graph.
  static NodeDef handle_on(const NodeDef& variable);
  // A function as a graph of its own: its arguments are fed, its nodes go wherever it is called.
  FunctionBody part_of(const NodeDef& node, const NameAttrList& function,
                       const CapturedInputs& captured, GraphDef& part,
                       std::vector<std::string>& variables);

  // ---- Calls ----

  void add_call(const Caller& caller, const NameAttrList& function, const Types& types);
  // A node whose op is a function: what Defun makes.
  void add_legacy_call(const Caller& caller);

  // ---- Gradients (function_gradient.cc) ----

  void add_symbolic_gradient(const Caller& caller);
  void add_gradients(const Caller& caller, const Graph& graph, const std::vector<Output>& dx,
                     const Types& types);

  // ---- Conditions ----

  struct Branch {
    const NameAttrList& function;
    std::string name;       // "then"
    std::string predicate;  // a scalar bool …
    int side;               // … and what it must be
  };
  // A scalar bool that says what `value` of that type says as a condition.
  std::string as_bool(const Caller& caller, const std::string& value, tensorflow::DataType type);
  void add_if(const Caller& caller);
  // The last branch is taken for every index that no other has.
  void add_case(const Caller& caller);
  std::string add_constant(const Caller& caller, tensorflow::DataType type, int value);
  // Input 0 of the caller chooses, the others are the functions' arguments.
  void add_branches(const Caller& caller, const std::vector<Branch>& branches);
  // The predicate itself, and all arguments.
  std::vector<std::string> add_switches(const Caller& caller, const Branch& branch,
                                        const Types& types);
  std::string add_merge(const Caller& caller, const std::vector<std::string>& values,
                        tensorflow::DataType type);
  // The value, once all of that has happened.
  std::string after_effects(const Caller& caller, const std::string& what, const std::string& value,
                            tensorflow::DataType type, const std::vector<std::string>& effects);

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
  void add_while(const Caller& caller);
  Loop enter_loop(const Caller& caller);
  // Whether there is another iteration.
  std::string add_condition(const Caller& caller, const Loop& loop);
  void add_iteration(const Caller& caller, const Loop& loop);
  // By argument: the body hands it on as it is. Handles always are.
  std::vector<bool> unchanged(const Caller& caller, const NameAttrList& body, const Types& types);

  GraphDef& def_;
  const FunctionLibrary& library_;
  FunctionExpansion& expansion_;
  std::unordered_set<std::string> taken_;         // names, and what names begin with
  std::unordered_map<std::string, int> numbers_;  // free_name() has given, by what was wanted
  std::unordered_map<std::string, std::shared_ptr<const NodeDef>>
      variables_;                                        // VarHandleOps, by name
  std::unordered_map<std::string, std::string> direct_;  // result of a caller → what it is
};

// Values of attributes.
tensorflow::AttrValue type_attr(tensorflow::DataType type);
tensorflow::AttrValue int_attr(int64_t value);
tensorflow::AttrValue bool_attr(bool value);
tensorflow::AttrValue string_attr(const std::string& value);
tensorflow::AttrValue strings_attr(const std::vector<std::string>& values);

}  // namespace leat
