// Lists of tensors, as values of the graph.
#pragma once

#include <utility>

#include "graph/ops.h"

namespace leat {

struct TensorListOptions {
  Operand size = 0;  // how many elements it begins with: zeros, for set()
};

// Elements of one dtype and shape (extents may be `any`), which a loop collects: TensorFlow's
// TensorArray. A list is a value: what changes it returns another list, and a loop carries it like
// any other variable, as an Output. with() makes a list of such an Output again:
//
//   const TensorList rows(g, f32, {2});
//   auto [k, filled] = while_loop([](Output k, Output) { return k < 4; },
//                                 [&](Output k, Output list) {
//                                   const Output row = full(g, {2}, cast(k, f32));
//                                   return std::tuple<Output, Output>{
//                                       k + 1, rows.with(list).push_back(row)};
//                                 },
//                                 0, rows);
//   Output all_rows = rows.with(filled).stack();  // [4, 2]
//
// gradients() goes through. Elements are moved, not copied, where nothing else uses the old list.
class TensorList : public Output {
 public:
  TensorList(Graph& graph, DType dtype, const Shape& shape, const TensorListOptions& options = {},
             Location at = here());
  // The rows of x.
  static TensorList of(Output x, Location at = here());
  // That list, whose elements have this one's dtype and shape. INVALID_ARGUMENT if it is none.
  TensorList with(Output list, Location at = here()) const;

  // INVALID_ARGUMENT, also in the step, if the element does not fit.
  TensorList push_back(Output element, Location at = here()) const;
  // The list without its last element, and that element.
  std::pair<TensorList, Output> pop_back(Location at = here()) const;
  // Element i, or the list with another element i. INVALID_ARGUMENT in the step if there is none.
  Output get(const Operand& i, Location at = here()) const;
  TensorList set(const Operand& i, Output element, Location at = here()) const;
  Output size(Location at = here()) const;  // int32
  // All elements along a new first axis.
  Output stack(Location at = here()) const;

  DType element_dtype() const { return element_dtype_; }
  const Shape& element_shape() const { return element_shape_; }

 private:
  TensorList(Output list, DType dtype, const Shape& shape)
      : Output(list), element_dtype_(dtype), element_shape_(shape) {}
  void check_element(std::string_view what, Output element, Location at) const;

  DType element_dtype_;
  Shape element_shape_;
};

}  // namespace leat
