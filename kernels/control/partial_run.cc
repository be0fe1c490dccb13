// Ops that exchange the values of a partial run with its client (core/state/deferred_values.h).
#include "core/state/deferred_values.h"
#include "graph/op_def.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

void await_feed(ExecuteContext& c, std::function<void(Status)> done) {
  const NodeView& node = c.node();
  const std::string& name = node.attr<std::string>("name");
  const auto given = [&c, &node, &name](const Tensor& value) {
    const DType dtype = node.attr<DType>("dtype");
    const Shape& shape = node.attr<Shape>("shape");
    check(value.dtype() == dtype, "the value fed for '", name, "' has dtype ", value.dtype(),
          " and shape ", value.shape(), ", but the graph needs dtype ", dtype, " and shape ",
          shape);
    check(shape.is_compatible(value.shape()), "the value fed for '", name, "' has shape ",
          value.shape(), ", which does not fit shape ", shape);
    c.set_output(0, value);
  };
  deferred_values_of(c.input(0)).await_feed(name, given, c.cancellation(), std::move(done));
}

const Op await_op{{
    .name = "_AwaitFeed",
    .doc =
        "output = what the client feeds for the endpoint `name`, once it does: in a partial run.",
    .inputs = {"values: variant"},
    .outputs = {"output: dtype"},
    .attrs = {"dtype: type", "shape: shape = <unknown>", "name: string"},
    .shape = shapes::from_attr("shape"),
    .kernels = {{.execute_async = await_feed}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op deliver_op{{
    .name = "_DeliverFetch",
    .doc = "Keeps `value` for the client's fetch of the endpoint `name`: in a partial run.",
    .inputs = {"values: variant", "value: T"},
    .attrs = {"T: type", "name: string"},
    .shape = shapes::none(),
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       deferred_values_of(c.input(0))
                           .deliver(c.node().attr<std::string>("name"), c.input(1));
                     }}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
