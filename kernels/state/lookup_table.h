// Lookup tables: maps from keys to values; all values have one shape.
#pragma once

#include <string>
#include <utility>

#include "core/state/resource.h"
#include "core/tensor.h"

namespace leat {

// Thread-safe: each function is atomic.
class LookupTable : public Resource {
 public:
  struct Options {
    std::string kind;  // "HashTable", for messages
    DType keys = DType::invalid, values = DType::invalid;
    Shape key_shape, value_shape;
    static Options of(const NodeView& node);
  };
  LookupTable(std::string name, Options options);

  const Options& options() const { return options_; }
  std::type_index kind() const override { return typeid(LookupTable); }
  void check_fits(const NodeView& node) const override;

  // The value of each key, or the default for missing keys: one for all, or one for each key.
  // FAILED_PRECONDITION if the table must be filled first.
  virtual Tensor find(const Tensor& keys, const Tensor& default_value) const = 0;
  // Fills a table that is filled once. A second call succeeds if it has as many keys.
  // FAILED_PRECONDITION if it does not, or if a key has two values: then the call may be repeated,
  // and must agree with the existing entries.
  virtual void initialize(const Tensor& keys, const Tensor& values);
  virtual void insert(const Tensor& keys, const Tensor& values) = 0;
  virtual void remove(const Tensor& keys) = 0;
  // Replaces all entries.
  virtual void import_all(const Tensor& keys, const Tensor& values) = 0;
  // Returns what import_all() takes, in any order.
  virtual std::pair<Tensor, Tensor> export_all() const = 0;
  virtual int64_t size() const = 0;

 protected:
  void check_keys(const Tensor& keys) const;
  void check_entries(const Tensor& keys, const Tensor& values) const;
  void check_default(const Tensor& keys, const Tensor& default_value) const;
  // The shape of the values for keys of this shape.
  Shape shape_of_values(const Shape& keys) const;

 private:
  const Options options_;
};

// The table that a node describes. Its constant inputs, such as the empty_key of a
// MutableDenseHashTable, are among the attributes.
std::shared_ptr<LookupTable> make_lookup_table(const NodeView& node);

}  // namespace leat
