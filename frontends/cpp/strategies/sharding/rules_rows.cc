// Tables, by row: lookups, sums of rows, and updates of the rows that a step has read. A table may
// be cut along its rows: a worker then sees to the ids of its own rows alone.
#include <string_view>

#include "frontends/cpp/strategies/sharding/rules.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"

namespace leat::sharding {
namespace {

int input_called(const Node& node, std::string_view name) {
  for (size_t i = 0; i < node.op->schema.inputs.size(); ++i) {
    if (node.op->schema.inputs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// The ids as rows of the worker's part, and whether they are there.
struct OwnRows {
  Output rows, are_own;
};
OwnRows own_rows(const Shard& shard, Output ids, int64_t rows) {
  const int64_t own = rows / shard.count;
  const Output local = ids - own * shard.index;
  return {local, logical_and(greater_equal(local, 0), local < own)};
}

// Of those of the table's rows, zeros for others.
Emit lookup_in_own_rows(int64_t rows) {
  return [=](const Shard& shard, const Node& node, std::vector<Output> inputs) {
    const auto [local, are_own] = own_rows(shard, inputs[1], rows);
    inputs[1] = where(are_own, local, 0);
    Output found = same_op(shard.graph, node, std::move(inputs))[0];
    Output mask = are_own;
    for (int axis = node.inputs[0].shape().rank() - 1; axis > 0; --axis)
      mask = expand_dims(mask, -1);
    return std::vector<Output>{where(mask, found, 0)};
  };
}

// take(params, indices, 0): rows of a variable, or of a value.
void gather(const Rule& rule) {
  const Node& node = rule.node;
  const Shape &table = rule.in(0), &ids = rule.in(1);
  if (!table.has_rank() || !ids.has_rank()) return;
  if (node.view().has("batch_dims") && node.attr<int64_t>("batch_dims") != 0) return;
  if (node.is("GatherV2")) {
    const Tensor axis = constant_value(node.inputs[2]);
    if (!axis.is_valid() || integers(axis).front() != 0) return;
  }
  for (int axis = 1; axis < table.rank(); ++axis) {
    if (rule.splits(table, axis))
      rule.add({{0, State::split(axis)}}, {{0, State::split(axis - 1 + ids.rank())}});
  }
  for (int axis = 0; axis < ids.rank(); ++axis) {
    if (rule.splits(ids, axis)) rule.add({{1, State::split(axis)}}, {{0, State::split(axis)}});
  }
  if (rule.splits(table, 0) && is_floating(node.outputs[0].dtype))
    rule.add({{0, State::split(0)}}, {{0, State::partial()}}, lookup_in_own_rows(table[0]));
}

// UnsortedSegmentSum(data, segment_ids, num_segments): the gradient of a lookup.
void segment_sum(const Rule& rule) {
  const Shape &data = rule.in(0), &ids = rule.in(1), &out = rule.result();
  if (!data.has_rank() || !ids.has_rank() || !out.has_rank()) return;
  for (int axis = ids.rank(); axis < data.rank(); ++axis) {
    if (rule.splits(data, axis))
      rule.add({{0, State::split(axis)}}, {{0, State::split(1 + axis - ids.rank())}});
  }
  for (int axis = 0; axis < ids.rank(); ++axis) {
    if (rule.splits(data, axis) && rule.splits(ids, axis))
      rule.add({{0, State::split(axis)}, {1, State::split(axis)}}, {{0, State::partial()}});
  }
  if (rule.splits(out, 0)) {
    const int64_t rows = out[0];
    rule.add({}, {{0, State::split(0)}},
             [=](const Shard& shard, const Node& node, std::vector<Output> inputs) {
               const auto [local, are_own] = own_rows(shard, inputs[1], rows);
               inputs[1] = where(are_own, local, -1);  // left out
               inputs[2] = constant(shard.graph, rows / shard.count, inputs[2].dtype());
               return same_op(shard.graph, node, std::move(inputs));
             });
  }
  rule.add({{0, State::partial()}}, {{0, State::partial()}});
}

// ScatterSub(table, indices, updates), SparseApplyAdagrad(table, slot, …, grad, indices).
void row_update(const Rule& rule) {
  const Node& node = rule.node;
  const Shape& table = rule.in(0);
  const int ids = input_called(node, "indices");
  int rows = input_called(node, "updates");
  if (rows < 0) rows = input_called(node, "grad");
  if (ids < 0 || rows < 0 || rule.in(ids).rank() != 1 || rule.in(rows).rank() != table.rank())
    return;
  for (int axis = 0; axis < table.rank(); ++axis) {
    if (!rule.splits(table, axis)) continue;
    std::vector<std::pair<int, State>> inputs, outputs;
    bool fits = true;
    for (int i = 0; i < rule.inputs(); ++i) {
      if (i == ids || rule.in(i).rank() == 0) continue;
      if (i == rows && axis == 0) continue;
      fits = fits && rule.in(i).rank() == table.rank() && rule.in(i)[axis] == table[axis];
      inputs.push_back({i, State::split(axis)});
    }
    if (!fits) continue;
    if (node.num_outputs() > 0) outputs.push_back({0, State::split(axis)});
    if (axis > 0) {
      rule.add(inputs, outputs);
      continue;
    }
    const int64_t extent = table[0];
    rule.add(inputs, outputs,
             [=](const Shard& shard, const Node& node, std::vector<Output> inputs) {
               Output &indices = inputs[static_cast<size_t>(ids)],
                      &updates = inputs[static_cast<size_t>(rows)];
               const auto [local, are_own] = own_rows(shard, indices, extent);
               const Output kept = reshape(argwhere(are_own), {-1});
               indices = take(local, kept);
               updates = take(updates, kept);
               return same_op(shard.graph, node, std::move(inputs));
             });
  }
}

}  // namespace

RuleFunction row_rule_of(const OpDef& op) {
  const std::string_view name = op.name;
  if (name == "GatherV2" || name == "Gather" || name == "ResourceGather") return gather;
  if (name == "UnsortedSegmentSum") return segment_sum;
  if (name.starts_with("SparseApply") || name.starts_with("ResourceSparseApply")) return row_update;
  for (const std::string_view kind : {"Update", "Add", "Sub"}) {
    if (name == concat("Scatter", kind) || name == concat("ResourceScatter", kind))
      return row_update;
  }
  return nullptr;
}

}  // namespace leat::sharding
