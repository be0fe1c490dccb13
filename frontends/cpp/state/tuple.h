// The elements of queues and staging areas.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/ops.h"

namespace leat {

// A value for each component of an element: {image, label}, {step, 1}, or what another dequeue()
// gave. A number becomes a constant of the component's dtype.
class Tuple {
 public:
  Tuple(std::initializer_list<Operand> values) : values_(values) {}
  Tuple(const std::vector<Output>& values) : values_(values.begin(), values.end()) {}  // NOLINT

  const std::vector<Operand>& values() const { return values_; }

 private:
  std::vector<Operand> values_;
};

// The components of elements, for the classes of this folder.
struct TupleSpec {
  std::vector<DType> dtypes;
  std::vector<Shape> shapes;  // none: any

  // INVALID_ARGUMENT unless there are dtypes, and as many shapes or none. `what` names the object,
  // with the user's line.
  void check_valid(std::string_view what) const;
  // The values, checked against dtypes and shapes. `are_many`: each has a first axis with one
  // position for each element.
  std::vector<Output> inputs(Graph& graph, const Tuple& tuple, bool are_many,
                             std::string_view what) const;
  // The outputs of a node that returns an element, or with `elements` (which may be `any`) a batch
  // of that size, with their shapes.
  std::vector<Output> outputs(Node& node, std::optional<int64_t> elements = {}) const;
};

// `x` with that shape, by an EnsureShape, since an op that reads state cannot know it; x itself if
// nothing is known.
Output with_shape(Output x, const Shape& shape, Location at);

}  // namespace leat
