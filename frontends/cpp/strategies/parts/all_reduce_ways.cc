#include "frontends/cpp/strategies/parts/all_reduce_ways.h"

#include <algorithm>
#include <bit>

#include "frontends/cpp/strategies/parts/reduction.h"

namespace leat::collectives {
namespace {

using Parts = std::vector<Output>;

// The sum of all n workers as the result.
Output result_of(const Output& sum, int n, Reduction reduction) {
  return reduction == Reduction::sum ? sum : sum * (1.0 / n);
}

size_t at(int k) { return static_cast<size_t>(k); }

int64_t extent(const PerReplica& values) { return values.front().shape()[0]; }

}  // namespace

PerReplica directly(const Exchange& exchange, const PerReplica& values, Reduction reduction) {
  return exchange.on_each([&](size_t) { return reduced(values, reduction); });
}

std::vector<Output> scattered(const Exchange& exchange, const PerReplica& values,
                              const std::vector<Owner>& owners, Reduction reduction, int axis) {
  const std::vector<int64_t> sizes = chunk_sizes(values.front().shape()[axis], owners);
  const auto chunks = exchange.on_each([&](size_t k) { return split(values[k], sizes, axis); });
  std::vector<Output> out;
  for (size_t owner = 0; owner < owners.size(); ++owner) {
    out.push_back(exchange.on(owners[owner], [&] {
      Parts of_owner;
      for (const Parts& of_worker : chunks) of_owner.push_back(of_worker[owner]);
      return reduced(of_owner, reduction);
    }));
  }
  return out;
}

PerReplica gathered(const Exchange& exchange, const PerReplica& values, int axis) {
  return exchange.on_each([&](size_t) { return joined(values, axis); });
}

PerReplica by_ring(const Exchange& exchange, const PerReplica& values, Reduction reduction) {
  const int n = exchange.count();
  const auto round = [n](int i) { return at((i + n) % n); };
  const std::vector<int64_t> sizes = even_parts(extent(values), n);
  std::vector<Parts> segments = exchange.on_each([&](size_t k) { return cut(values[k], sizes); });
  // In turn t worker k gets the segment that began at k - t - 1.
  for (int t = 0; t + 1 < n; ++t) {
    for (int k = 0; k < n; ++k) {
      const size_t s = round(k - t - 1);
      const Output& came = segments[round(k - 1)][s];
      segments[at(k)][s] = exchange.on(k, [&] { return came + segments[at(k)][s]; });
    }
  }
  for (int k = 0; k < n; ++k) {
    Output& whole = segments[at(k)][round(k + 1)];
    whole = exchange.on(k, [&] { return result_of(whole, n, reduction); });
  }
  for (int t = 0; t + 1 < n; ++t) {
    for (int k = 0; k < n; ++k) {
      const size_t s = round(k - t);
      const Output& came = segments[round(k - 1)][s];
      segments[at(k)][s] = exchange.on(k, [&] { return identity(came); });
    }
  }
  return exchange.on_each([&](size_t k) { return joined(segments[k]); });
}

PerReplica by_halving(const Exchange& exchange, const PerReplica& values, Reduction reduction) {
  const int n = exchange.count();
  const auto p = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  PerReplica parts(values.begin(), values.begin() + p);
  for (int k = 0; k + p < n; ++k)
    parts[at(k)] = exchange.on(k, [&] { return values[at(k)] + values[at(k + p)]; });
  for (int distance = p / 2; distance > 0; distance /= 2) {
    std::vector<Parts> halves;
    for (int k = 0; k < p; ++k) {
      halves.push_back(exchange.on(
          k, [&] { return cut(parts[at(k)], even_parts(parts[at(k)].shape()[0], 2)); }));
    }
    for (int k = 0; k < p; ++k) {
      const size_t half = (k & distance) == 0 ? 0 : 1;
      parts[at(k)] = exchange.on(
          k, [&] { return halves[at(k & ~distance)][half] + halves[at(k | distance)][half]; });
    }
  }
  for (int k = 0; k < p; ++k)
    parts[at(k)] = exchange.on(k, [&] { return result_of(parts[at(k)], n, reduction); });
  for (int distance = 1; distance < p; distance *= 2) {
    const PerReplica before = parts;
    for (int k = 0; k < p; ++k) {
      parts[at(k)] = exchange.on(k, [&] {
        return joined({before[at(k & ~distance)], before[at(k | distance)]});
      });
    }
  }
  for (int k = p; k < n; ++k)
    parts.push_back(exchange.on(k, [&] { return identity(parts[at(k - p)]); }));
  return parts;
}

PerReplica by_tree(const Exchange& exchange, const PerReplica& values, Reduction reduction) {
  const int n = exchange.count();
  PerReplica out = values;
  int distance = 1;
  for (; distance < n; distance *= 2) {
    for (int k = 0; k + distance < n; k += 2 * distance)
      out[at(k)] = exchange.on(k, [&] { return out[at(k)] + out[at(k + distance)]; });
  }
  out[0] = exchange.on(0, [&] { return result_of(out[0], n, reduction); });
  while ((distance /= 2) > 0) {
    for (int k = 0; k + distance < n; k += 2 * distance)
      out[at(k + distance)] = exchange.on(k + distance, [&] { return identity(out[at(k)]); });
  }
  return out;
}

PerReplica by_groups(const Exchange& exchange, const PerReplica& values,
                     const std::vector<std::vector<int>>& groups, Reduction reduction) {
  const auto smallest =
      std::min_element(groups.begin(), groups.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  const std::vector<int64_t> sizes = even_parts(extent(values), std::ssize(*smallest));
  const auto parts = exchange.on_each([&](size_t k) { return cut(values[k], sizes); });
  std::vector<Parts> whole(groups.size());  // by group, then part
  for (size_t part = 0; part < sizes.size(); ++part) {
    std::vector<Parts> chunks;  // by group: of the sum within it
    for (const std::vector<int>& group : groups) {
      chunks.push_back(exchange.on(group[part], [&] {
        Parts of_group;
        for (const int k : group) of_group.push_back(parts[at(k)][part]);
        return cut(reduced(of_group, Reduction::sum), even_parts(sizes[part], std::ssize(groups)));
      }));
    }
    Parts sums;
    for (size_t g = 0; g < groups.size(); ++g) {
      sums.push_back(exchange.on(groups[g][part], [&] {
        Parts of_chunk;
        for (const Parts& each : chunks) of_chunk.push_back(each[g]);
        return result_of(reduced(of_chunk, Reduction::sum), exchange.count(), reduction);
      }));
    }
    for (size_t g = 0; g < groups.size(); ++g)
      whole[g].push_back(exchange.on(groups[g][part], [&] { return joined(sums); }));
  }
  PerReplica out(values.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const int k : groups[g]) out[at(k)] = exchange.on(k, [&] { return joined(whole[g]); });
  }
  return out;
}

}  // namespace leat::collectives
