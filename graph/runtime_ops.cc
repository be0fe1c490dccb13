// The ops that passes insert, and users never do: values that enter a step, and values that cross
// from one device to another. The runtime handles them itself between segments, so they have no
// kernels.
#include "graph/shape_inference.h"

namespace leat {
namespace {

const Op feed_op{{
    .name = "_Feed",
    .doc = "output = the tensor that the step was given for the endpoint `name`.",
    .outputs = {"output: dtype"},
    .attrs = {"dtype: type", "shape: shape = <unknown>", "name: string"},
    .shape = shapes::from_attr("shape"),
    .is_stateful = true,
    .is_not_differentiable = true,
}};

// `edge`, `wave`: CutEdge in pipeline.h. T and tensor_type are empty for a control edge, which
// carries no payload: its _Send has only control inputs, its _Recv only control outputs.
const Op send_op{{
    .name = "_Send",
    .doc = "Sends `tensor` to the _Recv of the same edge. Without an input: a signal (a control "
           "edge).",
    .inputs = {"tensor: T"},
    .attrs = {"T: list(type)", "edge: int >= 0", "tensor_name: string", "send_device: string",
              "recv_device: string", "wave: int >= 0 = 0"},
    .shape = shapes::none(),
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op recv_op{{
    .name = "_Recv",
    .doc = "tensor = what the _Send of the same edge sends. Without an output: a signal (a control "
           "edge).",
    .outputs = {"tensor: tensor_type"},
    .attrs = {"tensor_type: list(type)", "shape: shape = <unknown>", "edge: int >= 0",
              "tensor_name: string", "send_device: string", "recv_device: string",
              "wave: int >= 0 = 0", "may_be_dead: bool = false"},
    .shape = shapes::from_attr("shape"),
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op result_op{{
    .name = "_Result",
    .doc = "output = value: a variant that a function returns.",
    .inputs = {"value: T"},
    .outputs = {"output: T"},
    .attrs = {"T: type"},
    .shape = shapes::same_as(0),
    .kernels = {{.execute = [](ExecuteContext& c) { c.set_output(0, c.input(0)); }}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
