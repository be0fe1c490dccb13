// Lookup tables: maps from keys, which are scalars, to values of one shape.
#pragma once

#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/resource.h"
#include "core/tensor.h"

namespace leat {

// Rows of as many elements each, one after the other.
class Rows {
 public:
  Rows(DType dtype, int64_t width) : dtype_(dtype), width_(static_cast<size_t>(width)) {}

  void append(const Tensor& from, int64_t row);
  void set(int64_t row, const Tensor& from, int64_t from_row);
  void copy(int64_t row, Tensor& to, int64_t to_row) const;
  bool equals(int64_t row, const Tensor& other, int64_t other_row) const;
  // Puts the last row in the place of this one.
  void remove(int64_t row);
  std::string to_string(int64_t row) const;

 private:
  DType dtype_;
  size_t width_;
  std::vector<char> bytes_;  // of all types but
  std::vector<std::string> strings_;
};

// TensorFlow's HashTable, which is filled once, and the mutable ones. Thread-safe: each function is
// done as a whole before or after another.
class LookupTable : public Resource {
 public:
  struct Options {
    std::string kind;  // "HashTable", for messages
    DType keys = DType::invalid, values = DType::invalid;
    Shape value_shape;
    bool is_filled_once = false;
    static Options of(const NodeView& node);
  };
  LookupTable(std::string name, Options options);

  const Options& options() const { return options_; }
  void check_fits(const NodeView& node) const override;
  std::string state() const override;

  // The value of each key; of those that are not there the default: one for all, or one for each
  // key. FAILED_PRECONDITION if the table has to be filled first.
  Tensor find(const Tensor& keys, const Tensor& default_value) const;
  // Fills a table that is filled once. A second time is fine if there are as many keys;
  // FAILED_PRECONDITION if there are not, or if a key has two values: then it may be tried again,
  // and must agree with the entries before.
  void initialize(const Tensor& keys, const Tensor& values);
  void insert(const Tensor& keys, const Tensor& values);
  void remove(const Tensor& keys);
  // Replaces all that the table has.
  void import_all(const Tensor& keys, const Tensor& values);
  std::pair<Tensor, Tensor> export_all() const;  // in any order
  int64_t size() const;

 private:
  // Every key's row.
  struct Entries {
    explicit Entries(const Options& options)
        : keys(options.keys, 1), values(options.values, options.value_shape.elements()) {}
    std::unordered_map<std::string, int64_t> rows;  // by the bytes of the key
    Rows keys, values;
  };

  void check_key_type(const Tensor& keys) const;
  void check_entries(const Tensor& keys, const Tensor& values) const;
  void check_mutable(const char* operation) const;
  void add(Entries& entries, const Tensor& keys, const Tensor& values) const;

  const Options options_;
  mutable std::mutex mutex_;  // guards what follows
  Entries entries_;
  bool is_initialized_ = false;
};

}  // namespace leat
