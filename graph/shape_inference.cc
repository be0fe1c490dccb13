// Runs shape functions: on nodes of a graph, and on complete specs when a tape is compiled.
#include "graph/shape_inference.h"

#include <algorithm>
#include <optional>

#include "graph/signature.h"

namespace leat {
namespace {

// "input x"; "the input" if it is called so.
struct Title {
  const ShapeContext& context;
  int input;
  friend std::ostream& operator<<(std::ostream& out, const Title& title) {
    const std::string name = title.context.input_name(title.input);
    return name == "input" ? out << "the input" : out << "input " << name;
  }
};

// What both contexts share: the op, its attributes, the shapes of the outputs.
class OpContext : public ShapeContext {
 public:
  OpContext(const OpDef& op, const NodeView& node, int num_outputs)
      : op_(op), node_(node), outputs_(num_outputs, Shape::unknown()) {}
  NodeView node() const override { return node_; }
  std::string input_name(int i) const override { return leat::input_name(op_, node_.attrs, i); }
  int num_outputs() const override { return static_cast<int>(outputs_.size()); }
  void set_output(int i, const Shape& shape) override {
    check_internal(i >= 0 && i < num_outputs(), "shape function of ", op_.name, " sets output ", i,
                   " of ", outputs_.size());
    outputs_[i] = shape;
  }
  std::vector<Shape>& outputs() { return outputs_; }

 private:
  const OpDef& op_;
  NodeView node_;
  std::vector<Shape> outputs_;
};

class GraphContext : public OpContext {
 public:
  explicit GraphContext(Node& node)
      : OpContext(*node.op, node.view(), node.num_outputs()), inputs_(node.inputs) {}
  int num_inputs() const override { return static_cast<int>(inputs_.size()); }
  const Shape& input(int i) const override { return inputs_.at(i).shape(); }
  DType input_dtype(int i) const override { return inputs_.at(i).dtype(); }
  const Tensor* value(int i) const override {
    if (values_.empty()) values_.resize(inputs_.size());
    std::optional<Tensor>& known = values_.at(i);
    if (!known) known = constant_value(inputs_[i]);
    return known->is_valid() ? &*known : nullptr;
  }
  Shape partial_value(int i) const override { return constant_value_as_shape(inputs_.at(i)); }

 private:
  const std::vector<Output>& inputs_;
  mutable std::vector<std::optional<Tensor>> values_;  // looked up when asked for
};

class SpecContext : public OpContext {
 public:
  SpecContext(const OpDef& op, const NodeView& node, std::span<const TensorSpec> inputs,
              int num_outputs)
      : OpContext(op, node, num_outputs), inputs_(inputs) {}
  int num_inputs() const override { return static_cast<int>(inputs_.size()); }
  const Shape& input(int i) const override { return inputs_[i].shape; }
  DType input_dtype(int i) const override { return inputs_[i].dtype; }
  const Tensor* value(int i) const override { return inputs_[i].value; }

 private:
  std::span<const TensorSpec> inputs_;
};

// Written only where they are others: copies of the node share what its outputs are.
void set_shapes(Node& node, const std::vector<Shape>& shapes) {
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (!(node.outputs[i].shape == shapes[i])) node.outputs.write()[i].shape = shapes[i];
  }
}

}  // namespace

Shape ShapeContext::partial_value(int i) const {
  const Tensor* elements = value(i);
  if (elements == nullptr) {
    const Shape& shape = input(i);
    const bool has_length = shape.rank() == 1 && shape[0] >= 0 && shape[0] <= Shape::max_rank;
    return has_length ? Shape::of_rank(static_cast<int>(shape[0])) : Shape::unknown();
  }
  Shape out;
  for (const int64_t extent : to_int64s(*elements)) out.push_back(std::max<int64_t>(extent, any));
  return out;
}

Shape ShapeContext::shape_from_value(int i) const {
  with_rank(i, 1);
  if (const Tensor* elements = value(i)) {
    for (const int64_t extent : to_int64s(*elements)) {
      check(extent >= -1, Title{*this, i}, " is a shape, but it contains ", extent);
    }
  }
  return partial_value(i);
}

Shape ShapeContext::with_rank(int i, int rank) const {
  const Shape& shape = input(i);
  if (!shape.has_rank()) return Shape::of_rank(rank);
  check(shape.rank() == rank, Title{*this, i}, " must have rank ", rank, ", got ", shape);
  return shape;
}

Shape ShapeContext::with_rank_at_least(int i, int rank) const {
  const Shape& shape = input(i);
  check(!shape.has_rank() || shape.rank() >= rank, Title{*this, i}, " must have at least rank ",
        rank, ", got ", shape);
  return shape;
}

void infer_shapes(Node& node) {
  if (!node.op->shape) return;
  GraphContext context(node);
  try {
    node.op->shape(context);
  } catch (const Error& error) {
    fail(error.code(), describe(node), ": ", error.message(),
         node.inputs.empty() ? "" : "; inputs: ", describe_inputs(node));
  }
  set_shapes(node, context.outputs());
}

std::optional<Error> infer_shapes_or_defer(Node& node) {
  try {
    infer_shapes(node);
    return {};
  } catch (const Error& error) {
    std::vector<TensorSpec> unknown;
    for (const Output& input : node.inputs) unknown.push_back({input.dtype(), Shape::unknown()});
    std::vector<Shape> shapes;
    try {
      shapes = infer_shapes(node.view(), *node.op, unknown, node.num_outputs());
    } catch (const Error&) {
      throw error;
    }
    set_shapes(node, shapes);
    return error;
  }
}

std::optional<Error> infer_shapes_or_accept(Node& node) {
  try {
    return infer_shapes_or_defer(node);
  } catch (const Error& error) {
    if (node.inputs.empty()) throw;
    set_shapes(node, std::vector<Shape>(node.num_outputs(), Shape::unknown()));
    return error;
  }
}

std::vector<Shape> infer_shapes(const NodeView& node, const OpDef& op,
                                std::span<const TensorSpec> inputs, int num_outputs) {
  SpecContext context(op, node, inputs, num_outputs);
  if (!op.shape) return std::move(context.outputs());
  try {
    op.shape(context);
  } catch (const Error& error) {
    std::string described;
    for (size_t i = 0; i < inputs.size(); ++i) {
      described +=
          concat(i == 0 ? "; inputs: " : ", ", input_name(op, node.attrs, static_cast<int>(i)),
                 ": ", inputs[i].dtype, inputs[i].shape);
    }
    fail(error.code(), op.name, " node '", node.name, "': ", error.message(), described);
  }
  return std::move(context.outputs());
}

namespace shapes {
namespace {

void set_all(ShapeContext& context, const Shape& shape) {
  for (int i = 0; i < context.num_outputs(); ++i) context.set_output(i, shape);
}

}  // namespace

ShapeFunction same_as(int input) {
  return [input](ShapeContext& context) { set_all(context, context.input(input)); };
}

ShapeFunction broadcast_binary() {
  return [](ShapeContext& context) {
    set_all(context, broadcast(context.input(0), context.input(1)));
  };
}

ShapeFunction scalar() {
  return [](ShapeContext& context) { set_all(context, {}); };
}

ShapeFunction from_attr(std::string attr) {
  return [attr = std::move(attr)](ShapeContext& context) {
    set_all(context, context.attr<Shape>(attr));
  };
}

ShapeFunction none() {
  return [](ShapeContext&) {};
}

ShapeFunction same_for_all() {
  return [](ShapeContext& context) {
    Shape shape = Shape::unknown();
    for (int i = 0; i < context.num_inputs(); ++i) {
      if (!shape.is_compatible(context.input(i))) {
        fail(Code::invalid_argument, "all inputs must have the same shape, but ",
             context.input_name(i), " has ", context.input(i), " and those before it ", shape);
      }
      shape = shape.merged(context.input(i));
    }
    set_all(context, shape);
  };
}

}  // namespace shapes

}  // namespace leat
