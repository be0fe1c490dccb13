// Numbers: the same values for less. A rule keeps every value to the bit, infinities, NaN and the
// sign of zero included, except Pow, where TensorFlow's own rewrites decide. It leaves alone what a
// broadcast would give another shape, and integer operations that can fail.
#include <cmath>
#include <limits>

#include "graph/passes/simplify/rewriting.h"
#include "graph/passes/simplify/uniform_value.h"

namespace leat {
namespace {

// A longer sum keeps too many terms in memory until the last of them is there.
constexpr size_t most_terms = 8;

bool is_real(DType dtype) { return is_floating(dtype) || is_integer(dtype); }

// Input `constant` is that number, and the other input has the shape of the result.
bool is_neutral(const Node& node, int constant, double value) {
  const Output &c = node.inputs[constant], &x = node.inputs[1 - constant];
  return is_uniform(c, value) && keeps_shape(x.shape(), c.shape());
}

// ---- Powers ----

// As TensorFlow: √x of -0.0 is -0.0 and that of -∞ is NaN, where the power ½ would be 0 and ∞.
bool rewrite_pow(Rewriting& rewriting, Node& node) {
  const Output x = node.inputs[0], exponent = node.inputs[1];
  const auto power = uniform_value(exponent);
  if (!power || power->imag() != 0 || !keeps_shape(x.shape(), exponent.shape())) return false;
  const double p = power->real();
  if (p == 0) return rewriting.become(node, "OnesLike", {x});
  if (p == 1) return rewriting.become_value(node, x);
  if (p == 2) return rewriting.become(node, "Square", {x});
  if (p == 3) {
    const Output square = rewriting.insert(node, "square", "Square", {x}, {});
    return rewriting.become(node, "Mul", {x, square});
  }
  if (is_integer(x.dtype())) return false;  // a negative power is an error
  if (p == 0.5) return rewriting.become(node, "Sqrt", {x});
  if (p == -0.5) return rewriting.become(node, "Rsqrt", {x});
  if (p == -1) return rewriting.become(node, "Reciprocal", {x});
  return false;
}

// (a - b)² in one pass. Of complex numbers SquaredDifference is |a - b|².
bool rewrite_square(Rewriting& rewriting, Node& node) {
  const Node* const difference = rewriting.behind(node, 0, "Sub");
  if (difference == nullptr || !is_real(node.inputs[0].dtype()) ||
      !rewriting.has_one_use(*difference))
    return false;
  return rewriting.become(node, "SquaredDifference", difference->inputs);
}

// ---- Products and quotients ----

// Not of complex numbers: (x + iy)(1 + 0i) is not x + iy if x or y is -0.0 or infinite.
bool rewrite_mul(Rewriting& rewriting, Node& node) {
  if (!is_real(node.inputs[0].dtype())) return false;
  if (is_neutral(node, 1, 1)) return rewriting.become_value(node, node.inputs[0]);
  if (is_neutral(node, 0, 1) && node.is("Mul")) return rewriting.become_value(node, node.inputs[1]);
  return false;
}

// The reciprocal of a power of two is exact, and so is the product with it where the quotient is.
// Both must be normal numbers of the narrowest range, that of half.
bool has_exact_reciprocal(double c) {
  int exponent = 0;
  return std::isfinite(c) && std::abs(std::frexp(c, &exponent)) == 0.5 &&
         std::abs(exponent - 1) <= 14;
}

template <class T>
Tensor filled(const Shape& shape, double value) {
  const std::vector<T> elements(shape.elements(), static_cast<T>(static_cast<float>(value)));
  return Tensor::of<T>(shape, elements);
}

Tensor filled(DType dtype, const Shape& shape, double value) {
  switch (dtype) {
    case DType::f16:
      return filled<half>(shape, value);
    case DType::bf16:
      return filled<bfloat16>(shape, value);
    case DType::f64:
      return filled<double>(shape, value);
    default:
      return filled<float>(shape, value);
  }
}

bool rewrite_division(Rewriting& rewriting, Node& node) {
  const Output x = node.inputs[0], divisor = node.inputs[1];
  if (!is_real(x.dtype())) return false;
  if (is_neutral(node, 1, 1)) return rewriting.become_value(node, x);
  if (!is_floating(x.dtype())) return false;
  const auto c = uniform_value(divisor);
  if (!c || !has_exact_reciprocal(c->real())) return false;
  const Tensor reciprocal = filled(x.dtype(), divisor.shape(), 1 / c->real());
  return rewriting.become(node, "Mul",
                          {x, rewriting.insert_constant(node, "reciprocal", reciprocal, divisor)});
}

// Towards zero or down: of integers only, since floats would have to be rounded.
bool rewrite_rounded_division(Rewriting& rewriting, Node& node) {
  return is_integer(node.inputs[0].dtype()) && is_neutral(node, 1, 1) &&
         rewriting.become_value(node, node.inputs[0]);
}

// ---- Sums and differences ----

// The inputs of a sum of two or more of one shape, if only input `i` of `node` needs it.
const std::vector<Output>* terms_of(const Rewriting& rewriting, const Node& node, int i) {
  for (const std::string_view op : {"AddN", "Add", "AddV2"}) {
    const Node* const sum = rewriting.behind(node, i, op);
    if (sum == nullptr || !rewriting.has_one_use(*sum)) continue;
    for (const Output& term : sum->inputs) {
      const bool fits = term.shape().is_complete() && term.shape() == node.outputs[0].shape &&
                        term.node->requested_device == node.requested_device;
      if (!fits) return nullptr;
    }
    return &sum->inputs;
  }
  return nullptr;
}

// (a + b) + c and c + (a + b) are AddN(a, b, c), which adds from the left: in one pass.
bool rewrite_sum_of_sum(Rewriting& rewriting, Node& node) {
  const DType dtype = node.inputs[0].dtype();
  if ((!is_real(dtype) && !is_complex(dtype)) || node.inputs.size() < 2) return false;
  for (const Output& term : node.inputs) {
    if (!term.shape().is_complete() || !(term.shape() == node.outputs[0].shape)) return false;
  }
  for (const int i : {0, 1}) {
    const std::vector<Output>* const inner = terms_of(rewriting, node, i);
    if (inner == nullptr || inner->size() + node.inputs.size() - 1 > most_terms) continue;
    std::vector<Output> terms = *inner;
    terms.push_back(node.inputs[1 - i]);
    terms.insert(terms.end(), node.inputs.begin() + 2, node.inputs.end());
    return rewriting.become(node, "AddN", std::move(terms));
  }
  return false;
}

bool rewrite_add(Rewriting& rewriting, Node& node) {
  if (node.inputs[0].dtype() == DType::string) return false;
  const double zero = is_integer(node.inputs[0].dtype()) ? 0.0 : -0.0;  // -0.0 + 0.0 is 0.0
  for (const int i : {0, 1}) {
    if (is_neutral(node, i, zero)) return rewriting.become_value(node, node.inputs[1 - i]);
  }
  for (const int i : {0, 1}) {
    if (const Node* const negated = rewriting.behind(node, i, "Neg"))
      return rewriting.become(node, "Sub", {node.inputs[1 - i], negated->inputs[0]});
  }
  return rewrite_sum_of_sum(rewriting, node);
}

bool rewrite_add_n(Rewriting& rewriting, Node& node) {
  if (node.inputs[0].dtype() == DType::variant) return false;
  if (node.inputs.size() == 1) return rewriting.become_value(node, node.inputs[0]);
  return rewrite_sum_of_sum(rewriting, node);
}

bool rewrite_sub(Rewriting& rewriting, Node& node) {
  if (is_neutral(node, 1, 0)) return rewriting.become_value(node, node.inputs[0]);
  const double zero = is_integer(node.inputs[0].dtype()) ? 0.0 : -0.0;  // 0.0 - 0.0 is 0.0
  if (is_neutral(node, 0, zero)) return rewriting.become(node, "Neg", {node.inputs[1]});
  if (const Node* const negated = rewriting.behind(node, 1, "Neg"))
    return rewriting.become(node, "AddV2", {node.inputs[0], negated->inputs[0]});
  return false;
}

// ---- What undoes itself ----

bool rewrite_involution(Rewriting& rewriting, Node& node) {
  const Node* const inner = rewriting.behind(node, 0, node.op->name);
  return inner != nullptr && rewriting.become_value(node, inner->inputs[0]);
}

// Comparisons by size stay: with NaN both x < y and x >= y are false.
bool rewrite_not(Rewriting& rewriting, Node& node) {
  if (rewrite_involution(rewriting, node)) return true;
  for (const auto& [op, opposite] : {std::pair("Equal", "NotEqual"), {"NotEqual", "Equal"}}) {
    const Node* const inner = rewriting.behind(node, 0, op);
    if (inner == nullptr || !rewriting.has_one_use(*inner)) continue;
    return rewriting.become(
        node, opposite, inner->inputs,
        {{"incompatible_shape_error", inner->attr<bool>("incompatible_shape_error")}});
  }
  return false;
}

template <int neutral>
bool rewrite_logical(Rewriting& rewriting, Node& node) {
  for (const int i : {0, 1}) {
    if (is_neutral(node, i, neutral)) return rewriting.become_value(node, node.inputs[1 - i]);
  }
  return false;
}

// ---- Gradients ----

// ReluGrad of MaxPoolGrad, of the pool of what Relu made: in windows that do not overlap, one pass
// over the image does both.
bool rewrite_relu_grad(Rewriting& rewriting, Node& node) {
  const Node* const pool = rewriting.behind(node, 0, "MaxPoolGrad");
  if (pool == nullptr || !rewriting.has_one_use(*pool) || !same(pool->inputs[0], node.inputs[1]) ||
      pool->attrs.at("ksize") != pool->attrs.at("strides"))
    return false;
  AttrMap attrs;
  for (const auto& [key, attr] : pool->attrs)
    if (!key.starts_with('_')) attrs.emplace(key, attr);
  return rewriting.become(node, "_MaxPoolReluGrad", pool->inputs, std::move(attrs));
}

}  // namespace

const RewriteRules& arithmetic_rules() {
  static const RewriteRules rules = {{"Pow", rewrite_pow},
                                     {"Square", rewrite_square},
                                     {"Mul", rewrite_mul},
                                     {"MulNoNan", rewrite_mul},
                                     {"RealDiv", rewrite_division},
                                     {"Div", rewrite_division},
                                     {"DivNoNan", rewrite_division},
                                     {"FloorDiv", rewrite_rounded_division},
                                     {"TruncateDiv", rewrite_rounded_division},
                                     {"Add", rewrite_add},
                                     {"AddV2", rewrite_add},
                                     {"AddN", rewrite_add_n},
                                     {"Sub", rewrite_sub},
                                     {"ReluGrad", rewrite_relu_grad},
                                     {"Neg", rewrite_involution},
                                     {"Conj", rewrite_involution},
                                     {"Invert", rewrite_involution},
                                     {"LogicalNot", rewrite_not},
                                     {"LogicalAnd", rewrite_logical<1>},
                                     {"LogicalOr", rewrite_logical<0>}};
  return rules;
}

}  // namespace leat
