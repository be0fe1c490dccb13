// Elements that only move, or change their dtype and back: nodes that leave them as they are, and
// nodes that undo each other. Errors are kept: a node goes only if its shapes, or its constants,
// show that it cannot fail.
#include <algorithm>
#include <array>
#include <optional>

#include "graph/passes/simplify/rewriting.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

bool has_known_shape(const Output& x, const Shape& shape) {
  return x.shape().is_complete() && x.shape() == shape;
}

// A constant vector (or scalar) of integers; none if the input is no constant.
std::optional<std::vector<int64_t>> integers(const Output& input) {
  if (!input.node->is("Const")) return {};
  const auto& value = input.node->attr<Tensor>("value");
  if (value.dtype() != DType::i32 && value.dtype() != DType::i64 && value.dtype() != DType::i16)
    return {};
  return to_int64s(value);
}

Tensor integers_like(const Output& old, const std::vector<int64_t>& values) {
  if (old.dtype() == DType::i64) return Tensor::of<int64_t>(values);
  return Tensor::of<int32_t>(std::vector<int32_t>(values.begin(), values.end()));
}

// ---- Of one node ----

bool has_constant_settings(const Node& node) {
  return std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                     [](const Output& input) { return input.node->is("Const"); });
}

// Slice, Tile, Pad and others, of which the result has the shape of the whole. Their elements then
// are in the old order.
bool rewrite_same_shape(Rewriting& rewriting, Node& node) {
  return has_known_shape(node.inputs[0], node.outputs[0].shape) && has_constant_settings(node) &&
         rewriting.become_value(node, node.inputs[0]);
}

bool rewrite_strided_slice(Rewriting& rewriting, Node& node) {
  const auto strides = integers(node.inputs[3]);  // backwards, the order would be another
  return strides && std::ranges::all_of(*strides, [](int64_t stride) { return stride > 0; }) &&
         rewrite_same_shape(rewriting, node);
}

bool rewrite_bitcast(Rewriting& rewriting, Node& node) {
  return node.inputs[0].dtype() == node.outputs[0].dtype &&
         rewriting.become_value(node, node.inputs[0]);
}

// ---- Reshapes ----

// Whatever elements arrive, the node has a result.
bool cannot_fail(const Node& reshape) {
  if (reshape.inputs[0].shape().is_complete() && reshape.outputs[0].shape.is_complete())
    return has_constant_settings(reshape);
  if (reshape.is("ExpandDims"))
    return reshape.inputs[0].shape().has_rank() && has_constant_settings(reshape);
  return reshape.is("Reshape") && integers(reshape.inputs[1]) == std::vector<int64_t>{-1};
}

// Reshape(x, [-1, 784]) of x[?,784]: at most one extent is not known, and it follows from the
// others.
bool asks_for_its_own_shape(const Shape& x, const std::vector<int64_t>& wanted) {
  if (!x.has_rank() || x.rank() != static_cast<int>(wanted.size())) return false;
  int unknown = 0;
  for (int i = 0; i < x.rank(); ++i) {
    if (wanted[i] == -1) {
      ++unknown;
    } else if (x[i] != wanted[i] || wanted[i] == 0) {
      return false;
    }
  }
  return unknown <= 1;
}

bool rewrite_reshape(Rewriting& rewriting, Node& node) {
  if (rewrite_same_shape(rewriting, node)) return true;
  const auto wanted = node.is("Reshape") ? integers(node.inputs[1]) : std::nullopt;
  if (wanted && asks_for_its_own_shape(node.inputs[0].shape(), *wanted))
    return rewriting.become_value(node, node.inputs[0]);
  for (const std::string_view op : {"Reshape", "Squeeze", "ExpandDims"}) {
    const Node* const inner = rewriting.behind(node, 0, op);
    if (inner == nullptr || !cannot_fail(*inner)) continue;
    const Output x = inner->inputs[0];
    if (cannot_fail(node) && has_known_shape(x, node.outputs[0].shape))
      return rewriting.become_value(node, x);
    if (node.is("Reshape")) return rewriting.become(node, "Reshape", {x, node.inputs[1]});
  }
  return false;
}

// ---- Transposes ----

// Of that rank, from 0. None for what is no permutation.
std::optional<std::vector<int64_t>> permutation(const Node& transpose) {
  auto axes = integers(transpose.inputs[1]);
  if (!axes) return {};
  const auto rank = static_cast<int64_t>(axes->size());
  std::vector<bool> seen(axes->size());
  for (int64_t& axis : *axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || seen[axis]) return {};
    seen[axis] = true;
  }
  return axes;
}

bool is_identity(const std::vector<int64_t>& axes) {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(i)) return false;
  return true;
}

bool rewrite_transpose(Rewriting& rewriting, Node& node) {
  const Output x = node.inputs[0];
  const auto axes = permutation(node);
  if (!axes || x.shape().rank() != static_cast<int>(axes->size())) return false;
  if (is_identity(*axes)) return rewriting.become_value(node, x);
  const Node* const inner = rewriting.behind(node, 0, "Transpose");
  if (inner == nullptr) return false;
  const auto inner_axes = permutation(*inner);
  if (!inner_axes || inner_axes->size() != axes->size()) return false;
  std::vector<int64_t> both;
  for (const int64_t axis : *axes) both.push_back((*inner_axes)[axis]);
  const Output source = inner->inputs[0];
  if (is_identity(both)) return rewriting.become_value(node, source);
  if (!rewriting.has_one_use(*inner)) return false;
  const Tensor perm = integers_like(node.inputs[1], both);
  return rewriting.become(node, "Transpose",
                          {source, rewriting.insert_constant(node, "perm", perm, node.inputs[1])});
}

// The transpose that a product does itself: of its last two axes. None if it is another one.
const Node* transposed(const Rewriting& rewriting, const Node& product, int input) {
  const Node* const transpose = rewriting.behind(product, input, "Transpose");
  if (transpose == nullptr || !rewriting.has_one_use(*transpose)) return nullptr;
  auto axes = permutation(*transpose);
  if (!axes || axes->size() < 2 ||
      transpose->inputs[0].shape().rank() != static_cast<int>(axes->size()))
    return nullptr;
  std::swap(axes->back(), (*axes)[axes->size() - 2]);
  return is_identity(*axes) ? transpose : nullptr;
}

// `adj_x` also conjugates, so complex products stay.
bool rewrite_product(Rewriting& rewriting, Node& node) {
  if (is_complex(node.inputs[0].dtype())) return false;
  const bool is_plain = node.is("MatMul");
  for (const int i : {0, 1}) {
    const Node* const transpose = transposed(rewriting, node, i);
    if (transpose == nullptr) continue;
    constexpr std::array<std::string_view, 4> names = {"transpose_a", "transpose_b", "adj_x",
                                                       "adj_y"};
    const std::string_view name = names[(is_plain ? 0 : 2) + i];
    AttrMap attrs = node.attrs;
    attrs.insert_or_assign(name, !node.attr<bool>(name));
    std::vector<Output> inputs = node.inputs;
    inputs[i] = transpose->inputs[0];
    return rewriting.become(node, node.op->name, std::move(inputs), std::move(attrs));
  }
  return false;
}

// ---- Casts ----

struct Precision {
  int digits;  // bits of the integers that it holds exactly, without the sign
  bool has_sign;
  bool has_exponent;
  int largest_exponent;
};

Precision precision(DType dtype) {
  // clang-format off
  switch (dtype) {
    case DType::boolean: return {1, false, false, 0};
    case DType::u8: return {8, false, false, 0};
    case DType::u16: return {16, false, false, 0};
    case DType::u32: return {32, false, false, 0};
    case DType::u64: return {64, false, false, 0};
    case DType::i8: return {7, true, false, 0};
    case DType::i16: return {15, true, false, 0};
    case DType::i32: return {31, true, false, 0};
    case DType::i64: return {63, true, false, 0};
    case DType::f16: return {11, true, true, 15};
    case DType::bf16: return {8, true, true, 127};
    case DType::f32: return {24, true, true, 127};
    case DType::f64: return {53, true, true, 1023};
    default: return {0, false, false, 0};  // text, complex numbers
  }
  // clang-format on
}

// Has each number of `from`, NaN and the infinities too, an equal in `to`?
bool holds(DType to, DType from) {
  const Precision wide = precision(to), narrow = precision(from);
  if (narrow.digits == 0 || wide.digits < narrow.digits) return false;
  if (narrow.has_exponent)
    return wide.has_exponent && wide.largest_exponent >= narrow.largest_exponent;
  if (wide.has_exponent) return wide.largest_exponent >= narrow.digits;
  return wide.has_sign || !narrow.has_sign;
}

bool rewrite_cast(Rewriting& rewriting, Node& node) {
  const DType dtype = node.outputs[0].dtype;
  if (node.inputs[0].dtype() == dtype) return rewriting.become_value(node, node.inputs[0]);
  const Node* const inner = rewriting.behind(node, 0, "Cast");
  if (inner == nullptr || inner->inputs[0].dtype() != dtype) return false;
  return holds(inner->outputs[0].dtype, dtype) && rewriting.become_value(node, inner->inputs[0]);
}

// ---- Parts ----

// A concatenation of which one part has all elements, since the others are empty.
bool join_of_one(Rewriting& rewriting, Node& node, int first, int axis_input) {
  const auto axis = integers(node.inputs[axis_input]);
  const Shape& joined = node.outputs[0].shape;
  if (!axis || !joined.is_complete() || joined.elements() == 0) return false;
  Output whole;
  for (int i = first; i < first + static_cast<int>(node.inputs.size()) - 1; ++i) {
    const Output& part = node.inputs[i];
    if (!part.shape().is_complete()) return false;
    if (part.shape() == joined) whole = part;
  }
  return whole && rewriting.become_value(node, whole);
}

bool rewrite_concat_v2(Rewriting& rewriting, Node& node) {
  return join_of_one(rewriting, node, 0, static_cast<int>(node.inputs.size()) - 1);
}
bool rewrite_concat(Rewriting& rewriting, Node& node) { return join_of_one(rewriting, node, 1, 0); }

// A split into one part. The axis comes first.
bool rewrite_split(Rewriting& rewriting, Node& node) {
  const auto axis = integers(node.inputs[0]);
  const Shape& whole = node.inputs[1].shape();
  return node.num_outputs() == 1 && axis && whole.has_rank() &&
         rewriting.become_value(node, node.inputs[1]);
}
bool rewrite_split_v(Rewriting& rewriting, Node& node) {
  return node.num_outputs() == 1 && rewrite_same_shape(rewriting, node);
}

// ---- Reductions over nothing ----

// A sum over no axis, or over axes of one element that stay. TensorFlow's gradients are full of
// these: they undo a broadcast that may not have happened.
bool rewrite_reduction(Rewriting& rewriting, Node& node) {
  const Output x = node.inputs[0];
  const auto axes = integers(node.inputs[1]);
  if (!axes) return false;
  if (!axes->empty()) {
    const Shape& shape = x.shape();
    if (!node.attr<bool>("keep_dims") || !shape.has_rank()) return false;
    for (const int64_t axis : *axes) {
      const int64_t at = axis < 0 ? axis + shape.rank() : axis;
      if (at < 0 || at >= shape.rank() || shape[static_cast<int>(at)] != 1) return false;
    }
  }
  return rewriting.become_value(node, x);
}

}  // namespace

const RewriteRules& movement_rules() {
  static const RewriteRules rules = {{"Slice", rewrite_same_shape},
                                     {"Tile", rewrite_same_shape},
                                     {"Pad", rewrite_same_shape},
                                     {"PadV2", rewrite_same_shape},
                                     {"MirrorPad", rewrite_same_shape},
                                     {"BroadcastTo", rewrite_same_shape},
                                     {"EnsureShape", rewrite_same_shape},
                                     {"StridedSlice", rewrite_strided_slice},
                                     {"Bitcast", rewrite_bitcast},
                                     {"Reshape", rewrite_reshape},
                                     {"Squeeze", rewrite_reshape},
                                     {"ExpandDims", rewrite_reshape},
                                     {"Transpose", rewrite_transpose},
                                     {"MatMul", rewrite_product},
                                     {"BatchMatMul", rewrite_product},
                                     {"BatchMatMulV2", rewrite_product},
                                     {"BatchMatMulV3", rewrite_product},
                                     {"Cast", rewrite_cast},
                                     {"Concat", rewrite_concat},
                                     {"ConcatV2", rewrite_concat_v2},
                                     {"Split", rewrite_split},
                                     {"SplitV", rewrite_split_v},
                                     {"Sum", rewrite_reduction},
                                     {"Mean", rewrite_reduction},
                                     {"Prod", rewrite_reduction},
                                     {"Max", rewrite_reduction},
                                     {"Min", rewrite_reduction},
                                     {"All", rewrite_reduction},
                                     {"Any", rewrite_reduction}};
  return rules;
}

}  // namespace leat
