#include "frontends/cpp/strategies/parts/server_sharding.h"

#include <algorithm>

#include "core/error.h"

namespace leat {
namespace {

// So a server's share of the ring is within about 1/√256 of its mean.
constexpr int virtual_servers = 256;

// FNV-1a, mixed by the finaliser of MurmurHash3: FNV alone leaves similar names side by side.
uint64_t stable_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char each : text) {
    hash ^= static_cast<unsigned char>(each);
    hash *= 0x100000001b3;
  }
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
  return hash ^ (hash >> 33);
}

std::vector<std::string> names_of(const std::vector<DeviceName>& servers) {
  std::vector<std::string> out;
  for (const DeviceName& each : servers) out.push_back(each.to_string());
  return out;
}

}  // namespace

ServerSharding::Kind sharding_named(std::string_view name) {
  using Kind = ServerSharding::Kind;
  if (name == "bytes") return Kind::bytes;
  if (name == "consistent_hash") return Kind::consistent_hash;
  if (name == "rows") return Kind::rows;
  fail(Code::invalid_argument, "there is no sharding '", name,
       "'; there are: bytes, consistent_hash, rows");
}

HashRing::HashRing(const std::vector<std::string>& members) {
  for (size_t i = 0; i < members.size(); ++i) {
    for (int k = 0; k < virtual_servers; ++k)
      members_.emplace(stable_hash(concat(members[i], "#", k)), i);
  }
}

size_t HashRing::member_of(std::string_view key) const {
  check(!members_.empty(), "a hash ring without members has none for '", key, "'");
  const auto found = members_.lower_bound(stable_hash(key));
  return (found == members_.end() ? members_.begin() : found)->second;
}

ServerChoice::ServerChoice(std::vector<DeviceName> servers, const ServerSharding& sharding)
    : servers_(std::move(servers)),
      sharding_(sharding),
      ring_(sharding.kind == ServerSharding::Kind::consistent_hash ? names_of(servers_)
                                                                   : std::vector<std::string>()),
      bytes_(servers_.size()) {
  check(sharding.big_array_split >= 0, "big_array_split is a number of elements, got ",
        sharding.big_array_split);
  check(sharding.kind != ServerSharding::Kind::rows || sharding.big_array_split == 0,
        "big_array_split does not go with sharding=rows, which cuts variables of any size: leave ",
        "one of them out");
}

DeviceName ServerChoice::placed(size_t server, const Shape& shape, DType dtype) {
  bytes_[server] +=
      std::max<int64_t>(shape.elements(), 1) * static_cast<int64_t>(dtype_size(dtype));
  return servers_[server];
}

DeviceName ServerChoice::lightest(const Shape& shape, DType dtype) {
  const auto least = std::min_element(bytes_.begin(), bytes_.end());
  return placed(static_cast<size_t>(least - bytes_.begin()), shape, dtype);
}

DeviceName ServerChoice::of_variable(std::string_view name, const Shape& shape, DType dtype) {
  if (sharding_.kind != ServerSharding::Kind::consistent_hash) return lightest(shape, dtype);
  return placed(ring_.member_of(name), shape, dtype);
}

std::vector<DeviceName> ServerChoice::of_parts(const Shape& shape, DType dtype) {
  const auto count = static_cast<int64_t>(servers_.size());
  const bool is_cut =
      sharding_.kind == ServerSharding::Kind::rows ||
      (sharding_.big_array_split > 0 && shape.elements() >= sharding_.big_array_split);
  if (!is_cut || count < 2 || shape.rank() == 0 || shape[0] < count) return {};
  for (int64_t i = 0; i < count; ++i) {
    Shape range = shape;
    range.set(0, shape[0] / count + (i < shape[0] % count ? 1 : 0));
    placed(static_cast<size_t>(i), range, dtype);
  }
  return servers_;
}

}  // namespace leat
