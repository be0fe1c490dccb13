// One function of a library, as nodes of a graph: names, inputs, attributes and devices of its
// nodes as they are where it is called.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tensorflow {
class FunctionDef;
class FunctionDefLibrary;
class NameAttrList;
class NodeDef;
}  // namespace tensorflow

namespace leat {

// A library by name; what an op of a graph is to it.
class FunctionLibrary {
 public:
  explicit FunctionLibrary(const tensorflow::FunctionDefLibrary& library);

  const tensorflow::FunctionDef* find(std::string_view name) const;  // null if it is not there
  // The function that makes the gradients of this one, "" if ours do.
  std::string_view gradient_of(std::string_view name) const;
  // How many results a node has before those of its output argument `name`; 0 if nothing is known
  // of its op.
  int first_output(const tensorflow::NodeDef& node, std::string_view name) const;

 private:
  std::unordered_map<std::string_view, const tensorflow::FunctionDef*> functions_;
  std::unordered_map<std::string_view, std::string_view> gradients_;
};

// Where and how a function is called.
struct FunctionCall {
  const tensorflow::NodeDef& caller;  // its device is that of nodes that ask for none
  const tensorflow::NameAttrList& function;
  std::string scope;                   // in front of the names of its nodes: "cond/then"
  std::vector<std::string> arguments;  // "node" or "node:1", lists flattened
  // "^node": what the nodes wait for that wait for nothing else in the function …
  std::vector<std::string> after;
  // … nor for an argument, but those that are there before anyway (by number; none if empty).
  std::vector<bool> is_there_before = {};
};

struct FunctionBody {
  std::vector<tensorflow::NodeDef> nodes;
  std::vector<std::string> results;  // "node" or "node:1"
  // "^node": what it says that it does beside its results (control_ret), such as updates of
  // variables; of a Defun, which never says it, all that changes state
  std::vector<std::string> effects;
};

// INVALID_ARGUMENT, with the caller: the function is not in the library or has other arguments, or
// something in it is called that is not there.
FunctionBody instantiate(const FunctionLibrary& library, const FunctionCall& call);

// By result: the argument that it is, passed on unchanged; -1 if it is none.
std::vector<int> passed_arguments(const tensorflow::FunctionDef& function);

}  // namespace leat
