#include "core/function.h"

#include "core/kernel.h"

namespace leat {

WrittenFunction WrittenFunction::of(const NodeView& node, std::string_view attr) {
  const std::string prefix = concat("_leat_", attr);
  check(node.has(prefix), node.op, " node '", node.name, "': the function '", attr,
        "' is not in the graph's library");
  return {.name = concat(node.name, ".", attr),
          .graph = node.attr<std::string>(prefix),
          .arguments = node.attr<int64_t>(prefix + "_arguments"),
          .captured = node.attr<int64_t>(prefix + "_captured"),
          .captured_from = node.attr<int64_t>(prefix + "_captured_from"),
          .handles = node.attr<std::vector<std::string>>(prefix + "_handles"),
          .variables = node.attr<std::vector<std::string>>(prefix + "_variables"),
          .results = node.attr<std::vector<std::string>>(prefix + "_results"),
          .effects = node.attr<std::vector<std::string>>(prefix + "_effects")};
}

std::shared_ptr<const CallableFunction> compile_function(ExecuteContext& context,
                                                         const WrittenFunction& function) {
  auto* compiler = dynamic_cast<FunctionCompiler*>(&context);
  check(compiler != nullptr, "functions cannot be called here: ", function.name);
  return compiler->compile(function);
}

}  // namespace leat
