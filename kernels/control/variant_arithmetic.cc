#include "kernels/control/variant_arithmetic.h"

#include <algorithm>

#include "graph/op_def.h"
#include "kernels/control/add_elements.h"
#include "kernels/control/optional.h"
#include "kernels/control/tensor_list.h"
#include "kernels/moves/element_memory.h"
#include "kernels/sparse/ragged_variant.h"

namespace leat {
namespace {

// a + b by the GPU's own kernel.
Tensor sum_on_device(const Tensor& a, const Tensor& b) {
  Device& device = *a.device();
  const AttrMap attrs = {{"T", a.dtype()}};
  const Kernel* const kernel = find_kernel(op_named("AddV2"), attrs, device.type());
  check(kernel != nullptr && kernel->prepare,
        "cannot add the tensors in two variants: ", device.name(), " has no kernel of AddV2 for ",
        a.dtype());
  Tensor out = ElementMemory(a).make(a.dtype(), a.shape());
  const std::vector<TensorSpec> inputs(2, {a.dtype(), a.shape()}), outputs = {inputs[0]};
  std::shared_ptr<void> no_state;
  const BoundKernel bound =
      kernel->prepare({{"sum", "AddV2", attrs}, inputs, outputs, device, no_state});
  check_internal(bound.workspace_bytes == 0, "AddV2 wants a workspace");
  void* const from[] = {const_cast<void*>(a.raw()), const_cast<void*>(b.raw())};
  void* const to[] = {out.raw()};
  if (bound.function != nullptr)
    bound.function(bound.bound.get(), {from, to, nullptr, &device.stream()});
  return out;
}

// a + b, of one dtype and shape.
Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::variant) return sum_of_variants(a, b);
  check(a.dtype() == b.dtype() && a.shape() == b.shape(),
        "cannot add the tensors in two variants: ", a.dtype(), a.shape(), " and ", b.dtype(),
        b.shape(), " differ");
  const auto numbers = NumberAndComplexTypes::list();
  check(std::find(numbers.begin(), numbers.end(), a.dtype()) != numbers.end(),
        "cannot add the tensors in two variants: ", a.dtype(), " is not a number type");
  if (a.device() != nullptr) return sum_on_device(a, b);
  Tensor out = a.clone();
  add_to(out, b);
  return out;
}

Tensor zeros_like(const Tensor& tensor) {
  return tensor.dtype() == DType::variant
             ? zeros_like_variant(tensor)
             : ElementMemory(tensor).zeros(tensor.dtype(), tensor.shape());
}

Tensor sum_of_lists(const TensorListVariant& a, const TensorListVariant& b) {
  check(a.dtype == b.dtype, "Trying to add two lists of tensors of different dtypes. One is ",
        a.dtype, " and the other is ", b.dtype);
  check(a.elements.size() == b.elements.size(),
        "Trying to add two lists of tensors with different lengths. One is ", a.elements.size(),
        " and the other is ", b.elements.size());
  check(a.element_shape.is_compatible(b.element_shape),
        "Trying to add two lists of tensors with incompatible element shapes. One is ",
        a.element_shape, " and the other is ", b.element_shape);
  auto out = std::make_unique<TensorListVariant>(a);
  out->element_shape = a.element_shape.merged(b.element_shape);
  for (size_t i = 0; i < out->elements.size(); ++i) {
    const Tensor &x = a.elements[i], &y = b.elements[i];
    if (!x.is_valid()) {
      out->elements[i] = y;
    } else if (y.is_valid()) {
      out->elements[i] = sum_of(x, y);
    }
  }
  return variant_tensor(std::move(out));
}

Tensor sum_of_optionals(const OptionalTensors& a, const OptionalTensors& b) {
  check(a.values.has_value() == b.values.has_value(),
        "Cannot add optionals because one has a value and the other doesn't.");
  auto out = std::make_unique<OptionalTensors>(a);
  if (a.values) {
    check(a.values->size() == b.values->size(),
          "Cannot add optionals because they have different numbers of components.");
    for (size_t i = 0; i < a.values->size(); ++i)
      (*out->values)[i] = sum_of((*a.values)[i], (*b.values)[i]);
  }
  return variant_tensor(std::move(out));
}

Tensor sum_of_ragged(const RaggedVariant& a, const RaggedVariant& b) {
  check(a.ragged_rank() == b.ragged_rank(),
        "Can't add RaggedTensorVariants with different ranks: ", a.ragged_rank(), " and ",
        b.ragged_rank());
  for (int64_t level = 0; level < a.ragged_rank(); ++level) {
    const Tensor &x = a.splits[level], &y = b.splits[level];
    check(x.dtype() == y.dtype() && to_int64s(x) == to_int64s(y),
          "Can't add RaggedTensorVariants with different row_splits: those of level ", level,
          " differ");
  }
  return variant_tensor(std::make_unique<RaggedVariant>(a.splits, sum_of(a.values, b.values)));
}

}  // namespace

Tensor sum_of_variants(const Tensor& a, const Tensor& b) {
  const Variant &x = variant_of(a), &y = variant_of(b);
  if (dynamic_cast<const TensorListVariant*>(&x) != nullptr)
    return sum_of_lists(variant_as<TensorListVariant>(a), variant_as<TensorListVariant>(b));
  if (dynamic_cast<const OptionalTensors*>(&x) != nullptr)
    return sum_of_optionals(variant_as<OptionalTensors>(a), variant_as<OptionalTensors>(b));
  if (dynamic_cast<const RaggedVariant*>(&x) != nullptr)
    return sum_of_ragged(variant_as<RaggedVariant>(a), variant_as<RaggedVariant>(b));
  fail(Code::invalid_argument, "cannot add ", x.kind(), " and ", y.kind());
}

Tensor zeros_like_variant(const Tensor& tensor) {
  const Variant& value = variant_of(tensor);
  if (const auto* list = dynamic_cast<const TensorListVariant*>(&value)) {
    auto out = std::make_unique<TensorListVariant>(*list);
    for (Tensor& element : out->elements) {
      if (element.is_valid()) element = zeros_like(element);
    }
    return variant_tensor(std::move(out));
  }
  if (const auto* optional = dynamic_cast<const OptionalTensors*>(&value)) {
    auto out = std::make_unique<OptionalTensors>(*optional);
    if (out->values) {
      for (Tensor& element : *out->values) element = zeros_like(element);
    }
    return variant_tensor(std::move(out));
  }
  if (const auto* ragged = dynamic_cast<const RaggedVariant*>(&value))
    return variant_tensor(
        std::make_unique<RaggedVariant>(ragged->splits, zeros_like(ragged->values)));
  fail(Code::invalid_argument, "cannot make zeros like ", value.kind());
}

}  // namespace leat
