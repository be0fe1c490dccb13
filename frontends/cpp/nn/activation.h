// A function that a layer applies to its result.
#pragma once

#include <concepts>
#include <functional>

#include "graph/ops.h"

namespace leat::nn {

// Made from a builder function, from anything that takes and returns an Output, or from nothing:
//   nn::dense(x, 8, {.activation = relu});
//   nn::dense(x, 8, {.activation = [](Output h) { return 2 * h; }});
class Activation {
 public:
  Activation() = default;
  Activation(std::nullptr_t) {}                                              // NOLINT: converts
  Activation(Output (*function)(Output, Location)) : function_(function) {}  // NOLINT
  template <class F>
  requires(std::is_invocable_r_v<Output, F, Output> && !std::same_as<F, Activation>)
      Activation(F function)  // NOLINT
      : function_([=](Output x, Location) -> Output {
          const LocationScope own(x.graph(), {});  // its own lines
          return function(x);
        }) {}

  explicit operator bool() const { return bool{function_}; }
  // x itself if there is no function.
  Output operator()(Output x, Location at = here()) const {
    return function_ ? function_(x, at) : x;
  }

 private:
  std::function<Output(Output, Location)> function_;
};

}  // namespace leat::nn
