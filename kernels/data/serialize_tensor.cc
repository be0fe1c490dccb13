// SerializeTensor and ParseTensor: a tensor as the bytes of a TensorProto.
#include "graph/gradient.h"
#include "graph/import/graph_def.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/examples.h"
#include "kernels/execute.h"

namespace leat {
namespace {

// The bytes of [1, 2]: float, one extent of 2, and the elements as they lie in memory.
const std::string serialized_example(
    "\x08\x01\x12\x04\x12\x02\x08\x02\x22\x08"
    "\x00\x00\x80\x3f\x00\x00\x00\x40",
    18);

const Op serialize_op{{
    .name = "SerializeTensor",
    .doc = "serialized = the TensorProto that holds tensor.",
    .inputs = {"tensor: T"},
    .outputs = {"serialized: string"},
    .attrs = {"T: type"},
    .shape = shapes::scalar(),
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       c.set_output(0, Tensor::scalar(to_tensor_proto(c.input(0))));
                     }}},
    .examples = {{.inputs = {floats({1, 2})}, .outputs = {Tensor::scalar(serialized_example)}}},
    .is_not_differentiable = true,
}};

const Op parse_op{{
    .name = "ParseTensor",
    .doc = "output = the tensor, of dtype out_type, that the TensorProto in serialized holds.",
    .inputs = {"serialized: string"},
    .outputs = {"output: out_type"},
    .attrs = {"out_type: type"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          c.set_output(0, Shape::unknown());
        },
    .kernels = {execute_kernel("out_type", AllTypes{},
                               []<class T>(TypeTag<T>, ExecuteContext& c) {
                                 const Tensor& bytes = c.input(0);
                                 check(bytes.shape().rank() == 0,
                                       "serialized must be a scalar, got shape ", bytes.shape());
                                 Tensor out = from_tensor_proto(bytes.item<std::string>());
                                 check(out.dtype() == dtype_of<T>,
                                       "Type mismatch between parsed tensor (", out.dtype(),
                                       ") and out_type (", dtype_of<T>, ")");
                                 c.set_output(0, std::move(out));
                               })},
    .examples = {{.inputs = {Tensor::scalar(serialized_example)},
                  .attrs = {{"out_type", f32}},
                  .outputs = {floats({1, 2})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
