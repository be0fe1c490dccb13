// What the functions that users pass to cond(), while_loop() and function() give: an Output, a
// tuple, an array or a vector of them; numbers where their dtype follows from something else.
#pragma once

#include <array>
#include <concepts>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/ops.h"

namespace leat {

namespace values {

template <class T>
concept Value = std::convertible_to<T, Operand>;
template <class T>
concept TupleOfValues = !Value<T> && requires {
  std::tuple_size<std::remove_cvref_t<T>>::value;
};
template <class T>
concept Vector = std::same_as<std::remove_cvref_t<T>, std::vector<Output>>;

inline std::vector<Operand> list(const Operand& value) { return {value}; }
template <TupleOfValues T>
std::vector<Operand> list(const T& values) {
  return std::apply([](const auto&... all) { return std::vector<Operand>{Operand(all)...}; },
                    values);
}
inline std::vector<Operand> list(const std::vector<Output>& values) {
  return {values.begin(), values.end()};
}

// The same kind of thing, of Outputs: as T was, so is what one gets.
template <class T>
auto like(const std::vector<Output>& values) {
  if constexpr (Value<T>) {
    return values[0];
  } else if constexpr (Vector<T>) {
    return values;
  } else {
    std::array<Output, std::tuple_size_v<std::remove_cvref_t<T>>> out;
    std::copy(values.begin(), values.end(), out.begin());
    return out;
  }
}

// f(values[0], values[1], …), for a number of values that is known.
template <size_t count, class F>
decltype(auto) apply(const F& f, const std::vector<Output>& values) {
  return [&]<size_t... i>(std::index_sequence<i...>)->decltype(auto) { return f(values[i]...); }
  (std::make_index_sequence<count>());
}

// How many Outputs a function takes; 0 if it takes none, or more than eight.
template <class F, class... Outputs>
constexpr int arity() {
  if constexpr (sizeof...(Outputs) > 8) {
    return 0;
  } else if constexpr (sizeof...(Outputs) > 0 && std::is_invocable_v<F, Outputs...>) {
    return sizeof...(Outputs);
  } else {
    return arity<F, Output, Outputs...>();
  }
}

}  // namespace values

}  // namespace leat
