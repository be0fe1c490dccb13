#include "frontends/cpp/control_flow/map_fn.h"

#include "frontends/cpp/control_flow/traversal.h"

namespace leat {

using Outputs = std::vector<Output>;

Outputs map_fn(const std::function<Outputs(const Outputs&)>& f, const Outputs& x,
               const MapOptions& options, Location at) {
  const std::string title = concat("map_fn '", options.name, "' (", at, ")");
  check(bool{f}, title, ": the function is empty");
  check(!x.empty() && bool{x[0]}, title, ": it has no input");
  const NameScope scope(x[0].graph(), options.name);
  const Traversal along{.title = title, .x = x, .at = at};
  return along
      .run([&](const Outputs&, const Outputs& elements) {
        return Traversal::Step{{}, f(elements)};
      })
      .kept;
}

Output map_fn(const std::function<Output(Output)>& f, Output x, const MapOptions& options,
              Location at) {
  std::function<Outputs(const Outputs&)> all;
  if (f) all = [&](const Outputs& elements) { return Outputs{f(elements[0])}; };
  return map_fn(all, Outputs{x}, options, at)[0];
}

Outputs scan(const std::function<Outputs(const Outputs&, const Outputs&)>& f, const Outputs& x,
             const Outputs& initial, const ScanOptions& options, Location at) {
  const std::string title = concat("scan '", options.name, "' (", at, ")");
  check(bool{f}, title, ": the function is empty");
  check(!x.empty() && bool{x[0]}, title, ": it has no input");
  check(!initial.empty(), title, ": it needs an initial value");
  const NameScope scope(x[0].graph(), options.name);
  const Traversal along{
      .title = title, .x = x, .initial = initial, .reverse = options.reverse, .at = at};
  return along
      .run([&](const Outputs& states, const Outputs& elements) {
        const Outputs next = f(states, elements);
        return Traversal::Step{next, next};
      })
      .kept;
}

Output scan(const std::function<Output(Output, Output)>& f, Output x, const Operand& initial,
            const ScanOptions& options, Location at) {
  std::function<Outputs(const Outputs&, const Outputs&)> all;
  if (f) {
    all = [&](const Outputs& states, const Outputs& elements) {
      return Outputs{f(states[0], elements[0])};
    };
  }
  const Output start = initial.is_constant() && x ? initial.as(Operand(x, at)) : initial.output();
  return scan(all, Outputs{x}, Outputs{start}, options, at)[0];
}

}  // namespace leat
