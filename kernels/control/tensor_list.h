// TensorLists: values that hold numbered tensors of one dtype. While loops of control flow v2 use
// them to split their inputs, join their outputs and keep what their gradients need.
#pragma once

#include <span>
#include <vector>

#include "core/variant.h"
#include "kernels/moves/element_memory.h"

namespace leat {

class TensorListVariant final : public Variant {
 public:
  static constexpr std::string_view kind_name = "a TensorList";

  DType dtype = DType::invalid;
  Shape element_shape = Shape::unknown();  // every element must fit it
  int64_t most = -1;                       // of elements; -1: no limit
  std::vector<Tensor> elements;            // invalid: not set, reads as zeros

  std::string_view kind() const override { return kind_name; }
  std::unique_ptr<Variant> copy() const override {
    return std::make_unique<TensorListVariant>(*this);
  }

  // INVALID_ARGUMENT unless elements have this dtype.
  void check_dtype(DType wanted) const;
  // Merges `wanted` with this list's element shape, and then with the elements that are set.
  Shape merged_shape(const Shape& wanted) const;
  // The same, but only with these elements.
  Shape merged_shape(const Shape& wanted, std::span<const int32_t> numbers) const;
  // Element `i`; if it was not set, zeros in `memory` of the shape merged with `wanted`.
  Tensor element(size_t i, const Shape& wanted, const ElementMemory& memory) const;
  int depth() const override { return depth_; }
  // Call it for a new element. INVALID_ARGUMENT if its variants are nested too deeply.
  void note_depth_of(const Tensor& element);

 private:
  int depth_ = 1;
};

// The shape of elements from a kernel's input: a vector with -1 for unknown extents, or the scalar
// -1 for an unknown shape.
Shape element_shape_from(const Tensor& tensor);

}  // namespace leat
