#include "kernels/tensor_list.h"

#include <algorithm>

#include "kernels/add_elements.h"
#include "kernels/copy_elements.h"
#include "kernels/optional.h"

namespace leat {
namespace {

constexpr int deepest = 100;  // lists in lists: each level is a call when they die

// a + b, of one dtype and shape.
Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (a.dtype() == DType::variant) return sum_of_variants(a, b);
  check(a.dtype() == b.dtype() && a.shape() == b.shape(),
        "tensors in variants are added: ", a.dtype(), a.shape(), " and ", b.dtype(), b.shape(),
        " differ");
  const auto numbers = NumberTypes::list();
  check(std::find(numbers.begin(), numbers.end(), a.dtype()) != numbers.end(),
        "tensors in variants are added: they are ", a.dtype(), ", which are no numbers");
  Tensor out = a.clone();
  add_to(out, b);
  return out;
}

Tensor zeros_like(const Tensor& tensor) {
  return tensor.dtype() == DType::variant ? zeros_like_variant(tensor)
                                          : zeros(tensor.dtype(), tensor.shape());
}

Tensor sum_of_lists(const TensorList& a, const TensorList& b) {
  check(a.dtype == b.dtype, "Trying to add two lists of tensors of different dtypes. One is ",
        a.dtype, " and the other is ", b.dtype);
  check(a.elements.size() == b.elements.size(),
        "Trying to add two lists of tensors with different lengths. One is ", a.elements.size(),
        " and the other is ", b.elements.size());
  check(a.element_shape.is_compatible(b.element_shape),
        "Trying to add two lists of tensors with incompatible element shapes. One is ",
        a.element_shape, " and the other is ", b.element_shape);
  auto out = std::make_unique<TensorList>(a);
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

}  // namespace

void TensorList::check_dtype(DType wanted) const {
  check(dtype == wanted, "Invalid data types; op elements ", wanted, " but list elements ", dtype);
}

Shape TensorList::merged_shape(const Shape& wanted) const {
  check(wanted.is_compatible(element_shape), "Incompatible shapes during merge: ", wanted, " vs. ",
        element_shape);
  Shape out = wanted.merged(element_shape);
  if (out.is_complete()) return out;
  for (const Tensor& element : elements) {
    if (!element.is_valid()) continue;
    check(out.is_compatible(element.shape()), "Incompatible shapes during merge: ", out, " vs. ",
          element.shape());
    out = out.merged(element.shape());
  }
  return out;
}

Tensor TensorList::element(size_t i, const Shape& wanted) const {
  if (elements[i].is_valid()) {
    check(wanted.is_compatible(elements[i].shape()), "Incompatible shapes: element ", i,
          " of the list has shape ", elements[i].shape(), ", not ", wanted);
    return elements[i];
  }
  const Shape shape = merged_shape(wanted);
  check(shape.is_complete(),
        "Trying to read an uninitialized tensor but element_shape is not fully defined: ", shape,
        " and no list element is set.");
  return zeros(dtype, shape);
}

void TensorList::note_depth_of(const Tensor& element) {
  if (element.dtype() != DType::variant) return;
  if (const auto* list = dynamic_cast<const TensorList*>(&variant_of(element)))
    depth = std::max(depth, list->depth + 1);
  check(depth <= deepest, "lists in lists: they are nested deeper than ", deepest);
}

Shape element_shape_from(const Tensor& tensor) {
  const std::vector<int64_t> extents = to_int64s(tensor);
  if (tensor.shape().rank() == 0) {
    check(extents[0] == -1,
          "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
    return Shape::unknown();
  }
  check(tensor.shape().rank() == 1, "an element shape must be a vector, not of shape ",
        tensor.shape());
  Shape out{};
  for (const int64_t extent : extents) {
    check(extent >= -1, "extent ", extent, " of an element shape is less than -1");
    out.push_back(extent == -1 ? any : extent);
  }
  return out;
}

Tensor sum_of_variants(const Tensor& a, const Tensor& b) {
  const Variant &x = variant_of(a), &y = variant_of(b);
  if (dynamic_cast<const TensorList*>(&x) != nullptr)
    return sum_of_lists(variant_as<TensorList>(a), variant_as<TensorList>(b));
  if (dynamic_cast<const OptionalTensors*>(&x) != nullptr)
    return sum_of_optionals(variant_as<OptionalTensors>(a), variant_as<OptionalTensors>(b));
  fail(Code::invalid_argument, x.kind(), " and ", y.kind(), " cannot be added");
}

Tensor zeros_like_variant(const Tensor& tensor) {
  const Variant& value = variant_of(tensor);
  if (const auto* list = dynamic_cast<const TensorList*>(&value)) {
    auto out = std::make_unique<TensorList>(*list);
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
  fail(Code::invalid_argument, value.kind(), " has no zeros");
}

}  // namespace leat
