#include "frontends/cpp/strategies/parts/micro_batches.h"

#include "graph/ops.h"

namespace leat {
namespace {

// The number of rows, if it is known and the same for all; else -1.
int64_t known_rows(const Batch& batch) {
  const Shape& first = batch[0].shape();
  const int64_t rows = first.has_rank() ? first[0] : -1;
  for (const Output& component : batch) {
    if (!component.shape().has_rank() || component.shape()[0] != rows) return -1;
  }
  return rows;
}

}  // namespace

MicroBatches divide(const Batch& batch, int count, Location at) {
  check(count > 0, "a batch (", at, ") is divided into at least one part, not ", count);
  for (int i = 0; i < batch.size(); ++i) {
    check(!batch[i].shape().has_rank() || batch[i].shape().rank() > 0, "component ", i,
          " of the dataset (", at, ") is a number, which cannot be divided into ", count,
          " micro-batches: make batches of it with dataset.batch(n)");
  }
  if (count == 1) return {.parts = {batch}, .weights = {}};
  Graph& graph = batch[0].graph();
  const NameScope scope(graph, "divide");
  const int64_t rows = known_rows(batch);
  const bool is_even = rows >= 0 && rows % count == 0;
  std::vector<std::vector<Output>> parts(static_cast<size_t>(count));
  MicroBatches out;
  if (is_even) {
    for (const Output& component : batch) {
      const std::vector<Output> pieces = split(component, count, 0, at);
      for (size_t m = 0; m < parts.size(); ++m) parts[m].push_back(pieces[m]);
    }
  } else {
    const Output n = shape_of(batch[0], i64, at)[0];
    std::vector<Output> borders;
    for (int m = 0; m <= count; ++m)
      borders.push_back(floor_div(n * static_cast<int64_t>(m), static_cast<int64_t>(count)));
    for (size_t m = 0; m < parts.size(); ++m) {
      for (const Output& component : batch)
        parts[m].push_back(component[{slice(borders[m], borders[m + 1])}]);
      out.weights.push_back(cast(borders[m + 1] - borders[m], f32, at) / cast(n, f32, at));
    }
  }
  for (auto& part : parts) out.parts.emplace_back(std::move(part), batch.names());
  return out;
}

Output MicroBatches::mean_of(const std::vector<Output>& values, Location at) const {
  if (values.size() == 1) return values.front();
  Output sum;
  for (size_t m = 0; m < values.size(); ++m) {
    Output value = values[m];
    if (!weights.empty()) {
      const Output weight = cast(weights[m], value.dtype(), at);
      value = where(weights[m] > 0, value * weight, zeros_like(value, at), at);
    }
    sum = sum ? sum + value : value;
  }
  return weights.empty() ? sum * (1.0 / static_cast<double>(values.size())) : sum;
}

}  // namespace leat
