// Loops over the first axis: map_fn, scan, foldl and foldr, as in TensorFlow.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "frontends/cpp/control_flow/while_loop.h"

namespace leat {

struct MapOptions {
  std::string name = "map";
};
struct FoldOptions {
  std::string name = "fold";
};
struct ScanOptions {
  bool reverse = false;  // from the last element to the first; results stay where they belong
  std::string name = "scan";
};

// y[i] = f(x[i]). With several x, of the same length, f gets an element of each. One iteration
// after the other: what works on whole tensors is faster. gradients() goes through.
Output map_fn(const std::function<Output(Output)>& f, Output x, const MapOptions& options = {},
              Location at = here());
std::vector<Output> map_fn(const std::function<std::vector<Output>(const std::vector<Output>&)>& f,
                           const std::vector<Output>& x, const MapOptions& options = {},
                           Location at = here());

namespace values {
// Of several elements, or of one which it makes into several values.
template <class F, size_t count>
concept MapsValues = (arity<F>() == count) &&
                     (count > 1 || TupleOfValues<std::invoke_result_t<F, Output>>);
}  // namespace values

// The same of f(x[i], y[i], …), which gives an Output or several: auto [a, b] = map_fn(f, x, y).
template <class F, std::convertible_to<Output>... More>
requires values::MapsValues<F, 1 + sizeof...(More)>
auto map_fn(const F& f, const Operand& x, More... more) {
  constexpr size_t count = 1 + sizeof...(More);
  const std::vector<Output> inputs = {x.output(), more...};
  const std::function<std::vector<Output>(const std::vector<Output>&)> all =
      [&](const std::vector<Output>& elements) {
        std::vector<Output> out;
        for (const Operand& value : values::list(values::apply<count>(f, elements)))
          out.push_back(value.in(elements[0].graph()));
        return out;
      };
  return values::like<decltype(values::apply<count>(f, inputs))>(map_fn(all, inputs, {}, x.at()));
}

// y[i] = f(y[i - 1], x[i]), y[-1] = initial: a sum of all before, a recurrent network. Of several
// states and inputs: f(states, elements) gives the states. gradients() goes through.
Output scan(const std::function<Output(Output, Output)>& f, Output x, const Operand& initial,
            const ScanOptions& options = {}, Location at = here());
std::vector<Output> scan(const std::function<std::vector<Output>(const std::vector<Output>& states,
                                                                 const std::vector<Output>& x)>& f,
                         const std::vector<Output>& x, const std::vector<Output>& initial,
                         const ScanOptions& options = {}, Location at = here());

// From the first element on: y[0] = x[0], as tf.scan without an initializer. Of no elements it
// fails in the step.
Output scan(const std::function<Output(Output, Output)>& f, Output x,
            const ScanOptions& options = {}, Location at = here());
// Of several states, f(state…, element) gives the next ones:
//   auto [a, b] = scan([](Output a, Output b, Output x) { return std::tuple{b, a + b * x}; }, x,
//                      std::tuple{constant(g, 0.0), constant(g, 1.0)});
template <class F, values::TupleOfValues States>
auto scan(const F& f, const Operand& x, const States& initial, const ScanOptions& options = {}) {
  constexpr size_t count = std::tuple_size_v<States>;
  check(bool{x.output()}, "scan (", x.at(), "): x must be an Output");
  Graph& graph = x.output().graph();
  std::vector<Output> states;
  for (const Operand& value : values::list(initial)) states.push_back(value.in(graph));
  const std::function<std::vector<Output>(const std::vector<Output>&, const std::vector<Output>&)>
      all = [&](const std::vector<Output>& before, const std::vector<Output>& elements) {
        std::vector<Output> arguments = before, out;
        arguments.push_back(elements[0]);
        const std::vector<Operand> next = values::list(values::apply<count + 1>(f, arguments));
        for (size_t i = 0; i < next.size(); ++i)
          out.push_back(i < count ? next[i].as(before[i]) : next[i].in(graph));
        return out;
      };
  return values::like<States>(scan(all, {x.output()}, states, options, x.at()));
}

// The last y of scan alone: foldl from the first element to the last, foldr from the last to the
// first. Of no elements it is `initial`.
Output foldl(const std::function<Output(Output, Output)>& f, Output x, const Operand& initial,
             const FoldOptions& options = {}, Location at = here());
Output foldr(const std::function<Output(Output, Output)>& f, Output x, const Operand& initial,
             const FoldOptions& options = {}, Location at = here());
// From the first (last) element on, of which there must be one.
Output foldl(const std::function<Output(Output, Output)>& f, Output x,
             const FoldOptions& options = {}, Location at = here());
Output foldr(const std::function<Output(Output, Output)>& f, Output x,
             const FoldOptions& options = {}, Location at = here());

}  // namespace leat
