// TensorFlow's MutableDenseHashTable: all keys, and all values, lie in one tensor of buckets, which
// an export lists. A bucket without an entry has the empty key, or the deleted key if it had an
// entry; no entry may have either key. A key is a scalar or a vector.
#pragma once

#include <mutex>

#include "kernels/state/lookup_table.h"

namespace leat {

class DenseTable : public LookupTable {
 public:
  // The node has attributes empty_key and deleted_key.
  DenseTable(std::string name, Options options, const NodeView& node);

  std::string state() const override;
  Tensor find(const Tensor& keys, const Tensor& default_value) const override;
  void insert(const Tensor& keys, const Tensor& values) override;
  void remove(const Tensor& keys) override;
  void import_all(const Tensor& keys, const Tensor& values) override;
  std::pair<Tensor, Tensor> export_all() const override;
  int64_t size() const override;

 private:
  // Rows are as wide as a key and as a value.
  struct Buckets {
    Tensor keys, values;  // [count, width]
    int64_t count() const { return keys.shape()[0]; }
  };

  int64_t key_width() const { return options().key_shape.elements(); }
  int64_t value_width() const { return options().value_shape.elements(); }
  int64_t number_of(const Tensor& keys) const;
  bool is(const Tensor& keys, int64_t i, const Tensor& reserved) const;
  void check_not_reserved(const Tensor& keys, int64_t i) const;
  uint64_t hash(const Tensor& keys, int64_t i) const;
  Buckets empty_buckets(int64_t count) const;
  template <class Wanted>
  int64_t find_bucket(const Tensor& keys, int64_t i, Wanted is_wanted) const;
  void put(const Tensor& keys, int64_t i, const Tensor& values);
  void make_room_for(int64_t more);

  const Tensor empty_key_, deleted_key_;
  const float max_load_;
  mutable std::mutex mutex_;  // guards the members below
  Buckets buckets_;
  int64_t size_ = 0;
};

}  // namespace leat
