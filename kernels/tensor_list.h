// TensorLists: values that hold tensors of one dtype by number. While loops of control flow v2 take
// their inputs apart, put their outputs together, and keep what their gradients need, by them.
#pragma once

#include <vector>

#include "core/variant.h"

namespace leat {

class TensorList final : public Variant {
 public:
  static constexpr std::string_view kind_name = "a TensorList";

  DType dtype = DType::invalid;
  Shape element_shape = Shape::unknown();  // what each element's fits
  int64_t most = -1;                       // elements; -1: no limit
  std::vector<Tensor> elements;            // an invalid one was not set: zeros
  int depth = 1;                           // of lists in lists

  std::string_view kind() const override { return kind_name; }
  std::unique_ptr<Variant> copy() const override { return std::make_unique<TensorList>(*this); }

  // INVALID_ARGUMENT unless elements have this dtype.
  void check_dtype(DType wanted) const;
  // What `wanted` and this list's element shape say together, and then what elements are there.
  Shape merged_shape(const Shape& wanted) const;
  // Element `i`; zeros of `wanted`, merged, if it was not set.
  Tensor element(size_t i, const Shape& wanted) const;
  // For an element: INVALID_ARGUMENT if it is a list in too many lists.
  void note_depth_of(const Tensor& element);
};

// What a kernel has as the shape of elements: a vector with -1 for unknown extents, or the scalar
// -1 for an unknown shape.
Shape element_shape_from(const Tensor& tensor);

// Sums and zeros of variants, element by element: gradients of what passes through loops and
// branches.
Tensor sum_of_variants(const Tensor& a, const Tensor& b);
Tensor zeros_like_variant(const Tensor& tensor);

}  // namespace leat
