// Functions of a client's program that kernels call: what Dataset.map does to an element. A node
// that has one carries it in attributes (graph/functions/functions.h); runtime/ compiles and runs
// it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/attr.h"
#include "core/tensor.h"

namespace leat {

class Cancellation;
class ExecuteContext;

// As a node's attributes have it.
struct WrittenFunction {
  std::string name;   // "map/MapDataset.f": of the node and its attribute, for messages
  std::string graph;  // a GraphDef, whose `_Feed` nodes are "argument:0", …
  int64_t arguments = 0;
  // So many of the arguments, the last, are inputs of the node from this one on.
  int64_t captured = 0, captured_from = 0;
  std::vector<std::string> handles;    // "argument:2": a resource …
  std::vector<std::string> variables;  // … that needs no value, as the graph has it
  std::vector<std::string> results;    // "node:index"
  std::vector<std::string> effects;    // nodes that run though no result needs them

  // INVALID_ARGUMENT if the node has no such function.
  static WrittenFunction of(const NodeView& node, std::string_view attr);
  bool operator==(const WrittenFunction&) const = default;
};

// Thread-safe.
class CallableFunction {
 public:
  virtual ~CallableFunction() = default;
  virtual int arguments() const = 0;
  // One call. It may wait: not on a compute thread. Throws what its nodes throw; ends early if
  // `cancellation` says so.
  virtual std::vector<Tensor> run(std::vector<Tensor> arguments,
                                  Cancellation& cancellation) const = 0;
};

// What can compile functions: the contexts of kernels in a program are one. Their variables and
// tables are those of the task.
class FunctionCompiler {
 public:
  virtual ~FunctionCompiler() = default;
  virtual std::shared_ptr<const CallableFunction> compile(const WrittenFunction& function) = 0;
};

std::shared_ptr<const CallableFunction> compile_function(ExecuteContext& context,
                                                         const WrittenFunction& function);

}  // namespace leat
