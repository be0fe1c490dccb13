#include "frontends/cpp/strategies/parts/conflicts.h"

#include "frontends/cpp/control_flow/while_loop.h"

namespace leat {
namespace {

// That a sample touches a row: the numbers of both.
struct Touches {
  Output samples, rows;  // [m], int32
  Output row_count;      // a scalar, int32
};

Output joined(const std::vector<Output>& vectors) {
  return vectors.size() == 1 ? vectors.front() : concatenate(vectors);
}

Touches touches_of(const std::vector<std::vector<Output>>& tables, Location at) {
  std::vector<Output> samples, rows;
  Output row_count;
  for (const std::vector<Output>& table : tables) {
    std::vector<Output> ids;
    for (const Output& each : table) {
      check(is_integer(each.dtype()) && (!each.shape().has_rank() || each.shape().rank() > 0),
            "ids of rows (", at, ") must be integers, an axis of samples first, got '", each.name(),
            "', which is ", each.dtype(), each.shape());
      const Output flat = reshape(each, {-1});
      const Output per_sample = floor_div(size_of(flat, i32), maximum(shape_of(each, i32)[0], 1));
      samples.push_back(
          floor_div(arange(each.graph(), size_of(flat, i32)), maximum(per_sample, 1)));
      ids.push_back(cast(flat, i64));
    }
    const Unique found = unique(joined(ids));
    rows.push_back(row_count ? found.indices + row_count : found.indices);
    const Output count = size_of(found.values, i32);
    row_count = row_count ? row_count + count : count;
  }
  return {joined(samples), joined(rows), row_count};
}

Output segment_min(const Output& data, const Output& segments, const Output& count) {
  return op("UnsortedSegmentMin", {data, segments, count});
}

}  // namespace

Output without_conflicts(const std::vector<std::vector<Output>>& tables, int64_t threads,
                         Location at) {
  check(!tables.empty() && !tables.front().empty(), "without_conflicts (", at, ") needs ids");
  check(threads > 0, "without_conflicts (", at, "): threads must be positive, got ", threads);
  const Output first = tables.front().front();
  Graph& graph = first.graph();
  const NameScope scope(graph, "conflicts");
  const Output n = shape_of(first, i32)[0];
  const Touches touches = touches_of(tables, at);
  // A sample's label becomes the lowest one of its component.
  const auto next = [&](const Output& labels) {
    const Output of_rows =
        segment_min(take(labels, touches.samples), touches.rows, touches.row_count);
    const Output lowest =
        minimum(labels, segment_min(take(of_rows, touches.rows), touches.samples, n));
    return take(lowest, lowest);  // a label is a sample of the component, and may know better
  };
  const Output begun = arange(graph, n);
  const std::vector<Output> labels =
      while_loop([](const std::vector<Output>& v) { return v[1]; },
                 [&](const std::vector<Output>& v) {
                   const Output better = next(v[0]);
                   return std::vector<Output>{better, any(better != v[0])};
                 },
                 {begun, n > 0}, {}, at);
  // Components one after the other: each where its first sample would be.
  const Output sizes = segment_sum(ones_like(begun), labels[0], n);
  const Output starts = take(cumsum(sizes, 0, {.exclusive = true}), labels[0]);
  // starts < n, so the quotient is below threads.
  return cast(floor_div(cast(starts, i64) * threads, cast(maximum(n, 1), i64)), i32);
}

}  // namespace leat
