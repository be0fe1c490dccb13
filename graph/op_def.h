// OpDef: the full definition of an op; and the registry of all ops.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attr.h"
#include "core/kernel.h"

namespace leat {

class ShapeContext;
class Gradient;
class Resource;

// "features: T" | "values: N * T" | "input: T" with "T: list(type)" | "ref: Ref(T)" |
// "shape: int32"
struct ArgDef {
  std::string name;
  DType dtype = DType::invalid;  // fixed type, or
  std::string type_attr;         // the attr that holds it, or
  std::string type_list_attr;    // the attr that holds the list of types
  std::string number_attr;       // the attr that holds how many there are
  bool is_ref = false;
  bool is_list() const { return !number_attr.empty() || !type_list_attr.empty(); }
};

// "T: {float, double}" | "T: realnumbertype" | "T: {numbertype, variant}" | "N: int >= 1" |
// "transpose_a: bool = false" | "Tidx: {int32, int64} = int32" | "padding: {'SAME', 'VALID'}" |
// "shape: shape = <unknown>" | "keys: list(string) = []"
struct AttrDef {
  std::string name;
  std::string kind;  // "type", "list(int)", … as AttrValue::kind()
  std::optional<AttrValue> default_value;
  std::vector<DType> allowed_types;          // empty: all
  std::vector<std::string> allowed_strings;  // empty: all
  std::optional<int64_t> minimum;            // of an int, or of a list's length
};

// The parsed signature.
struct OpSchema {
  std::vector<ArgDef> inputs, outputs;
  std::vector<AttrDef> attrs;
  const AttrDef* attr(std::string_view name) const;  // null if there is none
  // TensorFlow's notation: "MatMul(a: T, b: T) -> (product: T)".
  std::string to_string(std::string_view op) const;
};

// One call with its expected result: documentation, and a test on every device. Tensors are in the
// order of the inputs; for a resource, the variable's value. For an op without outputs that updates
// variables, the output is the first variable's new value.
struct Example {
  std::vector<Tensor> inputs;
  AttrMap attrs;
  std::vector<Tensor> outputs;
};

using ShapeFunction = std::function<void(ShapeContext&)>;
using GradientFunction = std::function<void(Gradient&)>;

// Names, attrs and defaults are TensorFlow's, so that Leat runs its graphs.
struct OpDef {
  std::string name;
  std::string doc;                  // the formula first
  std::vector<std::string> inputs;  // grammar above
  std::vector<std::string> outputs;
  std::vector<std::string> attrs;
  ShapeFunction shape;        // null: unknown, for ops with has_data_dependent_shape
  GradientFunction gradient;  // null: TensorFlow defines none, or see is_not_differentiable
  std::vector<Kernel> kernels;
  std::vector<Example> examples;
  // Inputs (flattened) whose elements a kernel needs in `prepare`: shapes, axes. -1 is the last,
  // after a list (ConcatV2).
  std::vector<int> value_inputs = {};
  bool is_stateful = false;  // never folded, merged or run twice
  bool is_commutative = false;
  bool allows_uninitialized = false;  // a ref or resource input may be uninitialised
  // Never changes the state behind its reference and resource inputs.
  bool only_reads_state = false;
  // Makes the resource, such as a queue, behind the output handle, once per task and (container,
  // shared_name or node name). Without such an output, kernels get it as resource(-1): a staging
  // area.
  std::function<std::shared_ptr<Resource>(const NodeView&)> make_resource = {};
  // Without a shared_name (for a table: nor use_node_name_sharing) it belongs to the session and
  // ends with it.
  bool is_private_resource = false;
  // The outputs follow from the shapes of the inputs; no elements are read: Shape, Rank. It is
  // computed where the input is, as soon as the shapes are known.
  bool tells_shape = false;
  bool has_data_dependent_shape = false;  // output shapes depend on elements: runs between segments
  // gradients stop here silently (Shape, ArgMax), as TensorFlow's NotDifferentiable
  bool is_not_differentiable = false;
  // TensorFlow's complex gradient is conj(dy/dx) dy. `gradient` returns dy/dx dy, and its caller
  // conjugates; if this is set, `gradient` returns the former.
  bool has_complex_gradient = false;
  // Its output is a variable: a reference to it, or a handle on it (variable_node.h).
  bool is_variable = false;

  OpSchema schema = {};  // filled by registration

  // Is input `i` of a node with `num_inputs` inputs one of value_inputs?
  bool is_value_input(int i, int num_inputs) const {
    for (int v : value_inputs)
      if (i == (v < 0 ? v + num_inputs : v)) return true;
    return false;
  }
};

// Registers an op for the life of the process: `const Op relu_op{{.name = "Relu", …}};` at
// namespace scope. Defining an op again with the same signature adds its kernels (the CUDA plug-in
// does that); another signature throws.
class Op {
 public:
  explicit Op(OpDef def);
};

// Adds kernels to a registered op: for plug-in kernels that are not just a second compilation of
// the op's file. NOT_FOUND if there is no such op.
class OpKernels {
 public:
  OpKernels(std::string_view op, std::vector<Kernel> kernels);
};

// While it lives, what Op and OpKernels register on this thread is counted, and they keep their
// first error here instead of throwing it: static objects must not throw while their library is
// loaded.
class Registrations {
 public:
  Registrations();
  ~Registrations();
  Registrations(const Registrations&) = delete;

  int count() const { return count_; }
  const Status& first_error() const { return first_error_; }  // OK if there is none
  void note(const Status& outcome);

 private:
  Registrations* const outer_;
  int count_ = 0;
  Status first_error_;
};

const OpDef* find_op(std::string_view name);   // null if unknown
const OpDef& op_named(std::string_view name);  // NOT_FOUND "Op type not registered 'X'"
std::vector<const OpDef*> all_ops();           // by name

// The kernel for these attrs on this kind of device; null if there is none.
const Kernel* find_kernel(const OpDef& op, const AttrMap& attrs, DeviceType device);
// "CPU: T in {float, double}; GPU: T in {float}": what exists, for error messages.
std::string describe_kernels(const OpDef& op);

}  // namespace leat
