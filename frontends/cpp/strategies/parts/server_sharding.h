// How the variables of a model go to the tasks that serve them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/device_name.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace leat {

// Cost: none per step for whole variables. A variable that is cut costs its copy, joined, on the
// worker, and a message per server each way instead of one.
//
// A variable that is cut is one of several variables w/part_0, w/part_1, …, one for each server, as
// partitioned_variable() makes them: checkpoints have "w", so a training continues with another
// sharding or another number of servers. nn::embedding() looks rows up beside each part; take()
// of a cut variable first fetches all of it. Only trainable variables with an axis 0 are cut. What
// is computed for a variable as a whole is then computed for each part: the norm that an optimizer
// clips or scales by, and top_k and the residuals of compress.h. A seeded random initialiser draws
// other numbers.
struct ServerSharding {
  enum class Kind {
    // To the server that has the fewest bytes so far, in the order in which variables are made.
    bytes,
    // To the first virtual server that follows the hash of the variable's name on a ring. With one
    // server more than k, about 1/(k+1) of the bytes move, all of them to the new one. Karger et
    // al., "Consistent hashing and random trees", STOC 1997; Li et al., OSDI 2014, §4.3.
    consistent_hash,
    // Each variable that has at least as many rows as there are servers is cut into equal ranges of
    // rows, range i on server i, as the ranges of keys in ps-lite. Others by bytes.
    rows,
  };
  Kind kind = Kind::bytes;
  // With bytes or consistent_hash: variables of at least this many elements are cut as by `rows`;
  // 0: none. MXNet's MXNET_KVSTORE_BIGARRAY_BOUND, which is 1,000,000 there.
  int64_t big_array_split = 0;
};

// By the name of an option. INVALID_ARGUMENT lists the names.
ServerSharding::Kind sharding_named(std::string_view name);

// Members at pseudo-random points of a ring, each at many.
class HashRing {
 public:
  explicit HashRing(const std::vector<std::string>& members);
  // The index of the member that has the key. The same in all processes and versions.
  size_t member_of(std::string_view key) const;

 private:
  std::map<uint64_t, size_t> members_;
};

// The choice of a server for one variable after the other.
class ServerChoice {
 public:
  // INVALID_ARGUMENT if the options contradict each other.
  ServerChoice(std::vector<DeviceName> servers, const ServerSharding& sharding);

  const std::vector<DeviceName>& servers() const { return servers_; }
  DeviceName of_variable(std::string_view name, const Shape& shape, DType dtype);
  // The one with the fewest bytes so far.
  DeviceName lightest(const Shape& shape, DType dtype);
  // Of the row ranges into which such a variable is cut; none: it is not cut.
  std::vector<DeviceName> of_parts(const Shape& shape, DType dtype);

 private:
  DeviceName placed(size_t server, const Shape& shape, DType dtype);

  const std::vector<DeviceName> servers_;
  const ServerSharding sharding_;
  const HashRing ring_;
  std::vector<int64_t> bytes_;  // placed so far, by server
};

}  // namespace leat
