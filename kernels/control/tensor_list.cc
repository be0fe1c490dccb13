#include "kernels/control/tensor_list.h"

#include <numeric>

#include <algorithm>

#include "kernels/moves/copy_elements.h"

namespace leat {
void TensorListVariant::check_dtype(DType wanted) const {
  check(dtype == wanted, "Invalid data types; op elements ", wanted, " but list elements ", dtype);
}

Shape TensorListVariant::merged_shape(const Shape& wanted) const {
  std::vector<int32_t> all(elements.size());
  std::iota(all.begin(), all.end(), 0);
  return merged_shape(wanted, all);
}

Shape TensorListVariant::merged_shape(const Shape& wanted, std::span<const int32_t> numbers) const {
  check(wanted.is_compatible(element_shape), "Incompatible shapes during merge: ", wanted, " vs. ",
        element_shape);
  Shape out = wanted.merged(element_shape);
  if (out.is_complete()) return out;
  for (const int32_t number : numbers) {
    const Tensor& element = elements[number];
    if (!element.is_valid()) continue;
    check(out.is_compatible(element.shape()), "Incompatible shapes during merge: ", out, " vs. ",
          element.shape());
    out = out.merged(element.shape());
  }
  return out;
}

Tensor TensorListVariant::element(size_t i, const Shape& wanted,
                                  const ElementMemory& memory) const {
  if (elements[i].is_valid()) {
    check(wanted.is_compatible(elements[i].shape()), "Incompatible shapes: element ", i,
          " of the list has shape ", elements[i].shape(), ", not ", wanted);
    return elements[i];
  }
  const Shape shape = merged_shape(wanted);
  check(shape.is_complete(),
        "Trying to read an uninitialized tensor but element_shape is not fully defined: ", shape,
        " and no list element is set.");
  return memory.zeros(dtype, shape);
}

void TensorListVariant::note_depth_of(const Tensor& element) {
  depth_ = std::max(depth_, depth_around({&element, 1}));
}

Shape element_shape_from(const Tensor& tensor) {
  const std::vector<int64_t> extents = to_int64s(tensor);
  if (tensor.shape().rank() == 0) {
    check(extents[0] == -1,
          "The only valid scalar shape tensor is the fully unknown shape specified as -1.");
    return Shape::unknown();
  }
  check(tensor.shape().rank() == 1, "an element shape must be a vector, got shape ",
        tensor.shape());
  Shape out{};
  for (const int64_t extent : extents) {
    check(extent >= -1, "extent ", extent, " of an element shape is less than -1");
    out.push_back(extent == -1 ? any : extent);
  }
  return out;
}

}  // namespace leat
