// Recognises attention. From the softmax up to the product of q and k, down to the product with v,
// and through the gradient of both (Gradient of Softmax: dx = (dy - sum(dy y)) y). Each node on the
// way is noted, and at the end nobody else may read any of them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/passes/attention/find_attention.h"
#include "graph/passes/simplify/uniform_value.h"

namespace leat {
namespace {

constexpr int64_t largest_head = 128;
// A score that stands for "does not see": exp() of it is 0 beside any other.
constexpr double largest_unseen = -1e4;

bool has_16_bits(DType dtype) { return dtype == bf16 || dtype == f16; }
bool is_float(DType dtype) { return has_16_bits(dtype) || dtype == f32; }

bool is_cast(const Node& node) {
  return node.is("Cast") && is_float(node.inputs[0].dtype()) && is_float(node.outputs[0].dtype);
}

bool is_select(const Node& node) { return node.is("SelectV2") || node.is("Select"); }

// op(x) op(y) of batches that are not repeated.
bool is_product(const Node& node, bool adj_x, bool adj_y) {
  return (node.is("BatchMatMul") || node.is("BatchMatMulV2")) &&
         node.attr<bool>("adj_x") == adj_x && node.attr<bool>("adj_y") == adj_y;
}

// The numbers 0, 1, … along one axis of the last two.
bool counts_along(const Output& value, int64_t rows, int64_t columns) {
  if (!value.node->is("Const") || (value.dtype() != i32 && value.dtype() != i64)) return false;
  const Tensor& tensor = value.node->attr<Tensor>("value");
  const bool is_column = columns == 1;
  const Shape wanted = {rows, columns};
  if (tensor.shape() != wanted && (is_column || tensor.shape() != Shape{columns})) return false;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    const int64_t number =
        value.dtype() == i32 ? tensor.data<int32_t>()[i] : tensor.data<int64_t>()[i];
    if (number != i) return false;
  }
  return true;
}

// A constant whose last two axes are [queries, keys], true up to the diagonal.
bool is_triangle(const Output& mask, int64_t queries, int64_t keys) {
  if (!mask.node->is("Const") || mask.dtype() != boolean) return false;
  const Tensor& tensor = mask.node->attr<Tensor>("value");
  const int rank = tensor.shape().rank();
  if (rank < 2 || tensor.elements() != queries * keys || tensor.shape()[rank - 1] != keys)
    return false;
  const bool* const sees = tensor.data<bool>();
  for (int64_t q = 0; q < queries; ++q) {
    for (int64_t k = 0; k < keys; ++k)
      if (sees[q * keys + k] != (k <= q)) return false;
  }
  return true;
}

// Does row i see the keys 0 to i? A large mask is not folded, but compares two constants.
bool is_causal(const Output& mask, int64_t queries, int64_t keys) {
  if (is_triangle(mask, queries, keys)) return true;
  return mask.node->is("GreaterEqual") && counts_along(mask.node->inputs[0], queries, 1) &&
         counts_along(mask.node->inputs[1], 1, keys);
}

class Search {
 public:
  Search(Node& softmax, const Consumers& consumers) : softmax_(softmax), consumers_(consumers) {}

  // `takes_scaled_q`: with a factor of q as one of the scores.
  std::optional<AttentionParts> run(bool takes_scaled_q) {
    const Shape& scores = softmax_.outputs[0].shape;
    if (!scores.is_complete() || scores.rank() < 3 || scores.rank() > 4) return {};
    queries_ = scores[scores.rank() - 2];
    keys_ = scores[scores.rank() - 1];
    take(softmax_);
    if (!find_scores() || !find_weights() || !find_backward()) return {};
    if ((takes_scaled_q && !take_scaled_q()) || !fits()) return {};
    return std::move(parts_);
  }

 private:
  void take(Node& node) {
    if (std::find(parts_.nodes.begin(), parts_.nodes.end(), &node) == parts_.nodes.end())
      parts_.nodes.push_back(&node);
  }

  // What a value was before it was cast.
  Output before_casts(Output value) {
    while (is_cast(*value.node)) {
      take(*value.node);
      value = value.node->inputs[0];
    }
    return value;
  }

  // ---- Forward

  bool find_scores() {
    Output x = before_casts(softmax_.inputs[0]);
    if (is_select(*x.node)) {
      select_ = x.node;
      take(*select_);
      if (!find_mask()) return false;
      x = before_casts(select_->inputs[1]);
    }
    if (const std::optional<Scaled> scaled = scaled_by(*x.node)) {
      parts_.scale = scaled->factor;
      take(*x.node);
      x = before_casts(x.node->inputs[scaled->operand]);
    }
    if (!is_product(*x.node, false, true)) return false;
    take(*x.node);
    parts_.q = x.node->inputs[0];
    parts_.k = x.node->inputs[1];
    return true;
  }

  // A node that multiplies or divides by a number.
  struct Scaled {
    float factor;
    int operand;  // which input it does that to
  };
  static std::optional<Scaled> scaled_by(const Node& node) {
    if (!node.is("Mul") && !node.is("RealDiv")) return {};
    for (const int number : {1, 0}) {
      const auto value = uniform_value(node.inputs[number]);
      if (!value || node.inputs[number].shape().elements() != 1) continue;
      const double factor = node.is("Mul") ? value->real() : 1 / value->real();
      if (!std::isfinite(factor) || (number == 0 && !node.is("Mul"))) return {};
      return Scaled{static_cast<float>(factor), 1 - number};
    }
    return {};
  }

  bool find_mask() {
    const Output mask = select_->inputs[0];
    const Shape& scores = select_->outputs[0].shape;
    // Select repeats a vector as no other op does.
    if (!mask.shape().is_complete() || select_->inputs[1].shape() != scores ||
        broadcast(mask.shape(), scores) != scores ||
        (select_->is("Select") && mask.shape() != scores))
      return false;
    set_mask(mask);
    const auto unseen = uniform_value(select_->inputs[2]);
    if (!unseen || !(unseen->real() <= largest_unseen)) return false;
    // With -∞ a row that sees nothing has no weights.
    return !parts_.mask || std::isfinite(unseen->real());
  }

  void set_mask(const Output& mask) {
    parts_.causal = is_causal(mask, queries_, keys_);
    if (parts_.causal) return;
    parts_.mask = mask;
    if (!mask.node->is("LogicalAnd")) return;
    for (size_t i : {0, 1}) {
      if (!is_causal(mask.node->inputs[i], queries_, keys_)) continue;
      parts_.causal = true;
      parts_.mask = mask.node->inputs[1 - i];
      return;
    }
  }

  // The weights, their casts, and what reads them: the product with v, and the gradient.
  bool find_weights() {
    std::vector<Node*> weights = {&softmax_};
    for (size_t i = 0; i < weights.size(); ++i) {
      for (const Consumers::Use& use : consumers_.of(*weights[i])) {
        if (is_cast(*use.node)) {
          weights.push_back(use.node);
          take(*use.node);
        } else if (use.node->is("Mul")) {
          products_with_weights_.push_back(use.node);
        } else if (use.input != 0 || !find_product(*use.node)) {
          return false;
        }
      }
    }
    return parts_.result != nullptr;
  }

  bool find_product(Node& node) {
    const bool is_result = is_product(node, false, false);
    Node*& found = is_result ? parts_.result : parts_.dv;
    if (found != nullptr || (!is_result && !is_product(node, true, false))) return false;
    found = &node;
    take(node);
    (is_result ? parts_.v : parts_.doutput) = node.inputs[1];
    return true;
  }

  // ---- Backward

  bool is_weights(const Output& value) const {
    const Node* node = value.node;
    while (node != &softmax_ && is_cast(*node)) node = node->inputs[0].node;
    return node == &softmax_;
  }

  // The operand besides the weights.
  Output other_factor(const Node& product) const {
    return product.inputs[is_weights(product.inputs[0]) ? 1 : 0];
  }

  bool find_backward() {
    const std::vector<Node*>& products = products_with_weights_;
    if (products.empty()) return true;  // at most dv
    if (products.size() != 2) return false;
    for (const size_t i : {0, 1}) {
      const Output centred = before_casts(other_factor(*products[i]));
      if (!centred.node->is("Sub")) continue;
      for (Node* product : products) take(*product);
      return find_centred(*centred.node, *products[1 - i]) &&
             find_gradients_of_scores(*products[i]);
    }
    return false;
  }

  // dweights - sum(terms), terms = dweights · weights
  bool find_centred(Node& difference, const Node& terms) {
    take(difference);
    const Output dweights = before_casts(difference.inputs[0]),
                 total = before_casts(difference.inputs[1]);
    if (!total.node->is("Sum") || !sums_rows(*total.node)) return false;
    take(*total.node);
    if (before_casts(total.node->inputs[0]).node != &terms ||
        !same(before_casts(other_factor(terms)), dweights))
      return false;
    if (!is_product(*dweights.node, false, true) || !same(dweights.node->inputs[1], parts_.v))
      return false;
    take(*dweights.node);
    const Output doutput = dweights.node->inputs[0];
    if (parts_.doutput && !same(parts_.doutput, doutput)) return false;
    parts_.doutput = doutput;
    return true;
  }

  bool sums_rows(const Node& sum) const {
    const auto axis = uniform_value(sum.inputs[1]);
    const int last = softmax_.outputs[0].shape.rank() - 1;
    return sum.attr<bool>("keep_dims") && axis && sum.inputs[1].shape().elements() == 1 &&
           (axis->real() == -1 || axis->real() == last);
  }

  // The same mask and the same factor, and then the products with k and q.
  bool find_gradients_of_scores(Node& first) {
    Node* node = &first;
    bool needs_select = select_ != nullptr, needs_scale = parts_.scale != 1;
    for (;;) {
      const auto uses = consumers_.of(*node);
      if (uses.empty()) return false;
      Node& user = *uses[0].node;
      if (is_product(user, false, false) || is_product(user, true, false))
        return !needs_select && !needs_scale && find_gradients(uses);
      if (uses.size() != 1 || uses[0].input < 0) return false;
      if (is_select(user)) {
        if (!needs_select || uses[0].input != 1 || !keeps_what_was_seen(user)) return false;
        needs_select = false;
      } else if (scales_alike(user, uses[0].input)) {
        if (!needs_scale || needs_select) return false;
        needs_scale = false;
      } else if (!is_cast(user)) {
        return false;
      }
      take(user);
      node = &user;
    }
  }

  bool scales_alike(const Node& node, int input) const {
    const std::optional<Scaled> scaled = scaled_by(node);
    return scaled && scaled->factor == parts_.scale && scaled->operand == input;
  }

  bool keeps_what_was_seen(const Node& select) const {
    if (!same(select.inputs[0], select_->inputs[0]) || select.op != select_->op) return false;
    return select.inputs[2].node->is("ZerosLike") || is_uniform(select.inputs[2], 0);
  }

  bool find_gradients(std::span<const Consumers::Use> uses) {
    for (const Consumers::Use& use : uses) {
      if (use.input != 0) return false;
      const bool is_of_q = is_product(*use.node, false, false);
      if (!is_of_q && !is_product(*use.node, true, false)) return false;
      Node*& found = is_of_q ? parts_.dq : parts_.dk;
      if (found != nullptr || !same(use.node->inputs[1], is_of_q ? parts_.k : parts_.q))
        return false;
      found = use.node;
      take(*use.node);
    }
    return true;
  }

  // ---- A factor of q

  // If q is scaled for the attention alone, and dq before anything else, the kernels do both.
  bool take_scaled_q() {
    Node& node = *parts_.q.node;
    const std::optional<Scaled> scaled = scaled_by(node);
    if (!scaled || parts_.scale != 1) return false;
    parts_.scale = scaled->factor;
    parts_.q = node.inputs[static_cast<size_t>(scaled->operand)];
    take(node);
    if (parts_.dq == nullptr) return true;
    const auto uses = consumers_.of(*parts_.dq);
    if (uses.size() != 1 || !scales_alike(*uses[0].node, uses[0].input)) return false;
    parts_.dq = uses[0].node;
    take(*parts_.dq);
    return true;
  }

  // ---- What the kernels take

  bool fits() const {
    const Shape &q = parts_.q.shape(), &k = parts_.k.shape(), &v = parts_.v.shape();
    const int rank = softmax_.outputs[0].shape.rank();
    for (const Shape* shape : {&q, &k, &v}) {
      if (!shape->is_complete() || shape->rank() != rank ||
          !std::equal(q.dims().begin(), q.dims().end() - 2, shape->dims().begin()))
        return false;
    }
    const auto is_head = [](int64_t size) {
      return size > 0 && size % 8 == 0 && size <= largest_head;
    };
    return has_16_bits(parts_.q.dtype()) && parts_.v.dtype() == parts_.q.dtype() &&
           q[rank - 2] == queries_ && k[rank - 2] == keys_ && v[rank - 2] == keys_ &&
           is_head(q[rank - 1]) && is_head(v[rank - 1]);
  }

  Node& softmax_;
  const Consumers& consumers_;
  int64_t queries_ = 0, keys_ = 0;
  Node* select_ = nullptr;
  std::vector<Node*> products_with_weights_;
  AttentionParts parts_;
};

// Can all be left out but what the new nodes make?
bool stands_alone(const AttentionParts& parts, const Node& softmax, const Consumers& consumers,
                  const KeptNames& kept, const DeadTogether& together) {
  const auto is_part = [&](const Node* node) {
    return std::find(parts.nodes.begin(), parts.nodes.end(), node) != parts.nodes.end();
  };
  return std::all_of(parts.nodes.begin(), parts.nodes.end(), [&](const Node* node) {
    if (!node->control_inputs.empty() || node->assigned_device != softmax.assigned_device ||
        !together.are(*node, softmax))
      return false;
    if (node == parts.result || node == parts.dq || node == parts.dk || node == parts.dv)
      return true;
    if (kept.contains(*node)) return false;
    const auto uses = consumers.of(*node);
    return std::all_of(uses.begin(), uses.end(), [&](const Consumers::Use& use) {
      return use.input >= 0 && is_part(use.node);
    });
  });
}

// The gradient reads the result and v, and comes where the first of its products was.
bool has_an_order(const AttentionParts& parts) {
  const std::vector<Node*> gradients = parts.gradients();
  return gradients.empty() ||
         (parts.result->id < gradients[0]->id && parts.v.node->id < gradients[0]->id);
}

}  // namespace

std::vector<Node*> AttentionParts::gradients() const {
  std::vector<Node*> out;
  for (Node* node : {dq, dk, dv})
    if (node != nullptr) out.push_back(node);
  sort_by_id(out);
  return out;
}

std::optional<AttentionParts> find_attention(Node& softmax, const Consumers& consumers,
                                             const KeptNames& kept, const DeadTogether& together) {
  for (const bool takes_scaled_q : {true, false}) {
    std::optional<AttentionParts> parts = Search(softmax, consumers).run(takes_scaled_q);
    if (parts && stands_alone(*parts, softmax, consumers, kept, together) && has_an_order(*parts))
      return parts;
  }
  return {};
}

}  // namespace leat
