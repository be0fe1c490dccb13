// Bitcast: the same bytes as elements of another type. Copies them, because a view must have the
// type of its tensor.
#include <cstring>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// TensorFlow's list goes on with the types of quantised numbers, which Leat does not know.
const char* const types =
    "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, "
    "complex64, complex128}";

void infer(ShapeContext& c) {
  Shape shape = c.input(0);
  const auto from = static_cast<int64_t>(dtype_size(c.input_dtype(0))),
             to = static_cast<int64_t>(dtype_size(c.attr<DType>("type")));
  if (!shape.has_rank() || from == to) return c.set_output(0, shape);
  if (from > to) {
    shape.push_back(from / to);
    return c.set_output(0, shape);
  }
  const int64_t last = shape.rank() == 0 ? 0 : shape[shape.rank() - 1];
  check(last == any || last == to / from, "Cannot bitcast from ", c.input_dtype(0), " to ",
        c.attr<DType>("type"), ": the last extent of ", shape, " must be ", to / from);
  c.set_output(0, Shape(shape.dims().first(shape.rank() - 1)));
}

const Op bitcast_op{{
    .name = "Bitcast",
    .doc = "output = the bytes of input as elements of `type`; a smaller type adds an axis at the "
           "end, a larger one makes one element of the last axis.",
    .inputs = {"input: T"},
    .outputs = {"output: type"},
    .attrs = {std::string("T: ") + types, std::string("type: ") + types},
    .shape = infer,
    .kernels = {cpu_kernel([](const KernelRequest& r) {
      const TensorSpec& input = r.inputs[0];
      const size_t bytes = static_cast<size_t>(input.shape.elements()) * dtype_size(input.dtype);
      if (bytes == 0) return BoundKernel{};
      return BoundKernel::of(
          [bytes](const Arguments& a) { std::memcpy(a.outputs[0], a.inputs[0], bytes); });
    })},
    .examples = {{.inputs = {floats({1, -2})},
                  .attrs = {{"type", i32}},
                  .outputs = {ints({0x3f800000, -0x40000000})}},
                 {.inputs = {longs({1 + (int64_t{2} << 32)})},
                  .attrs = {{"type", i32}},
                  .outputs = {ints({1, 2}, {1, 2})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
