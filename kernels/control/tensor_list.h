// TensorLists: values that hold tensors of one dtype by number. While loops of control flow v2 take
// their inputs apart, put their outputs together, and keep what their gradients need, by them.
#pragma once

#include <span>
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

  std::string_view kind() const override { return kind_name; }
  std::unique_ptr<Variant> copy() const override { return std::make_unique<TensorList>(*this); }

  // INVALID_ARGUMENT unless elements have this dtype.
  void check_dtype(DType wanted) const;
  // What `wanted` and this list's element shape say together, and then what elements are there.
  Shape merged_shape(const Shape& wanted) const;
  // The same, asking these elements only.
  Shape merged_shape(const Shape& wanted, std::span<const int32_t> numbers) const;
  // Element `i`; zeros of `wanted`, merged, if it was not set.
  Tensor element(size_t i, const Shape& wanted) const;
  int depth() const override { return depth_; }
  // For an element that comes. INVALID_ARGUMENT if variants lie too deep in it.
  void note_depth_of(const Tensor& element);

 private:
  int depth_ = 1;
};

// What a kernel has as the shape of elements: a vector with -1 for unknown extents, or the scalar
// -1 for an unknown shape.
Shape element_shape_from(const Tensor& tensor);

}  // namespace leat
