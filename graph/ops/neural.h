// What neural networks are made of, without variables: activations, convolutions and pools of
// images [batch, height, width, channels], losses. Layers with variables are in frontends/cpp/nn.h.
#pragma once

#include "graph/ops/operand.h"

namespace leat {

// ---- Activations ----
Output relu(Output x, Location at = here());                      // max(x, 0)
Output relu6(Output x, Location at = here());                     // min(max(x, 0), 6)
Output leaky_relu(Output x, double slope, Location at = here());  // slope: where x < 0
Output leaky_relu(Output x, Location at = here());                // of slope 0.2
Output elu(Output x, Location at = here());
Output selu(Output x, Location at = here());
Output softplus(Output x, Location at = here());  // log(1 + exp(x))
Output softsign(Output x, Location at = here());  // x / (1 + |x|)
Output sigmoid(Output x, Location at = here());
Output silu(Output x, Location at = here());  // x sigmoid(x)
// x Φ(x), Φ the normal distribution (Hendrycks and Gimpel, 2016).
Output gelu(Output x, Location at = here());
// exp(x) / sum(exp(x)) along the axis.
Output softmax(Output logits, int axis, Location at = here());
Output log_softmax(Output logits, int axis, Location at = here());
Output softmax(Output logits, Location at = here());  // along the last axis
Output log_softmax(Output logits, Location at = here());

// ---- Images ----
// For height and width: one number for both, or {y, x}.
struct Extents2d {
  int64_t y, x;
  Extents2d(int64_t both) : y(both), x(both) {}  // NOLINT: converts
  Extents2d(int64_t height, int64_t width) : y(height), x(width) {}
};

// Borders: same (as many zeros as let the result have ⌈size / stride⌉), valid (none).
struct Valid {};
inline constexpr Valid valid;
class Padding {
 public:
  Padding(const Same&) : name_("SAME") {}  // NOLINT: converts
  Padding(Valid) : name_("VALID") {}       // NOLINT
  // Rows before and after, columns before and after.
  Padding(int64_t top, int64_t bottom, int64_t left, int64_t right)
      : name_("EXPLICIT"), widths_{0, 0, top, bottom, left, right, 0, 0} {}
  std::string_view name() const { return name_; }
  const std::vector<int64_t>& widths() const { return widths_; }  // of EXPLICIT

 private:
  std::string_view name_;
  std::vector<int64_t> widths_;
};

struct ConvolutionOptions {
  Extents2d strides = 1;
  Padding padding = same;
  Extents2d dilations = 1;
};
// y[n, i, j, f] = Σ x[n, i·stride + u - before, j·stride + v - before, c] filter[u, v, c, f].
// filter: [height, width, channels, filters]; with groups, the channels of x are a multiple.
Output conv2d(Output x, Output filter, const ConvolutionOptions& options = {},
              Location at = here());
// Each channel with filters of its own: filter [height, width, channels, multiplier], result
// [..., channels · multiplier].
Output depthwise_conv2d(Output x, Output filter, const ConvolutionOptions& options = {},
                        Location at = here());
// The reverse of the conv2d that makes x of a tensor of shape `dims`; result: of shape `dims`.
Output conv2d_transpose(Output x, Output filter, const Dims& dims,
                        const ConvolutionOptions& options = {}, Location at = here());

struct PoolOptions {
  // Options have names: a list of numbers, {3, 2}, might be a size and a stride, or two sizes.
  struct ByName {
    explicit ByName() = default;
  };
  ByName by_name = ByName();
  Extents2d size = 2;
  Extents2d strides = 0;  // 0: as size
  Padding padding = valid;
};
Output max_pool(Output x, const PoolOptions& options = {}, Location at = here());
Output avg_pool(Output x, const PoolOptions& options = {}, Location at = here());
// Of squares: max_pool(x, 2), max_pool(x, 3, {.strides = 1}).
template <std::integral T>
Output max_pool(Output x, T size, PoolOptions options = {}, Location at = here()) {
  options.size = int64_t{size};
  return max_pool(x, options, at);
}
template <std::integral T>
Output avg_pool(Output x, T size, PoolOptions options = {}, Location at = here()) {
  options.size = int64_t{size};
  return avg_pool(x, options, at);
}

Output bias_add(Output x, Output bias, Location at = here());  // bias: [channels]

// ---- Losses and whether a guess was right ----
// Of each row of logits [..., classes]: labels are class numbers [...], or probabilities of
// logits' shape.
Output softmax_cross_entropy(Output logits, Output labels, Location at = here());
// Of each element: labels of logits' shape, in [0, 1].
Output sigmoid_cross_entropy(Output logits, Output labels, Location at = here());
// Is the target among the k largest of its row? bool [batch].
Output in_top_k(Output predictions, Output targets, const Operand& k, Location at = here());

}  // namespace leat
