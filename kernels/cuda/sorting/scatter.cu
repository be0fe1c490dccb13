// Scatters on the GPU: on variables (ScatterAdd, ScatterNdAdd and their like), on tensors
// (ScatterNd, TensorScatterAdd, InplaceAdd and their like), and UnsortedSegmentSum, Prod, Min, Max.
// As in TensorFlow, indices out of range are skipped: a kernel cannot report them.
#include "kernels/cuda/sorting/scatter.cuh"

#include <cstring>

#include "graph/op_def.h"
#include "kernels/math/segment_combiners.h"
#include "kernels/scatter_rules.h"
#include "kernels/sparse/dense_form.h"
#include "kernels/state/resource_form.h"

namespace leat {
namespace {

using cuda::Naming;
using cuda::ScatterPlan;
using cuda::Target;

using PlanOf = ScatterPlan (*)(const KernelRequest&);

// The kernels of a rule: elements of any type are replaced, of `Supported` combined.
template <class Rule, class Supported>
std::vector<Kernel> scatter_kernels(const char* type_attr, PlanOf plan_of) {
  Kernel kernel{.device = DeviceType::gpu, .types = {{type_attr, Supported::list()}}};
  kernel.prepare = [plan_of](const KernelRequest& r) {
    const ScatterPlan plan = plan_of(r);
    const DType dtype = r.inputs[plan.updates].dtype;
    const auto combine = visit_type(Supported{}, dtype, [](auto type) -> cuda::CombineKernel {
      return cuda::combine_kernel<Rule, typename decltype(type)::type>;
    });
    return cuda::bind_scatter(r, plan, combine);
  };
  return {kernel};
}

// Elements of any type are replaced as numbers of their size.
std::vector<Kernel> replace_kernels(const char* type_attr, PlanOf plan_of) {
  Kernel kernel{.device = DeviceType::gpu,
                .types = {{type_attr, NumberComplexAndBoolTypes::list()}}};
  kernel.prepare = [plan_of](const KernelRequest& r) {
    using scatter::Replace;
    const ScatterPlan plan = plan_of(r);
    const size_t size = dtype_size(r.inputs[plan.updates].dtype);
    const cuda::CombineKernel combine = size == 1    ? cuda::combine_kernel<Replace, uint8_t>
                                        : size == 2  ? cuda::combine_kernel<Replace, uint16_t>
                                        : size == 4  ? cuda::combine_kernel<Replace, uint32_t>
                                        : size == 16 ? cuda::combine_kernel<Replace, complex128>
                                                     : cuda::combine_kernel<Replace, uint64_t>;
    return cuda::bind_scatter(r, plan, combine);
  };
  return {kernel};
}

// ---- Rows of variables

ScatterPlan rows_plan(const KernelRequest& r) {
  check_variable_dtype(r, r.outputs.empty() ? "dtype" : "T");
  const Shape& ref = r.inputs[0].shape;
  const int64_t rows = ref[0];
  return {.count = r.inputs[1].shape.elements(),
          .slice = rows == 0 ? 0 : ref.elements() / rows,
          .slices = rows,
          .has_one_for_all = r.inputs[2].shape.rank() == 0};
}

// The same on references and on resources.
struct RowOps {
  OpKernels on_reference, on_resource;
  template <class Kernels>
  RowOps(const std::string& name, Kernels kernels)
      : on_reference(name, kernels("T")), on_resource("Resource" + name, kernels("dtype")) {}
};

template <class Rule>
std::vector<Kernel> row_kernels(const char* type_attr) {
  return scatter_kernels<Rule, NumberTypes>(type_attr, rows_plan);
}

const RowOps replace_rows{"ScatterUpdate",
                          [](const char* attr) { return replace_kernels(attr, rows_plan); }};
const RowOps add_rows{"ScatterAdd", row_kernels<scatter::Add>};
const RowOps subtract_rows{"ScatterSub", row_kernels<scatter::Subtract>};
const RowOps multiply_rows{"ScatterMul", row_kernels<scatter::Multiply>};
const RowOps divide_rows{"ScatterDiv", row_kernels<scatter::Divide>};
const RowOps least_rows{"ScatterMin", row_kernels<scatter::Least>};
const RowOps greatest_rows{"ScatterMax", row_kernels<scatter::Greatest>};

// ---- By index vectors

ScatterPlan vectors_plan(Target target, const Shape& indices, const Shape& whole) {
  const IndexVectors vectors(indices, whole);
  return {.target = target,
          .naming = Naming::vector,
          .vectors = vectors,
          .count = vectors.count,
          .slice = vectors.slice,
          .slices = vectors.slices()};
}

ScatterPlan variable_plan(const KernelRequest& r) {
  check_variable_dtype(r, "T");
  const Shape& ref = r.inputs[0].shape;
  check(ref.rank() > 0, "Output must be at least 1-D, got shape: ", ref);
  return vectors_plan(Target::variable, r.inputs[1].shape, ref);
}

ScatterPlan tensor_plan(const KernelRequest& r) {
  return vectors_plan(Target::copied, r.inputs[1].shape, r.inputs[0].shape);
}

ScatterPlan zeros_plan(const KernelRequest& r) {
  ScatterPlan plan = vectors_plan(Target::zeros, r.inputs[0].shape, r.outputs[0].shape);
  plan.indices = 0;
  plan.updates = 1;
  return plan;
}

struct VariableOps {
  OpKernels on_reference, on_resource;
  VariableOps(const std::string& name, const std::vector<Kernel>& kernels)
      : on_reference(name, kernels), on_resource("Resource" + name, kernels) {}
};

const VariableOps replace_slices{"ScatterNdUpdate", replace_kernels("T", variable_plan)};
const VariableOps add_slices{"ScatterNdAdd",
                             scatter_kernels<scatter::Add, NumberAndBoolTypes>("T", variable_plan)};
const VariableOps subtract_slices{
    "ScatterNdSub", scatter_kernels<scatter::Subtract, NumberAndBoolTypes>("T", variable_plan)};
const VariableOps least_slices{"ScatterNdMin",
                               scatter_kernels<scatter::Least, NumberTypes>("T", variable_plan)};
const VariableOps greatest_slices{
    "ScatterNdMax", scatter_kernels<scatter::Greatest, NumberTypes>("T", variable_plan)};

const OpKernels scatter_nd{"ScatterNd",
                           scatter_kernels<scatter::Add, NumberAndBoolTypes>("T", zeros_plan)};

const OpKernels replace_in_tensor{"TensorScatterUpdate", replace_kernels("T", tensor_plan)};
const OpKernels add_to_tensor{"TensorScatterAdd",
                              scatter_kernels<scatter::Add, NumberTypes>("T", tensor_plan)};
const OpKernels subtract_from_tensor{
    "TensorScatterSub", scatter_kernels<scatter::Subtract, NumberTypes>("T", tensor_plan)};
const OpKernels least_of_tensor{"TensorScatterMin",
                                scatter_kernels<scatter::Least, NumberTypes>("T", tensor_plan)};
const OpKernels greatest_of_tensor{
    "TensorScatterMax", scatter_kernels<scatter::Greatest, NumberTypes>("T", tensor_plan)};
const OpKernels add_to_other_tensor{
    "ScatterNdNonAliasingAdd", scatter_kernels<scatter::Add, NumberAndBoolTypes>("T", tensor_plan)};

// ---- Elements of sparse tensors. A place that occurs twice gets the last value.

ScatterPlan to_dense_plan(const KernelRequest& r) {
  const DenseForm form(r);
  ScatterPlan plan =
      vectors_plan(Target::repeated, Shape{form.count, form.depth}, r.outputs[0].shape);
  plan.indices = 0;
  plan.base = 3;
  plan.has_one_for_all = form.repeats;
  return plan;
}

ScatterPlan dense_add_plan(const KernelRequest& r) {
  check_dense_add(r);
  ScatterPlan plan = vectors_plan(Target::copied, r.inputs[0].shape, r.inputs[3].shape);
  plan.indices = 0;
  plan.updates = 1;
  plan.base = 3;
  return plan;
}

const OpKernels sparse_to_dense{"SparseToDense", replace_kernels("T", to_dense_plan)};
const OpKernels add_sparse_to_dense{
    "SparseTensorDenseAdd", scatter_kernels<scatter::Add, NumberTypes>("T", dense_add_plan)};

// ---- Rows of a tensor, in its memory if possible. As in TensorFlow, a number that is out of range
// counts modulo the number of rows.

ScatterPlan inplace_plan(const KernelRequest& r) {
  const Shape& x = r.inputs[0].shape;
  const int64_t rows = x[0], count = r.inputs[2].shape[0];
  check(rows > 0 || count == 0, "x has no rows to change, its shape is ", x);
  return {.target = Target::copied,
          .naming = Naming::row_modulo,
          .count = count,
          .slice = rows == 0 ? 0 : x.elements() / rows,
          .slices = rows};
}

const OpKernels inplace_update{"InplaceUpdate", replace_kernels("T", inplace_plan)};
const OpKernels inplace_add{"InplaceAdd",
                            scatter_kernels<scatter::Add, NumberTypes>("T", inplace_plan)};
const OpKernels inplace_subtract{
    "InplaceSub", scatter_kernels<scatter::Subtract, NumberTypes>("T", inplace_plan)};

// ---- Segments

template <class Combiner>
struct CombineSegment {
  template <class T>
  constexpr void operator()(T& to, const T& from) const {
    using C = ComputeType<T>;
    to = static_cast<T>(Combiner::combine(static_cast<C>(to), static_cast<C>(from)));
  }
};

template <class Combiner>
uint64_t empty_bits(DType dtype) {
  return visit_type(NumberTypes{}, dtype, [](auto type) {
    using T = typename decltype(type)::type;
    const T empty = Combiner::template empty<T>();
    uint64_t bits = 0;
    std::memcpy(&bits, &empty, sizeof empty);
    return bits;
  });
}

template <class Combiner>
ScatterPlan segment_plan(const KernelRequest& r) {
  const Shape& out = r.outputs[0].shape;
  const bool is_empty = r.inputs[0].shape.elements() == 0;
  return {.target = Target::filled,
          .count = is_empty ? 0 : r.inputs[1].shape.elements(),
          .slice = out[0] == 0 || is_empty
                       ? 0
                       : r.inputs[0].shape.elements() / r.inputs[1].shape.elements(),
          .slices = out[0],
          .updates = 0,
          .has_one_for_all = is_empty,
          .fill = empty_bits<Combiner>(r.outputs[0].dtype)};
}

template <class Combiner>
std::vector<Kernel> segment_kernels() {
  return scatter_kernels<CombineSegment<Combiner>, NumberTypes>("T", segment_plan<Combiner>);
}

const OpKernels segment_sum{"UnsortedSegmentSum", segment_kernels<segment::Sum>()};
const OpKernels segment_prod{"UnsortedSegmentProd", segment_kernels<segment::Prod>()};
const OpKernels segment_min{"UnsortedSegmentMin", segment_kernels<segment::UnsortedMin>()};
const OpKernels segment_max{"UnsortedSegmentMax", segment_kernels<segment::UnsortedMax>()};

}  // namespace
}  // namespace leat
