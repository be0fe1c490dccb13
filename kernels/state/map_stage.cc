// MapStage, MapUnstage and their like, plain and Ordered: a staging map, found by its name, which
// holds tuples of tensors under keys. Components may arrive, and be taken, one by one.
#include <map>
#include <numeric>
#include <unordered_map>

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/named_resource.h"
#include "kernels/state/staging.h"

namespace leat {
namespace {

using Indices = std::vector<size_t>;

bool has_all(const StagedTuple& tuple) {
  return std::all_of(tuple.begin(), tuple.end(), [](const auto& x) { return x.has_value(); });
}

bool has_none(const StagedTuple& tuple) {
  return std::none_of(tuple.begin(), tuple.end(), [](const auto& x) { return x.has_value(); });
}

// `Map` decides which key is taken where none is requested: the smallest, or the first in a hash
// table.
template <class Map>
class StagingMap : public WaitingState {
 public:
  explicit StagingMap(const NodeView& node)
      : WaitingState(resource_name(node)), limits_(StagingLimits::of(node)) {}

  std::string state() const override {
    const std::lock_guard lock(mutex_);
    return concat("staging map '", name(), "' has ", complete_.size(), " keys", limits_.to_string(),
                  " and ", incomplete_.size(), " incomplete ones; ", waiting(), " operations wait");
  }

  // Components `indices` of a tuple of `size`. A key that is already complete stays as it is.
  void put(int64_t key, const Indices& indices, size_t size, StagedTuple components,
           Cancellation& cancellation, Done done) {
    const uint64_t bytes = bytes_of(components);
    limits_.check_bytes(bytes);
    when_possible(
        [this, key, indices, size, bytes, components = std::move(components)]() mutable {
          const bool is_whole = indices.size() == size;
          if (!limits_.has_space(is_whole ? complete_.size() : 0, bytes_, bytes)) return false;
          if (is_whole) {
            if (complete_.emplace(key, std::move(components)).second) bytes_ += bytes;
            return true;
          }
          add(key, indices, size, std::move(components));
          bytes_ += bytes;
          return true;
        },
        cancellation, std::move(done));
  }

  struct Entry {
    int64_t key = 0;
    StagedTuple tuple;
  };
  using Taken = std::function<void(const Entry&)>;

  // Components of this key or, without a key, of the next one. `keeps`: they also stay in the map.
  void get(std::optional<int64_t> key, Indices indices, bool keeps, Taken taken,
           Cancellation& cancellation, Done done) {
    const auto out = std::make_shared<Entry>();
    when_possible(
        [this, key, indices = std::move(indices), keeps, out] {
          const auto found = key ? complete_.find(*key) : complete_.begin();
          if (found == complete_.end()) return false;
          *out = {found->first, chosen(*found, indices)};
          if (keeps) return true;
          for (const size_t i : indices) found->second[i].reset();
          bytes_ -= bytes_of(out->tuple);
          if (has_none(found->second)) complete_.erase(found);
          return true;
        },
        cancellation, giving(out, std::move(taken), std::move(done)));
  }

  int64_t size() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(complete_.size());
  }

  int64_t incomplete_size() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(incomplete_.size());
  }

  void clear() {
    change([this] {
      complete_.clear();
      incomplete_.clear();
      bytes_ = 0;
    });
  }

 private:
  void add(int64_t key, const Indices& indices, size_t size, StagedTuple components) {
    const auto found = incomplete_.find(key);
    if (found != incomplete_.end()) {
      check(found->second.size() == size, "key ", key, " has ", found->second.size(),
            " components, not ", size);
      for (const size_t i : indices) {
        check(!found->second[i], "The tensor for index '", i, "' for key '", key,
              "' was already initialized.");
      }
    }
    StagedTuple& tuple = incomplete_.try_emplace(key, size).first->second;
    for (size_t i = 0; i < indices.size(); ++i) tuple[indices[i]] = std::move(components[i]);
    if (!has_all(tuple)) return;
    auto whole = incomplete_.extract(key);
    const uint64_t bytes = bytes_of(whole.mapped());
    if (!complete_.emplace(key, std::move(whole.mapped())).second) bytes_ -= bytes;
  }

  static StagedTuple chosen(const std::pair<const int64_t, StagedTuple>& entry,
                            const Indices& indices) {
    StagedTuple out;
    for (const size_t i : indices) {
      check(i < entry.second.size(), "Index '", i, "' for key '", entry.first,
            "' was out of bounds '", entry.second.size(), "'.");
      check(entry.second[i].has_value(), "Tensor at index '", i, "' for key '", entry.first,
            "' has already been removed.");
      out.push_back(entry.second[i]);
    }
    return out;
  }

  const StagingLimits limits_;
  Map complete_;
  std::map<int64_t, StagedTuple> incomplete_;
  uint64_t bytes_ = 0;
};

using Done = std::function<void(Status)>;
using DTypes = std::vector<DType>;
using OrderedMap = StagingMap<std::map<int64_t, StagedTuple>>;
// TensorFlow's hash table, so that MapUnstageNoKey takes the keys in its order.
using HashMap = StagingMap<std::unordered_map<int64_t, StagedTuple>>;

template <class Map>
Map& map_of(ExecuteContext& c) {
  return own_resource<Map>(c);
}

int64_t key_of(const Tensor& key) {
  check(key.elements() == 1, "key must be a scalar, got shape ", key.shape());
  return key.item<int64_t>();
}

Indices indices_of(const Tensor& tensor) {
  Indices out;
  check(tensor.elements() > 0, "indices must not be empty");
  for (const int32_t index : tensor.span<int32_t>()) {
    check(index >= 0, "indices must not be negative, got ", tensor);
    check(out.empty() || out.back() < static_cast<size_t>(index),
          "Indices are not strictly ordered: ", tensor);
    out.push_back(static_cast<size_t>(index));
  }
  return out;
}

template <class Map>
void stage(ExecuteContext& c, Done done) {
  const int64_t key = key_of(c.input(0));
  const Indices indices = indices_of(c.input(1));
  const auto& dtypes = c.node().attr<DTypes>("dtypes");
  const auto n = static_cast<size_t>(c.num_inputs() - 2);
  check(indices.size() == n, "there are ", indices.size(), " indices for ", n, " values");
  check(indices.back() < dtypes.size(), "Index '", indices.back(), "' for key '", key,
        "' was out of bounds '", dtypes.size(), "'.");
  StagedTuple components;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& value = c.input(2 + static_cast<int>(i));
    check(value.dtype() == dtypes[indices[i]], "component ", indices[i], " of key ", key,
          " must be of dtype ", dtypes[indices[i]], ", got ", value.dtype());
    components.emplace_back(value);
  }
  map_of<Map>(c).put(key, indices, dtypes.size(), std::move(components), c.cancellation(),
                     std::move(done));
}

template <class Map, bool keeps>
void unstage(ExecuteContext& c, Done done) {
  map_of<Map>(c).get(
      key_of(c.input(0)), indices_of(c.input(1)), keeps,
      [&c](const typename Map::Entry& entry) { set_staged(c, entry.tuple, 0); }, c.cancellation(),
      std::move(done));
}

template <class Map>
void unstage_any(ExecuteContext& c, Done done) {
  map_of<Map>(c).get(
      {}, indices_of(c.input(0)), false,
      [&c](const typename Map::Entry& entry) {
        set_staged(c, entry.tuple, 1);
        c.set_output(0, Tensor::scalar(entry.key));
      },
      c.cancellation(), std::move(done));
}

template <class Map, int64_t (Map::*count)() const>
void count_of(ExecuteContext& c) {
  c.set_output(0, Tensor::scalar(static_cast<int32_t>((map_of<Map>(c).*count)())));
}

// ---- Ops

const char* const some_types = "dtypes: list(type) >= 1";
const char* const any_types = "dtypes: list(type)";

template <class Map>
Op on_map(std::string prefix, OpDef op, Kernel kernel) {
  op.name = prefix + op.name;
  return Op(staging_op(std::move(op), std::move(kernel),
                       [](const NodeView& node) { return std::make_shared<Map>(node); }));
}

template <class Map>
std::vector<Op> family(const std::string& prefix, const std::string& turn) {
  std::vector<Op> out;
  const auto add = [&](OpDef op, Kernel kernel) {
    out.push_back(on_map<Map>(prefix, std::move(op), std::move(kernel)));
  };
  add({.name = "MapStage",
       .doc = "Puts the values, as components `indices` of the tuple under key, into the staging "
              "map called shared_name (or like the node) in `container`; waits while it has "
              "`capacity` complete tuples or memory_limit bytes (0: no limit).",
       .inputs = {"key: int64", "indices: int32", "values: fake_dtypes"},
       .attrs = {any_types, "fake_dtypes: list(type) >= 1"},
       .shape = shapes::none()},
      {.execute_async = stage<Map>});
  add({.name = "MapPeek",
       .doc = "values = components `indices` of the tuple under key, which stay there; waits until "
              "it is complete.",
       .inputs = {"key: int64", "indices: int32"},
       .outputs = {"values: dtypes"},
       .attrs = {some_types}},
      {.execute_async = unstage<Map, true>});
  add({.name = "MapUnstage",
       .doc = "Removes and returns components `indices` of the tuple under key; waits until it is "
              "complete.",
       .inputs = {"key: int64", "indices: int32"},
       .outputs = {"values: dtypes"},
       .attrs = {some_types}},
      {.execute_async = unstage<Map, false>});
  add({.name = "MapUnstageNoKey",
       .doc = "Removes and returns components `indices` of a complete tuple, under " + turn +
              ", with the key; waits for one.",
       .inputs = {"indices: int32"},
       .outputs = {"key: int64", "values: dtypes"},
       .attrs = {some_types}},
      {.execute_async = unstage_any<Map>});
  add({.name = "MapSize",
       .doc = "size = the number of complete tuples in the staging map.",
       .outputs = {"size: int32"},
       .attrs = {any_types},
       .shape = shapes::scalar()},
      {.execute = count_of<Map, &Map::size>});
  add({.name = "MapIncompleteSize",
       .doc = "size = the number of incomplete tuples in the staging map.",
       .outputs = {"size: int32"},
       .attrs = {any_types},
       .shape = shapes::scalar()},
      {.execute = count_of<Map, &Map::incomplete_size>});
  add({.name = "MapClear",
       .doc = "Removes everything from the staging map.",
       .attrs = {any_types},
       .shape = shapes::none()},
      {.execute = [](ExecuteContext& c) { map_of<Map>(c).clear(); }});
  return out;
}

const auto plain_ops = family<HashMap>("", "any key");
const auto ordered_ops = family<OrderedMap>("Ordered", "the smallest key");

}  // namespace
}  // namespace leat
