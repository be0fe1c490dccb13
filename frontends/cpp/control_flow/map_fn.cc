#include "frontends/cpp/control_flow/map_fn.h"

#include "graph/loop_builder.h"
#include "graph/tensor_list.h"

namespace leat {
namespace {

using Outputs = std::vector<Output>;

Shape row_of(const Shape& shape) {
  if (!shape.has_rank()) return Shape::unknown();
  return Shape(shape.dims().subspan(1));
}

void check_inputs(const std::string& title, const Outputs& x) {
  check(!x.empty(), title, ": it has nothing to go through");
  for (size_t i = 0; i < x.size(); ++i) {
    check(bool{x[i]}, title, ": input ", i, " is an empty Output");
    const Shape &shape = x[i].shape(), &first = x[0].shape();
    check(shape.rank() != 0, title, ": input ", i, ", '", x[i].name(),
          "', is a scalar: there is no axis to go along");
    check(!shape.has_rank() || !first.has_rank() || shape[0] == any || first[0] == any ||
              shape[0] == first[0],
          title, ": input ", i, ", '", x[i].name(), "', has ", shape, ", but input 0 has ", first);
  }
}

// A loop over the first axes of x. Elements are taken off the end of lists, and results are put at
// the end of others, so that no list is ever copied.
class Traversal {
 public:
  Traversal(std::string title, const Outputs& x, const Outputs& initial, bool from_the_end,
            Location at)
      : title_(std::move(title)),
        graph_(x[0].graph()),
        from_the_end_(from_the_end),
        at_(at),
        loop_(graph_, graph_.scopes().name + "frame", {}, at) {
    index_ = loop_.add_variable(constant(graph_, 0, "zero", at));
    for (const Output& input : x) {
      shapes_.push_back(row_of(input.shape()));
      inputs_.push_back(loop_.add_variable(
          tensor_list::from_tensor(from_the_end ? input : flip(input, 0, at), at)));
    }
    for (const Output& state : initial) {
      check(bool{state}, title_, ": an initial value is none");
      states_.push_back(loop_.add_variable(state));
    }
    const Output length = shape_of(x[0], i32, at)[0];
    const Output go_on = [&] {
      const ControlScope inside(graph_, std::vector<Output>{loop_.merged(index_)});
      return less({loop_.merged(index_), at}, length);
    }();
    loop_.start_body(go_on);
    loop_.set_next(index_, Operand(loop_.in_body(index_), at) + 1);
    for (size_t i = 0; i < x.size(); ++i) {
      const auto [rest, last] =
          tensor_list::pop(loop_.in_body(inputs_[i]), x[i].dtype(), shapes_[i], at);
      loop_.set_next(inputs_[i], rest);
      elements_.push_back(last);
    }
  }

  // What `f` gives of the states and an element of each x is kept of every iteration, and is the
  // next states, if there are any.
  Outputs run(const std::function<Outputs(const Outputs&, const Outputs&)>& f) {
    Outputs before;
    for (const int state : states_) before.push_back(loop_.in_body(state));
    const Outputs made = [&] {
      const ControlScope inside(graph_, std::vector<Output>{loop_.in_body(index_)});
      return f(before, elements_);
    }();
    check(states_.empty() || made.size() == states_.size(), title_, ": the function gives ",
          made.size(), " states instead of ", states_.size());
    Outputs out;
    for (size_t i = 0; i < made.size(); ++i) {
      check(bool{made[i]}, title_, ": the function gives none as value ", i);
      if (!states_.empty()) {
        const DType dtype = before[i].dtype();
        check(made[i].dtype() == dtype, title_, ": the function gives state ", i, " the dtype ",
              made[i].dtype(), " instead of ", dtype);
        loop_.set_next(states_[i], made[i]);
      }
      out.push_back(collected(made[i]));
    }
    return out;
  }

 private:
  // The values of all iterations, in a tensor.
  Output collected(Output value) {
    const int list =
        loop_.add_variable(tensor_list::empty(graph_, value.dtype(), value.shape(), at_));
    loop_.set_next(list, tensor_list::push(loop_.in_body(list), value, at_));
    const Output rows = tensor_list::stack(loop_.result(list), value.dtype(), value.shape(), at_);
    return from_the_end_ ? flip(rows, 0, at_) : rows;
  }

  const std::string title_;
  Graph& graph_;
  const bool from_the_end_;
  const Location at_;
  LoopBuilder loop_;
  int index_;
  std::vector<Shape> shapes_;  // of the elements
  std::vector<int> inputs_, states_;
  Outputs elements_;
};

}  // namespace

Outputs map_fn(const std::function<Outputs(const Outputs&)>& f, const Outputs& x,
               const MapOptions& options, Location at) {
  const std::string title = concat("map_fn '", options.name, "' (", at, ")");
  check_inputs(title, x);
  check(bool{f}, title, ": the function is empty");
  const NameScope scope(x[0].graph(), options.name);
  return Traversal(title, x, {}, false, at).run([&](const Outputs&, const Outputs& elements) {
    return f(elements);
  });
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
  check_inputs(title, x);
  check(bool{f}, title, ": the function is empty");
  check(!initial.empty(), title, ": it needs an initial value");
  const NameScope scope(x[0].graph(), options.name);
  return Traversal(title, x, initial, options.reverse, at).run(f);
}

Output scan(const std::function<Output(Output, Output)>& f, Output x, Output initial,
            const ScanOptions& options, Location at) {
  std::function<Outputs(const Outputs&, const Outputs&)> all;
  if (f) {
    all = [&](const Outputs& states, const Outputs& elements) {
      return Outputs{f(states[0], elements[0])};
    };
  }
  return scan(all, Outputs{x}, Outputs{initial}, options, at)[0];
}

}  // namespace leat
