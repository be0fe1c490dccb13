// Implements functions.h: rewrites one GraphDef without its functions. functions.cc has nodes,
// names and calls, function_control_flow.cc lowers If, Case and While, function_gradient.cc has
// gradients, kernel_functions.cc the functions that stay functions.
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

// How far the functions of one graph have expanded. A short GraphDef can expand without bound,
// since functions call others.
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
  // A variable that functions may capture although it is not in this GraphDef.
  void add_variable(tensorflow::NodeDef node);
  void run();

 private:
  using AttrValue = tensorflow::AttrValue;
  using GraphDef = tensorflow::GraphDef;
  using NameAttrList = tensorflow::NameAttrList;
  using NodeDef = tensorflow::NodeDef;

  // A node that is being replaced, with its inputs.
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
  // Adds a node, or the nodes that replace it.
  void add(NodeDef node);
  void count(const NodeDef& node);
  // `inner` is the node that `why` names, if it is an error of another one.
  [[noreturn]] static void refuse(const NodeDef& node, const std::string& why,
                                  const std::string& inner = {});
  static const AttrValue& attr(const NodeDef& node, const std::string& name);
  static Types types(const NodeDef& node, const std::string& name);
  static Types input_types(const Caller& caller, const std::string& name);
  // "cond/then", "cond/then_1", …: no other name is that, or begins with it.
  std::string scope(const Caller& caller, std::string_view part);
  std::string free_name(const std::string& wanted);
  // `known`: the length of its prefix that is already taken.
  void take_name(const std::string& name, size_t known = 0);
  // Adds a node "cond/what" on the caller's device; returns its name.
  std::string add_part(const Caller& caller, std::string_view what, const std::string& op,
                       const std::vector<std::string>& inputs,
                       std::vector<std::pair<std::string, AttrValue>> attrs);
  static bool is_fetchable(tensorflow::DataType type);
  // Adds the node that has the caller's name and gives these results.
  void add_results(const Caller& caller, std::vector<std::string> results, const Types& types,
                   const std::vector<std::string>& after);
  // Replaces an input that is a caller's handle or variant by the value that the caller would pass
  // on.
  void use_directly(std::string& input) const;
  // Adds the nodes of the function; returns its results.
  FunctionBody add_body(const FunctionCall& call);
  void enter(const FunctionCall& call);

  // ---- Functions that a node's kernel calls ----

  // The attributes that name one; none if a master has already added the functions to the node.
  std::vector<std::string> functions_of(const NodeDef& node) const;
  void write_functions(NodeDef& node);
  void write_function(NodeDef& node, const std::string& name);
  // The node's inputs that are the last arguments of the function in attribute `name`:
  // "other_arguments", or "NAME_other_arguments" if the node has several functions.
  struct CapturedInputs {
    int first = 0, count = 0;
  };
  static CapturedInputs captured_inputs(const NodeDef& node, const std::string& name);
  // The variable that this input is, or null.
  const NodeDef* variable_at(const NodeDef& node, int input) const;
  // A node that finds the same variable from within another graph.
  static NodeDef handle_on(const NodeDef& variable);
  // A function as a graph of its own: its arguments are fed, its nodes run where it is called.
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
  // `value`, of that type, as a scalar bool condition.
  std::string as_bool(const Caller& caller, const std::string& value, tensorflow::DataType type);
  void add_if(const Caller& caller);
  // The last branch also handles every index without a branch.
  void add_case(const Caller& caller);
  std::string add_constant(const Caller& caller, tensorflow::DataType type, int value);
  // Input 0 of the caller chooses, the others are the functions' arguments.
  void add_branches(const Caller& caller, const std::vector<Branch>& branches);
  // The predicate itself, and all arguments.
  std::vector<std::string> add_switches(const Caller& caller, const Branch& branch,
                                        const Types& types);
  std::string add_merge(const Caller& caller, const std::vector<std::string>& values,
                        tensorflow::DataType type);
  // The value, after all effects.
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
  // For each argument, whether the body passes it on unchanged. Handles always are.
  std::vector<bool> unchanged(const Caller& caller, const NameAttrList& body, const Types& types);

  GraphDef& def_;
  const FunctionLibrary& library_;
  FunctionExpansion& expansion_;
  std::unordered_set<std::string> taken_;         // names and their prefixes
  std::unordered_map<std::string, int> numbers_;  // last given by free_name(), by wanted name
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
