// Ops that tell the shape of a tensor. Shapes are known when a tape is compiled, so their results
// are constants.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/any_device.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// Writes integers known in `prepare`, as int32 or int64, one list per output.
BoundKernel constants(DType dtype, std::vector<std::vector<int64_t>> lists) {
  for (const std::vector<int64_t>& list : lists) {
    for (int64_t value : list) {
      check(dtype == DType::i64 || value <= INT32_MAX, value,
            " does not fit int32: ask for out_type int64");
    }
  }
  return BoundKernel::of([dtype, lists = std::move(lists)](const Arguments& a) {
    for (int o = 0; o < static_cast<int>(lists.size()); ++o) {
      if (dtype == DType::i64) {
        std::copy(lists[o].begin(), lists[o].end(), a.output<int64_t>(o));
      } else {
        std::copy(lists[o].begin(), lists[o].end(), a.output<int32_t>(o));
      }
    }
  });
}

BoundKernel prepare_shape(const KernelRequest& request) {
  std::vector<std::vector<int64_t>> lists;
  for (const TensorSpec& input : request.inputs) {
    lists.emplace_back(input.shape.dims().begin(), input.shape.dims().end());
  }
  return constants(request.attr<DType>("out_type"), std::move(lists));
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
    .kernels = host_kernels_for_any_device(prepare_shape),
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
    .kernels = {cpu_kernel(prepare_shape)},
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
    .kernels = host_kernels_for_any_device([](const KernelRequest& r) {
      return constants(r.attr<DType>("out_type"), {{r.inputs[0].shape.elements()}});
    }),
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
    .kernels = host_kernels_for_any_device(
        [](const KernelRequest& r) { return constants(DType::i32, {{r.inputs[0].shape.rank()}}); }),
    .examples = {{.inputs = {floats({1, 2}, {1, 2})}, .outputs = {Tensor::scalar<int32_t>(2)}}},
    .tells_shape = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
