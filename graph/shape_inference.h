// What a shape function sees, and the shape functions that many ops share.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace leat {

class ShapeContext {
 public:
  virtual ~ShapeContext() = default;
  virtual NodeView node() const = 0;
  virtual int num_inputs() const = 0;
  virtual const Shape& input(int i) const = 0;
  virtual DType input_dtype(int i) const = 0;
  virtual std::string input_name(int i) const = 0;  // as the schema calls it: "a", "values[1]"
  // The elements of an input, if they are known now (a constant, or a complete shape); else null.
  virtual const Tensor* value(int i) const = 0;
  // Input i read as a shape; some extents may be known even if the whole is not: Pack({Size(x),
  // 10}) → [?,10].
  virtual Shape partial_value(int i) const;
  virtual int num_outputs() const = 0;
  virtual void set_output(int i, const Shape& shape) = 0;

  template <class T>
  const T& attr(std::string_view name) const {
    return node().attr<T>(name);
  }
  // The same, checked: a vector without extents below -1. [2, -1] → [2,?]; unknown if not even its
  // length is known.
  Shape shape_from_value(int i) const;
  // Fail with INVALID_ARGUMENT "input b must have rank 2, got [3]" if it cannot hold. Return the
  // refined shape.
  Shape with_rank(int input, int rank) const;
  Shape with_rank_at_least(int input, int rank) const;
};

namespace shapes {
ShapeFunction same_as(int input);           // every output has the shape of that input
ShapeFunction broadcast_binary();           // numpy broadcasting of inputs 0 and 1
ShapeFunction scalar();                     // every output is a scalar
ShapeFunction from_attr(std::string attr);  // the shape is an attribute
ShapeFunction none();                       // no outputs
// all inputs have one shape, so has the output (AddN, Apply*)
ShapeFunction same_for_all();
}  // namespace shapes

// Runs the op's shape function on the inferred shapes of the node's inputs and sets the shapes of
// its outputs, as Graph::add does. INVALID_ARGUMENT names op, node, line and the shapes of all
// inputs.
void infer_shapes(Node& node);

// The same for nodes from a client: as in TensorFlow, a node whose inputs cannot fit is harmless as
// long as no step runs it (in a branch that is never taken). Its outputs get the shapes for unknown
// inputs, and the error is returned; a step that runs the node meets it again. Throws if the inputs
// are not at fault.
std::optional<Error> infer_shapes_or_defer(Node& node);

// The same if no step has asked for the node yet: it is accepted even if the inputs are not at
// fault, and its output shapes are unknown. A step that needs it throws, in the pass `infer`.
// Throws for a node without inputs, such as a constant: others rely on its shape.
std::optional<Error> infer_shapes_or_accept(Node& node);

// The value of an output if it is known without running anything: Const, Shape of a complete shape,
// Size, Rank, and small integer arithmetic on these (Pack, Cast, Add, Sub, Mul, ConcatV2,
// StridedSlice, Gather, Prod, …). Else an invalid tensor.
Tensor constant_value(const Output& output);
// The same read as a shape, in which single extents may be unknown.
Shape constant_value_as_shape(const Output& output);

// Complete shapes of a node's outputs for given inputs; used when a tape is compiled. `values` are
// null where unknown. The same function that Graph::add runs, so inferred and produced shapes
// agree.
std::vector<Shape> infer_shapes(const NodeView& node, const OpDef& op,
                                std::span<const TensorSpec> inputs, int num_outputs);

}  // namespace leat
