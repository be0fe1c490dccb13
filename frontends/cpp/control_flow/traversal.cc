#include "frontends/cpp/control_flow/traversal.h"

#include "graph/loops/loop_builder.h"
#include "graph/loops/tensor_list.h"
#include "graph/ops.h"

namespace leat {
namespace {

using Outputs = std::vector<Output>;

Shape row_of(const Shape& shape) {
  if (!shape.has_rank()) return Shape::unknown();
  return Shape(shape.dims().subspan(1));
}

void check_inputs(const std::string& title, const Outputs& x) {
  check(!x.empty(), title, ": it has no input");
  for (size_t i = 0; i < x.size(); ++i) {
    check(bool{x[i]}, title, ": input ", i, " is an empty Output");
    const Shape &shape = x[i].shape(), &first = x[0].shape();
    check(shape.rank() != 0, title, ": input ", i, ", '", x[i].name(),
          "', is a scalar: it has no axis to iterate over");
    check(!shape.has_rank() || !first.has_rank() || shape[0] == any || first[0] == any ||
              shape[0] == first[0],
          title, ": input ", i, ", '", x[i].name(), "', has ", shape, ", but input 0 has ", first);
  }
}

}  // namespace

Traversal::Step Traversal::run(
    const std::function<Step(const Outputs& states, const Outputs& elements)>& f) const {
  check_inputs(title, x);
  for (const Output& state : initial)
    check(bool{state}, title, ": an initial value is an empty Output");
  Graph& graph = x[0].graph();
  LoopBuilder loop(graph, graph.scopes().name + "frame", {}, at);
  const int index = loop.add_variable(constant(graph, 0, "zero", at), Shape{});
  std::vector<int> inputs, states;
  for (const Output& input : x) {
    const Output in_order = reverse || is_x_flipped ? input : flip(input, 0, at);
    inputs.push_back(loop.add_variable(tensor_list::from_tensor(in_order, at)));
  }
  for (const Output& state : initial) states.push_back(loop.add_variable(state, state.shape()));
  const Output length = shape_of(x[0], i32, at)[0];
  const Output go_on = [&] {
    const ControlScope inside(graph, std::vector<Output>{loop.merged(index)});
    return less({loop.merged(index), at}, length);
  }();
  loop.start_body(go_on);
  loop.set_next(index, Operand(loop.in_body(index), at) + 1);
  Outputs before, elements;
  for (const int state : states) before.push_back(loop.in_body(state));
  for (size_t i = 0; i < x.size(); ++i) {
    const auto [rest, last] =
        tensor_list::pop(loop.in_body(inputs[i]), x[i].dtype(), row_of(x[i].shape()), at);
    loop.set_next(inputs[i], rest);
    elements.push_back(last);
  }
  const Step made = [&] {
    const ControlScope inside(graph, std::vector<Output>{loop.in_body(index)});
    return f(before, elements);
  }();
  check(made.states.size() == states.size(), title, ": the function returns ", made.states.size(),
        " states instead of ", states.size());
  Step out;
  for (size_t i = 0; i < states.size(); ++i) {
    const Output next = made.states[i];
    check(bool{next}, title, ": the function returns an empty Output as state ", i);
    check(next.dtype() == before[i].dtype(), title, ": the function returns state ", i,
          " with dtype ", next.dtype(), " instead of ", before[i].dtype());
    check(next.shape().is_compatible(before[i].shape()), title, ": state ", i, " has shape ",
          before[i].shape(), ", but the function returns ", next.shape());
    loop.set_next(states[i], next);
    out.states.push_back(loop.result(states[i]));
  }
  const int64_t count = x[0].shape().has_rank() ? x[0].shape()[0] : int64_t{any};
  for (size_t i = 0; i < made.kept.size(); ++i) {
    const Output value = made.kept[i];
    check(bool{value}, title, ": the function returns an empty Output as value ", i);
    const int list = loop.add_variable(tensor_list::empty(graph, value.dtype(), value.shape(), at));
    loop.set_next(list, tensor_list::push(loop.in_body(list), value, at));
    const Output rows =
        tensor_list::stack(loop.result(list), value.dtype(), value.shape(), count, at);
    out.kept.push_back(reverse ? flip(rows, 0, at) : rows);
  }
  return out;
}

}  // namespace leat
