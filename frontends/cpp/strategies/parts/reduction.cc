#include "frontends/cpp/strategies/parts/reduction.h"

#include <map>

namespace leat::collectives {
namespace {

int64_t bytes_of(const Output& value) {
  return value.shape().elements() * static_cast<int64_t>(dtype_size(value.dtype()));
}

// So that sending begins early.
constexpr int64_t first_bucket_bytes = 1 << 20;

// The inner product of all elements.
Output inner(const Output& a, const Output& b) { return sum(a * b); }

Output adasum(const Output& a, const Output& b) {
  const Output product = inner(a, b);
  const auto factor = [&](const Output& of) {
    const Output norm = inner(of, of);
    return where(norm > 0, 1 - product / (norm * 2), 1);
  };
  return a * factor(a) + b * factor(b);
}

Output adasum(std::vector<Output> values) {
  while (values.size() > 1) {
    std::vector<Output> halves;
    for (size_t i = 0; i < values.size(); i += 2)
      halves.push_back(i + 1 < values.size() ? adasum(values[i], values[i + 1]) : values[i]);
    values = std::move(halves);
  }
  return values.front();
}

}  // namespace

std::vector<std::vector<size_t>> make_buckets(const std::vector<Output>& tensors, int64_t limit) {
  struct Open {
    size_t bucket = 0;
    int64_t bytes = 0;
    bool is_full = false;
  };
  std::vector<std::vector<size_t>> buckets;
  std::map<DType, Open> open;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Output& value = tensors[i];
    const int64_t bytes = bytes_of(value);
    auto [found, is_new] = open.try_emplace(value.dtype());
    Open& last = found->second;
    if (is_new || last.is_full || last.bytes + bytes > limit) {
      last = {buckets.size()};
      buckets.emplace_back();
    }
    buckets[last.bucket].push_back(i);
    last.bytes += bytes;
    last.is_full = last.bucket == 0 && last.bytes >= first_bucket_bytes;
  }
  return buckets;
}

bool is_sent_whole(const Output& value, int64_t n, const AllReduceOptions& options) {
  if (options.reduction == Reduction::adasum || options.algorithm == Algorithm::direct) return true;
  return options.algorithm == Algorithm::automatic &&
         (n - 1) * (n - 2) * bytes_of(value) <= n * options.trip_bytes;
}

bool goes_between_programs(Algorithm algorithm) {
  return algorithm == Algorithm::automatic || algorithm == Algorithm::direct ||
         algorithm == Algorithm::chunks;
}

Output reshaped(Output x, const Shape& shape) { return x.shape() == shape ? x : reshape(x, shape); }

Output joined(const std::vector<Output>& parts, int axis) {
  return parts.size() == 1 ? parts.front() : concatenate(parts, axis);
}

std::vector<Output> cut(const Output& value, const std::vector<int64_t>& sizes) {
  return sizes.size() == 1 ? std::vector<Output>{value} : split(value, sizes, 0);
}

std::vector<int64_t> even_parts(int64_t rows, int64_t parts) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < parts; ++i) out.push_back(rows * (i + 1) / parts - rows * i / parts);
  return out;
}

Output reduced(const std::vector<Output>& values, Reduction reduction) {
  if (reduction == Reduction::adasum) return adasum(values);
  const Output sum = values.size() == 1 ? values.front() : add_n(values);
  if (reduction == Reduction::sum) return sum;
  return sum * (1.0 / static_cast<double>(values.size()));
}

}  // namespace leat::collectives
