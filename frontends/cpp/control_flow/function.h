// Functions: a body that is written once and called many times.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "frontends/cpp/control_flow/values.h"

namespace leat {

//   Function f = function(g, "f", {f32}, [](Output a) { return a * a; });
//   Output y = f(x) + f(3);
//
// The C++ function is called once; each call of the Function adds a copy of the nodes that it has
// added, with its arguments, under a name scope of its own. Variables are made once, and all calls
// share them. gradients() goes through. Cheap to copy; valid as long as its graph.
class Function {
 public:
  // The results. INVALID_ARGUMENT if the arguments do not fit.
  std::vector<Output> call(const std::vector<Operand>& arguments, Location at = here()) const;
  // The result, of a function that has one: else INVALID_ARGUMENT.
  template <values::Value... Others>
  Output operator()(const Operand& argument, const Others&... others) const {
    return only(call({argument, Operand(others)...}, argument.at()), argument.at());
  }

 private:
  Output only(const std::vector<Output>& results, Location at) const;
  friend Function make_function(
      Graph& graph, std::string_view name, const std::vector<DType>& arguments,
      const std::function<std::vector<Operand>(const std::vector<Output>&)>& body, Location at);
  struct Body;
  explicit Function(std::shared_ptr<const Body> body) : body_(std::move(body)) {}
  std::shared_ptr<const Body> body_;
};

Function make_function(Graph& graph, std::string_view name, const std::vector<DType>& arguments,
                       const std::function<std::vector<Operand>(const std::vector<Output>&)>& body,
                       Location at = here());

// `body` takes an Output for each dtype, or all in a std::vector<Output>, and gives an Output, a
// tuple or a vector.
template <class F>
Function function(Graph& graph, std::string_view name, const std::vector<DType>& arguments,
                  const F& body, Location at = here()) {
  return make_function(
      graph, name, arguments,
      [&](const std::vector<Output>& x) -> std::vector<Operand> {
        if constexpr (std::is_invocable_v<F, const std::vector<Output>&>) {
          return values::list(body(x));
        } else {
          constexpr int count = values::arity<F>();
          static_assert(count > 0, "the body of a function takes one to eight Outputs");
          check(x.size() == count, "function '", name, "' (", at, "): its body takes ", count,
                " arguments, but there are ", x.size(), " dtypes");
          return values::list(values::apply<count>(body, x));
        }
      },
      at);
}

}  // namespace leat
