// Tables whose keys are arbitrary scalars: TensorFlow's HashTable, which is filled once, and
// MutableHashTable.
#pragma once

#include <mutex>
#include <unordered_map>
#include <vector>

#include "kernels/state/lookup_table.h"

namespace leat {

// Rows of equal length, one after another.
class Rows {
 public:
  Rows(DType dtype, int64_t width) : dtype_(dtype), width_(static_cast<size_t>(width)) {}

  void append(const Tensor& from, int64_t row);
  void set(int64_t row, const Tensor& from, int64_t from_row);
  void copy(int64_t row, Tensor& to, int64_t to_row) const;
  bool equals(int64_t row, const Tensor& other, int64_t other_row) const;
  // Moves the last row into the place of `row`.
  void remove(int64_t row);
  std::string to_string(int64_t row) const;

 private:
  DType dtype_;
  size_t width_;
  std::vector<char> bytes_;  // of all types except strings
  std::vector<std::string> strings_;
};

class MapTable : public LookupTable {
 public:
  MapTable(std::string name, Options options);

  std::string state() const override;
  Tensor find(const Tensor& keys, const Tensor& default_value) const override;
  void initialize(const Tensor& keys, const Tensor& values) override;
  void insert(const Tensor& keys, const Tensor& values) override;
  void remove(const Tensor& keys) override;
  void import_all(const Tensor& keys, const Tensor& values) override;
  std::pair<Tensor, Tensor> export_all() const override;
  int64_t size() const override;

 private:
  // The row of every key.
  struct Entries {
    explicit Entries(const Options& options)
        : keys(options.keys, 1), values(options.values, options.value_shape.elements()) {}
    std::unordered_map<std::string, int64_t> rows;  // by the key's bytes
    Rows keys, values;
  };

  void check_mutable(const char* operation) const;
  void add(Entries& entries, const Tensor& keys, const Tensor& values) const;

  const bool is_filled_once_;
  mutable std::mutex mutex_;  // guards the members below
  Entries entries_;
  bool is_initialized_ = false;
};

}  // namespace leat
