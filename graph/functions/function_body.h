// Instantiates one function of a library as nodes of a graph, with the names, inputs, attributes
// and devices that they have where it is called.
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

// A library's functions and gradients, by name, and the output positions of its nodes.
class FunctionLibrary {
 public:
  explicit FunctionLibrary(const tensorflow::FunctionDefLibrary& library);

  const tensorflow::FunctionDef* find(std::string_view name) const;  // null if it is not there
  // The function that computes this one's gradients; "" if Leat derives them.
  std::string_view gradient_of(std::string_view name) const;
  // The index of the first result of a node's output argument `name`; 0 if its op is unknown.
  int first_output(const tensorflow::NodeDef& node, std::string_view name) const;

 private:
  std::unordered_map<std::string_view, const tensorflow::FunctionDef*> functions_;
  std::unordered_map<std::string_view, std::string_view> gradients_;
};

// Where and how a function is called.
struct FunctionCall {
  const tensorflow::NodeDef& caller;  // nodes without a device get its device
  const tensorflow::NameAttrList& function;
  std::string scope;                   // prefix of its nodes' names: "cond/then"
  std::vector<std::string> arguments;  // "node" or "node:1", lists flattened
  // "^node": control inputs of the nodes that wait for nothing else in the function …
  std::vector<std::string> after;
  // … nor for an argument, except those that exist before the call (by number; none if empty).
  std::vector<bool> is_there_before = {};
};

struct FunctionBody {
  std::vector<tensorflow::NodeDef> nodes;
  std::vector<std::string> results;  // "node" or "node:1"
  // "^node": its declared side effects (control_ret), such as updates of variables; for a Defun,
  // which declares none, all nodes that change state
  std::vector<std::string> effects;
};

// INVALID_ARGUMENT, with the caller, if the function is not in the library, has other arguments, or
// refers to something that is not there.
FunctionBody instantiate(const FunctionLibrary& library, const FunctionCall& call);

// For each result, the argument that it passes on unchanged; -1 if there is none.
std::vector<int> passed_arguments(const tensorflow::FunctionDef& function);

}  // namespace leat
