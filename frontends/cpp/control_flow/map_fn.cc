#include "frontends/cpp/control_flow/map_fn.h"

#include "frontends/cpp/control_flow/traversal.h"

namespace leat {

using Outputs = std::vector<Output>;

namespace {

using Next = std::function<Outputs(const Outputs& states, const Outputs& elements)>;

Traversal::Step traverse(std::string_view what, const std::string& name, const Next& f,
                         const Outputs& x, const Outputs& initial, bool reverse, bool keep,
                         Location at) {
  const std::string title = concat(what, " '", name, "' (", at, ")");
  check(bool{f}, title, ": the function is empty");
  check(!x.empty() && bool{x[0]}, title, ": it has no input");
  check(!initial.empty(), title, ": it needs an initial value");
  const NameScope scope(x[0].graph(), name);
  const Traversal along{.title = title, .x = x, .initial = initial, .reverse = reverse, .at = at};
  return along.run([&](const Outputs& states, const Outputs& elements) {
    const Outputs next = f(states, elements);
    return Traversal::Step{next, keep ? next : Outputs{}};
  });
}

Next of_one(const std::function<Output(Output, Output)>& f) {
  if (!f) return {};
  return [f](const Outputs& states, const Outputs& elements) {
    return Outputs{f(states[0], elements[0])};
  };
}

Output start(const Operand& initial, Output x, Location at) {
  return initial.is_constant() && x ? initial.as(Operand(x, at)) : initial.output();
}

Output fold(std::string_view what, const std::function<Output(Output, Output)>& f, Output x,
            const Operand& initial, const FoldOptions& options, bool reverse, Location at) {
  return traverse(what, options.name, of_one(f), {x}, {start(initial, x, at)}, reverse, false, at)
      .states[0];
}

// x cut into the element that a fold begins with and the others.
std::pair<Output, Output> first_and_rest(std::string_view what, Output x, bool reverse,
                                         Location at) {
  check(bool{x}, what, " (", at, "): x is an empty Output");
  const LocationScope line(x.graph(), at);
  if (reverse) return {x[-1], x[{slice(0, -1)}]};
  return {x[0], x[{slice(1, none)}]};
}

}  // namespace

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

Outputs scan(const Next& f, const Outputs& x, const Outputs& initial, const ScanOptions& options,
             Location at) {
  return traverse("scan", options.name, f, x, initial, options.reverse, true, at).kept;
}

Output scan(const std::function<Output(Output, Output)>& f, Output x, const Operand& initial,
            const ScanOptions& options, Location at) {
  return scan(of_one(f), Outputs{x}, Outputs{start(initial, x, at)}, options, at)[0];
}

Output scan(const std::function<Output(Output, Output)>& f, Output x, const ScanOptions& options,
            Location at) {
  const auto [first, rest] = first_and_rest("scan", x, options.reverse, at);
  const Output others = scan(f, rest, first, options, at);
  const Output begin = expand_dims(first, 0, at);
  return options.reverse ? concatenate({others, begin}, 0, at)
                         : concatenate({begin, others}, 0, at);
}

Output foldl(const std::function<Output(Output, Output)>& f, Output x, const Operand& initial,
             const FoldOptions& options, Location at) {
  return fold("foldl", f, x, initial, options, false, at);
}

Output foldr(const std::function<Output(Output, Output)>& f, Output x, const Operand& initial,
             const FoldOptions& options, Location at) {
  return fold("foldr", f, x, initial, options, true, at);
}

Output foldl(const std::function<Output(Output, Output)>& f, Output x, const FoldOptions& options,
             Location at) {
  const auto [first, rest] = first_and_rest("foldl", x, false, at);
  return foldl(f, rest, first, options, at);
}

Output foldr(const std::function<Output(Output, Output)>& f, Output x, const FoldOptions& options,
             Location at) {
  const auto [first, rest] = first_and_rest("foldr", x, true, at);
  return foldr(f, rest, first, options, at);
}

}  // namespace leat
