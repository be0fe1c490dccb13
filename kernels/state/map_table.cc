#include "kernels/state/map_table.h"

#include <algorithm>

namespace leat {
namespace {

// The bytes that represent element `i`.
void key_of(const Tensor& keys, int64_t i, std::string& key) {
  if (keys.dtype() == DType::string) {
    key = keys.data<std::string>()[i];
  } else {
    const size_t size = dtype_size(keys.dtype());
    key.assign(static_cast<const char*>(keys.raw()) + i * static_cast<int64_t>(size), size);
  }
}

}  // namespace

// ---- Rows

void Rows::append(const Tensor& from, int64_t row) {
  const auto at = static_cast<size_t>(row) * width_;
  if (dtype_ == DType::string) {
    const std::string* first = from.data<std::string>() + at;
    strings_.insert(strings_.end(), first, first + width_);
  } else {
    const size_t size = dtype_size(dtype_);
    const char* first = static_cast<const char*>(from.raw()) + at * size;
    bytes_.insert(bytes_.end(), first, first + width_ * size);
  }
}

void Rows::set(int64_t row, const Tensor& from, int64_t from_row) {
  const auto to = static_cast<size_t>(row) * width_, at = static_cast<size_t>(from_row) * width_;
  if (dtype_ == DType::string) {
    std::copy_n(from.data<std::string>() + at, width_, strings_.data() + to);
  } else {
    const size_t size = dtype_size(dtype_);
    std::copy_n(static_cast<const char*>(from.raw()) + at * size, width_ * size,
                bytes_.data() + to * size);
  }
}

void Rows::copy(int64_t row, Tensor& to, int64_t to_row) const {
  const auto from = static_cast<size_t>(row) * width_, at = static_cast<size_t>(to_row) * width_;
  if (dtype_ == DType::string) {
    std::copy_n(strings_.data() + from, width_, to.data<std::string>() + at);
  } else {
    const size_t size = dtype_size(dtype_);
    std::copy_n(bytes_.data() + from * size, width_ * size,
                static_cast<char*>(to.raw()) + at * size);
  }
}

bool Rows::equals(int64_t row, const Tensor& other, int64_t other_row) const {
  const auto from = static_cast<size_t>(row) * width_, at = static_cast<size_t>(other_row) * width_;
  if (dtype_ == DType::string)
    return std::equal(strings_.data() + from, strings_.data() + from + width_,
                      other.data<std::string>() + at);
  const size_t size = dtype_size(dtype_);
  return std::equal(bytes_.data() + from * size, bytes_.data() + (from + width_) * size,
                    static_cast<const char*>(other.raw()) + at * size);
}

void Rows::remove(int64_t row) {
  const size_t size = dtype_ == DType::string ? 1 : dtype_size(dtype_);
  const auto remove_from = [&](auto& elements, size_t width) {
    const auto last = elements.end() - static_cast<std::ptrdiff_t>(width);
    const auto place = elements.begin() + static_cast<std::ptrdiff_t>(width) * row;
    if (place != last) std::move(last, elements.end(), place);
    elements.erase(last, elements.end());
  };
  dtype_ == DType::string ? remove_from(strings_, width_) : remove_from(bytes_, width_ * size);
}

std::string Rows::to_string(int64_t row) const {
  Tensor out(dtype_, Shape{static_cast<int64_t>(width_)});
  copy(row, out, 0);
  return width_ == 1 ? out.reshaped({}).to_string() : out.to_string();
}

// ---- MapTable

MapTable::MapTable(std::string name, Options options)
    : LookupTable(std::move(name), std::move(options)),
      is_filled_once_(this->options().kind == "HashTable"),
      entries_(this->options()) {}

std::string MapTable::state() const {
  const std::lock_guard lock(mutex_);
  return concat(options().kind, " '", name(), "' has ", entries_.rows.size(), " entries",
                is_filled_once_ && !is_initialized_ ? ", is not initialized" : "");
}

void MapTable::check_mutable(const char* operation) const {
  if (is_filled_once_) {
    fail(Code::unimplemented, operation, " not supported by ", options().kind, " '", name(),
         "', which is filled once; use a MutableHashTable");
  }
}

Tensor MapTable::find(const Tensor& keys, const Tensor& default_value) const {
  check_default(keys, default_value);
  // As in TensorFlow, a table that is filled once has a single default, the first.
  const bool is_per_key = !is_filled_once_ && !(default_value.shape() == options().value_shape);
  Tensor out(options().values, shape_of_values(keys.shape()));
  Rows defaults(options().values, options().value_shape.elements());
  for (int64_t i = 0; keys.elements() > 0 && i < (is_per_key ? keys.elements() : 1); ++i)
    defaults.append(default_value, i);
  std::string key;
  const std::lock_guard lock(mutex_);
  if (is_filled_once_ && !is_initialized_) {
    fail(Code::failed_precondition, "Table not initialized. (", options().kind, " '", name(),
         "': run initialize_variables() or tables_initializer() first)");
  }
  for (int64_t i = 0; i < keys.elements(); ++i) {
    key_of(keys, i, key);
    const auto found = entries_.rows.find(key);
    if (found != entries_.rows.end()) {
      entries_.values.copy(found->second, out, i);
    } else {
      defaults.copy(is_per_key ? i : 0, out, i);
    }
  }
  return out;
}

void MapTable::add(Entries& entries, const Tensor& keys, const Tensor& values) const {
  std::string key;
  for (int64_t i = 0; i < keys.elements(); ++i) {
    key_of(keys, i, key);
    const auto [found, is_new] =
        entries.rows.try_emplace(key, static_cast<int64_t>(entries.rows.size()));
    if (is_new) {
      entries.keys.append(keys, i);
      entries.values.append(values, i);
    } else if (!is_filled_once_) {
      entries.values.set(found->second, values, i);
    } else if (!entries.values.equals(found->second, values, i)) {
      Rows added(options().values, options().value_shape.elements());
      added.append(values, i);
      fail(Code::failed_precondition, "HashTable has different value for same key. Key ",
           entries.keys.to_string(found->second), " has ", entries.values.to_string(found->second),
           " and trying to add value ", added.to_string(0));
    }
  }
}

void MapTable::initialize(const Tensor& keys, const Tensor& values) {
  if (!is_filled_once_) return LookupTable::initialize(keys, values);
  check_entries(keys, values);
  check(keys.elements() > 0, "keys and values cannot be empty tensors.");
  const std::lock_guard lock(mutex_);
  if (is_initialized_) {
    if (keys.elements() == static_cast<int64_t>(entries_.rows.size())) return;
    fail(Code::failed_precondition, "Table was already initialized with different data. (",
         options().kind, " '", name(), "' has ", entries_.rows.size(), " entries, not ",
         keys.elements(), ")");
  }
  add(entries_, keys, values);  // as in TensorFlow, entries before a conflict stay
  is_initialized_ = true;
}

void MapTable::insert(const Tensor& keys, const Tensor& values) {
  check_mutable("Insert");
  check_entries(keys, values);
  const std::lock_guard lock(mutex_);
  add(entries_, keys, values);
}

void MapTable::remove(const Tensor& keys) {
  check_mutable("Remove");
  check_keys(keys);
  std::string key;
  const std::lock_guard lock(mutex_);
  for (int64_t i = 0; i < keys.elements(); ++i) {
    key_of(keys, i, key);
    const auto found = entries_.rows.find(key);
    if (found == entries_.rows.end()) continue;
    const int64_t row = found->second, last = static_cast<int64_t>(entries_.rows.size()) - 1;
    if (row != last) {
      Tensor last_key(options().keys, {});
      entries_.keys.copy(last, last_key, 0);
      std::string moved;
      key_of(last_key, 0, moved);
      entries_.rows[moved] = row;
    }
    entries_.rows.erase(key);
    entries_.keys.remove(row);
    entries_.values.remove(row);
  }
}

void MapTable::import_all(const Tensor& keys, const Tensor& values) {
  check(keys.shape().rank() == 1, "Keys must be a vector, but received ", keys.shape());
  if (is_filled_once_) return initialize(keys, values);
  check_entries(keys, values);
  Entries entries(options());
  add(entries, keys, values);
  const std::lock_guard lock(mutex_);
  std::swap(entries_, entries);
}

std::pair<Tensor, Tensor> MapTable::export_all() const {
  const std::lock_guard lock(mutex_);
  if (is_filled_once_ && !is_initialized_)
    fail(Code::aborted, "HashTable is not initialized. ('", name(), "')");
  const auto n = static_cast<int64_t>(entries_.rows.size());
  Tensor keys(options().keys, {n}), values(options().values, shape_of_values({n}));
  for (int64_t i = 0; i < n; ++i) {
    entries_.keys.copy(i, keys, i);
    entries_.values.copy(i, values, i);
  }
  return {std::move(keys), std::move(values)};
}

int64_t MapTable::size() const {
  const std::lock_guard lock(mutex_);
  if (is_filled_once_ && !is_initialized_) return 0;
  return static_cast<int64_t>(entries_.rows.size());
}

}  // namespace leat
