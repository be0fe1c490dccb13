// Functions of a client's program that kernels call, such as the function of Dataset.map. The
// calling node carries it in attributes (graph/functions/functions.h); runtime/ compiles and runs
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

// A function as stored in a node's attributes.
struct WrittenFunction {
  std::string name;   // "map/MapDataset.f": node and attribute, for messages
  std::string graph;  // a GraphDef, whose `_Feed` nodes are "argument:0", …
  int64_t arguments = 0;
  // The last `captured` arguments are inputs of the node, from input `captured_from` on.
  int64_t captured = 0, captured_from = 0;
  std::vector<std::string> handles;    // "argument:2": a resource …
  std::vector<std::string> variables;  // … that needs no value: declared by the graph
  std::vector<std::string> results;    // "node:index"
  std::vector<std::string> effects;    // nodes that run although no result needs them

  // INVALID_ARGUMENT if the node has no such function.
  static WrittenFunction of(const NodeView& node, std::string_view attr);
  bool operator==(const WrittenFunction&) const = default;
};

// Thread-safe.
class CallableFunction {
 public:
  virtual ~CallableFunction() = default;
  virtual int arguments() const = 0;
  // Makes one call. It may block: not for compute threads. Throws the errors of its nodes; ends
  // early if `cancellation` is cancelled.
  virtual std::vector<Tensor> run(std::vector<Tensor> arguments,
                                  Cancellation& cancellation) const = 0;
};

// Compiles functions; the contexts of a program's kernels implement it. Compiled functions use the
// variables and tables of the task.
class FunctionCompiler {
 public:
  virtual ~FunctionCompiler() = default;
  virtual std::shared_ptr<const CallableFunction> compile(const WrittenFunction& function) = 0;
};

std::shared_ptr<const CallableFunction> compile_function(ExecuteContext& context,
                                                         const WrittenFunction& function);

}  // namespace leat
