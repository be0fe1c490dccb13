// Matrix products, biases, convolutions and their gradients: sums over what two operands share.
#include <algorithm>

#include "frontends/cpp/strategies/sharding/rules.h"
#include "graph/shape_inference.h"

namespace leat::sharding {
namespace {

constexpr State partial() { return State::partial(); }

bool flag(const Node& node, std::string_view a, std::string_view b) {
  for (const std::string_view name : {a, b}) {
    if (node.view().has(name)) return node.attr<bool>(name);
  }
  return false;
}

// [..., m, k] times [..., k, n].
void product(const Rule& rule) {
  const Shape &a = rule.in(0), &b = rule.in(1), &out = rule.result();
  if (a.rank() < 2 || b.rank() < 2 || out.rank() < 2) return;
  const bool ta = flag(rule.node, "transpose_a", "adj_x"),
             tb = flag(rule.node, "transpose_b", "adj_y");
  const int m = a.rank() - (ta ? 1 : 2), k_of_a = a.rank() - (ta ? 2 : 1),
            k_of_b = b.rank() - (tb ? 1 : 2), n = b.rank() - (tb ? 2 : 1);
  const int rank = out.rank();
  if (rule.splits(b, n)) rule.add({{1, State::split(n)}}, {{0, State::split(rank - 1)}});
  if (rule.splits(a, k_of_a) && rule.splits(b, k_of_b))
    rule.add({{0, State::split(k_of_a)}, {1, State::split(k_of_b)}}, {{0, partial()}});
  if (rule.splits(a, m)) rule.add({{0, State::split(m)}}, {{0, State::split(rank - 2)}});
  for (int axis = 0; axis + 2 < rank; ++axis) {  // of the batch, with broadcasting
    if (!rule.splits(out, axis)) continue;
    const int of_a = axis - (rank - a.rank()), of_b = axis - (rank - b.rank());
    std::vector<std::pair<int, State>> inputs;
    if (of_a >= 0 && a[of_a] == out[axis]) inputs.push_back({0, State::split(of_a)});
    if (of_b >= 0 && b[of_b] == out[axis]) inputs.push_back({1, State::split(of_b)});
    if (!inputs.empty()) rule.add(inputs, {{0, State::split(axis)}});
  }
  rule.add({{0, partial()}}, {{0, partial()}});
  rule.add({{1, partial()}}, {{0, partial()}});
}

bool has_last_channels(const Node& node) {
  return !node.view().has("data_format") || node.attr<std::string>("data_format") == "NHWC";
}

void bias_add(const Rule& rule) {
  const Shape& x = rule.in(0);
  if (!has_last_channels(rule.node) || !x.has_rank()) return;
  const int last = x.rank() - 1;
  if (rule.splits(x, last))
    rule.add({{0, State::split(last)}, {1, State::split(0)}}, {{0, State::split(last)}});
  for (int axis = 0; axis < last; ++axis) {
    if (rule.splits(x, axis)) rule.add({{0, State::split(axis)}}, {{0, State::split(axis)}});
  }
  rule.add_all_partial();
}

void bias_add_grad(const Rule& rule) {
  const Shape& dy = rule.in(0);
  if (!has_last_channels(rule.node) || !dy.has_rank()) return;
  const int last = dy.rank() - 1;
  if (rule.splits(dy, last)) rule.add({{0, State::split(last)}}, {{0, State::split(0)}});
  for (int axis = 0; axis < last; ++axis) {
    if (rule.splits(dy, axis)) rule.add({{0, State::split(axis)}}, {{0, partial()}});
  }
  rule.add_all_partial();
}

// ---- Convolutions: [batch, height, width, channels] and [height, width, in, out] ----

constexpr int images = 0, in_axis = 2, out_axis = 3, channels = 3;

void conv2d(const Rule& rule) {
  if (!has_last_channels(rule.node)) return;
  const Shape &x = rule.in(0), &filter = rule.in(1);
  if (x.rank() != 4 || filter.rank() != 4) return;
  if (rule.splits(filter, out_axis))
    rule.add({{1, State::split(out_axis)}}, {{0, State::split(channels)}});
  // Not in groups, of which the filter has fewer input channels.
  if (rule.splits(x, channels) && x[channels] == filter[in_axis])
    rule.add({{0, State::split(channels)}, {1, State::split(in_axis)}}, {{0, partial()}});
  if (rule.splits(x, images)) rule.add({{0, State::split(images)}}, {{0, State::split(images)}});
  rule.add({{0, partial()}}, {{0, partial()}});
}

// Of sizes, filter, dy.
void conv2d_input_grad(const Rule& rule) {
  if (!has_last_channels(rule.node)) return;
  const Shape &filter = rule.in(1), &dy = rule.in(2), &dx = rule.result();
  if (filter.rank() != 4 || dy.rank() != 4 || dx.rank() != 4) return;
  if (rule.splits(dy, channels) && dx[channels] == filter[in_axis])
    rule.add({{1, State::split(out_axis)}, {2, State::split(channels)}}, {{0, partial()}});
  if (rule.splits(dx, channels) && dx[channels] == filter[in_axis])
    rule.add({{1, State::split(in_axis)}}, {{0, State::split(channels)}},
             with_local_extent(0, channels, dx[channels], rule.n));
  if (rule.splits(dy, images) && dx[images] == dy[images])
    rule.add({{2, State::split(images)}}, {{0, State::split(images)}},
             with_local_extent(0, images, dx[images], rule.n));
}

// Of x, sizes, dy.
void conv2d_filter_grad(const Rule& rule) {
  if (!has_last_channels(rule.node)) return;
  const Shape &x = rule.in(0), &dy = rule.in(2), &filter = rule.result();
  if (x.rank() != 4 || dy.rank() != 4 || filter.rank() != 4) return;
  if (rule.splits(dy, channels) && filter[out_axis] == dy[channels])
    rule.add({{2, State::split(channels)}}, {{0, State::split(out_axis)}},
             with_local_extent(1, out_axis, filter[out_axis], rule.n));
  if (rule.splits(x, channels) && x[channels] == filter[in_axis])
    rule.add({{0, State::split(channels)}}, {{0, State::split(in_axis)}},
             with_local_extent(1, in_axis, filter[in_axis], rule.n));
  if (rule.splits(x, images) && x[images] == dy[images])
    rule.add({{0, State::split(images)}, {2, State::split(images)}}, {{0, partial()}});
}

// A filter [height, width, in, multiplier]: the channels do not mix.
void depthwise(const Rule& rule) {
  if (!has_last_channels(rule.node) || rule.in(0).rank() != 4) return;
  if (rule.splits(rule.in(0), channels))
    rule.add({{0, State::split(channels)}, {1, State::split(in_axis)}},
             {{0, State::split(channels)}});
  if (rule.splits(rule.in(0), images))
    rule.add({{0, State::split(images)}}, {{0, State::split(images)}});
}
void depthwise_input_grad(const Rule& rule) {
  if (!has_last_channels(rule.node) || rule.result().rank() != 4) return;
  const int64_t extent = rule.result()[channels];
  if (rule.splits(rule.result(), channels))
    rule.add({{1, State::split(in_axis)}, {2, State::split(channels)}},
             {{0, State::split(channels)}}, with_local_extent(0, channels, extent, rule.n));
}
void depthwise_filter_grad(const Rule& rule) {
  if (!has_last_channels(rule.node) || rule.result().rank() != 4) return;
  const int64_t extent = rule.result()[in_axis];
  if (rule.splits(rule.result(), in_axis))
    rule.add({{0, State::split(channels)}, {2, State::split(channels)}},
             {{0, State::split(in_axis)}}, with_local_extent(1, in_axis, extent, rule.n));
}

// Windows move over height and width; images and channels do not mix.
void pool(const Rule& rule) {
  if (!has_last_channels(rule.node)) return;
  for (const int axis : {images, channels}) {
    std::vector<std::pair<int, State>> inputs;
    bool fits = rule.result().rank() == 4;
    for (int i = 0; fits && i < rule.inputs(); ++i) {
      fits = rule.in(i).rank() == 4 && rule.splits(rule.in(i), axis);
      inputs.push_back({i, State::split(axis)});
    }
    for (const char* attr : {"ksize", "strides"}) {
      const auto& sizes = rule.node.attr<std::vector<int64_t>>(attr);
      fits = fits && sizes.size() == 4 && sizes[static_cast<size_t>(axis)] == 1;
    }
    if (fits) rule.add(inputs, {{0, State::split(axis)}});
  }
}
void avg_pool_grad(const Rule& rule) {
  if (!has_last_channels(rule.node) || rule.result().rank() != 4) return;
  for (const int axis : {images, channels}) {
    const auto& sizes = rule.node.attr<std::vector<int64_t>>("ksize");
    if (sizes[static_cast<size_t>(axis)] == 1 && rule.splits(rule.result(), axis) &&
        rule.splits(rule.in(1), axis))
      rule.add({{1, State::split(axis)}}, {{0, State::split(axis)}},
               with_local_extent(0, axis, rule.result()[axis], rule.n));
  }
}

// Averages are those of a channel: all that has one value per channel is split with x.
void batch_norm(const Rule& rule) {
  const Shape& x = rule.in(0);
  if (!has_last_channels(rule.node) || x.rank() != 4 || !rule.splits(x, channels)) return;
  const int64_t count = x[channels];
  const auto state_of = [&](const Shape& shape) {
    if (shape.rank() == 4) return State::split(channels);
    return shape.rank() == 1 && shape[0] == count ? State::split(0) : State::replicated();
  };
  std::vector<std::pair<int, State>> inputs, outputs;
  for (int i = 0; i < rule.inputs(); ++i) inputs.push_back({i, state_of(rule.in(i))});
  for (int i = 0; i < rule.node.num_outputs(); ++i)
    outputs.push_back({i, state_of(rule.result(i))});
  rule.add(inputs, outputs);
}

}  // namespace

RuleFunction product_rule_of(const OpDef& op) {
  static const std::vector<std::pair<std::string_view, RuleFunction>> rules = {
      {"MatMul", product},
      {"BatchMatMul", product},
      {"BatchMatMulV2", product},
      {"BiasAdd", bias_add},
      {"BiasAddGrad", bias_add_grad},
      {"Conv2D", conv2d},
      {"Conv2DBackpropInput", conv2d_input_grad},
      {"Conv2DBackpropFilter", conv2d_filter_grad},
      {"DepthwiseConv2dNative", depthwise},
      {"DepthwiseConv2dNativeBackpropInput", depthwise_input_grad},
      {"DepthwiseConv2dNativeBackpropFilter", depthwise_filter_grad},
      {"MaxPool", pool},
      {"MaxPoolGrad", pool},
      {"AvgPool", pool},
      {"AvgPoolGrad", avg_pool_grad},
      {"FusedBatchNormV3", batch_norm},
      {"FusedBatchNormGradV3", batch_norm}};
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [&](const auto& rule) { return rule.first == op.name; });
  return found == rules.end() ? nullptr : found->second;
}

}  // namespace leat::sharding
