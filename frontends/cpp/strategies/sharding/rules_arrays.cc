// Shapes, axes and pieces: ops that move elements, and reductions.
#include <algorithm>
#include <map>
#include <optional>

#include "frontends/cpp/strategies/sharding/rules.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"

namespace leat::sharding {
namespace {

// The elements of an input that is known before any step: axes, sizes.
std::optional<std::vector<int64_t>> known(const Rule& rule, int i) {
  const Tensor value = constant_value(rule.node.inputs[static_cast<size_t>(i)]);
  if (!value.is_valid() || (value.dtype() != i32 && value.dtype() != i64)) return std::nullopt;
  return integers(value);
}

int positive(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

// ---- Reshape ----

// The product of the extents from `begin` to before `end`; any if one is not known.
int64_t product(const Shape& shape, int begin, int end) {
  int64_t out = 1;
  for (int axis = begin; axis < end; ++axis) {
    if (shape[axis] == any) return any;
    out *= shape[axis];
  }
  return out;
}

// x and y have the same elements in the same order. Whether cutting x into N equal parts along `a`
// gives the same parts as cutting y along `b`: the extents before both axes have the same product.
bool same_parts(const Shape& x, int a, const Shape& y, int b) {
  const int64_t from_a = product(x, a, x.rank()), from_b = product(y, b, y.rank());
  if (from_a != any && from_a == from_b) return true;
  const int64_t before_a = product(x, 0, a), before_b = product(y, 0, b);
  return before_a != any && before_a == before_b;
}

// Without the axes of the whole that have an extent of 1: of a part, others may have it.
Emit squeezed(const Shape& x) {
  std::vector<int64_t> axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x[axis] == 1) axes.push_back(axis);
  }
  return [=](const Shard&, const Node& node, std::vector<Output> inputs) {
    return op_outputs("Squeeze", {inputs[0]}, {{"squeeze_dims", axes}}, node.location);
  };
}

void reshape(const Rule& rule) {
  const Shape &x = rule.in(0), &y = rule.result();
  rule.add({{0, State::partial()}}, {{0, State::partial()}});
  if (!x.has_rank() || !y.has_rank()) return;
  const bool squeezes_all =
      rule.node.is("Squeeze") && rule.node.attr<std::vector<int64_t>>("squeeze_dims").empty();
  if (squeezes_all && !x.is_complete()) return;
  for (int a = 0; a < x.rank(); ++a) {
    for (int b = 0; b < y.rank(); ++b) {
      if (!rule.splits(x, a) || !rule.splits(y, b) || !same_parts(x, a, y, b)) continue;
      Emit emit;
      if (rule.node.is("Reshape")) emit = with_local_extent(1, b, y[b], rule.n);
      if (squeezes_all) emit = squeezed(x);
      rule.add({{0, State::split(a)}}, {{0, State::split(b)}}, emit);
      break;  // the next axes of y have extent 1
    }
  }
}

void transpose(const Rule& rule) {
  const auto axes = known(rule, 1);
  if (!axes) return;
  for (size_t b = 0; b < axes->size(); ++b) {
    const int a = positive((*axes)[b], rule.in(0).rank());
    if (rule.splits(rule.in(0), a))
      rule.add({{0, State::split(a)}}, {{0, State::split(static_cast<int>(b))}});
  }
  rule.add({{0, State::partial()}}, {{0, State::partial()}});
}

// ---- Reductions ----

Emit times(double factor) {
  return [=](const Shard& shard, const Node& node, std::vector<Output> inputs) {
    return std::vector<Output>{same_op(shard.graph, node, std::move(inputs))[0] * factor};
  };
}

void reduction(const Rule& rule) {
  const Shape& x = rule.in(0);
  const auto axes = known(rule, 1);
  if (!axes || !x.has_rank()) return;
  std::vector<bool> is_reduced(static_cast<size_t>(x.rank()));
  for (const int64_t axis : *axes) is_reduced[static_cast<size_t>(positive(axis, x.rank()))] = true;
  const bool keeps = rule.node.attr<bool>("keep_dims");
  const bool is_mean = rule.node.is("Mean") && is_floating(rule.node.outputs[0].dtype),
             is_sum = rule.node.is("Sum");
  int b = 0;
  for (int a = 0; a < x.rank(); ++a) {
    if (!is_reduced[static_cast<size_t>(a)]) {
      if (rule.splits(x, a)) rule.add({{0, State::split(a)}}, {{0, State::split(b)}});
      ++b;
      continue;
    }
    if (rule.splits(x, a) && (is_sum || is_mean))
      rule.add({{0, State::split(a)}}, {{0, State::partial()}},
               is_mean ? times(1.0 / rule.n) : Emit{});
    if (keeps) ++b;
  }
  if (is_sum || is_mean) rule.add({{0, State::partial()}}, {{0, State::partial()}});
}

void arg_reduction(const Rule& rule) {
  const Shape& x = rule.in(0);
  const auto axes = known(rule, 1);
  if (!axes || !x.has_rank()) return;
  const int reduced = positive(axes->front(), x.rank());
  for (int a = 0; a < x.rank(); ++a) {
    if (a != reduced && rule.splits(x, a))
      rule.add({{0, State::split(a)}}, {{0, State::split(a < reduced ? a : a - 1)}});
  }
}

// Sum(x²) / 2, of whichever axis.
void l2_loss(const Rule& rule) {
  for (int axis = 0; axis < rule.in(0).rank(); ++axis) {
    if (rule.splits(rule.in(0), axis)) rule.add({{0, State::split(axis)}}, {{0, State::partial()}});
  }
}

// ---- What a shape is, and what has a given one ----

// That of the whole.
void shape(const Rule& rule) {
  const Shape& x = rule.in(0);
  if (rule.in(0).has_rank() && !rule.node.inputs[0].is_handle())
    rule.add({{0, State::partial()}}, {});
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (!rule.splits(x, axis)) continue;
    const int64_t extent = x[axis];
    rule.add({{0, State::split(axis)}}, {},
             [=](const Shard& shard, const Node& node, std::vector<Output> inputs) {
               std::vector<int64_t> change(static_cast<size_t>(node.inputs[0].shape().rank()));
               change[static_cast<size_t>(axis)] = extent - extent / shard.count;
               const Output local = same_op(shard.graph, node, std::move(inputs))[0];
               return std::vector<Output>{
                   local + constant(shard.graph, integers(local.dtype(), change), "change")};
             });
  }
}

void size(const Rule& rule) {
  rule.add({{0, State::partial()}}, {});
  for (int axis = 0; axis < rule.in(0).rank(); ++axis) {
    if (!rule.splits(rule.in(0), axis)) continue;
    rule.add({{0, State::split(axis)}}, {},
             [](const Shard& shard, const Node& node, std::vector<Output> inputs) {
               const Output local = same_op(shard.graph, node, std::move(inputs))[0];
               return std::vector<Output>{local * shard.count};
             });
  }
}

void broadcast_to(const Rule& rule) {
  const Shape &x = rule.in(0), &y = rule.result();
  if (!x.has_rank()) return;
  for (int axis = 0; axis < y.rank(); ++axis) {
    if (!rule.splits(y, axis)) continue;
    const int own = axis - (y.rank() - x.rank());
    const bool is_broadcast = own < 0 || x[own] == 1;
    if (!is_broadcast && x[own] != y[axis]) continue;
    std::vector<std::pair<int, State>> inputs;
    if (!is_broadcast) inputs.push_back({0, State::split(own)});
    rule.add(inputs, {{0, State::split(axis)}}, with_local_extent(1, axis, y[axis], rule.n));
  }
  rule.add({{0, State::partial()}}, {{0, State::partial()}});
}

void fill(const Rule& rule) {
  for (int axis = 0; axis < rule.result().rank(); ++axis) {
    if (rule.splits(rule.result(), axis))
      rule.add({}, {{0, State::split(axis)}},
               with_local_extent(0, axis, rule.result()[axis], rule.n));
  }
}

// ---- Pieces ----

// Of all values, along another axis than the one at which they are joined.
void concat_v2(const Rule& rule) {
  const int values = rule.inputs() - 1;
  const auto joined = known(rule, values);
  const Shape& out = rule.result();
  if (!joined || !out.has_rank()) return;
  std::vector<std::pair<int, State>> inputs;
  for (int axis = 0; axis < out.rank(); ++axis) {
    if (axis == positive(joined->front(), out.rank()) || !rule.splits(out, axis)) continue;
    inputs.clear();
    for (int i = 0; i < values; ++i) inputs.push_back({i, State::split(axis)});
    rule.add(inputs, {{0, State::split(axis)}});
  }
  inputs.clear();
  for (int i = 0; i < values; ++i) inputs.push_back({i, State::partial()});
  rule.add(inputs, {{0, State::partial()}});
}

void pack(const Rule& rule) {
  const Shape& out = rule.result();
  if (!out.has_rank()) return;
  const int made = positive(rule.node.attr<int64_t>("axis"), out.rank());
  for (int axis = 0; axis < out.rank(); ++axis) {
    if (axis == made || !rule.splits(out, axis)) continue;
    std::vector<std::pair<int, State>> inputs;
    for (int i = 0; i < rule.inputs(); ++i)
      inputs.push_back({i, State::split(axis < made ? axis : axis - 1)});
    rule.add(inputs, {{0, State::split(axis)}});
  }
  rule.add_all_partial();
}

// Into parts along another axis: Split(axis, x), SplitV(x, sizes, axis), Unpack(x).
void cut(const Rule& rule) {
  const bool is_unpack = rule.node.is("Unpack"), is_split = rule.node.is("Split");
  const int x_at = is_split ? 1 : 0;
  const Shape& x = rule.in(x_at);
  std::optional<std::vector<int64_t>> axes;
  if (is_unpack) {
    axes = {rule.node.attr<int64_t>("axis")};
  } else {
    axes = known(rule, is_split ? 0 : 2);
  }
  if (!axes || !x.has_rank()) return;
  const int cut_axis = positive(axes->front(), x.rank());
  std::vector<std::pair<int, State>> outputs;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis == cut_axis || !rule.splits(x, axis)) continue;
    outputs.clear();
    for (int i = 0; i < rule.node.num_outputs(); ++i)
      outputs.push_back({i, State::split(is_unpack && axis > cut_axis ? axis - 1 : axis)});
    rule.add({{x_at, State::split(axis)}}, outputs);
  }
  outputs.clear();
  for (int i = 0; i < rule.node.num_outputs(); ++i) outputs.push_back({i, State::partial()});
  rule.add({{x_at, State::partial()}}, outputs);
}

// Slice(x, begin, size): axes that stay whole.
void slice(const Rule& rule) {
  const Shape &x = rule.in(0), &y = rule.result();
  const auto begin = known(rule, 1), size = known(rule, 2);
  rule.add({{0, State::partial()}}, {{0, State::partial()}});
  if (!begin || !size || !x.has_rank()) return;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (rule.splits(x, axis) && (*begin)[static_cast<size_t>(axis)] == 0 && y[axis] == x[axis])
      rule.add({{0, State::split(axis)}}, {{0, State::split(axis)}},
               with_local_extent(2, axis, x[axis], rule.n));
  }
}

// Axes that stay whole, of slices without `...` and new axes.
void strided_slice(const Rule& rule) {
  const Shape &x = rule.in(0), &y = rule.result();
  rule.add({{0, State::partial()}}, {{0, State::partial()}});
  const Shape& places = rule.in(1);
  if (!x.has_rank() || !y.has_rank() || places.rank() != 1 || places[0] == any ||
      rule.node.attr<int64_t>("ellipsis_mask") != 0 ||
      rule.node.attr<int64_t>("new_axis_mask") != 0)
    return;
  const auto strides = known(rule, 3);
  const auto has = [&](const char* mask, int axis) {
    return (rule.node.attr<int64_t>(mask) >> axis & 1) != 0;
  };
  int b = 0;
  for (int a = 0; a < x.rank(); ++a) {
    const bool is_given = a < places[0];
    if (is_given && has("shrink_axis_mask", a)) continue;
    const bool is_whole = !is_given || (has("begin_mask", a) && has("end_mask", a) && strides &&
                                        (*strides)[static_cast<size_t>(a)] == 1);
    if (is_whole && rule.splits(x, a)) rule.add({{0, State::split(a)}}, {{0, State::split(b)}});
    ++b;
  }
}

// Axes without a border, or with a single copy: Pad(x, paddings), Tile(x, multiples).
void keeps_some_axes(const Rule& rule) {
  const Shape& x = rule.in(0);
  const auto widths = known(rule, 1);
  if (!widths || !x.has_rank()) return;
  const bool is_tile = rule.node.is("Tile");
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto at = static_cast<size_t>(axis);
    const bool is_kept =
        is_tile ? (*widths)[at] == 1 : (*widths)[2 * at] == 0 && (*widths)[2 * at + 1] == 0;
    if (is_kept && rule.splits(x, axis))
      rule.add({{0, State::split(axis)}}, {{0, State::split(axis)}});
  }
}

// {loss, backprop} of each example.
void cross_entropy(const Rule& rule) {
  if (rule.splits(rule.in(0), 0))
    rule.add({{0, State::split(0)}, {1, State::split(0)}},
             {{0, State::split(0)}, {1, State::split(0)}});
}

}  // namespace

RuleFunction array_rule_of(const OpDef& op) {
  static const std::map<std::string_view, RuleFunction> rules = {
      {"Reshape", reshape},
      {"ExpandDims", reshape},
      {"Squeeze", reshape},
      {"Transpose", transpose},
      {"Sum", reduction},
      {"Mean", reduction},
      {"Max", reduction},
      {"Min", reduction},
      {"Prod", reduction},
      {"All", reduction},
      {"Any", reduction},
      {"L2Loss", l2_loss},
      {"ArgMax", arg_reduction},
      {"ArgMin", arg_reduction},
      {"Shape", shape},
      {"VariableShape", shape},
      {"Size", size},
      {"BroadcastTo", broadcast_to},
      {"Fill", fill},
      {"ConcatV2", concat_v2},
      {"Pack", pack},
      {"Unpack", cut},
      {"Split", cut},
      {"SplitV", cut},
      {"Slice", slice},
      {"StridedSlice", strided_slice},
      {"Pad", keeps_some_axes},
      {"PadV2", keeps_some_axes},
      {"Tile", keeps_some_axes},
      {"SoftmaxCrossEntropyWithLogits", cross_entropy},
      {"SparseSoftmaxCrossEntropyWithLogits", cross_entropy}};
  const auto found = rules.find(op.name);
  return found == rules.end() ? nullptr : found->second;
}

}  // namespace leat::sharding
