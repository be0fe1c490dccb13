// CountUpTo: counts the epochs of queue-based input pipelines.
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

template <class T>
BoundKernel prepare_count(TypeTag<T>, const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  check(shape.elements() == 1, request.node.op, " requires a scalar, got shape ", shape);
  return BoundKernel::of([limit = request.attr<int64_t>("limit")](const Arguments& a) {
    T& count = *a.ref<T>(0);
    if (count >= limit) fail(Code::out_of_range, "Reached limit of ", limit);
    *a.output<T>() = count++;
  });
}

OpDef count_up_to(const char* name, const char* input, std::vector<std::string> attrs) {
  return {.name = name,
          .doc =
              "output = the value of the variable before it is increased by 1; OUT_OF_RANGE once "
              "it has reached limit.",
          .inputs = {input},
          .outputs = {"output: T"},
          .attrs = std::move(attrs),
          .shape = [](ShapeContext& c) { c.set_output(0, c.with_rank(0, 0)); },
          .kernels = {cpu_kernel("T", Types<int32_t, int64_t>{},
                                 []<class T>(TypeTag<T> type, const KernelRequest& request) {
                                   return prepare_count(type, request);
                                 })},
          .examples = {{.inputs = {Tensor::scalar<int32_t>(3)},
                        .attrs = {{"limit", 5}, {"T", i32}},
                        .outputs = {Tensor::scalar<int32_t>(3)}}},
          .is_stateful = true,
          .is_not_differentiable = true};
}

const Op count_op{count_up_to("CountUpTo", "ref: Ref(T)", {"limit: int", "T: {int32, int64}"})};
const Op resource_count_op{
    count_up_to("ResourceCountUpTo", "resource: resource", {"limit: int", "T: {int32, int64}"})};

}  // namespace
}  // namespace leat
