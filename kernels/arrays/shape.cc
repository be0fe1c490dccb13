// Ops that return the shape of a tensor. Shapes are known when a tape is compiled, so their results
// are constants, except for variants, which never run in a tape.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/any_device.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

using Integers = std::vector<int64_t>;
using Tell = Integers (*)(const Shape& shape);

Integers extents(const Shape& shape) { return {shape.dims().begin(), shape.dims().end()}; }

DType out_type(const NodeView& node) {
  return node.has("out_type") ? node.attr<DType>("out_type") : DType::i32;
}

void check_fits(DType dtype, const Integers& list) {
  for (const int64_t value : list) {
    check(dtype == DType::i64 || value <= INT32_MAX, value,
          " does not fit int32: ask for out_type int64");
  }
}

void write(DType dtype, const Integers& list, void* to) {
  if (dtype == DType::i64) {
    std::copy(list.begin(), list.end(), static_cast<int64_t*>(to));
  } else {
    std::copy(list.begin(), list.end(), static_cast<int32_t*>(to));
  }
}

// An output for each input.
BoundKernel prepare(Tell tell, const KernelRequest& request) {
  const DType dtype = out_type(request.node);
  std::vector<Integers> lists;
  for (const TensorSpec& input : request.inputs) {
    lists.push_back(tell(input.shape));
    check_fits(dtype, lists.back());
  }
  return BoundKernel::of([dtype, lists = std::move(lists)](const Arguments& a) {
    for (int o = 0; o < static_cast<int>(lists.size()); ++o) write(dtype, lists[o], a.outputs[o]);
  });
}

// The output is a scalar, or a vector.
std::vector<Kernel> kernels(Tell tell, int rank) {
  std::vector<Kernel> out = host_kernels_for_any_device(
      [tell](const KernelRequest& request) { return prepare(tell, request); });
  const auto execute = [tell, rank](ExecuteContext& c) {
    const Integers list = tell(c.input(0).shape());
    const DType dtype = out_type(c.node());
    check_fits(dtype, list);
    Tensor told(dtype, rank == 0 ? Shape{} : Shape{std::ssize(list)});
    write(dtype, list, told.raw());
    c.set_output(0, std::move(told));
  };
  out.insert(out.begin(), {.types = {{"T", {DType::variant}}}, .execute = execute});
  return out;
}

std::vector<Kernel> shape_n_kernels() {
  constexpr int most = 1024;  // tensors whose extents stay on the host of a GPU
  std::vector<Kernel> out = host_kernels_for_any_device(
      [](const KernelRequest& request) { return prepare(extents, request); });
  for (int o = 1; o < most; ++o) out[1].host_outputs.push_back(o);
  return out;
}

void infer_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    c.set_output(i, Shape{c.input(i).has_rank() ? c.input(i).rank() : any});
  }
}

const Op shape_op{{
    .name = "Shape",
    .doc = "output = the extents of input.",
    .inputs = {"input: T"},
    .outputs = {"output: out_type"},
    .attrs = {"T: type", "out_type: {int32, int64} = int32"},
    .shape = infer_shape,
    .kernels = kernels(extents, 1),
    .examples = {{.inputs = {floats({1, 2}, {1, 2})}, .outputs = {ints({1, 2})}}},
    .tells_shape = true,
    .is_not_differentiable = true,
}};

const Op shape_n_op{{
    .name = "ShapeN",
    .doc = "output[i] = the extents of input[i].",
    .inputs = {"input: N * T"},
    .outputs = {"output: N * out_type"},
    .attrs = {"N: int >= 1", "T: type", "out_type: {int32, int64} = int32"},
    .shape = infer_shape,
    .kernels = shape_n_kernels(),
    .examples = {{.inputs = {floats({1, 2}, {1, 2}), Tensor::scalar(1.0f)},
                  .outputs = {ints({1, 2}), ints({0}, {})}}},
    .tells_shape = true,
    .is_not_differentiable = true,
}};

const Op size_op{{
    .name = "Size",
    .doc = "output = the number of elements of input.",
    .inputs = {"input: T"},
    .outputs = {"output: out_type"},
    .attrs = {"T: type", "out_type: {int32, int64} = int32"},
    .shape = shapes::scalar(),
    .kernels = kernels([](const Shape& shape) { return Integers{shape.elements()}; }, 0),
    .examples = {{.inputs = {floats({1, 2}, {1, 2})}, .outputs = {Tensor::scalar<int32_t>(2)}}},
    .tells_shape = true,
    .is_not_differentiable = true,
}};

const Op rank_op{{
    .name = "Rank",
    .doc = "output = the number of axes of input.",
    .inputs = {"input: T"},
    .outputs = {"output: int32"},
    .attrs = {"T: type"},
    .shape = shapes::scalar(),
    .kernels = kernels([](const Shape& shape) { return Integers{shape.rank()}; }, 0),
    .examples = {{.inputs = {floats({1, 2}, {1, 2})}, .outputs = {Tensor::scalar<int32_t>(2)}}},
    .tells_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
